"""Has this connection been silent for too long, in either direction?

Lives here: a deadline that is cheap to move, and the watch over bytes that do not leave. Does not
live here: what follows (server).
"""

import asyncio
from collections.abc import Callable

_NEVER = float("inf")
_CHECKS_PER_STALL = 4


class Deadline:
    """Calls `passed` once the time last set is over. Setting it costs no timer as a rule."""

    __slots__ = ("_due_s", "_loop", "_passed", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, passed: Callable[[], None]) -> None:
        self._loop, self._passed = loop, passed
        self._due_s = _NEVER
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> None:
        """From now on this long, instead of what was set before."""
        self._due_s = self._loop.time() + seconds
        self._arm()

    def never(self) -> None:
        """No deadline until the next `within`."""
        self._due_s = _NEVER

    def stop(self) -> None:
        """No deadline, and no timer left behind."""
        self._due_s = _NEVER
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        # A timer that is too early looks again; only one that is too late is replaced.
        if self._timer is not None:
            if self._timer.when() <= self._due_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._due_s == _NEVER:
            return
        # A loop's clock may be rounded to milliseconds: below one, it is over.
        if self._due_s > self._loop.time() + 0.001:
            self._arm()
            return
        self._due_s = _NEVER
        self._passed()


class WriteWatch:
    """Aborts a connection whose peer takes nothing for `stall_s` while bytes wait for it.

    Looks a few times per `stall_s`, and only while bytes wait. New writes count as movement:
    they come to an end by themselves once the buffer is full.
    """

    __slots__ = ("_moved_s", "_seen", "_stall_s", "_timer", "_transport", "_unsent", "_writes")

    def __init__(self, transport: asyncio.Transport, stall_s: float) -> None:
        self._transport, self._stall_s = transport, stall_s
        self._writes = self._seen = self._unsent = 0
        self._moved_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def wrote(self) -> None:
        """Bytes were handed to the transport."""
        self._writes += 1
        if self._timer is None:
            self._moved_s = asyncio.get_running_loop().time()
            self._look_later()

    def stop(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._seen = self._writes
        self._unsent = self._transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._stall_s / _CHECKS_PER_STALL, self._look)

    def _look(self) -> None:
        self._timer = None
        unsent = self._transport.get_write_buffer_size()
        if unsent == 0:
            return
        now_s = asyncio.get_running_loop().time()
        if unsent < self._unsent or self._writes != self._seen:
            self._moved_s = now_s
        elif now_s - self._moved_s >= self._stall_s:
            self._transport.abort()
            return
        self._look_later()
