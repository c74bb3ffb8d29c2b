"""What ends from outside: a call that its client cancels, a client whose session is over?

Lives here: the block that such a call runs in, and what servers hear of such a client. Does not
live here: which call is meant (call), what the client of it gets (relay).
"""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from tidegate.gateway.servers.bridge import BridgedCarrier
from tidegate.gateway.tool_requests.turn import Turn
from tidegate.mcp.sessions import RunningCall

_REMEMBERED: Final = frozenset({"resources/subscribe", "logging/setLevel"})
"""Requests that leave something behind until the session ends."""


@dataclass(frozen=True, slots=True)
class EndOfClient:
    """What the end of a session means at a server; two for one server are one."""

    carrier: BridgedCarrier
    session: str

    @classmethod
    def meet(cls, turn: Turn, method: str, carrier: BridgedCarrier) -> None:
        """Have it called at the end of the client's session, if the message leaves anything."""
        if method in _REMEMBERED and turn.session is not None and turn.client_session is not None:
            turn.session.on_end.add(cls(carrier, turn.client_session))

    def __call__(self) -> None:
        """The session is over."""
        self.carrier.end_client(self.session)


class Ended(Exception):
    """The client has cancelled the call: no answer to it is wanted."""


class UntilEnded:
    """A block that `running.end` leaves, at any point, for Ended."""

    __slots__ = ("_running", "_scope")

    def __init__(self, running: RunningCall) -> None:
        self._running = running
        self._scope = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._scope.__aenter__()
        self._running.end = self._end

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.end = None
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:
            if not self._scope.expired():
                raise
            raise Ended from None

    def _end(self) -> None:
        if self._scope.when() is None:
            self._scope.reschedule(asyncio.get_running_loop().time())


__all__ = ["EndOfClient", "Ended", "UntilEnded"]
