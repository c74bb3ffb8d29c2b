"""After this outcome, do we try another target, and which one?

Lives here: the walk of one request over the targets of its route, the deadline of each attempt
and the error at its end. Does not live here: sockets and clocks (the caller reports outcomes
with a monotonic `now_s`), what follows from an outcome (the table in outcome.py), the breaker's
own states (breaker.py).

The deadline of an attempt is `first_token_s` from its start, never past the end of the request:
  - stream: the first content must be there by then; afterwards the caller's idle and total
    clocks run.
  - plain answer: the whole answer must be there by then. An operator of slow models raises
    `first_token_s` of the route. Only a route with a single target may use all that is left of
    the request: cutting it early would turn a late answer into none.
  - an attempt that would eat all that is left, while other targets could still be tried, gets
    an equal share of it instead.
Time spent before the first attempt (body, limits) counts against the request, because the walk
is told when the request began.
"""

from dataclasses import dataclass

from tidegate.errors import AllProvidersFailed, TidegateError
from tidegate.routing.breaker import Permit, State
from tidegate.routing.outcome import TAXONOMY, Handling, Onward, Outcome
from tidegate.routing.plan import Route, Target
from tidegate.routing.targets import Targets, TargetState

# Less than this is no attempt: a timer may also fire that much early.
MIN_ATTEMPT_S = 0.05
QUOTA_COOLING_S = 300.0
_MIN_COOLING_S = 0.5
_LEASE_SLACK_S = 1.0

_SKIPS = frozenset({Outcome.OPEN, Outcome.COOLING})
_RESTING = _SKIPS | {Outcome.RATE_LIMITED, Outcome.QUOTA}
# These narrow the walk to few targets; if those few are resting, waiting helps.
_NARROWING = frozenset({Outcome.CONTEXT, Outcome.CREDENTIAL})
_NOT_FAILURES = _SKIPS | {Outcome.OK, Outcome.CANCELLED}


@dataclass(frozen=True, slots=True)
class Try:
    """Call `target` now and report before `deadline_s` (monotonic) or at it."""

    target: Target
    permit: Permit
    deadline_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt; `error` is ready to raise."""

    error: TidegateError


Step = Try | GiveUp


class Failover:
    """The walk of one request. Not shared between requests; `targets` is.

    Protocol: `start` once; then, while a `Try` is under way, exactly one of
      - `on(outcome)`: it failed before anything left for the client; gives the next step,
      - `commit()`: it serves the client; followed by `finished(outcome)` when it has ended,
      - `cancelled()`: the client is gone, or we are stopping.
    `started_s` is when the request arrived, `total_s` how long all attempts may take together;
    both belong to the same monotonic clock as `now_s`. `stream` false says that the attempt's
    deadline bounds the whole answer.
    """

    def __init__(
        self,
        route: Route,
        targets: Targets,
        *,
        started_s: float,
        total_s: float,
        stream: bool = True,
    ) -> None:
        self.attempts: list[tuple[str, Outcome]] = []
        self._route = route
        self._targets = targets
        self._ends_s = started_s + total_s
        self._stream = stream
        self._next = 0
        self._calls = 0
        self._current: Try | None = None
        self._committed = False
        self._last: Outcome | None = None
        self._must_exceed_tokens: int | None = None
        self._refused: list[Target] = []

    def start(self, now_s: float) -> Step:
        """The first step; may already be a GiveUp."""
        return self._advance(now_s)

    def on(self, outcome: Outcome, now_s: float, *, retry_after_s: float | None = None) -> Step:
        """Record that the attempt failed before commit, and decide what is next.

        `retry_after_s` is what the upstream itself asked for; read for outcomes that cool.
        """
        if self._committed or outcome in _NOT_FAILURES:
            raise ValueError(f"not a failure before commit: {outcome}")
        current = self._end(outcome, now_s)
        self._last = outcome
        handling = TAXONOMY[outcome]
        if handling.cools:
            self._cool(current.target, outcome, now_s, retry_after_s)
        if not self._may_go_on(current.target, handling):
            return GiveUp(self._error(now_s))
        return self._advance(now_s)

    def commit(self) -> None:
        """The attempt serves the client: from now on `attempts` ends with its `ok`.

        The verdict for the breaker waits for `finished`: a stream that begins well may break.
        """
        if self._current is None or self._committed:
            raise ValueError("no attempt to commit")
        self._committed = True
        self.attempts.append((self._current.target.provider, Outcome.OK))

    def finished(self, outcome: Outcome, now_s: float) -> None:
        """The committed attempt has ended; OK or what broke it. No effect when none runs."""
        if self._current is not None:
            self._end(outcome, now_s)

    def cancelled(self, now_s: float) -> None:
        """Nobody waits any more: frees the permit without a verdict. No effect when none runs."""
        self.finished(Outcome.CANCELLED, now_s)

    @property
    def header(self) -> str:
        """`primary:rate_limited,backup:ok`: names from the configuration and outcomes only."""
        return ",".join(f"{provider}:{outcome}" for provider, outcome in self.attempts)

    def _end(self, outcome: Outcome, now_s: float) -> Try:
        current = self._current
        if current is None:
            raise ValueError("no attempt is under way")
        self._current = None
        entry = (current.target.provider, outcome)
        if self._committed:
            self.attempts[-1] = entry
        else:
            self.attempts.append(entry)
        breaker = self._state(current.target).breaker
        breaker.record(current.permit, TAXONOMY[outcome].verdict, now_s)
        return current

    def _advance(self, now_s: float) -> Step:
        targets = self._route.targets
        while self._next < len(targets) and self._calls < self._route.attempts:
            target = targets[self._next]
            self._next += 1
            if not self._is_eligible(target):
                continue
            if self._ends_s - now_s < MIN_ATTEMPT_S:
                return GiveUp(AllProvidersFailed(self.header, status=504))
            step = self._try(target, now_s)
            if step is not None:
                return step
        return GiveUp(self._error(now_s))

    def _try(self, target: Target, now_s: float) -> Try | None:
        state = self._state(target)
        if state.is_cooling(now_s):
            self.attempts.append((target.provider, Outcome.COOLING))
            return None
        deadline_s = self._deadline(now_s)
        permit = state.breaker.permit(now_s, lease_s=deadline_s - now_s + _LEASE_SLACK_S)
        if permit is None:
            self.attempts.append((target.provider, Outcome.OPEN))
            return None
        self._calls += 1
        self._current = Try(target, permit, deadline_s)
        return self._current

    def _deadline(self, now_s: float) -> float:
        left_s = self._ends_s - now_s
        alone = len(self._route.targets) == 1 and not self._stream
        own_s = left_s if alone else self._route.deadlines.first_token_s
        if own_s < left_s:
            return now_s + own_s
        return now_s + left_s / (1 + self._others(now_s))

    def _others(self, now_s: float) -> int:
        """How many more targets this walk could call as things stand."""
        usable = sum(
            self._is_eligible(target) and self._is_callable(target, now_s)
            for target in self._route.targets[self._next :]
        )
        return min(usable, self._route.attempts - self._calls - 1)

    def _is_callable(self, target: Target, now_s: float) -> bool:
        state = self._state(target)
        return not state.is_cooling(now_s) and state.breaker.state(now_s) is not State.OPEN

    def _is_eligible(self, target: Target) -> bool:
        """Whether what is known of this request leaves hope for `target`."""
        if self._must_exceed_tokens is not None and (
            target.context_tokens is None or target.context_tokens <= self._must_exceed_tokens
        ):
            return False
        return not any(target.shares_credential(refused) for refused in self._refused)

    def _may_go_on(self, target: Target, handling: Handling) -> bool:
        """Apply the row of the table; narrows the rest of the walk where it says so."""
        if handling.onward is Onward.LARGER_CONTEXT:
            if target.context_tokens is None:
                return False
            self._must_exceed_tokens = target.context_tokens
        elif handling.onward is Onward.OTHER_CREDENTIAL:
            self._refused.append(target)
            return self._route.failover_on_credential_error
        return handling.fails_over

    def _cool(
        self, target: Target, outcome: Outcome, now_s: float, retry_after_s: float | None
    ) -> None:
        cooling = self._route.cooling
        if retry_after_s is not None:
            seconds = max(retry_after_s, _MIN_COOLING_S)
        else:
            seconds = QUOTA_COOLING_S if outcome is Outcome.QUOTA else cooling.on_429_s
        self._state(target).cool(now_s, min(seconds, cooling.max_s))

    def _state(self, target: Target) -> TargetState:
        return self._targets.state(target, self._route.breaker)

    def _error(self, now_s: float) -> TidegateError:
        """What the client is told: the last real outcome decides, unless waiting would help."""
        last = self._last
        waiting = bool(self.attempts) and self.attempts[-1][1] in _SKIPS
        if last is not None and not (waiting and last in _NARROWING):
            error = TAXONOMY[last].error
            if error is not None and error is not AllProvidersFailed:
                return error(self.header)
            if last is Outcome.TIMEOUT and self._ends_s - now_s < MIN_ATTEMPT_S:
                return AllProvidersFailed(self.header, status=504)
        if {outcome for _, outcome in self.attempts} <= _RESTING | _NARROWING:
            return self._all_resting(now_s)
        return AllProvidersFailed(self.header)

    def _all_resting(self, now_s: float) -> TidegateError:
        """503 with the earliest return if every target rests now, else 502."""
        waits = [
            self._state(target).wait_s(now_s)
            for target in self._route.targets
            if self._is_eligible(target)
        ]
        if waits and min(waits) > 0.0:
            return AllProvidersFailed(self.header, status=503, retry_after_s=min(waits))
        return AllProvidersFailed(self.header)


__all__ = ["MIN_ATTEMPT_S", "QUOTA_COOLING_S", "Failover", "GiveUp", "Step", "Try"]
