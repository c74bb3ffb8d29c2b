"""Are the keys of this issuer good enough to judge by, and when are they fetched?

Lives here: the standing of one issuer's keys over time, as values: what a fetch brought, how long
it holds, when the next one is due, and whether an unknown key id may ask for one. Pure: time comes
in. Does not live here: fetching (jwks), what a key is (jwt_keys).
"""

from dataclasses import dataclass
from typing import Literal

from tidegate.identity.jwt_keys import SigningKey

Standing = Literal["missing", "fresh", "kept", "expired"]
"""Never fetched; fetched; the last fetch failed, and the keys before it still hold; no longer."""


@dataclass(frozen=True, slots=True)
class RingTimes:
    """Seconds.

    `refresh_s` between fetches that go well; `retry_s` after the first that fails, twice as long
    after each further one up to `most_retry_s`; `cooldown_s` between fetches that unknown key ids
    ask for; `keep_s` how long keys are used after the last fetch that went well.
    """

    refresh_s: float = 300.0
    retry_s: float = 5.0
    most_retry_s: float = 60.0
    cooldown_s: float = 30.0
    keep_s: float = 3600.0


class KeyRing:
    """The keys of one issuer. All times are monotonic seconds."""

    def __init__(self, times: RingTimes) -> None:
        self._times = times
        self._keys: tuple[SigningKey, ...] = ()
        self._good_s: float | None = None
        self._asked_s: float | None = None
        self._failures = 0

    def loaded(self, keys: tuple[SigningKey, ...], now_s: float) -> None:
        """A fetch went well: these keys and no others."""
        self._keys, self._good_s, self._failures = keys, now_s, 0

    def failed(self) -> None:
        """A fetch did not."""
        self._failures += 1

    def standing(self, now_s: float) -> Standing:
        """See Standing."""
        if self._good_s is None:
            return "missing"
        if now_s - self._good_s >= self._times.keep_s:
            return "expired"
        return "kept" if self._failures else "fresh"

    def keys(self, now_s: float) -> tuple[SigningKey, ...]:
        """What to judge by; empty when nothing may be judged."""
        return self._keys if self.standing(now_s) in ("fresh", "kept") else ()

    def ask(self, now_s: float) -> bool:
        """Whether an unknown key id may cause a fetch; if so, none may for `cooldown_s`."""
        if self._asked_s is not None and now_s - self._asked_s < self._times.cooldown_s:
            return False
        self._asked_s = now_s
        return True

    @property
    def next_in_s(self) -> float:
        """How long after a fetch the next one is due."""
        if not self._failures:
            return self._times.refresh_s
        doubled = self._times.retry_s * 2 ** float(min(self._failures - 1, 16))
        return min(doubled, self._times.most_retry_s)


__all__ = ["KeyRing", "RingTimes", "Standing"]
