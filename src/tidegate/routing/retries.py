"""May a request that failed at a target ask it once more?

Lives here: the budget of one target, which keeps retries a small part of its load whatever goes
wrong. Does not live here: which failures are worth a retry (failover.py), the breaker. `now_s`
is a monotonic reading.
"""

from collections import deque

_PER_SUCCESS = 0.1
_MOST = 10.0
_FLOOR = 3
_FLOOR_WINDOW_S = 10.0


class RetryBudget:
    """A tenth of a retry for each success, ten saved at most, and three in ten seconds always.

    The floor serves targets with little traffic, which earn nothing. Cost O(1).
    """

    __slots__ = ("_recent", "_saved")

    def __init__(self) -> None:
        self._saved = 0.0
        self._recent: deque[float] = deque(maxlen=_FLOOR)

    def earn(self) -> None:
        """A call was good."""
        self._saved = min(_MOST, self._saved + _PER_SUCCESS)

    def has(self, now_s: float) -> bool:
        """Whether one retry is left."""
        return self._is_saved or len(self._recent) < _FLOOR or self._floor_is_free(now_s)

    def spend(self, now_s: float) -> None:
        """Take one, out of the savings first. The caller has asked `has`."""
        if self._is_saved:
            self._saved -= 1.0
        else:
            self._recent.append(now_s)

    @property
    def _is_saved(self) -> bool:
        # Ten tenths do not add up to one.
        return self._saved > 1.0 - 1e-9

    def _floor_is_free(self, now_s: float) -> bool:
        return now_s - self._recent[0] >= _FLOOR_WINDOW_S


__all__ = ["RetryBudget"]
