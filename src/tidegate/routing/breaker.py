"""May this target be called now?

Lives here: the circuit breaker as a pure state machine: closed, open, half-open, with permits
that carry the generation they were issued in. Does not live here: what counts as a failure
(outcome.py), who shares a breaker (targets.py), clocks. `now_s` is always a monotonic reading.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

_SLOTS = 10
_MAX_DOUBLINGS = 32
_JITTER = 0.2

RAMP_S = 10.0
"""For so long after it closed, a breaker asks for a part of the load only."""
_RAMP = ((5.0, 0.25), (RAMP_S, 0.5))

CHEAP_PAUSE_S = 10.0
"""The longest pause after failures that cost nobody anything (or `open_s`, if that is longer)."""


OpenedBy = Literal["consecutive", "ratio", "slow", "ramp", "probe", "trip"]
"""What opened a breaker: failures in a row, the share of failures or of slow results, failures soon
after recovery, a probe that was not good, or something that never passes by itself."""


class Verdict(StrEnum):
    """What one finished attempt says about the health of its target."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


class State(StrEnum):
    """The three states; a breaker whose pause is over reads as half-open."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When to open and for how long.

    Opens after `consecutive` failures in a row, or when at least `min_results` results lie in
    the last `window_s` seconds and the share of failures is `ratio` or more, or the share of slow
    results `slow_ratio` or more. During the ramp after a recovery the shares count from the first
    result on. Only a bad result opens. The pause is `open_s`, doubled by every re-opening up to
    `max_open_s`; after failures that came at once up to `CHEAP_PAUSE_S`. A stream of
    fewer than `slow_tokens_per_s` is slow, 0 = none is: whoever measures reads that, the breaker
    itself only hears "slow".
    """

    consecutive: int = 5
    ratio: float = 0.5
    window_s: float = 30.0
    min_results: int = 5
    open_s: float = 5.0
    max_open_s: float = 60.0
    slow_ratio: float = 0.8
    slow_tokens_per_s: float = 0.0


@dataclass(slots=True, eq=False)
class Permit:
    """The right to make one attempt. Give it back once, through `Breaker.record`."""

    generation: int
    probe: bool
    spent: bool = False


class Breaker:
    """One target's breaker. All methods cost O(1) and never read a clock.

    A result counts only in the generation its permit was issued in: a call that began before
    the breaker opened can neither close it nor lengthen the pause. `opened_by` is None while it
    is closed.
    """

    __slots__ = (
        "_closed_at_s",
        "_consecutive",
        "_generation",
        "_lease_until_s",
        "_probe",
        "_reopens_at_s",
        "_slots",
        "_state",
        "_trips",
        "opened_by",
        "settings",
    )

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self.settings = settings or BreakerSettings()
        self._state = State.CLOSED
        self._generation = 0
        self._consecutive = 0
        self._slots: deque[_Slot] = deque()
        self._probe: Permit | None = None
        self._lease_until_s = 0.0
        self._reopens_at_s = 0.0
        self._closed_at_s = float("-inf")
        self._trips = 0
        self.opened_by: OpenedBy | None = None

    def permit(self, now_s: float, *, lease_s: float = 60.0) -> Permit | None:
        """A permit for one attempt, or None when the target is to be left alone.

        Half-open gives out one probe at a time. A probe that was never given back stops
        blocking after `lease_s`; its result, should it still come, counts like any other of
        the same generation.
        """
        if self._state is State.CLOSED:
            return Permit(self._generation, probe=False)
        if self._state is State.OPEN:
            if now_s < self._reopens_at_s:
                return None
            self._enter(State.HALF_OPEN)
        if self._probe is not None and now_s < self._lease_until_s:
            return None
        self._probe = Permit(self._generation, probe=True)
        self._lease_until_s = now_s + lease_s
        return self._probe

    def record(
        self,
        permit: Permit,
        verdict: Verdict,
        now_s: float,
        *,
        slow: bool = False,
        cheap: bool = False,
        jitter: float = 0.0,
    ) -> None:
        """Take `permit` back with its verdict; a second return of the same permit is ignored.

        `slow`: it took too long, whether or not it was good in the end. `cheap`: it failed at
        once, so that to look again soon costs the one who does next to nothing, and the pause
        stops doubling at `CHEAP_PAUSE_S`. `jitter` in [-1, 1]
        spreads the pause, should one begin, by a fifth to either side, so that the workers that
        saw the same outage do not probe at the same instant.
        """
        if not self._takes_back(permit) or verdict is Verdict.NEUTRAL:
            return
        failed = verdict is Verdict.FAILURE
        if self._state is State.HALF_OPEN:
            # A target that was left alone for being slow has not recovered while it is slow.
            if failed or slow:
                self._open(now_s, jitter, "probe", cheap=cheap)
            else:
                self._close(now_s)
            return
        self._count(now_s, failed=failed, slow=slow)
        cause = self._sickness(now_s) if failed or slow else None
        if cause is not None:
            self._relapse(now_s, jitter, cause, cheap=cheap)

    def trip(self, permit: Permit, now_s: float, *, jitter: float = 0.0) -> None:
        """Take `permit` back and open at once: what was wrong will not pass by itself.

        As with `record`, a permit of an earlier generation, or one already given back, changes
        nothing.
        """
        if self._takes_back(permit):
            self._relapse(now_s, jitter, "trip")

    def state(self, now_s: float) -> State:
        """The state as a caller of `permit` would meet it at `now_s`."""
        if self._state is State.OPEN and now_s >= self._reopens_at_s:
            return State.HALF_OPEN
        return self._state

    @property
    def reopens_at_s(self) -> float | None:
        """When the next permit can be had at the latest; None if one can be had now.

        The end of the pause while open, the end of the lease while a probe is under way.
        """
        if self._state is State.OPEN:
            return self._reopens_at_s
        return self._lease_until_s if self._probe is not None else None

    def share(self, now_s: float) -> float:
        """The part of its usual load that the target should get, from 0.0 (none) to 1.0 (all).

        After a recovery it grows over `RAMP_S`. It is for whoever orders targets; `permit` takes
        no notice of it, so a target without a substitute serves everybody at once.
        """
        if self._state is not State.CLOSED:
            return 0.0
        age_s = now_s - self._closed_at_s
        return next((share for until_s, share in _RAMP if age_s < until_s), 1.0)

    def _takes_back(self, permit: Permit) -> bool:
        """Mark `permit` as spent and free the probe's place; whether its result counts."""
        if permit.spent:
            return False
        permit.spent = True
        if permit is self._probe:
            self._probe = None
        return permit.generation == self._generation

    def _count(self, now_s: float, *, failed: bool, slow: bool) -> None:
        self._consecutive = self._consecutive + 1 if failed else 0
        window_s = self.settings.window_s
        while self._slots and now_s - self._slots[0].began_s >= window_s:
            self._slots.popleft()
        if not self._slots or now_s - self._slots[-1].began_s >= window_s / _SLOTS:
            self._slots.append(_Slot(now_s))
        newest = self._slots[-1]
        newest.results += 1
        newest.failures += failed
        newest.slow += slow

    def _sickness(self, now_s: float) -> OpenedBy | None:
        settings = self.settings
        if self._consecutive >= settings.consecutive:
            return "consecutive"
        results = sum(slot.results for slot in self._slots)
        # Soon after recovery a bad start is enough. One failure among many successes is not: a
        # busy target that fails one call in a hundred would be kept away for ever.
        ramping = now_s - self._closed_at_s < RAMP_S
        if results < settings.min_results and not ramping:
            return None
        if sum(slot.failures for slot in self._slots) >= settings.ratio * results:
            return "ramp" if ramping else "ratio"
        slow = sum(slot.slow for slot in self._slots)
        return "slow" if slow >= settings.slow_ratio * results else None

    def _enter(self, state: State) -> None:
        self._state = state
        self._generation += 1
        self._probe = None
        self._consecutive = 0
        self._slots.clear()

    def _relapse(
        self, now_s: float, jitter: float, cause: OpenedBy, *, cheap: bool = False
    ) -> None:
        """Open, and go on doubling where the last outage ended if that was not long ago."""
        if self._state is State.CLOSED:
            quiet_s = max(self.settings.max_open_s, RAMP_S)
            if now_s - self._closed_at_s >= quiet_s:
                self._trips = 0
        self._open(now_s, jitter, cause, cheap=cheap)

    def _open(self, now_s: float, jitter: float, cause: OpenedBy, *, cheap: bool) -> None:
        settings = self.settings
        longest_s = settings.max_open_s
        if cheap:
            longest_s = min(longest_s, max(settings.open_s, CHEAP_PAUSE_S))
        pause_s = min(settings.open_s * 2.0 ** min(self._trips, _MAX_DOUBLINGS), longest_s)
        self._reopens_at_s = now_s + pause_s * (1.0 + _JITTER * jitter)
        self._trips += 1
        self.opened_by = cause
        self._enter(State.OPEN)

    def _close(self, now_s: float) -> None:
        self._closed_at_s = now_s
        self.opened_by = None
        self._enter(State.CLOSED)


@dataclass(slots=True)
class _Slot:
    """The results of about a tenth of the rolling window."""

    began_s: float
    results: int = 0
    failures: int = 0
    slow: int = 0


__all__ = [
    "CHEAP_PAUSE_S",
    "RAMP_S",
    "Breaker",
    "BreakerSettings",
    "OpenedBy",
    "Permit",
    "State",
    "Verdict",
]
