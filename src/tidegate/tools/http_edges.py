"""Where does one HTTP request end, by a crash of ours or because its client has left?

Lives here: these two edges. Does not live here: what is served between them (http).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from starlette.requests import Request as WebRequest

from tidegate.mcp.eras import McpHeaders, accepts_events
from tidegate.tools.boundary import crash
from tidegate.tools.doors import Refusal
from tidegate.tools.http_answers import Reply
from tidegate.tools.outbox import Outbox

_LOOKS_AFTER_S: Final = 0.02

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Web:
    """One HTTP request that was let in: ASGI's two ends, the answer, and MCP's headers."""

    scope: Scope
    receive: Receive
    reply: Reply
    known: McpHeaders

    @property
    def takes_events(self) -> bool:
        """Whether the client says by name that it takes an event stream."""
        return accepts_events(self.known, named=True)

    def request(self) -> WebRequest:
        """The form in which the SDK's handlers see it."""
        return WebRequest(self.scope)


class BrokenBody(Exception):
    """The body ended before it was whole; without a `reason` nobody is there to be answered."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestBoundary:
    """Where our own code ends: a crash is answered once, with an incident."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, BrokenBody):
            if error.reason is not None:
                idle = error.reason == "idle"
                what = "did not arrive in time" if idle else "is not valid HTTP/1.1"
                await self._reply.refuse(Refusal(408 if idle else 400, f"The body {what}"))
            return True
        if not isinstance(error, Exception) or isinstance(error, OSError):
            return False
        told = crash(error).error
        if not self._reply.started:
            await self._reply.refuse(Refusal(500, told.message, told.code, told.data))
        return True


class Watch:
    """Lets the reader of `outbox` go when the client has left.

    It begins to look after a moment: most answers are there by then, and need no task for it.
    """

    def __init__(self, web: Web, outbox: Outbox) -> None:
        self._web, self._reader = web, outbox.reader
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOKS_AFTER_S, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._look())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _look(self) -> None:
        while (await self._web.receive())["type"] != "http.disconnect":
            pass
        self._web.reply.gone = True
        self._reader.leave()


__all__ = ["BrokenBody", "Receive", "RequestBoundary", "Scope", "Watch", "Web"]
