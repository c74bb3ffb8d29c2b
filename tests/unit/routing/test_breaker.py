"""The breaker: every order of events to depth 7, and each rule by itself."""

from collections.abc import Iterator

import pytest

from tidegate.routing.breaker import Breaker, BreakerSettings, Permit, State, Verdict

SUCCESS, FAILURE, NEUTRAL = Verdict.SUCCESS, Verdict.FAILURE, Verdict.NEUTRAL
PAUSE_S = 8.0
QUICK = BreakerSettings(consecutive=2, ratio=2.0, open_s=PAUSE_S, max_open_s=PAUSE_S)
# (what, which outstanding permit)
EVENTS: tuple[tuple[Verdict | str, int], ...] = (
    ("call", 0),
    ("wait", 0),
    (SUCCESS, 0),
    (FAILURE, 0),
    (NEUTRAL, 0),
    (SUCCESS, -1),
    (FAILURE, -1),
    (NEUTRAL, -1),
)


def orders(depth: int, outstanding: int = 0) -> Iterator[tuple[tuple[Verdict | str, int], ...]]:
    """Every order of events; a result only where a permit may be outstanding."""
    if depth == 0:
        yield ()
        return
    for event in EVENTS:
        what, which = event
        if isinstance(what, Verdict):
            if outstanding < (1 if which == 0 else 2):
                continue
            left = outstanding - 1
        else:
            left = outstanding + (what == "call")
        for rest in orders(depth - 1, left):
            yield (event, *rest)


class Run:
    """A breaker driven by events, with what the test itself knows about each permit."""

    def __init__(self, settings: BreakerSettings) -> None:
        self.breaker = Breaker(settings)
        self.now_s = 100.0
        self.period = 0
        self.permits: list[tuple[Permit, int]] = []

    def step(self, what: Verdict | str, which: int) -> None:
        before = self.breaker.state(self.now_s)
        if what == "wait":
            self.now_s += PAUSE_S
        elif what == "call":
            self.call(before)
        elif self.permits:
            assert isinstance(what, Verdict)
            self.give_back(what, which, before)

    def call(self, before: State) -> None:
        permit = self.breaker.permit(self.now_s, lease_s=3 * PAUSE_S)
        if before is State.OPEN:
            assert permit is None
        if before is State.CLOSED:
            assert permit is not None
            assert not permit.probe
        if permit is None:
            return
        if permit.probe:
            assert before is State.HALF_OPEN
            assert self.breaker.permit(self.now_s, lease_s=3 * PAUSE_S) is None
        self.permits.append((permit, self.period))

    def give_back(self, verdict: Verdict, which: int, before: State) -> None:
        permit, period = self.permits.pop(which)
        reopens_at_s = self.breaker.reopens_at_s
        self.breaker.record(permit, verdict, self.now_s)
        after = self.breaker.state(self.now_s)
        if verdict is NEUTRAL or period != self.period:
            assert after is before
            if before is State.OPEN:
                assert self.breaker.reopens_at_s == reopens_at_s
        if after is before:
            return
        self.period += 1
        assert (before, after, verdict) in {
            (State.CLOSED, State.OPEN, FAILURE),
            (State.HALF_OPEN, State.OPEN, FAILURE),
            (State.HALF_OPEN, State.CLOSED, SUCCESS),
        }
        assert permit.probe == (before is State.HALF_OPEN)


BEGINNINGS: dict[str, tuple[tuple[Verdict | str, int], ...]] = {
    "fresh": (),
    "just opened, one call still out": (("call", 0),) * 3 + ((FAILURE, 0),) * 2,
    "probe under way, one old call still out": (
        *((("call", 0),) * 3),
        *(((FAILURE, 0),) * 2),
        ("wait", 0),
        ("call", 0),
    ),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.full
def test_no_late_result_moves_the_state_in_any_order_to_depth_seven(beginning: str) -> None:
    count = 0
    for order in orders(7, outstanding=0 if beginning == "fresh" else 1):
        run = Run(QUICK)
        for what, which in (*BEGINNINGS[beginning], *order):
            run.step(what, which)
        count += 1
    assert count > 10_000


def opened(settings: BreakerSettings = QUICK, now_s: float = 0.0) -> Breaker:
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
