"""The breaker: every order of events to depth 7, and each rule by itself."""

from collections.abc import Iterator

import pytest

from tests.unit.routing.breaker_oracle import Given, Oracle
from tidegate.routing.breaker import Breaker, BreakerSettings, Permit, State, Verdict

SUCCESS, FAILURE, NEUTRAL = Verdict.SUCCESS, Verdict.FAILURE, Verdict.NEUTRAL
PAUSE_S = 8.0
LEASE_S = 3 * PAUSE_S
# Doubling and its ceiling, two failures in a row, two slow answers, and a bad start after recovery:
# all are within reach of seven events.
QUICK = BreakerSettings(
    consecutive=2, ratio=0.9, min_results=2, slow_ratio=1.0, open_s=PAUSE_S, max_open_s=2 * PAUSE_S
)
RESULTS = ("success", "slow", "failure", "neutral", "trip")
# (what, which outstanding permit)
Event = tuple[str, int]
EVENTS: tuple[Event, ...] = (
    ("call", 0),
    ("wait", 0),
    *((what, which) for what in RESULTS for which in (0, -1)),
)


def orders(depth: int, outstanding: int = 0) -> Iterator[tuple[Event, ...]]:
    """Every order of events; a result only where a permit may be outstanding."""
    if depth == 0:
        yield ()
        return
    for event in EVENTS:
        what, which = event
        if what in RESULTS:
            if outstanding < (1 if which == 0 else 2):
                continue
            left = outstanding - 1
        else:
            left = outstanding + (what == "call")
        for rest in orders(depth - 1, left):
            yield (event, *rest)


class Run:
    """A breaker driven by events beside the oracle."""

    def __init__(self) -> None:
        self.breaker = Breaker(QUICK)
        self.now_s = 100.0
        self.oracle = Oracle(QUICK, LEASE_S, self.now_s)
        self.permits: list[tuple[Permit, Given]] = []

    def step(self, event: Event) -> None:
        what, which = event
        if what == "wait":
            self.now_s += PAUSE_S
            self.oracle.now_s = self.now_s
        elif what == "call":
            self.call()
        elif self.permits:
            self.give_back(what, which)
        assert self.breaker.state(self.now_s) is self.oracle.state
        assert self.breaker.share(self.now_s) == self.oracle.share
        assert (self.breaker.opened_by is None) == self.oracle.is_closed
        if self.oracle.state is State.OPEN:
            assert self.breaker.reopens_at_s == self.oracle.open_until_s
        elif self.oracle.is_closed:
            assert self.breaker.reopens_at_s is None

    def call(self) -> None:
        permit = self.breaker.permit(self.now_s, lease_s=LEASE_S)
        given = self.oracle.call()
        assert (permit is None) == (given is None)
        if permit is None or given is None:
            return
        assert permit.probe == given.probe
        if permit.probe:
            assert self.breaker.permit(self.now_s, lease_s=LEASE_S) is None
        self.permits.append((permit, given))

    def give_back(self, what: str, which: int) -> None:
        permit, given = self.permits.pop(which)
        before, period = self.oracle.state, self.oracle.period
        if what == "trip":
            self.breaker.trip(permit, self.now_s)
        else:
            verdict = SUCCESS if what == "slow" else Verdict(what)
            self.breaker.record(permit, verdict, self.now_s, slow=what == "slow")
        self.oracle.give_back(
            given,
            failed=what == "failure",
            slow=what == "slow",
            neutral=what == "neutral",
            trip=what == "trip",
        )
        if given.period != period or what == "neutral":
            assert self.breaker.state(self.now_s) is before


# What has happened, and how many permits are out after it.
BEGINNINGS: dict[str, tuple[int, tuple[Event, ...]]] = {
    "fresh": (0, ()),
    "just opened, one call still out": (1, (("call", 0),) * 3 + (("failure", 0),) * 2),
    "probe under way, one old call still out": (
        2,
        (*((("call", 0),) * 3), *((("failure", 0),) * 2), ("wait", 0), ("call", 0)),
    ),
    "just recovered, one old call still out": (
        1,
        (
            *((("call", 0),) * 3),
            *((("failure", 0),) * 2),
            ("wait", 0),
            ("call", 0),
            ("success", -1),
        ),
    ),
}


def run_every_order(beginning: str, depth: int) -> int:
    count = 0
    outstanding, events = BEGINNINGS[beginning]
    for order in orders(depth, outstanding):
        run = Run()
        for event in (*events, *order):
            run.step(event)
        count += 1
    return count


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_every_order_to_depth_three_follows_the_rules(beginning: str) -> None:
    assert run_every_order(beginning, 3) > 30


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.full
def test_no_late_result_moves_the_state_in_any_order_to_depth_seven(beginning: str) -> None:
    """Every order of calls, waits and results; "late" means of an earlier state.

    A success that came after the circuit had opened closed it: ray-project/ray #65068.
    """
    assert run_every_order(beginning, 7) > 30_000


TWO = BreakerSettings(consecutive=2, ratio=2.0, open_s=PAUSE_S, max_open_s=PAUSE_S)


def opened(settings: BreakerSettings = TWO, now_s: float = 0.0) -> Breaker:
    breaker = Breaker(settings)
    fail(breaker, now_s, times=settings.consecutive)
    assert breaker.state(now_s) is State.OPEN
    return breaker


def fail(breaker: Breaker, now_s: float, *, times: int = 1) -> None:
    for _ in range(times):
        record(breaker, FAILURE, now_s)


def record(breaker: Breaker, verdict: Verdict, now_s: float) -> None:
    permit = breaker.permit(now_s)
    assert permit is not None
    breaker.record(permit, verdict, now_s)


def test_hundred_callers_at_the_reopen_instant_share_one_permit() -> None:
    breaker = opened()
    assert [breaker.permit(PAUSE_S - 1e-6) for _ in range(100)] == [None] * 100
    permits = [breaker.permit(PAUSE_S) for _ in range(100)]
    assert [p.probe for p in permits if p is not None] == [True]


def test_neutral_results_neither_count_nor_reset_the_count() -> None:
    breaker = Breaker(BreakerSettings(consecutive=3, ratio=2.0))
    for verdict in (FAILURE, NEUTRAL, FAILURE, NEUTRAL, NEUTRAL):
        record(breaker, verdict, 0.0)
    assert breaker.state(0.0) is State.CLOSED
    fail(breaker, 0.0)
    assert breaker.state(0.0) is State.OPEN


def test_a_success_resets_the_consecutive_count() -> None:
    breaker = Breaker(BreakerSettings(consecutive=2, ratio=2.0))
    for verdict in (FAILURE, SUCCESS, FAILURE, SUCCESS, FAILURE):
        record(breaker, verdict, 0.0)
    assert breaker.state(0.0) is State.CLOSED


def test_neutral_probe_frees_the_slot_without_a_verdict() -> None:
    breaker = opened()
    record(breaker, NEUTRAL, PAUSE_S)
    assert breaker.state(PAUSE_S) is State.HALF_OPEN
    assert breaker.reopens_at_s is None
    record(breaker, SUCCESS, PAUSE_S)
    assert breaker.state(PAUSE_S) is State.CLOSED


def test_a_lost_probe_blocks_only_until_its_lease_ends() -> None:
    breaker = opened()
    lost = breaker.permit(PAUSE_S, lease_s=4.0)
    assert lost is not None
    assert breaker.reopens_at_s == PAUSE_S + 4.0
    assert breaker.permit(PAUSE_S + 3.9) is None
    second = breaker.permit(PAUSE_S + 4.0, lease_s=4.0)
    assert second is not None
    # The first comes back without a verdict: the second's lease stays its own.
    breaker.record(lost, NEUTRAL, PAUSE_S + 5.0)
    assert breaker.permit(PAUSE_S + 5.0) is None
    breaker.record(second, SUCCESS, PAUSE_S + 5.0)
    assert breaker.state(PAUSE_S + 5.0) is State.CLOSED


def test_a_probe_that_outlives_its_lease_still_decides() -> None:
    breaker = opened()
    slow = breaker.permit(PAUSE_S, lease_s=1.0)
    assert slow is not None
    breaker.record(slow, SUCCESS, PAUSE_S + 30.0)
    assert breaker.state(PAUSE_S + 30.0) is State.CLOSED


def test_a_late_first_probe_that_closes_leaves_nothing_of_the_second() -> None:
    breaker = opened()
    slow = breaker.permit(PAUSE_S, lease_s=1.0)
    second = breaker.permit(PAUSE_S + 2.0, lease_s=60.0)
    assert slow is not None
    assert second is not None
    breaker.record(slow, SUCCESS, PAUSE_S + 3.0)
    assert breaker.reopens_at_s is None
    breaker.record(second, FAILURE, PAUSE_S + 4.0)
    assert breaker.state(PAUSE_S + 4.0) is State.CLOSED


def test_a_permit_returned_twice_counts_once() -> None:
    breaker = Breaker(BreakerSettings(consecutive=2, ratio=2.0))
    permit = breaker.permit(0.0)
    assert permit is not None
    for _ in range(5):
        breaker.record(permit, FAILURE, 0.0)
    assert breaker.state(0.0) is State.CLOSED


@pytest.mark.parametrize(
    ("failures", "successes", "expected"),
    [
        (2, 2, State.CLOSED),  # fewer than min_results
        (3, 3, State.OPEN),
        (3, 4, State.CLOSED),  # below the ratio
        (1, 9, State.CLOSED),
    ],
)
def test_ratio_opens_only_with_enough_results(
    failures: int, successes: int, expected: State
) -> None:
    breaker = Breaker(BreakerSettings(consecutive=99, ratio=0.5, min_results=5))
    for _ in range(successes):
        record(breaker, SUCCESS, 0.0)
    fail(breaker, 0.0, times=failures)
    assert breaker.state(0.0) is expected


def test_results_older_than_the_window_do_not_count() -> None:
    settings = BreakerSettings(consecutive=99, ratio=0.5, window_s=30.0, min_results=5)
    breaker = Breaker(settings)
    fail(breaker, 0.0, times=4)
    fail(breaker, 30.0)
    assert breaker.state(30.0) is State.CLOSED
    fail(breaker, 59.0, times=4)
    assert breaker.state(59.0) is State.OPEN


def test_the_window_keeps_a_bounded_number_of_slots() -> None:
    breaker = Breaker(BreakerSettings(consecutive=10**9, ratio=2.0))
    for step in range(1000):
        fail(breaker, step * 0.1)
    assert len(breaker._slots) <= 11


def test_the_pause_doubles_up_to_its_ceiling_and_starts_over_after_a_quiet_time() -> None:
    settings = BreakerSettings(consecutive=1, open_s=5.0, max_open_s=60.0)
    breaker = Breaker(settings)
    now_s = 0.0
    pauses = []
    for _ in range(6):
        fail(breaker, now_s)
        assert breaker.reopens_at_s is not None
        pauses.append(breaker.reopens_at_s - now_s)
        now_s = breaker.reopens_at_s
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    # Recovery that does not last goes on where the outage ended ...
    record(breaker, SUCCESS, now_s)
    fail(breaker, now_s + 59.0)
    assert breaker.reopens_at_s == now_s + 59.0 + 60.0
    # ... one that lasts starts over.
    now_s = breaker.reopens_at_s
    record(breaker, SUCCESS, now_s)
    fail(breaker, now_s + 60.0)
    assert breaker.reopens_at_s == now_s + 65.0


def test_an_outage_of_a_year_keeps_the_ceiling() -> None:
    breaker = Breaker(BreakerSettings(consecutive=1, open_s=5.0, max_open_s=60.0))
    now_s = 0.0
    for _ in range(3000):
        fail(breaker, now_s)
        assert breaker.reopens_at_s is not None
        assert breaker.reopens_at_s - now_s <= 60.0
        now_s = breaker.reopens_at_s
