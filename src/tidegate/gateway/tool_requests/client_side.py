"""In which form does an answer reach this client?

Lives here: the client's side of an exchange: one JSON body or an event stream, kept alive while
nothing is said; and what stands for it for one element of a batch. Does not live here: what of an
answer may be seen (answer), when it is sent (relay).
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate import sse, strictjson
from tidegate.errors import TidegateError
from tidegate.gateway.tool_requests.answer import Answer
from tidegate.gateway.tool_requests.turn import Turn
from tidegate.jsonrpc import error_of
from tidegate.mcp.answers import is_id
from tidegate.mcp.eras import accepts_events
from tidegate.mcp.stream_places import UNMARKED, Mark

if TYPE_CHECKING:
    from tidegate.gateway.respond import Header, Responder
    from tidegate.gateway.tool_requests.suspended import Resumable

T = TypeVar("T")
COMMENT: Final = b": keep-alive\n\n"


class ClientSide:
    """Sends one answer. A stream begins with the first message that cannot wait for the last.

    A client that asks for event streams by name gets one whenever the upstream sent one; one
    that takes anything gets plain JSON unless something has to be told live; one that takes
    only JSON never gets more than the answer itself.
    """

    __slots__ = (
        "_keep_alive_s",
        "_named",
        "_responder",
        "can_return",
        "headers",
        "resumable",
        "takes_asides",
    )

    def __init__(self, turn: Turn, *, keep_alive_s: float) -> None:
        self.headers: tuple[Header, ...] = ()
        self.resumable: Resumable | None = None
        self._responder: Responder = turn.responder
        self._named = accepts_events(turn.headers, named=True)
        self.takes_asides = accepts_events(turn.headers, named=False)
        self._keep_alive_s = keep_alive_s
        in_session = turn.upstream_session is not None and not turn.revision.modern
        self.can_return = in_session and self._named

    async def live(self, data: bytes, mark: Mark = UNMARKED) -> None:
        """Pass on a message that precedes the answer, if the client can take it."""
        if not self.takes_asides:
            return
        await self._begin()
        await self._responder.chunk(event_of(data, mark))

    async def place(self, mark: Mark) -> None:
        """An event that says where to come back to, and nothing else."""
        if mark.id is not None:
            await self._begin()
            await self._responder.chunk(event_of(b"", mark))

    async def let_go(self) -> None:
        """The end without the answer: it is not wanted, or the client comes back for it."""
        if self._responder.started or self.takes_asides:
            await self._begin()
            await self._responder.end()
        else:  # JSON would be an answer.
            await self._responder.empty(202)

    async def final(self, answer: Answer, *, streamed: bool, mark: Mark = UNMARKED) -> None:
        """The answer; `streamed`: the upstream sent it in an event stream."""
        in_stream = streamed and self._named and answer.status == 200 and not answer.own
        if self._responder.started or in_stream:
            await self._begin()
            try:
                await self._responder.last(event_of(answer.data, mark))
            except TidegateError as error:
                # Too much waits for its readers already; that there is no answer must be told.
                call_id = answer.message.get("id")
                named = call_id if is_id(call_id) else None
                told = error_of(error, self._responder.request_id, id=named)
                await self._responder.end(event_of(strictjson.dumps(told), mark))
        else:
            headers = (*self.headers, *answer.headers)
            await self._responder.json(answer.status, answer.data, headers)

    async def waiting_for(self, awaitable: Awaitable[T]) -> T:
        """The result of `awaitable`; a stream that has begun is kept alive meanwhile."""
        if not self._responder.started:
            return await awaitable
        task = asyncio.ensure_future(awaitable)
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=self._keep_alive_s)
                if not task.done():
                    await self._responder.chunk(COMMENT)
            return task.result()
        finally:
            task.cancel()

    async def _begin(self) -> None:
        if not self._responder.started:
            await self._responder.start_stream(self.headers)


class Collected:
    """The client's side of one element of a batch: only the answer is kept."""

    __slots__ = ("answer", "can_return", "headers", "resumable", "takes_asides")

    def __init__(self) -> None:
        self.answer = Answer({})
        self.headers: tuple[Header, ...] = ()
        self.resumable: Resumable | None = None
        self.can_return = self.takes_asides = False

    async def live(self, data: bytes, mark: Mark = UNMARKED) -> None:
        """Not passed on: the answer to a batch is one JSON array."""
        del data, mark

    async def place(self, mark: Mark) -> None:
        """Nobody can come back."""
        del mark

    async def let_go(self) -> None:
        """Nobody can come back."""

    async def final(self, answer: Answer, *, streamed: bool, mark: Mark = UNMARKED) -> None:
        """Keep it."""
        del streamed, mark
        self.answer = answer

    async def waiting_for(self, awaitable: Awaitable[T]) -> T:
        """The result of `awaitable`."""
        return await awaitable


def event_of(data: bytes, mark: Mark) -> bytes:
    """One event for a client; without data it is a place to come back to."""
    kind = "message" if data else None
    return sse.encode(data, event=kind, id=mark.id, retry_ms=mark.retry_ms)


__all__ = ["COMMENT", "ClientSide", "Collected", "event_of"]
