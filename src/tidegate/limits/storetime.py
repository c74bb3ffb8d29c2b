"""What time do the books count in, when the wall clock cannot be trusted?

Lives here: the rule that turns two readings of a clock and the newest time in a store into one
time that never goes back and never runs faster than time passes. Does not live here: the clock.

The wall clock is read once, to have a common start for processes and restarts; after that the
monotonic clock counts. A wall clock that is set ahead an hour would otherwise hand every tenant
a fresh quota, and one set back would lock everybody out for an hour. A store that is ahead of
us (another process, or the time before a restart) pulls us forward and we go on from there. A
process that begins in the same run of the machine as the last one takes over its start, so a
wall clock that was set in between has no effect either.
"""

ALARM_S = 5.0
"""A wall clock further off than this deserves a line in the log."""


class StoreTime:
    """Store time of one process, in whole microseconds since the epoch."""

    __slots__ = ("_anchor_us",)

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        # The anchor is store time at monotonic zero.
        self._anchor_us = _us(wall_s) - _us(monotonic_s)

    def now_us(self, monotonic_s: float, *, last_seen_us: int = 0) -> int:
        """The time for the next entry in a store whose newest entry is at `last_seen_us`."""
        now_us = self._anchor_us + _us(monotonic_s)
        if now_us < last_seen_us:
            self._anchor_us += last_seen_us - now_us
            now_us = last_seen_us
        return now_us

    @property
    def anchor_us(self) -> int:
        """Store time at monotonic zero; means something within one run of the machine."""
        return self._anchor_us

    def adopt(self, anchor_us: int) -> None:
        """Count from where another process of this run of the machine does."""
        self._anchor_us = anchor_us

    def wall_is_ahead_s(self, wall_s: float, monotonic_s: float) -> float:
        """How far the wall clock is ahead of store time; negative when it is behind."""
        return (_us(wall_s) - self._anchor_us - _us(monotonic_s)) / 1_000_000

    def alarm_s(self, wall_s: float, monotonic_s: float) -> float:
        """`wall_is_ahead_s` where it deserves an alarm, else 0.0."""
        ahead_s = self.wall_is_ahead_s(wall_s, monotonic_s)
        return ahead_s if abs(ahead_s) > ALARM_S else 0.0


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


__all__ = ["ALARM_S", "StoreTime"]
