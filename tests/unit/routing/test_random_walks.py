"""Many requests at once over shared targets, at random, beside a second account of it all.

The account keeps whole lists and knows only the rules: which targets rest, who may be called next,
what the header must say. It shares no code with the walk but the table of outcomes.
"""

import random
from dataclasses import dataclass, field

import pytest

from tests.unit.routing.breaker_oracle import Given, Oracle
from tidegate.routing import (
    TAXONOMY,
    BreakerSettings,
    Cooling,
    Deadlines,
    Failover,
    Onward,
    Outcome,
    Route,
    Step,
    Target,
    Targets,
    Trips,
    Try,
    Verdict,
)

pytestmark = pytest.mark.full

FAILED = tuple(o for o in Outcome if TAXONOMY[o].error is not None and o not in ("open", "cooling"))
POOL = (
    Target("a", credential_id="k1", context_tokens=10),
    Target("b", credential_id="k1", context_tokens=20, upstream_model="m"),
    Target("c", credential_id="k2", context_tokens=30, upstream_model="m"),
    Target("d", credential_id="k3"),
)


@dataclass
class Account:
    """What the rules say about one target."""

    breaker: Oracle
    rests_until_s: float = float("-inf")
    earned: int = 0
    free_retries_s: list[float] = field(default_factory=list)

    def wait_s(self, now_s: float) -> float:
        until_s = self.rests_until_s
        if not self.breaker.is_closed:
            probes = [end_s for _, end_s in self.breaker.probes]
            until_s = max(until_s, *(probes or [self.breaker.open_until_s]))
        return max(0.0, until_s - now_s)

    def takes_retry(self, now_s: float) -> bool:
        recent = [at_s for at_s in self.free_retries_s if now_s - at_s < 10.0]
        if self.earned >= 10:
            self.earned -= 10
        elif len(recent) < 3:
            self.free_retries_s = [*recent, now_s]
        else:
            return False
        return True


@dataclass
class Request:
    """One walk, and what the test knows of it."""

    walk: Failover
    order: tuple[Target, ...]
    most_calls: int
    ends_s: float
    step: Step
    calls: list[tuple[Target, Given]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    passed: int = 0
    refused: set[str] = field(default_factory=set)
    exceeds: int = 0
    too_long: list[Target] = field(default_factory=list)
    reached: tuple[Target, ...] = ()
    conflicts: int = 0
    committed: bool = False
    began_s: float = 0.0
    given_s: float = 0.0

    def hopes_for(self, target: Target) -> bool:
        if self.exceeds and (target.context_tokens or 0) <= self.exceeds:
            return False
        return target.credential_id not in self.refused

    def may_serve_later(self, target: Target) -> bool:
        """Hope, or a window that is not declared of a target that was reached before a refusal."""
        unknown = target.context_tokens is None and target in self.reached
        hope = self.hopes_for(target) or (unknown and target.credential_id not in self.refused)
        return hope and target not in self.too_long


class World:
    """A route, its targets, and every request under way."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)  # noqa: S311 - the same walks every time
        # In a calm world targets fail and do not rest, so that one is asked a second time.
        calm = rng.random() < 0.4
        self.failed = (Outcome.SERVER_ERROR, Outcome.UNREACHABLE) if calm else FAILED
        breaker = BreakerSettings(
            consecutive=99 if calm else rng.choice((1, 2, 5)),
            ratio=2.0 if calm else rng.choice((0.5, 2.0)),
            min_results=rng.choice((2, 5)),
            # Results leave the window in groups: here none does, and test_breaker has the rest.
            window_s=1e9,
            open_s=4.0,
            max_open_s=16.0,
            slow_ratio=2.0 if calm else rng.choice((0.5, 0.8)),
        )
        self.of = Route(
            "r",
            POOL[: rng.randint(1, 4)],
            attempts=rng.randint(1, 4),
            deadlines=Deadlines(first_token_s=3.0, total_s=10.0),
            cooling=Cooling(on_429_s=rng.choice((0.0, 6.0)), max_s=rng.choice((8.0, 600.0))),
            breaker=breaker,
            failover_on_credential_error=rng.random() < 0.5,
        )
        self.targets = Targets()
        self.now_s = 0.0
        self.accounts = {t: Account(Oracle(breaker, 0.0, 0.0)) for t in self.of.targets}
        self.requests: list[Request] = []
        self.calls = self.give_ups = self.retries = 0

    def turn(self) -> None:
        self.now_s += self.rng.choice((0.0, 0.0, 0.0, 0.01, 0.3, 2.0, 5.0))
        for account in self.accounts.values():
            account.breaker.now_s = self.now_s
        if not self.requests or self.rng.random() < 0.4:
            self.begin()
            return
        request = self.rng.choice(self.requests)
        if request.committed:
            self.finish(request)
        elif self.rng.random() < 0.3:
            request.walk.commit(self.now_s, first_token_s=0.1)
            request.committed = True
            request.shown.append(f"{request.calls[-1][0].provider}:ok")
        elif self.rng.random() < 0.1:
            self.cancel(request)
        else:
            self.fail(request)
        assert request.walk.header == ",".join(request.shown)

    def begin(self) -> None:
        order = tuple(self.rng.sample(self.of.targets, len(self.of.targets)))
        single = self.rng.random() < 0.2
        walk = Failover(
            self.of,
            self.targets,
            started_s=self.now_s,
            total_s=10.0,
            order=order,
            single=single,
        )
        most_calls = 1 if single else self.of.attempts
        step = walk.start(self.now_s)
        request = Request(walk, order, most_calls, self.now_s + 10.0, step)
        self.requests.append(request)
        self.expect_next(request)

    def expect_next(self, request: Request) -> None:
        """The step of `request` is the one that the rules ask for."""
        while request.passed < len(request.order) and len(request.calls) < request.most_calls:
            target = request.order[request.passed]
            request.passed += 1
            if not request.hopes_for(target):
                continue
            if request.ends_s - self.now_s < 0.05:
                self.give_up(request, status=504)
                return
            account = self.accounts[target]
            if self.now_s < account.rests_until_s:
                request.shown.append(f"{target.provider}:cooling")
            elif (given := account.breaker.call()) is None:
                request.shown.append(f"{target.provider}:open")
            else:
                self.expect_call(request, target, given)
                return
        self.give_up(request)

    def expect_call(
        self, request: Request, target: Target, given: Given, *, again: bool = False
    ) -> None:
        step = request.step
        assert isinstance(step, Try)
        assert step.target == target
        assert step.permit.probe == given.probe
        assert step.again == again
        assert self.now_s <= step.not_before_s <= self.now_s + 0.2 * again
        assert step.not_before_s < step.deadline_s <= request.ends_s
        assert step.deadline_s <= step.not_before_s + 3.0
        if given.probe:
            lease_s = step.deadline_s - self.now_s + 1.0
            self.accounts[target].breaker.probes = [(given, self.now_s + lease_s)]
        request.calls.append((target, given))
        request.began_s, request.given_s = step.not_before_s, step.deadline_s - step.not_before_s
        assert len(request.calls) <= request.most_calls
        self.calls += 1

    def give_up(self, request: Request, *, status: int | None = None) -> None:
        step = request.step
        assert not isinstance(step, Try)
        assert step.error.detail == ",".join(request.shown)
        waits = [
            self.accounts[t].wait_s(self.now_s)
            for t in self.of.targets
            if request.may_serve_later(t)
        ]
        if status is not None:
            assert step.error.status == status
        elif step.error.status == 503:
            # A rest is named only if it is true of every target that is left.
            assert step.error.retry_after_s == pytest.approx(min(waits))
            assert min(waits) > 0.0
        elif request.shown and not request.calls:
            assert min(waits, default=0.0) == 0.0
        self.requests.remove(request)
        self.give_ups += 1

    def finish(self, request: Request) -> None:
        outcome = self.rng.choice((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.INTERRUPTED))
        slow = self.rng.random() < 0.3
        request.walk.finished(outcome, self.now_s, slow=slow)
        self.book(request, outcome, slow=slow)
        request.shown[-1] = f"{request.calls[-1][0].provider}:{outcome}"
        self.requests.remove(request)

    def cancel(self, request: Request) -> None:
        request.walk.cancelled(self.now_s)
        self.book(request, Outcome.CANCELLED)
        request.shown.append(f"{request.calls[-1][0].provider}:cancelled")
        self.requests.remove(request)

    def book(self, request: Request, outcome: Outcome, *, slow: bool = False) -> None:
        target, given = request.calls[-1]
        row, account = TAXONOMY[outcome], self.accounts[target]
        named = target.upstream_model is not None
        fair_s = min(3.0, 10.0 / min(self.of.attempts, len(self.of.targets)))
        short = outcome is Outcome.TIMEOUT and request.given_s < fair_s - 0.05
        account.breaker.give_back(
            given,
            failed=row.verdict is Verdict.FAILURE,
            slow=slow or outcome is Outcome.TIMEOUT,
            neutral=row.verdict is Verdict.NEUTRAL or short,
            cheap=not request.committed and self.now_s - request.began_s < 1.0,
            trip=row.trips is Trips.ALWAYS or (row.trips is Trips.NAMED and named),
        )
        if outcome is Outcome.OK:
            account.earned = min(100, account.earned + 1)

    def fail(self, request: Request) -> None:
        outcome = self.rng.choice(self.failed)
        own_s = self.rng.choice((None, 0.1, 3.0, 900.0))
        passing = outcome in (Outcome.SERVER_ERROR, Outcome.UNREACHABLE) and self.rng.random() < 0.7
        request.step = request.walk.on(
            outcome,
            self.now_s,
            retry_after_s=own_s,
            passing=passing,
            jitter=0.0,
        )
        target, _ = request.calls[-1]
        request.shown.append(f"{target.provider}:{outcome}")
        self.book(request, outcome)
        if TAXONOMY[outcome].cools:
            rest_s = self.of.cooling.on_429_s if own_s is None else max(own_s, 0.5)
            rest_s = max(rest_s, 300.0) if outcome is Outcome.QUOTA else rest_s
            rest_s = min(rest_s, self.of.cooling.max_s)
            account = self.accounts[target]
            if rest_s:
                account.rests_until_s = max(account.rests_until_s, self.now_s + rest_s)
        if not self.goes_on(request, target, TAXONOMY[outcome].onward):
            self.give_up(request)
        elif passing and self.asks_again(request, target):
            given = self.accounts[target].breaker.call()
            assert given is not None
            self.expect_call(request, target, given, again=True)
            self.retries += 1
        else:
            self.expect_next(request)

    def goes_on(self, request: Request, target: Target, onward: Onward) -> bool:
        if onward is Onward.LARGER_CONTEXT:
            if not request.too_long:
                request.reached = request.order[: request.passed]
            request.too_long.append(target)
            request.exceeds = target.context_tokens or 0
            return target.context_tokens is not None
        if onward is Onward.OTHER_CREDENTIAL:
            request.refused.add(target.credential_id)
            return self.of.failover_on_credential_error
        request.conflicts += onward is Onward.ONCE
        return onward is not Onward.NONE and not (onward is Onward.ONCE and request.conflicts > 1)

    def asks_again(self, request: Request, target: Target) -> bool:
        others = [t for t in request.order[request.passed :] if request.hopes_for(t)]
        return (
            len(request.calls) == 1 < request.most_calls
            and self.now_s - request.began_s < 1.0
            and request.ends_s - self.now_s >= 0.25
            and all(self.accounts[other].wait_s(self.now_s) > 0.0 for other in others)
            and self.accounts[target].wait_s(self.now_s) == 0.0
            and self.accounts[target].takes_retry(self.now_s)
        )


def walk_at_random(seeds: range, turns: int) -> tuple[int, int, int]:
    calls = give_ups = retries = 0
    for seed in seeds:
        world = World(seed)
        for _ in range(turns):
            world.turn()
        calls, give_ups = calls + world.calls, give_ups + world.give_ups
        retries += world.retries
    return calls, give_ups, retries


def test_random_walks_agree_with_the_rules() -> None:
    assert min(walk_at_random(range(120), 100)) > 5


@pytest.mark.full
def test_many_long_random_walks_agree_with_the_rules() -> None:
    assert min(walk_at_random(range(1_000, 3_000), 300)) > 1_000
