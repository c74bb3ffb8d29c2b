"""What time is it?

Every decision takes time as an argument; only shells hold a Clock.
"""

import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Two readings: the wall clock, which may step, and a monotonic one, which may not."""

    def now_s(self) -> float:
        """Seconds since the Unix epoch."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""


_PASSING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The clocks of the operating system.

    On Linux time also passes while the machine is suspended: with a clock that stands still
    meanwhile a lease would outlive its time, and one of several machines on a store would take
    the time of all others for one that was set ahead.
    """

    def now_s(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()  # noqa: TID251 - the one place that may

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        return time.clock_gettime(_PASSING)


def boot_number(source: Path = Path("/proc/sys/kernel/random/boot_id")) -> int:
    """Which run of this machine it is: readings of `monotonic_s` compare within one run only.

    A number below 2**60, or 0 where the system does not say. Reads one small file.
    """
    try:
        return int(source.read_text().replace("-", "")[:15], 16)
    except (OSError, ValueError):
        return 0
