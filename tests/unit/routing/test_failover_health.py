"""What one walk leaves behind for the next: cooling targets and open breakers."""

import pytest

from tests.unit.routing.walks import BACKUP, PRIMARY, play, route, tried, walk
from tidegate.routing import (
    BreakerSettings,
    Cooling,
    Deadlines,
    Failover,
    Outcome,
    State,
    Target,
    Targets,
)


def test_upstream_429_cools_the_target_for_its_own_time_and_leaves_the_breaker_alone() -> None:
    targets, of = Targets(), route(cooling=Cooling(on_429_s=5.0))
    first = walk(of, targets)
    first.start(0.0)
    tried(first.on(Outcome.RATE_LIMITED, 0.0, retry_after_s=30.0))
    for now_s in (0.0, 29.9):
        later = Failover(of, targets, started_s=now_s, total_s=10.0)
        assert tried(later.start(now_s)).target == BACKUP
        assert later.header == "primary:cooling"
    back = Failover(of, targets, started_s=30.0, total_s=10.0)
    assert tried(back.start(30.0)).target == PRIMARY
    assert targets.state(PRIMARY, of.breaker).breaker.state(0.0) is State.CLOSED


@pytest.mark.parametrize(
    ("outcome", "own_s", "cooling", "rest_s"),
    [
        (Outcome.RATE_LIMITED, None, Cooling(5.0), 5.0),
        (Outcome.RATE_LIMITED, None, Cooling(0.0), 0.0),
        (Outcome.RATE_LIMITED, 30.0, Cooling(0.0), 30.0),
        (Outcome.RATE_LIMITED, 0.01, Cooling(5.0), 0.5),
        (Outcome.RATE_LIMITED, 9999.0, Cooling(5.0, 600.0), 600.0),
        (Outcome.RATE_LIMITED, 30.0, Cooling(5.0, 0.0), 0.0),
        (Outcome.QUOTA, None, Cooling(5.0), 300.0),
        (Outcome.QUOTA, None, Cooling(5.0, 60.0), 60.0),
        (Outcome.SERVER_ERROR, 30.0, Cooling(5.0), 0.0),
        (Outcome.TRANSIENT, 30.0, Cooling(5.0), 0.0),
    ],
)
def test_how_long_a_target_rests(
    outcome: Outcome, own_s: float | None, cooling: Cooling, rest_s: float
) -> None:
    targets, of = Targets(), route(cooling=cooling)
    failover = walk(of, targets)
    failover.start(7.0)
    failover.on(outcome, 7.0, retry_after_s=own_s)
    assert targets.state(PRIMARY, of.breaker).wait_s(7.0) == rest_s
    told = [(change.kind, change.reason, change.pause_s) for change in failover.changes]
    assert told == ([("cooling", outcome, rest_s)] if rest_s else [])


def test_an_open_target_is_skipped_and_shown() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=2, open_s=5.0))
    for _ in range(2):
        play(of, Outcome.SERVER_ERROR, Outcome.OK, targets=targets)
    assert play(of, Outcome.OK, targets=targets)[0] == "primary:open,backup:ok"


def test_fifty_requests_at_the_reopen_instant_make_one_probe() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    play(of, Outcome.TIMEOUT, Outcome.OK, targets=targets)
    asked = []
    for _ in range(50):
        failover = Failover(of, targets, started_s=5.0, total_s=10.0)
        asked.append(tried(failover.start(5.0)).target.provider)
    assert asked == ["primary"] + ["backup"] * 49


def test_three_failures_apart_from_rate_limits_open_the_breaker() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=3, ratio=2.0))
    for outcome in ((Outcome.SERVER_ERROR, Outcome.RATE_LIMITED) * 3)[:5]:
        assert targets.state(PRIMARY, of.breaker).breaker.state(0.0) is State.CLOSED
        play(of, outcome, Outcome.OK, targets=targets)
    assert targets.state(PRIMARY, of.breaker).breaker.state(0.0) is State.OPEN


def test_bad_requests_of_one_caller_leave_the_target_closed_and_warm() -> None:
    targets, of = Targets(), route(breaker=BreakerSettings(consecutive=3))
    for outcome in (Outcome.CONTEXT, Outcome.REJECTED, Outcome.FILTERED, Outcome.NOT_FOUND) * 3:
        failover = walk(of, targets)
        assert tried(failover.start(0.0)).target == PRIMARY
        failover.on(outcome, 0.0)
    assert targets.state(PRIMARY, of.breaker).wait_s(0.0) == 0.0


def test_streams_that_always_break_open_the_breaker() -> None:
    targets, of = Targets(), route(breaker=BreakerSettings(consecutive=3))
    for _ in range(3):
        failover = walk(of, targets)
        assert tried(failover.start(0.0)).target == PRIMARY
        failover.commit()
        assert failover.header == "primary:ok"
        failover.finished(Outcome.INTERRUPTED, 1.0)
        assert failover.header == "primary:interrupted"
    assert targets.state(PRIMARY, of.breaker).breaker.state(1.0) is State.OPEN


@pytest.mark.parametrize("committed", [True, False])
def test_a_client_that_leaves_frees_the_probe_without_a_verdict(*, committed: bool) -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    play(of, Outcome.TIMEOUT, Outcome.OK, targets=targets)
    gone = Failover(of, targets, started_s=5.0, total_s=10.0)
    assert tried(gone.start(5.0)).permit.probe
    if committed:
        gone.commit()
    gone.cancelled(5.5)
    gone.cancelled(5.5)
    assert gone.header == "primary:cancelled"
    assert targets.state(PRIMARY, of.breaker).breaker.state(5.5) is State.HALF_OPEN
    assert tried(Failover(of, targets, started_s=5.5, total_s=10.0).start(5.5)).permit.probe


def test_a_probe_is_leased_for_its_attempt_and_a_second() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    play(of, Outcome.TIMEOUT, Outcome.OK, targets=targets)
    tried(Failover(of, targets, started_s=5.0, total_s=10.0).start(5.0))
    assert targets.state(PRIMARY, of.breaker).wait_s(5.0) == 4.0


def test_a_cooling_target_does_not_take_the_probe() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    play(of, Outcome.TIMEOUT, Outcome.OK, targets=targets)
    targets.state(PRIMARY, of.breaker).cool(5.0, 10.0)
    failover = Failover(of, targets, started_s=6.0, total_s=10.0)
    assert tried(failover.start(6.0)).target == BACKUP
    assert failover.header == "primary:cooling"
    assert targets.state(PRIMARY, of.breaker).breaker.permit(6.0) is not None


def test_a_slow_caller_cannot_have_a_healthy_target_left_alone() -> None:
    """The body took 9.9 of the request's 10 s: that the rest was too short is not the target's."""
    targets, of = Targets(), route(breaker=BreakerSettings(consecutive=1))
    for _ in range(20):
        late = walk(of, targets)
        assert tried(late.start(9.9)).deadline_s <= 10.0
        late.on(Outcome.TIMEOUT, 10.0)
    state = targets.state(PRIMARY, of.breaker)
    assert state.breaker.state(10.0) is State.CLOSED
    assert (state.history.failures, state.latency.expected_s) == (0, None)


@pytest.mark.parametrize(
    ("total_s", "targets"), [(10.0, (PRIMARY, BACKUP)), (4.0, (PRIMARY, BACKUP)), (2.0, (PRIMARY,))]
)
def test_an_attempt_that_had_its_fair_share_of_the_request_counts(
    total_s: float, targets: tuple[Target, ...]
) -> None:
    of = route(
        *targets,
        deadlines=Deadlines(first_token_s=3.0, total_s=total_s),
        breaker=BreakerSettings(consecutive=1),
    )
    known = Targets()
    failover = walk(of, known)
    deadline_s = tried(failover.start(0.0)).deadline_s
    failover.on(Outcome.TIMEOUT, deadline_s)
    assert known.state(PRIMARY, of.breaker).breaker.state(deadline_s) is State.OPEN


@pytest.mark.parametrize(
    ("targets", "begins_s", "counts"),
    [
        # Of 5 s in all, two targets may expect 2.5 s each, and one may expect its own 4 s.
        ((PRIMARY, BACKUP), 2.0, True),
        ((PRIMARY, BACKUP), 2.54, True),  # a timer may fire that much early
        ((PRIMARY, BACKUP), 2.56, False),
        ((PRIMARY,), 1.0, True),
        ((PRIMARY,), 1.06, False),
    ],
)
def test_what_is_a_fair_share_of_a_request_that_began_late(
    targets: tuple[Target, ...], begins_s: float, *, counts: bool
) -> None:
    known, of = (
        Targets(),
        route(
            *targets,
            deadlines=Deadlines(first_token_s=4.0, total_s=5.0),
            breaker=BreakerSettings(consecutive=1),
        ),
    )
    if len(targets) == 2:
        known.state(BACKUP, of.breaker).cool(0.0, 99.0)
    failover = walk(of, known)
    assert tried(failover.start(begins_s)).deadline_s == 5.0
    failover.on(Outcome.TIMEOUT, 5.0)
    state = known.state(PRIMARY, of.breaker).breaker.state(5.0)
    assert state is (State.OPEN if counts else State.CLOSED)


def test_a_plain_answer_that_breaks_its_total_after_it_began_is_slow_too() -> None:
    targets, of = (
        Targets(),
        route(breaker=BreakerSettings(min_results=2, slow_ratio=1.0, ratio=1.0)),
    )
    for _ in range(2):
        failover = walk(of, targets)
        failover.start(0.0)
        failover.commit(0.1, first_token_s=0.1)
        failover.finished(Outcome.TIMEOUT, 10.0)
    state = targets.state(PRIMARY, of.breaker)
    assert state.breaker.state(10.0) is State.OPEN
    assert state.latency.expected_s == pytest.approx(0.1)


def test_what_changed_for_others_is_told_with_its_reason_and_its_time() -> None:
    targets, of = Targets(), route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    first = walk(of, targets)
    first.start(1.0)
    first.on(Outcome.TIMEOUT, 4.0)
    (opened,) = first.changes
    assert (opened.target, opened.kind, opened.reason) == (PRIMARY, "opened", "timeout,consecutive")
    assert opened.pause_s == 5.0
    probe = Failover(of, targets, started_s=9.0, total_s=10.0)
    probe.start(9.0)
    probe.commit(9.5)
    probe.finished(Outcome.OK, 10.0)
    assert [(c.kind, c.reason, c.pause_s) for c in probe.changes] == [
        ("probe", "", 0.0),
        ("closed", "ok", 0.0),
    ]
