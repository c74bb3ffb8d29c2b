"""May this target be called now?

Lives here: the circuit breaker as a pure state machine: closed, open, half-open, with permits
that carry the generation they were issued in. Does not live here: what counts as a failure
(outcome.py), who shares a breaker (targets.py), clocks. `now_s` is always a monotonic reading.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

_SLOTS = 10
_MAX_DOUBLINGS = 32


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
    the last `window_s` seconds and the share of failures is `ratio` or more. The pause is
    `open_s`, doubled by every re-opening up to `max_open_s`.
    """

    consecutive: int = 5
    ratio: float = 0.5
    window_s: float = 30.0
    min_results: int = 5
    open_s: float = 5.0
    max_open_s: float = 60.0


@dataclass(slots=True, eq=False)
class Permit:
    """The right to make one attempt. Give it back once, through `Breaker.record`."""

    generation: int
    probe: bool
    spent: bool = False


class Breaker:
    """One target's breaker. All methods cost O(1) and never read a clock.

    A result counts only in the generation its permit was issued in: a call that began before
    the breaker opened can neither close it nor lengthen the pause.
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

    def record(self, permit: Permit, verdict: Verdict, now_s: float) -> None:
        """Take `permit` back with its verdict; a second return of the same permit is ignored."""
        if permit.spent:
            return
        permit.spent = True
        if permit is self._probe:
            self._probe = None
        if verdict is Verdict.NEUTRAL or permit.generation != self._generation:
            return
        if self._state is State.HALF_OPEN:
            if verdict is Verdict.SUCCESS:
                self._close(now_s)
            else:
                self._open(now_s)
            return
        self._count(verdict, now_s)
        if verdict is Verdict.FAILURE and self._is_sick():
            # A relapse soon after recovery goes on doubling where the last outage ended.
            if now_s - self._closed_at_s >= self.settings.max_open_s:
                self._trips = 0
            self._open(now_s)

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

    def _count(self, verdict: Verdict, now_s: float) -> None:
        failed = verdict is Verdict.FAILURE
        self._consecutive = self._consecutive + 1 if failed else 0
        window_s = self.settings.window_s
        while self._slots and now_s - self._slots[0].began_s >= window_s:
            self._slots.popleft()
        if not self._slots or now_s - self._slots[-1].began_s >= window_s / _SLOTS:
            self._slots.append(_Slot(now_s))
        newest = self._slots[-1]
        newest.results += 1
        newest.failures += failed

    def _is_sick(self) -> bool:
        if self._consecutive >= self.settings.consecutive:
            return True
        results = sum(slot.results for slot in self._slots)
        failures = sum(slot.failures for slot in self._slots)
        return results >= self.settings.min_results and failures >= self.settings.ratio * results

    def _enter(self, state: State) -> None:
        self._state = state
        self._generation += 1
        self._probe = None
        self._consecutive = 0
        self._slots.clear()

    def _open(self, now_s: float) -> None:
        pause_s = self.settings.open_s * 2.0 ** min(self._trips, _MAX_DOUBLINGS)
        self._reopens_at_s = now_s + min(pause_s, self.settings.max_open_s)
        self._trips += 1
        self._enter(State.OPEN)

    def _close(self, now_s: float) -> None:
        self._closed_at_s = now_s
        self._enter(State.CLOSED)


@dataclass(slots=True)
class _Slot:
    """The results of about a tenth of the rolling window."""

    began_s: float
    results: int = 0
    failures: int = 0


__all__ = ["Breaker", "BreakerSettings", "Permit", "State", "Verdict"]
