"""What time does the test say it is?

A clock that moves only when told to, and whose wall side can be stepped like that of a machine
whose time was corrected. Whole nanoseconds inside, so that a thousand small advances add up.
"""

_NS = 1_000_000_000


class ManualClock:
    """Both readings of a Clock, moved by hand. Reading is safe from any thread."""

    def __init__(self, now_s: float = 1_700_000_000.0, *, monotonic_s: float = 1_000.0) -> None:
        self._wall_ns = round(now_s * _NS)
        self._monotonic_ns = round(monotonic_s * _NS)

    def now_s(self) -> float:
        """Seconds since the epoch, as the wall clock has it."""
        return self._wall_ns / _NS

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; only `advance` moves it."""
        return self._monotonic_ns / _NS

    def advance(self, seconds: float) -> None:
        """Let time pass on both sides; raises ValueError for less than nothing."""
        if seconds < 0:
            raise ValueError("time does not go back; use step() for a wall clock that does")
        self._wall_ns += round(seconds * _NS)
        self._monotonic_ns += round(seconds * _NS)

    def step(self, seconds: float) -> None:
        """Set the wall clock ahead or back, as a correction of the machine's time does."""
        self._wall_ns += round(seconds * _NS)


__all__ = ["ManualClock"]
