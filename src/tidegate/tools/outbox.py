"""What goes back over one HTTP request, and when is it complete?

Lives here: the messages that wait to be written for one POST or GET, with ids under which a client
that lost the stream finds the rest. Does not live here: who writes them (http_answers), where they
come from (http_sessions, http_modern).
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from tidegate.jsonrpc import Id, typed

_KEPT: Final = 256
"""How many events of one stream can be asked for again; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Item:
    """One message as JSON. `answers` is the id of the request that it answers, if it does.

    `status` is the HTTP status that it wants if it is the whole answer.
    """

    data: bytes
    answers: tuple[bool, Id] | None = None
    status: int = 200
    event_id: str | None = None


class Outbox:
    """The messages for the requests `ids` (of one POST); none: a stream that does not end.

    `name` makes its events ones that can be asked for again; `primed`: its stream begins with an
    event without content, which revisions before 2025-11-25 do not know.
    """

    def __init__(
        self, ids: tuple[Id, ...] = (), *, name: str | None = None, primed: bool = False
    ) -> None:
        self.order = tuple(map(typed, ids))
        self.waiting = set(self.order)
        self.name = name
        self.primed = primed
        self._endless = not ids
        self._items: deque[Item] = deque(maxlen=_KEPT)
        self._sent = 0
        self._count = 0
        self._news = asyncio.Event()
        self.closed = False
        self.detached = False
        self.has_reader = False

    @property
    def complete(self) -> bool:
        """Whether nothing will be added."""
        return self.closed or (not self._endless and not self.waiting)

    def put(self, item: Item) -> None:
        """Add a message; one that answers a request twice, or after the end, is dropped."""
        if self.complete or (item.answers is not None and item.answers not in self.waiting):
            return
        self._count += 1
        if self.name is not None:
            item = Item(item.data, item.answers, item.status, f"{self.name}-{self._count}")
        if item.answers is not None:
            self.waiting.discard(item.answers)
        self._items.append(item)
        self._news.set()

    def close(self) -> None:
        """No more: the session has ended, or the request was cancelled."""
        self.closed = True
        self._news.set()

    def detach(self) -> None:
        """Let the client go; it may come back for the rest."""
        self.detached = True
        self._news.set()

    def rewind(self, count: int) -> None:
        """Go on after the event number `count`, as far as that is still there."""
        self._sent = min(max(count, self._count - len(self._items)), self._count)
        self.detached = False

    async def next(self, wait_s: float) -> Item | None:
        """The next message; None after `wait_s`, or when there is nothing more for this reader."""
        if (item := self._take()) is not None:
            return item
        if self.complete or self.detached:
            return None
        self._news.clear()
        # Cheaper than a timeout around the wait: nobody else waits here, and no news is None.
        timer = asyncio.get_running_loop().call_later(wait_s, self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
        return self._take()

    @property
    def seen(self) -> int:
        """How many messages this reader has taken."""
        return self._sent

    @property
    def over(self) -> bool:
        """Whether this reader has seen all that there will be."""
        return self.detached or (self.complete and self._sent >= self._count)

    def _take(self) -> Item | None:
        first = self._count - len(self._items)
        self._sent = max(self._sent, first)  # what was dropped is gone
        if self._sent >= self._count or self.detached:
            return None
        item = self._items[self._sent - first]
        self._sent += 1
        return item


__all__ = ["Item", "Outbox"]
