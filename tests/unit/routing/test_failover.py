"""The walk over targets: the table of the brief, every cell, bounds and protocol."""

import itertools

import pytest

from tests.unit.routing.walks import (
    FAILURES,
    LARGE,
    PRIMARY,
    SAME_KEY,
    SMALL,
    given_up,
    play,
    route,
    tried,
    walk,
)
from tidegate.errors import (
    AllProvidersFailed,
    ContentFiltered,
    ContextLengthExceeded,
    TidegateError,
    UpstreamCredential,
    UpstreamRejectedRequest,
)
from tidegate.routing import (
    TAXONOMY,
    Failover,
    GiveUp,
    Onward,
    Outcome,
    Route,
    Target,
    Targets,
    Try,
)


@pytest.mark.parametrize(
    ("outcomes", "header"),
    [
        ((Outcome.OK,), "primary:ok"),
        ((Outcome.RATE_LIMITED, Outcome.OK), "primary:rate_limited,backup:ok"),
        ((Outcome.TIMEOUT, Outcome.OK), "primary:timeout,backup:ok"),
        ((Outcome.SERVER_ERROR, Outcome.OK), "primary:server_error,backup:ok"),
        ((Outcome.UNREACHABLE, Outcome.OK), "primary:unreachable,backup:ok"),
        ((Outcome.MALFORMED, Outcome.OK), "primary:malformed,backup:ok"),
        ((Outcome.INTERRUPTED, Outcome.OK), "primary:interrupted,backup:ok"),
    ],
)
def test_backup_answers_when_the_primary_is_down(
    outcomes: tuple[Outcome, ...], header: str
) -> None:
    assert play(route(), *outcomes)[0] == header


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Outcome.REJECTED, UpstreamRejectedRequest),
        (Outcome.CREDENTIAL, UpstreamCredential),
        (Outcome.FILTERED, ContentFiltered),
        (Outcome.CONTEXT, ContextLengthExceeded),
    ],
)
def test_a_refusal_ends_the_walk_after_one_attempt(
    outcome: Outcome, error: type[TidegateError]
) -> None:
    header, step = play(route(), outcome)
    assert header == f"primary:{outcome}"
    assert type(given_up(step)) is error


def test_both_down_is_502_all_providers_failed() -> None:
    for pair in itertools.product(
        (Outcome.SERVER_ERROR, Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.UNREACHABLE), repeat=2
    ):
        error = given_up(play(route(), *pair)[1])
        assert (error.code, error.status) == ("gateway.all_providers_failed", 502)


PLACES = (SMALL, SAME_KEY, PRIMARY, LARGE)


def expected_next(
    failed: Target, outcome: Outcome, rest: tuple[Target, ...], *, option: bool
) -> Target | None:
    """The table read by hand."""
    match TAXONOMY[outcome].onward:
        case Onward.ANY | Onward.ONCE:
            return rest[0] if rest else None
        case Onward.NONE:
            return None
        case Onward.LARGER_CONTEXT:
            larger = (
                t
                for t in rest
                if failed.context_tokens and (t.context_tokens or 0) > failed.context_tokens
            )
            return next(larger, None)
        case Onward.OTHER_CREDENTIAL:
            others = (t for t in rest if t.provider != failed.provider)
            return next(others, None) if option else None


@pytest.mark.parametrize("option", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(PLACES)))
def test_every_cell_of_outcome_position_and_option_has_one_decision(
    *, order: tuple[Target, ...], option: bool
) -> None:
    for outcome, position in itertools.product(FAILURES, range(len(order))):
        of = route(*order, attempts=4, failover_on_credential_error=option)
        failover = walk(of)
        step = failover.start(0.0)
        for _ in range(position):
            step = failover.on(Outcome.RATE_LIMITED, 0.0)
        failed = tried(step).target
        assert failed == order[position]
        step = failover.on(outcome, 0.0)
        wanted = expected_next(failed, outcome, order[position + 1 :], option=option)
        if wanted is not None:
            assert tried(step).target == wanted
        else:
            rests = any(may_be_longer(target, failed) for target in order[:position])
            passes = outcome is Outcome.CONTEXT and rests
            error = AllProvidersFailed if passes else TAXONOMY[outcome].error
            assert type(given_up(step)) is error


def may_be_longer(target: Target, than: Target) -> bool:
    """Whether a prompt too long for the one may fit the other."""
    known = target.context_tokens is not None and than.context_tokens is not None
    return not known or target.context_tokens > than.context_tokens  # type: ignore[operator]


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_attempts_never_exceed_the_bound(attempts: int) -> None:
    five = tuple(Target(f"p{n}", context_tokens=n + 1) for n in range(5))
    for outcomes in itertools.product(FAILURES, repeat=attempts):
        failover = walk(route(*five, attempts=attempts, failover_on_credential_error=True))
        step = failover.start(0.0)
        calls = 0
        for outcome in outcomes:
            if isinstance(step, GiveUp):
                break
            calls += 1
            step = failover.on(outcome, 0.0)
        assert isinstance(step, GiveUp)
        assert calls == len(failover.attempts) <= attempts


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_row_and_only_failures_may_be_reported(outcome: Outcome) -> None:
    handling = TAXONOMY[outcome]
    assert handling.fails_over == (handling.onward is not Onward.NONE)
    failover = walk(route())
    failover.start(0.0)
    if outcome in FAILURES:
        failover.on(outcome, 0.0)
    else:
        with pytest.raises(ValueError, match="not a failure"):
            failover.on(outcome, 0.0)


def test_narrowing_lasts_for_the_rest_of_the_walk() -> None:
    of = route(SMALL, LARGE, PRIMARY, Target("huge", context_tokens=2_000_000))
    header, step = play(of, Outcome.CONTEXT, Outcome.SERVER_ERROR, Outcome.OK)
    assert header == "small:context_too_long,large:server_error,huge:ok"
    assert isinstance(step, Try)


def test_a_refused_credential_is_not_tried_again_later_in_the_walk() -> None:
    of = route(SMALL, PRIMARY, SAME_KEY, LARGE, failover_on_credential_error=True)
    header, _ = play(of, Outcome.CREDENTIAL, Outcome.SERVER_ERROR, Outcome.OK)
    assert header == "small:credential,primary:server_error,large:ok"


def test_one_secret_under_two_provider_names_is_one_credential() -> None:
    of = route(
        Target("a", credential_id="12ab"),
        Target("b", credential_id="12ab"),
        failover_on_credential_error=True,
    )
    assert isinstance(given_up(play(of, Outcome.CREDENTIAL)[1]), UpstreamCredential)


def test_no_targets_is_502() -> None:
    failover = Failover(Route(name="r", targets=()), Targets(), started_s=0.0, total_s=1.0)
    assert given_up(failover.start(0.0)).status == 502


def test_the_protocol_of_the_walk_is_enforced() -> None:
    failover = walk(route())
    with pytest.raises(ValueError, match="no attempt to commit"):
        failover.commit()
    with pytest.raises(ValueError, match="no attempt is under way"):
        failover.on(Outcome.TIMEOUT, 0.0)
    failover.start(0.0)
    failover.commit()
    with pytest.raises(ValueError, match="no attempt to commit"):
        failover.commit()
    with pytest.raises(ValueError, match="not a failure before commit"):
        failover.on(Outcome.TIMEOUT, 0.0)
    failover.finished(Outcome.OK, 0.0)
    failover.finished(Outcome.INTERRUPTED, 0.0)
    assert failover.attempts == [("primary", Outcome.OK)]


def test_errors_carry_only_our_own_words() -> None:
    error = given_up(play(route(), Outcome.SERVER_ERROR, Outcome.SERVER_ERROR)[1])
    assert isinstance(error, AllProvidersFailed)
    assert error.message == AllProvidersFailed.public_message
    assert error.detail == "primary:server_error,backup:server_error"
