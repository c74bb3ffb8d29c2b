"""How long does a request take when nothing but its own timers takes time?

An event loop in which time stands still while anybody has something to do, and otherwise jumps
to the next timer. The clock of the application is that of the loop, so every deadline is exact
and a total of minutes passes at once. For what needs no socket, thread or process.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from math import ceil
from typing import Any

from tidegate.clock import Clock, SystemClock
from tidegate.testing.clock import ManualClock

_NS = 1_000_000_000


class _Jumps(selectors.SelectSelector):
    """Instead of waiting it lets the time pass."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise AssertionError("everybody waits for something that never happens")
        # Rounded up, or else the timer that was waited for would never be due.
        self._clock.advance(max(1, ceil(timeout * _NS)) / _NS)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is that of `clock`, which also moves when it is told to."""

    def __init__(self, clock: ManualClock) -> None:
        self._virtual = clock
        super().__init__(_Jumps(clock))

    @property
    def clock(self) -> ManualClock:
        """The clock that it moves."""
        return self._virtual

    def time(self) -> float:
        """Seconds, as the application reads them."""
        return self._virtual.monotonic_s()


def clock_here() -> Clock:
    """The clock of the running loop, which for most loops is that of the system."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return SystemClock()
    return loop.clock if isinstance(loop, VirtualLoop) else SystemClock()


def run_timeless(body: Coroutine[Any, Any, None]) -> None:
    """Run `body` on a time of its own: however busy the machine is, no deadline comes early."""
    run_virtual(ManualClock(), body)


def run_virtual(clock: ManualClock, body: Coroutine[Any, Any, None]) -> None:
    """Run `body` on the time of `clock`, and see that it leaves no task behind."""

    async def watched() -> None:
        await body
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=0.5)
        assert [task for task in left if not task.done()] == []

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        runner.run(watched())
