"""How is one authorized MCP message carried to its server, within its deadlines?

Lives here: the driver of one exchange over a transport, and the messages we send on nobody's
behalf (a cancellation after the client has gone). Does not live here: what is sent and how an
answer is read (mcp.http_upstream), what the client sees of it (tool_requests.answer).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from tidegate.clock import Clock
from tidegate.gateway.beside import beside_the_loop
from tidegate.mcp.answers import Incoming
from tidegate.mcp.http_upstream import AnswerReader, AnswerTooLarge, Outgoing
from tidegate.transport.inbox import AttemptFailed, Inbox, Inboxes
from tidegate.transport.upstream import Transport, UpstreamRequest

logger = logging.getLogger(__name__)

_CAST_S: Final = 5.0
_POOL_GRACE_S: Final = 0.25


class ServerFailed(Exception):
    """No usable answer. `reason` is a constant word for records and logs, `status` what the server
    said over HTTP, if whoever raises it knows; 0 otherwise.
    """

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


NEEDS_SESSION: Final = "needs_session"
"""The reason where a server wants a session of its client, which has none."""


@dataclass(frozen=True, slots=True)
class ToolTimes:
    """Deadlines in seconds. `idle_s` bounds the silence of a server, `total_s` one call.

    `resume_s` is how long a call whose stream has ended waits for its client (0: no client can
    come back), `stream_s` how long a client may listen before it has to come back.
    """

    connect_s: float = 2.0
    idle_s: float = 120.0
    total_s: float = 600.0
    keep_alive_s: float = 15.0
    resume_s: float = 60.0
    stream_s: float = 3600.0


class ToolUpstream:
    """Carries messages to MCP servers. One per application."""

    def __init__(
        self,
        transport: Transport,
        inboxes: Inboxes,
        clock: Clock,
        *,
        max_answer_bytes: int = 8_388_608,
        times: ToolTimes | None = None,
    ) -> None:
        self.times = times or ToolTimes()
        self._transport = transport
        self._inboxes = inboxes
        self.clock = clock
        self._max = max_answer_bytes
        self._casts: set[asyncio.Task[None]] = set()

    def exchange(
        self,
        url: str,
        message: Outgoing,
        *,
        method: str = "POST",
        endless: bool = False,
        is_last: bool = False,
    ) -> "Exchange":
        """One exchange, to be entered with `with`; leaving it aborts what still runs.

        `endless`: a subscription, which may be silent for as long as it likes once it has begun.
        `is_last`: what a server is told because we leave it, also when the process is leaving.
        """
        request = UpstreamRequest(
            method, url, message.headers, message.body, replayable=message.replayable
        )
        return Exchange(
            self._transport,
            request,
            Inbox(self.clock) if is_last else self._inboxes.new(),
            self.clock,
            self.times,
            self._max,
            endless=endless,
        )

    def cast(self, url: str, message: Outgoing) -> None:
        """Send without waiting: the task is ours and survives the request that asked for it."""
        task = asyncio.get_running_loop().create_task(self._cast(url, message))
        self._casts.add(task)
        task.add_done_callback(self._casts.discard)

    async def drain(self, timeout_s: float) -> None:
        """Wait for what was cast; at shutdown."""
        if self._casts:
            await asyncio.wait(set(self._casts), timeout=timeout_s)

    async def _cast(self, url: str, message: Outgoing) -> None:
        try:
            async with asyncio.timeout(_CAST_S):
                with self.exchange(url, message, is_last=True) as exchange:
                    await exchange.head()
                    exchange.let_end()
        except (ServerFailed, TimeoutError):
            logger.info("cancellation_not_delivered")


class Exchange:
    """One request to an MCP server and what comes back; made by `ToolUpstream.exchange` only.

    Leaving it aborts what still runs, but for what `let_end` grants.
    """

    __slots__ = (
        "_clock",
        "_done",
        "_due_s",
        "_endless",
        "_inbox",
        "_max",
        "_reader",
        "_request",
        "_times",
        "_transport",
    )

    def __init__(
        self,
        transport: Transport,
        request: UpstreamRequest,
        inbox: Inbox,
        clock: Clock,
        times: ToolTimes,
        max_bytes: int,
        *,
        endless: bool,
    ) -> None:
        self._transport = transport
        self._request = request
        self._clock = clock
        self._times = times
        self._endless = endless
        self._inbox = inbox
        self._reader = AnswerReader(max_bytes, marks=True)
        self._due_s = clock.monotonic_s() + times.total_s
        self._done = False

    @property
    def is_stream(self) -> bool:
        """Whether the body turned out to be an event stream."""
        return self._reader.is_stream

    def __enter__(self) -> Self:
        self._inbox.start(self._transport, self._request, connect_s=self._times.connect_s)
        self._arm()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inbox.close()

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Status and lower-case headers. Raises ServerFailed."""
        try:
            return await self._inbox.head()
        except AttemptFailed as failed:
            raise ServerFailed(failed.failure.value) from None

    async def read(self) -> list[Incoming] | None:
        """The messages of the next bytes, perhaps none; None at the end. Raises ServerFailed."""
        if self._done:
            return None
        if self._endless:
            self._inbox.disarm()
        elif not self._inbox.over:
            self._arm()
        try:
            data = await self._inbox.read()
            if data:
                size = self._reader.held_bytes + len(data) if self._reader.is_stream else 0
                return await beside_the_loop(size, self._reader.feed, data)
            self._done = True
            return await beside_the_loop(self._reader.held_bytes, self._reader.finish)
        except AttemptFailed as failed:
            raise ServerFailed(failed.failure.value) from None
        except AnswerTooLarge:
            raise ServerFailed("too_large") from None

    def let_end(self) -> None:
        """Nothing more is wanted; a message that ends soon leaves its socket for the next one."""
        self._inbox.let_end(_POOL_GRACE_S)

    def _arm(self) -> None:
        self._inbox.arm_in(min(self._times.idle_s, self._due_s - self._clock.monotonic_s()))
