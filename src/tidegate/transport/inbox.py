"""What has arrived from this attempt, and is it still within its deadline?

The awaitable side of one attempt: a sink for the transport, `head()` and `read()` for the path
function, one timer, back-pressure by bytes. Does not live here: sockets, the meaning of an
answer, which deadline applies when.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from tidegate.clock import Clock
from tidegate.transport.upstream import Attempt, Failure, Transport, UpstreamRequest

_HIGH_WATER_BYTES = 262_144
_NEVER = float("inf")
_LATE_S = 0.1
_CATCH_UP_S = 0.05
"""Who looks at a deadline this late has not run meanwhile (a stopped process, a suspended machine):
what arrived by then waits in the socket, and gets this long to be read before anybody is blamed."""


class AttemptFailed(Exception):
    """The attempt is over without a whole message. `failure` is one of a few constant words."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure


class Inbox:
    """Collects one attempt. Use as `with Inbox(clock) as inbox: inbox.start(...)`.

    Leaving the block, for whatever reason, aborts what still runs: nothing outlives it, but for
    the short time that `let_end` grants. One reader at a time. What arrived before a failure is
    delivered before the failure is raised.
    """

    __slots__ = (
        "_attempt",
        "_bytes",
        "_chunks",
        "_clock",
        "_closed",
        "_due_s",
        "_ended",
        "_failure",
        "_head",
        "_high",
        "_leaving",
        "_loop",
        "_overslept",
        "_paused",
        "_timer",
        "_timer_s",
        "_waiter",
    )

    def __init__(
        self,
        clock: Clock,
        *,
        high_water_bytes: int = _HIGH_WATER_BYTES,
        closed: "Callable[[Inbox], None] | None" = None,
    ) -> None:
        self._clock = clock
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._high = high_water_bytes
        self._attempt: Attempt | None = None
        self._head: tuple[int, Mapping[str, str]] | None = None
        self._chunks: list[bytes] = []
        self._bytes = 0
        self._paused = False
        self._leaving = False
        self._ended = False
        self._failure: Failure | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._due_s = _NEVER
        self._timer: asyncio.TimerHandle | None = None
        # When it will look: a handle of uvloop does not say, if that is at once.
        self._timer_s = _NEVER
        self._overslept = False

    def start(self, transport: Transport, request: UpstreamRequest, *, connect_s: float) -> None:
        """Begin the attempt; once per inbox. One that was failed before does not begin."""
        if self._failure is not None:
            return
        if self._attempt is not None or self._ended:
            raise RuntimeError("an inbox collects one attempt")
        self._attempt = transport.start(request, self, connect_s=connect_s)

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Status and lower-case headers; raises AttemptFailed."""
        while self._head is None:
            if self._failure is not None:
                raise AttemptFailed(self._failure)
            await self._wait()
        return self._head

    async def read(self) -> bytes:
        """Everything that has arrived since the last call; b"" at the clean end.

        Waits only when nothing is there. Raises AttemptFailed.
        """
        while not self._chunks:
            if self._failure is not None:
                raise AttemptFailed(self._failure)
            if self._ended:
                return b""
            await self._wait()
        arrived = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._forget()
        return arrived

    def arm(self, at_monotonic_s: float) -> None:
        """Set the deadline, replacing the one before; a passed one fails at the next loop turn.

        It counts whether or not somebody waits: disarm before giving time to others. Moving it
        later, as every event of a stream does, costs a comparison and no timer.
        """
        self.arm_in(at_monotonic_s - self._clock.monotonic_s())

    def arm_in(self, delay_s: float) -> None:
        """The same, so many seconds from now."""
        if self.over:
            return
        delay_s = max(0.0, delay_s)
        now_s = self._loop.time()
        self._due_s = now_s + delay_s
        self._overslept = False
        if self._timer is not None:
            if self._timer_s <= self._due_s:
                return
            self._timer.cancel()
        self._look_in(delay_s, now_s)

    def disarm(self) -> None:
        """No deadline until the next `arm`."""
        self._due_s = _NEVER

    def let_end(self, within_s: float) -> None:
        """Nothing more is wanted, but the message may still end by itself, unread.

        Its connection can then be used again. An attempt that has not ended by then is aborted.
        The reader has left: `head` and `read` are not called any more.
        """
        if self.over:
            return
        self._leaving = True
        self._forget()
        if self._closed is not None:
            self._closed(self)
        self.arm_in(within_s)

    def fail(self, failure: Failure) -> None:
        """End the attempt from our side: what arrived is still read, then AttemptFailed."""
        if self.over:
            return
        if self._attempt is not None:
            self._attempt.abort()
        self.on_failure(failure)

    def close(self) -> None:
        """Abort what still runs and forget what is held; idempotent."""
        if self._leaving and not self.over:
            return
        if self._closed is not None:
            self._closed(self)
        if self._attempt is not None:
            self._attempt.abort()
        self._finish()
        self._chunks.clear()
        self._bytes = 0
        if not self._ended and self._failure is None:
            self._failure = Failure.RESET
        self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        """From the transport."""
        self._head = (status, headers)
        self._wake()

    def on_body(self, chunk: bytes) -> None:
        """From the transport; pauses the attempt above the high-water mark."""
        if self._leaving:
            return
        self._chunks.append(chunk)
        self._bytes += len(chunk)
        if self._bytes > self._high and not self._paused and self._attempt is not None:
            self._paused = True
            self._attempt.pause()
        self._wake()

    def on_end(self) -> None:
        """From the transport."""
        self._ended = True
        self._finish()
        self._wake()

    def on_failure(self, failure: Failure) -> None:
        """From the transport."""
        if self._failure is None:
            self._failure = failure
        self._finish()
        self._wake()

    @property
    def buffered_bytes(self) -> int:
        """Bytes that arrived and were not read yet."""
        return self._bytes

    @property
    def over(self) -> bool:
        """Whether nothing more can arrive; what did may still have to be read."""
        return self._ended or self._failure is not None

    def _forget(self) -> None:
        self._chunks.clear()
        self._bytes = 0
        if self._paused and self._attempt is not None:
            self._paused = False
            self._attempt.resume()

    def _finish(self) -> None:
        # It holds us: without the two of them in a ring nobody has to look for them.
        self._attempt = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("an inbox has one reader")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _on_timer(self) -> None:
        self._timer = None
        if self.over or self._due_s == _NEVER:
            return
        now_s = self._loop.time()
        left_s = self._due_s - now_s
        # A loop's clock may be rounded to milliseconds: below one, it is over.
        if left_s > 0.001:
            self._look_in(left_s, now_s)
            return
        if -left_s > _LATE_S and not self._overslept:
            self._overslept = True
            self._look_in(_CATCH_UP_S, now_s)
            return
        self.fail(Failure.TIMEOUT)

    def _look_in(self, seconds: float, now_s: float) -> None:
        self._timer_s = now_s + seconds
        self._timer = self._loop.call_later(seconds, self._on_timer)


class Inboxes:
    """Makes inboxes and knows the open ones, so that a drain can end what still runs.

    After `cut` every new attempt fails at once: the process is leaving.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: set[Inbox] = set()
        self.is_cut = False

    def new(self) -> Inbox:
        """An inbox, known until it is closed."""
        inbox = Inbox(self._clock, closed=self._open.discard)
        self._open.add(inbox)
        if self.is_cut:
            inbox.fail(Failure.DRAINING)
        return inbox

    def cut(self) -> None:
        """End every open attempt as if its upstream broke; what arrived is still delivered."""
        self.is_cut = True
        for inbox in tuple(self._open):
            inbox.fail(Failure.DRAINING)

    def __len__(self) -> int:
        return len(self._open)
