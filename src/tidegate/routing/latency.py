"""How soon does a target give its first token?

Lives here: two moving averages of one target, and who shall measure it next. Does not live here:
what follows for the order (order.py). `now_s` is a monotonic reading.
"""

from math import exp

_NEWEST = 0.3
_FADES_S = 10.0
_STALE_S = 60.0
_EXPLORES_S = 10.0


class Latency:
    """What is known of one target. All methods cost O(1)."""

    __slots__ = ("_expected", "_explored_until_s", "_seen")

    def __init__(self) -> None:
        self._seen = _Average()
        self._expected = _Average()
        self._explored_until_s = float("-inf")

    @property
    def first_token_s(self) -> float | None:
        """The average of the first tokens that came; None until one has."""
        return self._seen.value_s

    @property
    def expected_s(self) -> float | None:
        """What the next request may expect: deadlines that were missed count, too."""
        return self._expected.value_s

    def saw(self, seconds: float, now_s: float) -> None:
        """A first token came after `seconds`."""
        self._seen.take(seconds, now_s)
        self._expected.take(seconds, now_s)

    def missed(self, seconds: float, now_s: float) -> None:
        """No token came for `seconds`, when we gave up: it would have taken longer."""
        self._expected.take(max(seconds, self._expected.value_s or 0.0), now_s)

    def is_known(self, now_s: float) -> bool:
        """Whether `expected_s` is of late."""
        return now_s - self._expected.at_s < _STALE_S

    def explore(self, now_s: float) -> bool:
        """Whether this caller shall measure the target. Ask only if nothing of late is known.

        One caller at a time is sent, so that few meet a target that has become slow.
        """
        if now_s < self._explored_until_s:
            return False
        self._explored_until_s = now_s + _EXPLORES_S
        return True


class _Average:
    """The newest counts three tenths, and more the longer the one before it is ago."""

    __slots__ = ("at_s", "value_s")

    def __init__(self) -> None:
        self.value_s: float | None = None
        self.at_s = float("-inf")

    def take(self, seconds: float, now_s: float) -> None:
        if self.value_s is None:
            self.value_s = seconds
        else:
            newest = max(_NEWEST, 1.0 - exp((self.at_s - now_s) / _FADES_S))
            self.value_s += newest * (seconds - self.value_s)
        self.at_s = now_s


__all__ = ["Latency"]
