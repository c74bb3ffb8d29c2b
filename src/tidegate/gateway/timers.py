"""Has this connection been silent for too long, in either direction?

Lives here: a deadline that is cheap to move, the time that a body has, and the watch over bytes
that do not leave. Does not live here: what follows (server).
"""

import asyncio
from collections.abc import Callable

BODY_BYTES_PER_S = 4_096
"""A body that arrives more slowly than this, beyond its first pause, is late."""

_NEVER = float("inf")
_CHECKS_PER_STALL = 4


class Deadline:
    """Calls `passed` once the time last set is over. Setting it costs no timer as a rule."""

    __slots__ = ("_due_s", "_loop", "_passed", "_timer", "_timer_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, passed: Callable[[], None]) -> None:
        self._loop, self._passed = loop, passed
        self._due_s = _NEVER
        self._timer: asyncio.TimerHandle | None = None
        # When it will look: a handle of uvloop does not say, if that is at once.
        self._timer_s = _NEVER

    def within(self, seconds: float) -> None:
        """From now on this long, instead of what was set before."""
        self.at(self._loop.time() + seconds)

    def at(self, due_s: float) -> None:
        """At this time of the loop, instead of what was set before."""
        self._due_s = due_s
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
            if self._timer_s <= self._due_s:
                return
            self._timer.cancel()
        self._timer_s = self._due_s
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


class BodyTime:
    """Until when the rest of a body must come: `due_s`, which every byte moves a little.

    A body begins with `idle_s` and earns a second for each BODY_BYTES_PER_S that arrive, but is
    never more than `idle_s` ahead: one byte now and then does not keep it alive, and a fast
    beginning does not pay for a long silence. Reading may be paused: that costs it nothing.
    """

    __slots__ = ("_idle_s", "_paused_s", "due_s")

    def __init__(self, idle_s: float, now_s: float) -> None:
        self._idle_s = idle_s
        self._paused_s: float | None = None
        self.due_s = now_s + idle_s

    def arrived(self, size_bytes: int, now_s: float) -> None:
        """Bytes of the body came."""
        since_s = now_s if self._paused_s is None else self._paused_s
        self.due_s = min(self.due_s + size_bytes / BODY_BYTES_PER_S, since_s + self._idle_s)

    def pause(self, now_s: float) -> None:
        """Nothing is read from now on; no effect while that is so already."""
        if self._paused_s is None:
            self._paused_s = now_s

    def resume(self, now_s: float) -> None:
        """Reading goes on; no effect unless it was paused."""
        if self._paused_s is not None:
            self.due_s += now_s - self._paused_s
            self._paused_s = None


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
