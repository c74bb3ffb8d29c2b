"""When is a server process that ended started again?

At once, if it had lived for a while. Lives that were short double the bound under which the
pause is drawn, so that many gateways do not start anew in step. Pure: time and chance are
arguments. Does not live here: starting (children).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. A life of less than `short_life_s` is a failed start."""

    short_life_s: float = 10.0
    first_s: float = 0.5
    most_s: float = 30.0


class Backoff:
    """The pauses of one server."""

    __slots__ = ("_due_s", "_pace", "short_lives")

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._due_s = 0.0
        self.short_lives = 0

    def ended(self, *, lived_s: float, now_s: float, chance: float) -> float:
        """The process ended unasked; returns the pause in seconds. `chance` is in [0, 1)."""
        pace = self._pace
        self.short_lives = self.short_lives + 1 if lived_s < pace.short_life_s else 0
        pause_s = 0.0
        if self.short_lives:
            pause_s = chance * min(pace.most_s, pace.first_s * 2.0 ** min(self.short_lives - 1, 16))
        self._due_s = now_s + pause_s
        return pause_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until it may be started; 0.0 if it may be now."""
        return max(0.0, self._due_s - now_s)


__all__ = ["Backoff", "Pace"]
