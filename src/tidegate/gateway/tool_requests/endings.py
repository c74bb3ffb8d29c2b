"""What ends from outside: a call that its client cancels, a client whose session is over?

Lives here: the block that such a call runs in, and what servers hear of such a client. Does not
live here: which call is meant (call), what the client of it gets (relay).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
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


@asynccontextmanager
async def until_ended(running: RunningCall) -> AsyncIterator[None]:
    """A block that `running.end` leaves, at any point, for Ended."""
    scope = asyncio.timeout(None)
    try:
        async with scope:
            running.end = partial(_end, scope)
            try:
                yield
            finally:
                running.end = None
    except TimeoutError:
        if not scope.expired():
            raise
        raise Ended from None


def _end(scope: asyncio.Timeout) -> None:
    if scope.when() is None:
        scope.reschedule(asyncio.get_running_loop().time())


__all__ = ["EndOfClient", "Ended", "until_ended"]
