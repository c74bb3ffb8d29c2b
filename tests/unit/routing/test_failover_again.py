"""A second call to the same target, a walk of one call, and the order that a walk is given."""

from dataclasses import replace

import pytest

from tests.unit.routing.walks import BACKUP, BRIEF, PRIMARY, THIRD, given_up, route, tried
from tidegate.errors import AllProvidersFailed
from tidegate.routing import (
    BreakerSettings,
    Deadlines,
    Failover,
    GiveUp,
    Outcome,
    Route,
    Target,
    Targets,
    Try,
)

ALONE = route(PRIMARY)


def walk(
    of: Route,
    targets: Targets | None = None,
    *,
    order: tuple[Target, ...] | None = None,
    single: bool = False,
    stream: bool = True,
) -> Failover:
    return Failover(
        of,
        Targets() if targets is None else targets,
        started_s=0.0,
        total_s=of.deadlines.total_s,
        stream=stream,
        order=order,
        single=single,
    )


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.UNREACHABLE])
def test_a_failure_that_passes_is_tried_again_at_the_only_target(outcome: Outcome) -> None:
    failover = walk(ALONE)
    first = tried(failover.start(0.0))
    assert not first.again
    assert first.not_before_s == 0.0
    second = tried(failover.on(outcome, 0.5, passing=True))
    assert second.again
    assert second.target == PRIMARY
    failover.commit()
    failover.finished(Outcome.OK, 1.0)
    assert failover.header == f"primary:{outcome},primary:ok"


@pytest.mark.parametrize(("jitter", "pause_s"), [(-1.0, 0.0), (0.0, 0.1), (1.0, 0.2)])
def test_the_pause_before_it_has_full_jitter_and_its_deadline_begins_after_it(
    jitter: float, pause_s: float
) -> None:
    failover = walk(ALONE)
    failover.start(0.0)
    again = tried(failover.on(Outcome.SERVER_ERROR, 0.5, passing=True, jitter=jitter))
    assert again.not_before_s == pytest.approx(0.5 + pause_s)
    assert again.deadline_s == pytest.approx(0.5 + pause_s + BRIEF.first_token_s)


def test_there_is_one_such_call_in_a_request() -> None:
    failover = walk(replace(ALONE, attempts=9))
    failover.start(0.0)
    tried(failover.on(Outcome.SERVER_ERROR, 0.1, passing=True))
    error = given_up(failover.on(Outcome.SERVER_ERROR, 0.2, passing=True))
    assert isinstance(error, AllProvidersFailed)
    assert failover.header == "primary:server_error,primary:server_error"


def retries(failover: Failover, *, at_s: float = 0.1, passing: bool = True) -> bool:
    failover.start(0.0)
    step = failover.on(Outcome.SERVER_ERROR, at_s, passing=passing)
    return isinstance(step, Try) and step.again


def test_not_for_a_failure_that_does_not_pass() -> None:
    assert not retries(walk(ALONE), passing=False)


def test_not_after_a_slow_failure() -> None:
    assert retries(walk(ALONE), at_s=0.99)
    assert not retries(walk(ALONE), at_s=1.0)


def test_not_beyond_the_attempts_of_the_route() -> None:
    assert not retries(walk(replace(ALONE, attempts=1)))


def test_not_for_a_client_that_wants_a_single_call() -> None:
    assert not retries(walk(ALONE, single=True))


def test_not_at_the_end_of_the_request() -> None:
    short = replace(ALONE, deadlines=Deadlines(first_token_s=3.0, total_s=0.3))
    assert retries(walk(short), at_s=0.05)
    failover = walk(short)
    failover.start(0.0)
    assert isinstance(failover.on(Outcome.SERVER_ERROR, 0.06, passing=True), GiveUp)


def test_not_while_another_target_can_be_called() -> None:
    failover = walk(route(PRIMARY, BACKUP))
    failover.start(0.0)
    assert tried(failover.on(Outcome.SERVER_ERROR, 0.1, passing=True)).target == BACKUP


def test_not_after_another_target_was_called() -> None:
    failover = walk(route(PRIMARY, BACKUP))
    failover.start(0.0)
    failover.on(Outcome.SERVER_ERROR, 0.1, passing=True)
    given_up(failover.on(Outcome.SERVER_ERROR, 0.2, passing=True))
    assert failover.header == "primary:server_error,backup:server_error"


@pytest.mark.parametrize("resting", ["cooling", "open", "probe under way"])
def test_but_when_all_others_rest(resting: str) -> None:
    of, targets = route(PRIMARY, BACKUP), Targets()
    state = targets.state(BACKUP, of.breaker)
    if resting == "cooling":
        state.cool(0.0, 30.0)
    else:
        permit = state.breaker.permit(-9.0)
        assert permit is not None
        state.breaker.trip(permit, 0.0 if resting == "open" else -9.0)
        if resting == "probe under way":
            assert state.breaker.permit(0.0) is not None
    failover = walk(of, targets)
    failover.start(0.0)
    assert tried(failover.on(Outcome.SERVER_ERROR, 0.1, passing=True)).again
    given_up(failover.on(Outcome.SERVER_ERROR, 0.2, passing=True))
    skipped = "cooling" if resting == "cooling" else "open"
    assert failover.header == f"primary:server_error,primary:server_error,backup:{skipped}"
    assert [skip.target for skip in failover.skips] == [BACKUP]


def test_but_when_the_others_were_passed_over_before() -> None:
    of, targets = route(PRIMARY, BACKUP), Targets()
    targets.state(PRIMARY, of.breaker).cool(0.0, 30.0)
    failover = walk(of, targets)
    assert tried(failover.start(0.0)).target == BACKUP
    assert tried(failover.on(Outcome.UNREACHABLE, 0.1, passing=True)).target == BACKUP
    assert failover.header == "primary:cooling,backup:unreachable"


def test_not_where_the_failure_has_opened_the_breaker() -> None:
    failover = walk(replace(ALONE, breaker=BreakerSettings(consecutive=1, open_s=5.0)))
    failover.start(0.0)
    error = given_up(failover.on(Outcome.SERVER_ERROR, 0.1, passing=True))
    assert error.status == 502
    assert failover.header == "primary:server_error"


def test_not_without_budget() -> None:
    targets = Targets()
    of = replace(ALONE, breaker=BreakerSettings(consecutive=99, ratio=2.0))
    assert [retries(walk(of, targets)) for _ in range(5)] == [True] * 3 + [False] * 2
    for _ in range(10):
        served = walk(of, targets)
        served.start(0.0)
        served.commit()
        served.finished(Outcome.OK, 0.1)
    assert [retries(walk(of, targets)) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_wants_no_fallback_gets_the_first_target_only(*, stream: bool) -> None:
    failover = walk(route(PRIMARY, BACKUP), single=True, stream=stream)
    step = tried(failover.start(0.0))
    # As for a route with a single target: cutting early would turn a late answer into none.
    assert step.deadline_s == (3.0 if stream else 10.0)
    error = given_up(failover.on(Outcome.SERVER_ERROR, 0.1))
    assert (error.status, failover.header) == (502, "primary:server_error")


def test_without_fallback_a_resting_target_is_passed_over_and_the_next_asked_once() -> None:
    of, targets = route(PRIMARY, BACKUP, THIRD), Targets()
    targets.state(PRIMARY, of.breaker).cool(0.0, 30.0)
    failover = walk(of, targets, single=True)
    assert tried(failover.start(0.0)).target == BACKUP
    given_up(failover.on(Outcome.TIMEOUT, 3.0))
    assert failover.header == "primary:cooling,backup:timeout"


def test_without_fallback_and_all_resting_the_earliest_return_is_told() -> None:
    of, targets = route(PRIMARY, BACKUP), Targets()
    targets.state(PRIMARY, of.breaker).cool(0.0, 30.0)
    targets.state(BACKUP, of.breaker).cool(0.0, 9.0)
    error = given_up(walk(of, targets, single=True).start(0.0))
    assert (error.status, error.retry_after_s) == (503, 9.0)


def test_the_order_given_is_the_order_walked() -> None:
    failover = walk(route(PRIMARY, BACKUP, THIRD), order=(THIRD, PRIMARY, BACKUP))
    assert tried(failover.start(0.0)).target == THIRD
    assert tried(failover.on(Outcome.SERVER_ERROR, 0.1)).target == PRIMARY
    assert tried(failover.on(Outcome.SERVER_ERROR, 0.2)).target == BACKUP


def test_a_conflict_is_carried_to_another_target_once() -> None:
    failover = walk(route(PRIMARY, BACKUP, THIRD))
    failover.start(0.0)
    assert tried(failover.on(Outcome.TRANSIENT, 0.1)).target == BACKUP
    error = given_up(failover.on(Outcome.TRANSIENT, 0.2))
    assert (error.status, failover.header) == (502, "primary:transient,backup:transient")


def test_what_was_measured_and_said_is_kept_for_the_order() -> None:
    of, targets = route(PRIMARY, BACKUP), Targets()
    failover = walk(of, targets)
    failover.note_room(5.0, 0.0)
    failover.start(0.5)
    failover.note_room(5.0, 0.5)
    failover.on(Outcome.TIMEOUT, 3.5)
    failover.commit(3.75, first_token_s=0.25)
    failover.finished(Outcome.OK, 9.0)
    primary, backup = (targets.state(target, of.breaker) for target in (PRIMARY, BACKUP))
    assert (primary.latency.first_token_s, primary.latency.expected_s) == (None, 3.0)
    assert (backup.latency.first_token_s, backup.latency.expected_s) == (0.25, 0.25)
    assert primary.is_scarce(5.4)
    assert not backup.is_scarce(3.5)


def test_a_fast_failure_is_no_measurement() -> None:
    of, targets = route(PRIMARY), Targets()
    failover = walk(of, targets)
    failover.start(0.0)
    failover.on(Outcome.SERVER_ERROR, 0.01)
    assert targets.state(PRIMARY, of.breaker).latency.expected_s is None
