"""What time is it?

Every decision takes time as an argument; only shells hold a Clock.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: the wall clock, which may step, and a monotonic one, which may not."""

    def now_s(self) -> float:
        """Seconds since the Unix epoch."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""


class SystemClock:
    """The clocks of the operating system."""

    def now_s(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()  # noqa: TID251 - the one place that may

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        return time.monotonic()
