"""When a walk ends: deadlines of the attempts and the last word to the client."""

from dataclasses import replace

import pytest

from tests.unit.routing.walks import (
    BACKUP,
    LARGE,
    PRIMARY,
    SMALL,
    THIRD,
    given_up,
    play,
    route,
    tried,
    walk,
)
from tidegate.errors import UpstreamRejectedRequest
from tidegate.routing import (
    TAXONOMY,
    BreakerSettings,
    Cooling,
    Deadlines,
    Failover,
    Outcome,
    Targets,
)


def resting(*waits: float) -> Targets:
    targets = Targets()
    for target, wait in zip((PRIMARY, BACKUP, THIRD), waits, strict=False):
        targets.state(target, BreakerSettings()).cool(0.0, wait)
    return targets


def test_all_resting_is_503_with_the_earliest_return() -> None:
    failover = walk(route(), resting(30.0, 12.0))
    error = given_up(failover.start(2.0))
    assert (error.status, error.retry_after_s) == (503, 10.0)
    assert failover.header == "primary:cooling,backup:cooling"


def test_all_open_is_503_with_the_earliest_return() -> None:
    targets = Targets()
    of = route(breaker=BreakerSettings(consecutive=1, open_s=5.0))
    play(of, Outcome.TIMEOUT, Outcome.SERVER_ERROR, targets=targets)
    error = given_up(walk(of, targets).start(1.0))
    assert (error.status, error.retry_after_s) == (503, 4.0)


def test_rate_limited_everywhere_is_503_when_all_of_them_now_rest() -> None:
    of = route(cooling=Cooling(on_429_s=5.0))
    error = given_up(play(of, Outcome.RATE_LIMITED, Outcome.RATE_LIMITED)[1])
    assert (error.status, error.retry_after_s) == (503, 5.0)


def test_a_real_failure_among_resting_targets_is_502() -> None:
    failover = walk(route(), resting(30.0))
    failover.start(0.0)
    error = given_up(failover.on(Outcome.SERVER_ERROR, 0.0))
    assert (error.status, error.retry_after_s) == (502, None)
    assert failover.header == "primary:cooling,backup:server_error"


def test_targets_out_of_reach_of_the_attempt_bound_make_it_502() -> None:
    of = route(PRIMARY, BACKUP, THIRD, attempts=2, cooling=Cooling(5.0))
    error = given_up(play(of, Outcome.RATE_LIMITED, Outcome.RATE_LIMITED)[1])
    assert (error.status, error.retry_after_s) == (502, None)


@pytest.mark.parametrize("last", [Outcome.RATE_LIMITED, Outcome.SERVER_ERROR])
def test_that_a_retry_is_useless_is_said_only_if_nobody_is_left_to_ask(last: Outcome) -> None:
    of = route(PRIMARY, BACKUP, attempts=1, cooling=Cooling(5.0))
    assert given_up(play(of, last)[1]).should_retry is None
    resting_backup = Targets()
    resting_backup.state(BACKUP, of.breaker).cool(0.0, 30.0)
    if last is Outcome.SERVER_ERROR:
        assert given_up(play(of, last, targets=resting_backup)[1]).should_retry is False
    everybody = route(PRIMARY, BACKUP, attempts=2)
    assert given_up(play(everybody, last, last)[1]).should_retry is False


def test_too_long_here_and_the_larger_one_resting_means_wait() -> None:
    targets, of = Targets(), route(SMALL, LARGE)
    targets.state(LARGE, of.breaker).cool(0.0, 8.0)
    failover = walk(of, targets)
    failover.start(0.0)
    error = given_up(failover.on(Outcome.CONTEXT, 0.0))
    assert (error.status, error.retry_after_s) == (503, 8.0)


def test_a_definite_answer_outweighs_targets_that_rested_before_it() -> None:
    failover = walk(route(), resting(30.0))
    failover.start(0.0)
    assert isinstance(given_up(failover.on(Outcome.REJECTED, 0.0)), UpstreamRejectedRequest)


@pytest.mark.parametrize("stream", [True, False])
def test_each_attempt_has_its_own_three_seconds(*, stream: bool) -> None:
    failover = walk(route(), stream=stream)
    assert tried(failover.start(0.5)).deadline_s == 3.5
    assert tried(failover.on(Outcome.TIMEOUT, 3.5)).deadline_s == 6.5
    error = given_up(failover.on(Outcome.TIMEOUT, 6.5))
    assert (error.code, error.status) == ("gateway.all_providers_failed", 502)


@pytest.mark.parametrize("stream", [True, False])
def test_a_hanging_primary_leaves_time_for_the_backup(*, stream: bool) -> None:
    failover = walk(route(deadlines=Deadlines(first_token_s=5.0, total_s=6.0)), stream=stream)
    assert tried(failover.start(0.0)).deadline_s == 5.0
    assert tried(failover.on(Outcome.TIMEOUT, 5.01)).deadline_s == 6.0


@pytest.mark.parametrize("stream", [True, False])
def test_an_attempt_as_long_as_the_request_shares_it_with_the_others(*, stream: bool) -> None:
    of = route(PRIMARY, BACKUP, THIRD, deadlines=Deadlines(first_token_s=9.0, total_s=6.0))
    failover = walk(of, stream=stream)
    assert tried(failover.start(0.0)).deadline_s == 2.0
    assert tried(failover.on(Outcome.SERVER_ERROR, 1.0)).deadline_s == 3.5
    assert tried(failover.on(Outcome.SERVER_ERROR, 2.0)).deadline_s == 6.0


def test_targets_that_cannot_be_called_get_no_share() -> None:
    of = route(
        PRIMARY,
        BACKUP,
        THIRD,
        deadlines=Deadlines(first_token_s=9.0, total_s=6.0),
        breaker=BreakerSettings(consecutive=1, open_s=60.0),
    )
    targets = Targets()
    targets.state(BACKUP, of.breaker).cool(0.0, 30.0)
    third = targets.state(THIRD, of.breaker).breaker
    permit = third.permit(0.0)
    assert permit is not None
    third.record(permit, TAXONOMY[Outcome.TIMEOUT].verdict, 0.0)
    assert tried(walk(of, targets).start(0.0)).deadline_s == 6.0


def test_the_attempt_bound_limits_the_shares() -> None:
    of = route(
        PRIMARY, BACKUP, THIRD, attempts=2, deadlines=Deadlines(first_token_s=9.0, total_s=6.0)
    )
    failover = walk(of)
    assert tried(failover.start(0.0)).deadline_s == 3.0
    # The second call is the last: what is left is its own.
    assert tried(failover.on(Outcome.SERVER_ERROR, 1.0)).deadline_s == 6.0


@pytest.mark.parametrize(("stream", "deadline_s"), [(True, 3.0), (False, 10.0)])
def test_a_single_target_may_use_the_whole_request_for_a_plain_answer(
    *, stream: bool, deadline_s: float
) -> None:
    assert tried(walk(route(PRIMARY), stream=stream).start(0.0)).deadline_s == deadline_s


def test_so_may_a_request_that_can_ask_nobody_else() -> None:
    of = route(PRIMARY, BACKUP, THIRD)
    once = walk(replace(of, attempts=1), stream=False)
    single = Failover(of, Targets(), started_s=0.0, total_s=10.0, stream=False, single=True)
    for failover in (once, single):
        assert tried(failover.start(0.0)).deadline_s == 10.0
        assert given_up(failover.on(Outcome.TIMEOUT, 10.0)).status == 504


def test_time_spent_before_the_first_attempt_counts_against_the_request() -> None:
    assert tried(walk(route()).start(8.0)).deadline_s == 9.0
    assert given_up(walk(route()).start(9.97)).status == 504


def test_the_end_of_the_request_is_504_while_targets_are_left() -> None:
    failover = walk(route())
    failover.start(8.0)
    assert given_up(failover.on(Outcome.SERVER_ERROR, 9.97)).status == 504


def test_the_end_of_the_request_is_504_when_the_last_attempt_was_cut_by_it() -> None:
    failover = walk(route(PRIMARY), stream=False)
    failover.start(0.0)
    assert given_up(failover.on(Outcome.TIMEOUT, 10.0)).status == 504


def test_a_refusal_at_the_last_moment_is_still_a_refusal() -> None:
    failover = walk(route())
    failover.start(0.0)
    assert isinstance(given_up(failover.on(Outcome.REJECTED, 10.0)), UpstreamRejectedRequest)
