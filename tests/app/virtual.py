"""How long does a request take when nothing but its own timers takes time?

An event loop in which time stands still while anybody has something to do, and otherwise jumps
to the next timer. The clock of the application is that of the loop, so every deadline is exact
and a total of minutes passes at once. While a thread works for somebody (asyncio.to_thread) time
stands still, too. For what needs no socket or process, and no thread that lasts.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from math import ceil
from typing import Any, TypeVar

from tidegate.clock import Clock, SystemClock
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.clock import ManualClock

_NS = 1_000_000_000
T = TypeVar("T")


class _Jumps(selectors.SelectSelector):
    """Instead of waiting it lets the time pass."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.threads = 0
        """How many work for somebody."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.threads:
            # Who has finished wakes the loop.
            if ready := super().select(WAIT_S):
                return ready
            raise AssertionError("a thread does not come to its end")
        if timeout is None:
            raise AssertionError("everybody waits for something that never happens")
        # Rounded up, or else the timer that was waited for would never be due.
        self._clock.advance(max(1, ceil(timeout * _NS)) / _NS)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is that of `clock`, which also moves when it is told to."""

    def __init__(self, clock: ManualClock) -> None:
        self._virtual = clock
        self._jumps = _Jumps(clock)
        super().__init__(self._jumps)

    def run_in_executor(
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """As the loop does it; time stands still until it is done, or nobody waits any more."""
        working = super().run_in_executor(executor, func, *args)
        self._jumps.threads += 1
        working.add_done_callback(self._done)
        return working

    async def shutdown_default_executor(self, *bound: Any) -> None:
        """As the loop does it: a thread of its own waits for the others."""
        self._jumps.threads += 1
        try:
            await super().shutdown_default_executor(*bound)
        finally:
            self._jumps.threads -= 1

    def _done(self, _working: object) -> None:
        self._jumps.threads -= 1

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
