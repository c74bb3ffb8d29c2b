"""After this outcome, do we try another target, and which one?

Lives here: the walk of one request over the targets of its route, the deadline of each attempt
and the error at its end. Does not live here: sockets and clocks (the caller reports outcomes
with a monotonic `now_s`), what follows from an outcome (the table in outcome.py), the breaker's
own states (breaker.py).

The deadline of an attempt is `first_token_s` from its start, never past the end of the request:
  - stream: the first content must be there by then; afterwards the caller's idle and total
    clocks run.
  - plain answer: the whole answer must be there by then. An operator of slow models raises
    `first_token_s` of the route. Only where nobody else can be asked (one target, one attempt, no
    fallback wanted) may it use all that is left of the request: cutting it early would turn a
    late answer into none.
  - an attempt that would eat all that is left, while other targets could still be tried, gets
    an equal share of it instead.
Time spent before the first attempt (body, limits) counts against the request, because the walk
is told when the request began. A time-out of an attempt that got less than `first_token_s`, and
less than an equal share of the whole request, says nothing about its target.

A target that failed is asked a second time only where that may help and cannot add to an outage:
the failure is of a kind that passes (`on(passing=True)`), it came within a second, the request has
asked nobody else and nobody else can be asked now, and the target's budget of retries has one left.
"""

from dataclasses import dataclass

from tidegate.errors import AllProvidersFailed, TidegateError
from tidegate.routing.breaker import Permit, Verdict
from tidegate.routing.heard import Heard
from tidegate.routing.history import Change, Skip
from tidegate.routing.outcome import TAXONOMY, Handling, Onward, Outcome, Trips
from tidegate.routing.plan import Route, Target
from tidegate.routing.targets import Targets, TargetState

# Less than this is no attempt: a timer may also fire that much early.
MIN_ATTEMPT_S = 0.05
QUOTA_COOLING_S = 300.0
_MIN_COOLING_S = 0.5
_LEASE_SLACK_S = 1.0
_FAST_FAILURE_S = 1.0
_RETRY_PAUSE_S = 0.2
_TIMER_SLACK_S = 0.05

_SKIPS = frozenset({Outcome.OPEN, Outcome.COOLING})
_RESTING = _SKIPS | {Outcome.RATE_LIMITED, Outcome.QUOTA}
# These narrow the walk to few targets; if those few are resting, waiting helps.
_NARROWING = frozenset({Outcome.CONTEXT, Outcome.CREDENTIAL, Outcome.FORBIDDEN})
_NOT_FAILURES = _SKIPS | {Outcome.OK, Outcome.CANCELLED}


@dataclass(frozen=True, slots=True)
class Try:
    """Call `target` at `not_before_s` and report before `deadline_s` or at it (both monotonic).

    `again` marks a retry at the same target; only then may `not_before_s` lie ahead.
    """

    target: Target
    permit: Permit
    deadline_s: float
    not_before_s: float
    again: bool = False


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
    deadline bounds the whole answer. `order` holds the route's targets in the order for this
    request (order.ordered); that of the file without it. `single`: the client wants no fallback,
    so the first target that can be called is asked once.

    `jitter` is a random number in [-1, 1] wherever it is asked for. `alert` names what the last
    failure asks the operator to mend, or is "". `changes` holds what the walk has changed for
    others, in order, and `skips` the targets it passed over.
    """

    def __init__(
        self,
        route: Route,
        targets: Targets,
        *,
        started_s: float,
        total_s: float,
        stream: bool = True,
        order: tuple[Target, ...] | None = None,
        single: bool = False,
    ) -> None:
        self.attempts: list[tuple[str, Outcome]] = []
        self.changes: list[Change] = []
        self.skips: list[Skip] = []
        self.alert = ""
        self._route = route
        self._order = route.targets if order is None else order
        self._states = {target: targets.state(target, route.breaker) for target in self._order}
        self._ends_s = started_s + total_s
        self._most_calls = 1 if single else route.attempts
        self._most_targets = min(self._most_calls, len(self._order))
        self._fair_s = min(route.deadlines.first_token_s, total_s / max(1, self._most_targets))
        self._stream = stream
        self._next = 0
        self._calls = 0
        self._current: Try | None = None
        self._committed = False
        self._heard = Heard()
        self._refused: list[Target] = []
        self._went_on_once = False

    def start(self, now_s: float) -> Step:
        """The first step; may already be a GiveUp."""
        return self._advance(now_s)

    def on(
        self,
        outcome: Outcome,
        now_s: float,
        *,
        retry_after_s: float | None = None,
        passing: bool = False,
        jitter: float = 0.0,
    ) -> Step:
        """Record that the attempt failed before commit, and decide what is next.

        `retry_after_s` is what the upstream itself asked for; read for outcomes that cool.
        `passing`: the connection was refused or reset, or the status was 500, so that the same
        call may succeed in a moment.
        """
        if self._committed or outcome in _NOT_FAILURES:
            raise ValueError(f"not a failure before commit: {outcome}")
        current = self._end(outcome, now_s, jitter=jitter)
        self._heard.said(current.target, outcome)
        handling = TAXONOMY[outcome]
        if handling.cools:
            self._cool(current.target, outcome, now_s, retry_after_s)
        if not self._may_go_on(current.target, handling):
            return GiveUp(self._error(now_s))
        if passing and self._may_ask_again(current, now_s):
            self._state(current.target).retry(now_s)
            self._next -= 1
            # Full jitter: anything from at once to the whole pause.
            return self._advance(now_s, pause_s=_RETRY_PAUSE_S * (1.0 + jitter) / 2.0)
        return self._advance(now_s)

    def commit(self, now_s: float = 0.0, *, first_token_s: float | None = None) -> None:
        """The attempt serves the client: from now on `attempts` ends with its `ok`.

        `first_token_s` is how long the first content took, for the strategy least_latency. The
        verdict for the breaker waits for `finished`: a stream that begins well may break.
        """
        if self._current is None or self._committed:
            raise ValueError("no attempt to commit")
        self._committed = True
        self.attempts.append((self._current.target.provider, Outcome.OK))
        if first_token_s is not None:
            self._state(self._current.target).latency.saw(first_token_s, now_s)

    def note_room(self, scarce_s: float, now_s: float) -> None:
        """Record what room the target under way says it has (retry_after.scarce_for_s)."""
        if self._current is not None:
            self._state(self._current.target).note_room(now_s, scarce_s)

    def finished(
        self, outcome: Outcome, now_s: float, *, slow: bool = False, jitter: float = 0.0
    ) -> None:
        """The committed attempt has ended; OK or what broke it. No effect when none runs.

        `slow`: its tokens came more slowly than the route's `breaker.slow_tokens_per_s`.
        """
        if self._current is not None:
            self._end(outcome, now_s, slow=slow, jitter=jitter)

    def cancelled(self, now_s: float) -> None:
        """Nobody waits any more: frees the permit without a verdict. No effect when none runs."""
        self.finished(Outcome.CANCELLED, now_s)

    @property
    def header(self) -> str:
        """`primary:rate_limited,backup:ok`: names from the configuration and outcomes only."""
        return ",".join(f"{provider}:{outcome}" for provider, outcome in self.attempts)

    def _end(
        self, outcome: Outcome, now_s: float, *, slow: bool = False, jitter: float = 0.0
    ) -> Try:
        current = self._current
        if current is None:
            raise ValueError("no attempt is under way")
        self._current = None
        entry = (current.target.provider, outcome)
        if self._committed:
            self.attempts[-1] = entry
        else:
            self.attempts.append(entry)
        state, handling = self._state(current.target), TAXONOMY[outcome]
        verdict = handling.verdict
        if outcome is Outcome.TIMEOUT:
            slow = True
            if self._was_cut_short(current):
                verdict = Verdict.NEUTRAL
            elif not self._committed:
                state.latency.missed(now_s - current.not_before_s, now_s)
        before = state.breaker.state(now_s)
        state.history.saw(outcome, verdict)
        ours = handling.trips is not Trips.NAMED or current.target.upstream_model is not None
        # Where callers name the model it may be their mistake; it is not if nobody is served.
        self.alert = handling.alert if ours or Outcome.OK not in state.history.recent else ""
        if ours and handling.trips is not Trips.NO:
            state.breaker.trip(current.permit, now_s, jitter=jitter)
        else:
            cheap = not self._committed and now_s - current.not_before_s < _FAST_FAILURE_S
            state.breaker.record(
                current.permit, verdict, now_s, slow=slow, cheap=cheap, jitter=jitter
            )
        if outcome is Outcome.OK:
            state.earn_retry()
        if state.breaker.state(now_s) is not before:
            self._note_turn(current.target, outcome, now_s)
        return current

    def _was_cut_short(self, attempt: Try) -> bool:
        """Whether the request's own end left less time than any target may be blamed for.

        Else a caller who sends the body slowly could have healthy targets left alone.
        """
        return attempt.deadline_s - attempt.not_before_s < self._fair_s - _TIMER_SLACK_S

    def _note_turn(self, target: Target, outcome: Outcome, now_s: float) -> None:
        """The breaker has opened or closed."""
        breaker = self._state(target).breaker
        if breaker.reopens_at_s is None:
            self.changes.append(Change(target, "closed", outcome))
            return
        pause_s = breaker.reopens_at_s - now_s
        self.changes.append(Change(target, "opened", f"{outcome},{breaker.opened_by}", pause_s))

    def _advance(self, now_s: float, *, pause_s: float | None = None) -> Step:
        """The next target that can be called; `pause_s` if it is the same one again."""
        while self._next < len(self._order) and self._calls < self._most_calls:
            target = self._order[self._next]
            self._next += 1
            if not self._is_eligible(target):
                continue
            if self._ends_s - now_s < MIN_ATTEMPT_S:
                return GiveUp(AllProvidersFailed(self.header, status=504))
            step = self._try(target, now_s, pause_s)
            if step is not None:
                return step
        return GiveUp(self._error(now_s))

    def _may_ask_again(self, failed: Try, now_s: float) -> bool:
        """Whether the target that just failed may be asked a second time."""
        return (
            self._calls == 1 < self._most_calls
            and now_s - failed.not_before_s < _FAST_FAILURE_S
            and self._ends_s - now_s >= _RETRY_PAUSE_S + MIN_ATTEMPT_S
            and self._callable_left(now_s) == 0
            and self._is_callable(failed.target, now_s)
            and self._state(failed.target).may_retry(now_s)
        )

    def _try(self, target: Target, now_s: float, pause_s: float | None) -> Try | None:
        state = self._state(target)
        if state.is_cooling(now_s):
            self._skip(target, Outcome.COOLING, now_s)
            return None
        begins_s = now_s + (pause_s or 0.0)
        deadline_s = self._deadline(begins_s)
        permit = state.breaker.permit(now_s, lease_s=deadline_s - now_s + _LEASE_SLACK_S)
        if permit is None:
            self._skip(target, Outcome.OPEN, now_s)
            return None
        if permit.probe:
            self.changes.append(Change(target, "probe"))
        self._calls += 1
        self._current = Try(target, permit, deadline_s, begins_s, again=pause_s is not None)
        return self._current

    def _skip(self, target: Target, outcome: Outcome, now_s: float) -> None:
        state = self._state(target)
        self.attempts.append((target.provider, outcome))
        self._heard.said(target, outcome)
        self.skips.append(Skip(target, outcome, state.wait_s(now_s), state.breaker.opened_by))

    def _deadline(self, now_s: float) -> float:
        left_s = self._ends_s - now_s
        alone = self._most_targets == 1 and not self._stream
        own_s = left_s if alone else self._route.deadlines.first_token_s
        if own_s < left_s:
            return now_s + own_s
        return now_s + left_s / (1 + self._others(now_s))

    def _others(self, now_s: float) -> int:
        """How many more targets this walk could call after the one it is about to call."""
        return min(self._callable_left(now_s), self._most_calls - self._calls - 1)

    def _callable_left(self, now_s: float) -> int:
        return sum(
            self._is_eligible(target) and self._is_callable(target, now_s)
            for target in self._order[self._next :]
        )

    def _is_callable(self, target: Target, now_s: float) -> bool:
        return self._state(target).wait_s(now_s) == 0.0

    def _is_eligible(self, target: Target) -> bool:
        """Whether what is known of this request leaves hope for `target`."""
        return self._heard.is_longer(target) and not self._is_refused(target)

    def _is_refused(self, target: Target) -> bool:
        return any(target.shares_credential(refused) for refused in self._refused)

    def _may_go_on(self, target: Target, handling: Handling) -> bool:
        """Apply the row of the table; narrows the rest of the walk where it says so."""
        if handling.onward is Onward.LARGER_CONTEXT:
            return target.context_tokens is not None
        if handling.onward is Onward.OTHER_CREDENTIAL:
            self._refused.append(target)
            return self._route.failover_on_credential_error
        if handling.onward is Onward.ONCE:
            is_second, self._went_on_once = self._went_on_once, True
            return not is_second
        return handling.fails_over

    def _cool(
        self, target: Target, outcome: Outcome, now_s: float, retry_after_s: float | None
    ) -> None:
        cooling = self._route.cooling
        seconds = cooling.on_429_s if retry_after_s is None else max(retry_after_s, _MIN_COOLING_S)
        if outcome is Outcome.QUOTA:
            # Credit does not come back with the next minute's window, of which a header speaks.
            seconds = max(seconds, QUOTA_COOLING_S)
        seconds = min(seconds, cooling.max_s)
        if seconds > 0.0:
            state = self._state(target)
            # Calls that were under way when the rest began change nothing that is news.
            if not state.is_cooling(now_s):
                self.changes.append(Change(target, "cooling", outcome, seconds))
            state.cool(now_s, seconds)

    def _state(self, target: Target) -> TargetState:
        """The state as it was found when the walk began; a reload may have dropped it since."""
        state = self._states[target]
        state.breaker.settings = self._route.breaker
        return state

    def _error(self, now_s: float) -> TidegateError:
        """What the client is told: the last real outcome decides, unless waiting would help."""
        last = self._heard.last_word()
        waiting = bool(self.attempts) and self.attempts[-1][1] in _SKIPS
        if last is not None and not (waiting and last in _NARROWING):
            error = TAXONOMY[last].error
            if error is not None and error is not AllProvidersFailed:
                return error(self.header)
            if last is Outcome.TIMEOUT and self._ends_s - now_s < MIN_ATTEMPT_S:
                return AllProvidersFailed(self.header, status=504)
        if {outcome for _, outcome in self.attempts} <= _RESTING | _NARROWING:
            return self._all_resting(now_s)
        return self._failed(now_s)

    def _failed(self, now_s: float) -> TidegateError:
        """502. If `attempts` ended the walk before a target that can be called, asking again may
        well help: then the client is not told otherwise."""
        error = AllProvidersFailed(self.header)
        if self._callable_left(now_s):
            error.should_retry = None
        return error

    def _all_resting(self, now_s: float) -> TidegateError:
        """503 with the earliest return if every target that may serve rests now, else 502."""
        waits = [
            self._state(target).wait_s(now_s)
            for target in self._order
            if self._heard.may_fit(target) and not self._is_refused(target)
        ]
        if waits and min(waits) > 0.0:
            return AllProvidersFailed(self.header, status=503, retry_after_s=min(waits))
        return self._failed(now_s)


__all__ = ["MIN_ATTEMPT_S", "QUOTA_COOLING_S", "Failover", "GiveUp", "Step", "Try"]
