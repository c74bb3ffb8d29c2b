"""Bug reports of other routers, run against ours; each names where it was seen."""

import itertools
import random

import pytest

from tests.unit.routing.walks import BACKUP, NO_COOLING, PRIMARY, THIRD, given_up, route, tried
from tidegate.errors import AllProvidersFailed, ContextLengthExceeded
from tidegate.routing import (
    BreakerSettings,
    Cooling,
    Failover,
    GiveUp,
    Outcome,
    Route,
    State,
    Step,
    Target,
    Targets,
    Try,
    classify,
    ordered,
)

pytestmark = pytest.mark.full

BREAKER = BreakerSettings(consecutive=5, ratio=0.5, min_results=5, open_s=5.0, max_open_s=60.0)


def begin(of: Route, targets: Targets, now_s: float) -> tuple[Failover, Step]:
    failover = Failover(of, targets, started_s=now_s, total_s=10.0)
    return failover, failover.start(now_s)


def serve(of: Route, targets: Targets, now_s: float, *outcomes: Outcome) -> list[str]:
    """One request whose calls end so, each after no time; the providers it called."""
    failover, step = begin(of, targets, now_s)
    called = []
    for outcome in outcomes:
        if isinstance(step, GiveUp):
            break
        called.append(step.target.provider)
        if outcome is Outcome.OK:
            failover.commit(now_s)
            failover.finished(Outcome.OK, now_s)
            break
        step = failover.on(outcome, now_s)
    return called


def state_of(targets: Targets, of: Route, target: Target, now_s: float) -> State:
    return targets.state(target, of.breaker).breaker.state(now_s)


CONTEXT_WORDINGS = [
    (400, '{"error": {"code": "context_length_exceeded", "message": "x"}}'),
    (400, '{"error": {"message": "This model\'s maximum context length is 8192 tokens."}}'),
    (400, '{"type": "error", "error": {"message": "prompt is too long: 210000 tokens > 200000"}}'),
    (400, '{"error": {"message": "Input is too long for requested model."}}'),
    (400, '{"error": {"message": "Please reduce the length of the messages or completion."}}'),
    (400, '[{"error": {"message": "The input token count exceeds the maximum allowed"}}]'),
    (400, '{"message": "too many tokens: total 9000"}'),
    (422, '{"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"}'),
    (500, '{"error": {"code": 500, "type": "exceed_context_size_error", "message": "x"}}'),
    (413, ""),
]


@pytest.mark.parametrize(("status", "body"), CONTEXT_WORDINGS)
def test_a_prompt_too_long_is_known_by_code_or_words_and_not_repeated(
    status: int, body: str
) -> None:
    """BerriAI/litellm #22697, #10793, aisix #371: an overflow was retried, or not understood."""
    assert classify(status, {}, body.encode()) is Outcome.CONTEXT
    small, same = Target("s", context_tokens=8_000), Target("t", context_tokens=8_000)
    failover, _ = begin(route(small, same), Targets(), 0.0)
    assert isinstance(given_up(failover.on(Outcome.CONTEXT, 0.0)), ContextLengthExceeded)
    assert failover.header == "s:context_too_long"


@pytest.mark.parametrize(
    ("took_s", "probes"),
    [
        (0.0, [9.0, 19.0, 29.0, 39.0, 49.0, 59.0]),
        (1.0, [10.0, 21.0, 42.0]),
    ],
)
def test_a_single_dead_target_is_left_alone_for_most_of_a_minute(
    took_s: float, probes: list[float]
) -> None:
    """BerriAI/litellm #40405, #8668: a single target never cooled; each request paid for it.

    A minute at one request a second. Five calls open it, then there are probes: while it refuses
    at once each ten seconds, while it lets them wait after twice the pause.
    """
    of, targets = route(PRIMARY, breaker=BREAKER), Targets()
    called = []
    for second in range(60):
        failover, step = begin(of, targets, float(second))
        if isinstance(step, GiveUp):
            assert step.error.status == 503
            continue
        called.append(float(second))
        given_up(failover.on(Outcome.SERVER_ERROR, second + took_s))
    assert called == [0.0, 1.0, 2.0, 3.0, 4.0, *probes]


@pytest.mark.parametrize("seed", range(50))
def test_a_primary_that_was_down_for_a_minute_serves_again_within_half_a_minute(seed: int) -> None:
    """failoverbench S15: down for 60 s, a request each 4 s, every failure at once."""
    rng = random.Random(seed)  # noqa: S311 - jitter, not a secret
    of, targets = route(PRIMARY, BACKUP), Targets()
    back_s = None
    for now_s in (4.0 * n for n in range(23)):
        failover = Failover(
            of,
            targets,
            started_s=now_s,
            total_s=10.0,
            order=ordered(of, targets, rng.random, now_s),
        )
        step = failover.start(now_s)
        if tried(step).target == PRIMARY and now_s < 60.0:
            step = failover.on(Outcome.SERVER_ERROR, now_s, jitter=rng.uniform(-1.0, 1.0))
        elif tried(step).target == PRIMARY and back_s is None:
            back_s = now_s
        assert isinstance(step, Try)
        failover.commit(now_s)
        failover.finished(Outcome.OK, now_s)
    assert back_s is not None
    assert back_s <= 76.0


def test_an_open_target_is_left_alone_in_the_same_instant() -> None:
    """BerriAI/litellm #34836: a cool-down was seen through a cache ten seconds late.

    Both walks began before either failed: the second meets the state as it is when it gets there.
    """
    of = route(PRIMARY, BACKUP, breaker=BreakerSettings(consecutive=1), cooling=Cooling(5.0))
    for outcome, shown in ((Outcome.SERVER_ERROR, "open"), (Outcome.RATE_LIMITED, "cooling")):
        targets = Targets()
        first, _ = begin(of, targets, 0.0)
        second = Failover(of, targets, started_s=0.0, total_s=10.0)
        first.on(outcome, 1.0)
        assert tried(second.start(1.0)).target == BACKUP
        assert second.header == f"primary:{shown}"


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.TIMEOUT, Outcome.MALFORMED])
def test_connection_errors_count_like_other_failures(outcome: Outcome) -> None:
    """BerriAI/litellm #27610: errors of the connection did not rest the target.

    Its other half, #16092 ("credit too low" as a 400), is in test_taxonomy.
    """
    of, targets = route(PRIMARY, BACKUP, breaker=BREAKER), Targets()
    for _ in range(5):
        assert serve(of, targets, 0.0, outcome, Outcome.OK) == ["primary", "backup"]
    assert serve(of, targets, 0.0, Outcome.OK) == ["backup"]


def test_a_429_neither_heals_nor_keeps_the_place_of_the_probe() -> None:
    """voidmind-io/voidllm #184, #185: a 429 reset the count, and held the only probe for ever."""
    of, targets = route(PRIMARY, breaker=BREAKER, cooling=Cooling(2.0)), Targets()
    for _ in range(4):
        serve(of, targets, 0.0, Outcome.SERVER_ERROR)
        targets.state(PRIMARY, of.breaker).cooling_until_s = 0.0
        serve(of, targets, 0.0, Outcome.RATE_LIMITED)
        targets.state(PRIMARY, of.breaker).cooling_until_s = 0.0
    serve(of, targets, 0.0, Outcome.SERVER_ERROR)
    assert state_of(targets, of, PRIMARY, 0.0) is State.OPEN
    assert serve(of, targets, 5.0, Outcome.RATE_LIMITED) == ["primary"]
    assert serve(of, targets, 6.9, Outcome.OK) == []
    assert serve(of, targets, 7.0, Outcome.OK) == ["primary"]
    assert state_of(targets, of, PRIMARY, 7.0) is State.CLOSED


def test_a_success_from_before_the_outage_does_not_end_it() -> None:
    """ray-project/ray #65068: a late success closed a circuit that others had opened."""
    of, targets = route(PRIMARY, breaker=BREAKER), Targets()
    late, _ = begin(of, targets, 0.0)
    late.commit(0.0)
    for _ in range(5):
        serve(of, targets, 1.0, Outcome.TIMEOUT)
    late.finished(Outcome.OK, 2.0)
    assert state_of(targets, of, PRIMARY, 2.0) is State.OPEN
    assert serve(of, targets, 2.0, Outcome.OK) == []


def test_a_hundred_requests_at_the_reopen_instant_make_one_call() -> None:
    """bytedance/deer-flow #2095: every waiting caller passed once the circuit was half open.

    The same on a route of one target, where the others are told when to come back.
    """
    for of in (route(PRIMARY, BACKUP, breaker=BREAKER), route(PRIMARY, breaker=BREAKER)):
        targets = Targets()
        for _ in range(5):
            serve(of, targets, 0.0, Outcome.TIMEOUT)
        walks = [begin(of, targets, 5.0) for _ in range(100)]
        to_primary = [s for _, s in walks if not isinstance(s, GiveUp) and s.target == PRIMARY]
        assert len(to_primary) == 1
        for _, step in walks[1:]:
            if len(of.targets) == 1:
                error = given_up(step)
                assert (error.status, error.retry_after_s) == (503, 4.0)
            else:
                assert tried(step).target == BACKUP


@pytest.mark.parametrize("own_s", [None, 0.5, 600.0])
def test_a_bare_429_goes_to_the_backup_and_one_that_lasts_hours_is_not_asked_on(
    own_s: float | None,
) -> None:
    """langwatch #7027, maximhq/bifrost #3261, aisix #46, agentgateway #1500.

    A policy never left a target that said 429 for four hours; a 429 fell over never, or only with
    headers. Here: one request a second for an hour, every call to the primary a 429.
    """
    of, targets = route(PRIMARY, BACKUP, breaker=BREAKER, cooling=Cooling(5.0)), Targets()
    asked = 0
    for second in range(3_600):
        failover, step = begin(of, targets, float(second))
        if tried(step).target == PRIMARY:
            asked += 1
            step = failover.on(Outcome.RATE_LIMITED, float(second), retry_after_s=own_s)
        assert tried(step).target == BACKUP
        failover.commit()
        failover.finished(Outcome.OK, float(second))
    assert asked == {None: 720, 0.5: 3_600, 600.0: 6}[own_s]
    assert state_of(targets, of, PRIMARY, 3_600.0) is State.CLOSED


def test_a_bare_429_without_cooling_still_goes_to_the_backup() -> None:
    """The same reports with cooling 0, as in the live table: every request tries again."""
    of, targets = route(PRIMARY, BACKUP, cooling=NO_COOLING), Targets()
    for _ in range(20):
        called = serve(of, targets, 0.0, Outcome.RATE_LIMITED, Outcome.OK)
        assert called == ["primary", "backup"]


def test_an_open_target_is_not_called() -> None:
    """Portkey-AI/gateway #1289: the breaker was open and the target was called all the same."""
    of, targets = route(PRIMARY, BACKUP, breaker=BREAKER), Targets()
    for _ in range(5):
        serve(of, targets, 0.0, Outcome.SERVER_ERROR, Outcome.OK)
    calls = [serve(of, targets, n * 0.04, Outcome.OK) for n in range(100)]
    assert calls == [["backup"]] * 100


@pytest.mark.parametrize("attempts", [1, 2, 3, 4])
def test_calls_never_exceed_the_attempts_of_the_route(attempts: int) -> None:
    """BerriAI/litellm #19985: each fallback began the cycle of retries anew."""
    targets = (PRIMARY, BACKUP, THIRD, Target("fourth"))
    failures = (Outcome.SERVER_ERROR, Outcome.TIMEOUT, Outcome.TRANSIENT, Outcome.RATE_LIMITED)
    for outcomes in itertools.product(failures, repeat=4):
        for count in (1, 4):
            of = route(*targets[:count], attempts=attempts)
            failover, step = begin(of, Targets(), 0.0)
            calls = 0
            for outcome in outcomes:
                if isinstance(step, GiveUp):
                    break
                calls += 1
                step = failover.on(outcome, 0.1, passing=outcome is Outcome.SERVER_ERROR)
            assert calls <= attempts
            assert calls == len(failover.attempts)


@pytest.mark.parametrize("phase", ["first", "again", "committed"])
def test_an_opt_out_of_fallbacks_holds_in_every_phase(phase: str) -> None:
    """BerriAI/litellm #19077: the opt-out was forgotten in the middle of a stream."""
    of, targets = route(PRIMARY, BACKUP), Targets()
    failover = Failover(of, targets, started_s=0.0, total_s=10.0, single=True)
    failover.start(0.0)
    if phase == "committed":
        failover.commit(0.1)
        failover.finished(Outcome.INTERRUPTED, 0.2)
        assert failover.header == "primary:interrupted"
        return
    error = given_up(failover.on(Outcome.SERVER_ERROR, 0.1, passing=phase == "again"))
    assert isinstance(error, AllProvidersFailed)
    assert failover.header == "primary:server_error"


def test_streams_that_always_break_mid_way_open_the_breaker() -> None:
    """ferro-labs/ai-gateway #136: a stream was booked as a success when it began."""
    of, targets = route(PRIMARY, BACKUP, breaker=BREAKER), Targets()
    for _ in range(5):
        failover, _ = begin(of, targets, 0.0)
        failover.commit(0.5)
        assert state_of(targets, of, PRIMARY, 0.5) is State.CLOSED
        failover.finished(Outcome.INTERRUPTED, 1.0)
    assert state_of(targets, of, PRIMARY, 1.0) is State.OPEN


def test_a_trickle_of_two_tokens_a_second_opens_after_five_streams() -> None:
    """maximhq/bifrost #6472: an upstream that streamed one token a second was never left."""
    of, targets = route(PRIMARY, BACKUP, breaker=BREAKER), Targets()
    for _ in range(5):
        failover, step = begin(of, targets, 0.0)
        assert tried(step).target == PRIMARY
        failover.commit(0.5)
        failover.finished(Outcome.OK, 30.0, slow=True)
    assert targets.state(PRIMARY, of.breaker).breaker.opened_by == "slow"
    assert serve(of, targets, 30.0, Outcome.OK) == ["backup"]


def test_no_state_of_one_attempt_is_met_by_the_next() -> None:
    """maximhq/bifrost #4788, #4911: a flag of the first attempt broke the second."""
    of = route(PRIMARY, BACKUP, THIRD, Target("fourth"), attempts=4)
    failover, _ = begin(of, Targets(), 0.0)
    failover.on(Outcome.UNREACHABLE, 0.1, passing=True)
    failover.on(Outcome.TIMEOUT, 3.1)
    fourth = tried(failover.on(Outcome.MALFORMED, 3.2))
    assert (fourth.target.provider, fourth.not_before_s, fourth.again) == ("fourth", 3.2, False)
    assert not fourth.permit.spent
    failover.commit(3.3)
    failover.finished(Outcome.OK, 4.0)
    shown = "primary:unreachable,backup:timeout,third:malformed,fourth:ok"
    assert failover.header == shown
