"""What becomes of a call whose stream ends before its answer has come?

Until 2025-11-25 a server may let the stream of a call go, and a connection may break; the client
comes back for the rest with the id of the last event that it has seen. Lives here: the calls whose
clients can do that, what such a call holds meanwhile (its id at the server, what it was charged,
its place in the record), and for how long. Does not live here: reading and writing of streams
(relay, streams), what the ids say (mcp.stream_places).
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any, Final

from tidegate.clock import Clock
from tidegate.jsonrpc import Id, typed
from tidegate.mcp.sessions import Owner, Session

if TYPE_CHECKING:
    from tidegate.gateway.tool_requests.answer import Shaper

_MOST: Final = 1000
_MOST_OF_PRINCIPAL: Final = _MOST // 4
_MOST_OF_SESSION: Final = 32
_TAKEN_OVER_S: Final = 1.0

CANCELLED: Final = "cancelled"
"""The word for the end of a call that nobody came back for."""


class Resumable:
    """One call whose client may come back. `name` is that of its stream, `due_s` its deadline.

    It is served by one task at a time, at first by that of the request that made the call.
    Between two of them it waits for its client; its answer can be had again for as long.
    `shaper` makes its answer, `cancel` tells the server that nobody wants it any more.
    `stop_reading` ends the service of a task that has come for the rest.
    """

    def __init__(
        self,
        table: "Resumables",
        session: Session,
        shaper: "Shaper",
        cancel: Callable[[], None],
        due_s: float,
    ) -> None:
        self.name = secrets.token_hex(4)
        self.session = session
        self.shaper = shaper
        self.due_s = due_s
        self.outcome: str | None = None
        self._table = table
        self._cancel = cancel
        self.stop_reading: Callable[[], None] | None = None
        self._reader: asyncio.Task[Any] | None = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None
        self._is_unwanted = False
        self._ids: ExitStack | None = None
        self._held: tuple[AsyncExitStack, Callable[[str], None]] | None = None
        session.on_end.add(self.unwanted)

    def keep(self, ids: ExitStack) -> None:
        """What gives the id of the call free; from now on it is over when this says so."""
        self._ids = ids
        if self.outcome is not None:
            self._release_ids()

    def hold(self, charges: AsyncExitStack, end: Callable[[str], None]) -> None:
        """What the call is charged, and its account; perhaps it is over already."""
        self._held = (charges, end)
        if self.outcome is not None:
            self._release_held()

    async def take(self) -> None:
        """This task serves it from here on; whoever did so before is over."""
        before, self._reader = self._reader, asyncio.current_task()
        self.stop_reading = None
        self._stop_waiting()
        if before is not None and before is not self._reader:
            # Its connection may be dead without anybody having noticed.
            before.cancel()
            await asyncio.wait((before,), timeout=_TAKEN_OVER_S)

    def let_go(self) -> None:
        """This task serves it no more. To be called before the client can know: it may come."""
        if self._reader is not asyncio.current_task():
            return
        self._reader = self.stop_reading = None
        if self.outcome is None and self._is_unwanted:
            self.finish(CANCELLED)
        elif self.outcome != CANCELLED:
            self._wait()

    def finish(self, word: str) -> None:
        """It is answered, or never will be (CANCELLED). Idempotent."""
        if self.outcome is not None:
            return
        self.outcome = word
        self._release_ids()
        self._release_held()
        if word == CANCELLED:
            self._table.forget(self)

    def fail(self, word: str) -> None:
        """No answer will come to its client: a server that may still be at it is told."""
        if self.outcome is None and not self.shaper.running.answered:
            self._cancel()
        self.finish(word)

    def unwanted(self) -> None:
        """The client has cancelled it or its session is over: no answer will come."""
        self._is_unwanted = True
        if self._reader is None:
            self.finish(CANCELLED)
        elif self.stop_reading is not None:
            self.stop_reading()

    def give_up(self) -> None:
        """Nobody has come back for it, or for its answer."""
        if self._reader is not None:
            return
        if self.outcome is None:
            self._cancel()
            self.finish(CANCELLED)
        self._table.forget(self)

    def forgotten(self) -> None:
        """Of the table: nothing leads here any more."""
        self._stop_waiting()
        self.session.on_end.discard(self.unwanted)

    def _wait(self) -> None:
        wait_s = self._table.resume_s
        if self.outcome is None:
            wait_s = min(wait_s, self.due_s - self._table.clock.monotonic_s())
        self._stop_waiting()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, wait_s), self.give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release_ids(self) -> None:
        if self._ids is not None:
            ids, self._ids = self._ids, None
            ids.close()
            self.shaper.note_counts()

    def _release_held(self) -> None:
        if self._held is not None and self.outcome is not None:
            (charges, end), self._held = self._held, None
            end(self.outcome)
            self._table.settle(charges)


class Resumables:
    """All calls of this process whose clients may come back.

    Bounded in all, per principal (who may have many sessions) and per session.

    `resume_s` is how long such a call waits for its client, and its answer once it was given; 0:
    no client can come back.
    """

    def __init__(self, clock: Clock, *, resume_s: float) -> None:
        self.clock = clock
        self.resume_s = resume_s
        self._calls: dict[str, dict[str, Resumable]] = {}
        self._held: Counter[Owner] = Counter()
        self._settling: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return self._held.total()

    def begin(
        self, session: Session, shaper: "Shaper", cancel: Callable[[], None], due_s: float
    ) -> Resumable | None:
        """The call that this task runs can be taken up again; None if there are too many."""
        if not self.resume_s:
            return None
        if not self._has_room(session):
            theirs = self._of(session).values()
            spent = next((each for each in theirs if each.outcome is not None), None)
            if spent is None:
                return None
            self.forget(spent)
        call = Resumable(self, session, shaper, cancel, due_s)
        self._calls.setdefault(session.id, {})[call.name] = call
        self._held[session.owner] += 1
        return call

    def find(self, session: Session, name: str) -> Resumable | None:
        """The call with the stream `name`, if it is there."""
        return self._of(session).get(name)

    def cancelled(self, session: Session, upstream_id: Id) -> None:
        """The client has cancelled the call that the server knows as `upstream_id`."""
        for call in tuple(self._of(session).values()):
            if call.outcome is None and typed(call.shaper.upstream_id) == typed(upstream_id):
                call.unwanted()

    def forget(self, call: Resumable) -> None:
        """It cannot be taken up any more; idempotent."""
        call.forgotten()
        session = call.session
        theirs = self._of(session)
        if theirs.pop(call.name, None) is None:
            return
        if not theirs:
            del self._calls[session.id]
        self._held[session.owner] -= 1
        if not self._held[session.owner]:
            del self._held[session.owner]

    def settle(self, charges: AsyncExitStack) -> None:
        """End what was reserved, in a task of ours: no request waits for it."""
        task = asyncio.get_running_loop().create_task(charges.aclose())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def close(self) -> None:
        """The gateway ends: so does every call, and what it holds is settled."""
        for call in [call for theirs in self._calls.values() for call in theirs.values()]:
            call.finish(CANCELLED)
            self.forget(call)
        if self._settling:
            await asyncio.wait(set(self._settling))

    def _of(self, session: Session) -> dict[str, Resumable]:
        return self._calls.get(session.id, {})

    def _has_room(self, session: Session) -> bool:
        return (
            len(self) < _MOST
            and self._held[session.owner] < _MOST_OF_PRINCIPAL
            and len(self._of(session)) < _MOST_OF_SESSION
        )


__all__ = ["CANCELLED", "Resumable", "Resumables"]
