"""What comes back for one message to a server process, within its deadlines?

Lives here: the exchange as the path sees it. Does not live here: which process it is with
(children), the process (child).
"""

import asyncio
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from tidegate.clock import Clock
from tidegate.gateway.servers.carrier import Asked
from tidegate.gateway.servers.child import Life
from tidegate.gateway.servers.upstream import ServerFailed, ToolTimes
from tidegate.jsonrpc import Message, Notification, Request
from tidegate.mcp.answers import Incoming

if TYPE_CHECKING:
    from tidegate.gateway.servers.mailbox import Mailbox
    from tidegate.mcp.stdio_upstream import Call

T = TypeVar("T")
_OK: Final = 200
_TAKEN: Final = 202


class Lives(Protocol):
    """Where the process comes from."""

    generation: int

    async def life(self, session: str | None, life: int | None) -> Life:
        """The one that runs, or a new one if either is None. Raises ServerFailed."""

    def enter(self, exchange: "ChildExchange") -> None:
        """An exchange begins."""

    def leave(self, exchange: "ChildExchange") -> None:
        """It is over."""


class ChildExchange:
    """One message to a process and what comes back; leaving it cancels what still runs."""

    is_stream = False

    def __init__(self, lives: Lives, asked: Asked, clock: Clock, times: ToolTimes) -> None:
        self._lives, self._asked, self._clock, self._times = lives, asked, clock, times
        self._due_s = self._clock.monotonic_s() + self._times.total_s
        self._life: Life | None = None
        self._session = ""
        self._call: Call | None = None
        self._reason: str | None = None
        self._stopped = asyncio.Event()
        self._mailbox: Mailbox | None = None

    @property
    def is_endless(self) -> bool:
        """Whether it is a subscription."""
        return self._asked.endless

    def __enter__(self) -> Self:
        self._lives.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._life is not None and self._call is not None:
            self._life.leave(self._call)
        self._lives.leave(self)

    def end(self, reason: str) -> None:
        """Nothing more will come: what arrived is still read, then ServerFailed is raised."""
        self._reason = reason
        self._stopped.set()
        if self._mailbox is not None:
            self._mailbox.fail(reason)

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """200 once a request is in the pipe, 202 for what has no answer. Raises ServerFailed.

        The session that a server would open with it is the process that got it.
        """
        message = self._asked.message
        is_request = isinstance(message, Request)
        if self._life is None:
            await self._within(self._send(message))
        return (_OK, {"mcp-session-id": self._session}) if is_request else (_TAKEN, {})

    async def read(self) -> list[Incoming] | None:
        """The next messages; None behind the answer. Raises ServerFailed."""
        if self._mailbox is None:
            return None
        if self._asked.endless:
            return await self._mailbox.take()
        return await self._within(self._mailbox.take())

    def let_end(self) -> None:
        """See Exchange: what has been answered needs nothing."""

    async def _send(self, message: Message) -> None:
        life = await self._lives.life(self._asked.session, self._asked.life)
        if self._reason is not None:
            raise ServerFailed(self._reason)
        self._life, self._session = life, str(self._lives.generation)
        if isinstance(message, Request):
            asked = self._asked
            client_id = message.id if asked.upstream_id is None else asked.upstream_id
            call, self._mailbox = life.ask(message, client_id=client_id, owner=asked.owner)
            self._call = call
        elif isinstance(message, Notification):
            life.tell(message, owner=self._asked.owner)
        # What the server asked was answered at once; a client's answer has nobody to go to.
        if not life.has_sent_all:
            await self._sent(life)

    async def _sent(self, life: Life) -> None:
        """Wait for a server that is slow to read."""
        ways = [asyncio.ensure_future(each) for each in (life.sent(), self._stopped.wait())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
        if self._reason is not None:
            raise ServerFailed(self._reason)

    async def _within(self, work: Coroutine[object, object, T]) -> T:
        left_s = self._due_s - self._clock.monotonic_s()
        try:
            async with asyncio.timeout(min(self._times.idle_s, max(0.0, left_s))):
                return await work
        except TimeoutError:
            raise ServerFailed("timeout") from None


class Formality:
    """An exchange that a process has no part in: nothing is sent, nothing comes."""

    is_stream = False

    def __init__(self, status: int) -> None:
        self._status = status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """The status."""
        return self._status, {}

    async def read(self) -> list[Incoming] | None:
        """Nothing."""
        return None

    def let_end(self) -> None:
        """Nothing is under way."""


__all__ = ["ChildExchange", "Formality", "Lives"]
