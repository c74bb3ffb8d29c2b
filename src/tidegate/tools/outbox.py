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
_KEPT_BYTES: Final = 4 * 1024 * 1024
"""How much of one stream can be asked for again; the oldest go first. An answer that its client
has not had yet stays, whatever the tool tells beside it."""


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
        self._items: deque[Item] = deque()
        self._bytes = 0
        self.count = 0
        self.closed = False
        self.reader = Reader(self, 0)

    @property
    def complete(self) -> bool:
        """Whether nothing will be added."""
        return self.closed or (not self._endless and not self.waiting)

    def put(self, item: Item) -> None:
        """Add a message; one that answers a request twice, or after the end, is dropped."""
        if self.complete or (item.answers is not None and item.answers not in self.waiting):
            return
        self.count += 1
        if self.name is not None:
            item = Item(item.data, item.answers, item.status, f"{self.name}-{self.count}")
        if item.answers is not None:
            self.waiting.discard(item.answers)
        self._items.append(item)
        self._bytes += len(item.data)
        self._forget()
        self.reader.wake()

    def _forget(self) -> None:
        while len(self._items) > _KEPT or (self._bytes > _KEPT_BYTES and len(self._items) > 1):
            is_owed = self.count - len(self._items) >= self.reader.seen
            if is_owed and self._items[0].answers is not None:
                return
            self._bytes -= len(self._items.popleft().data)

    def close(self) -> None:
        """No more: the session has ended, or the request was cancelled."""
        self.closed = True
        self.reader.wake()

    def detach(self) -> None:
        """Let the client go; it may come back for the rest."""
        self.reader.leave()

    def read(self, after: int | None = None) -> "Reader":
        """A reader in the place of the last one, which is over; it goes on where that was.

        `after` is the number of an event behind which it begins, as far as that is still there.
        """
        last = self.reader
        self.reader = Reader(self, last.seen if after is None else min(after, self.count))
        last.leave()
        return self.reader

    def item(self, number: int) -> tuple[int, Item] | None:
        """The first message that is still there from `number` on, and its number."""
        first = self.count - len(self._items)
        at = max(number, first)
        return None if at >= self.count else (at, self._items[at - first])


class Reader:
    """One client that reads an outbox. `seen` is how many messages it has passed.

    `claimed`: a request serves it.
    """

    def __init__(self, box: Outbox, seen: int) -> None:
        self._box = box
        self.seen = seen
        self.left = False
        self.claimed = False
        self._news = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether this reader has seen all that it will."""
        return self.left or (self._box.complete and self.seen >= self._box.count)

    def wake(self) -> None:
        """There is something to look at."""
        self._news.set()

    def leave(self) -> None:
        """Nothing more for this one: its client has left, was let go, or reads elsewhere."""
        self.left = True
        self._news.set()

    async def next(self, wait_s: float) -> Item | None:
        """The next message; None after `wait_s`, or when there is nothing more for this reader."""
        if (item := self._take()) is not None:
            return item
        if self.over:
            return None
        self._news.clear()
        # Cheaper than a timeout around the wait: nobody else waits here, and no news is None.
        timer = asyncio.get_running_loop().call_later(wait_s, self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
        return self._take()

    def _take(self) -> Item | None:
        found = None if self.left else self._box.item(self.seen)
        if found is None:
            return None
        self.seen = found[0] + 1  # what was dropped before it is gone
        return found[1]


__all__ = ["Item", "Outbox", "Reader"]
