"""The table of outcomes, read row by row: what a target and a request suffer from each."""

import pytest

from tests.unit.routing.walks import BACKUP, PRIMARY, given_up, route, tried
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
    BreakerSettings,
    Cooling,
    Failover,
    GiveUp,
    Onward,
    Outcome,
    State,
    Step,
    Target,
    Targets,
    Trips,
    Try,
    Verdict,
    classify,
    retry_after_s,
)

NAMED = Target("primary", upstream_model="small")
OTHER = Target("backup", credential_id="other")
F, N = Verdict.FAILURE, Verdict.NEUTRAL
ANY, NONE, OTHER_KEY = Onward.ANY, Onward.NONE, Onward.OTHER_CREDENTIAL

# outcome: where to, verdict, rests, opens at once, alert, what the client gets if it was the last
ROWS: dict[Outcome, tuple[Onward, Verdict, bool, Trips, str, type[TidegateError] | None]] = {
    Outcome.OK: (NONE, Verdict.SUCCESS, False, Trips.NO, "", None),
    Outcome.CANCELLED: (NONE, N, False, Trips.NO, "", None),
    Outcome.UNREACHABLE: (ANY, F, False, Trips.NO, "", AllProvidersFailed),
    Outcome.TIMEOUT: (ANY, F, False, Trips.NO, "", AllProvidersFailed),
    Outcome.SERVER_ERROR: (ANY, F, False, Trips.NO, "", AllProvidersFailed),
    Outcome.MALFORMED: (ANY, F, False, Trips.NO, "", AllProvidersFailed),
    Outcome.INTERRUPTED: (ANY, F, False, Trips.NO, "", AllProvidersFailed),
    Outcome.RATE_LIMITED: (ANY, N, True, Trips.NO, "", AllProvidersFailed),
    Outcome.QUOTA: (ANY, N, True, Trips.NO, "provider_quota_exhausted", AllProvidersFailed),
    Outcome.CREDENTIAL: (
        OTHER_KEY,
        N,
        False,
        Trips.ALWAYS,
        "provider_credential_refused",
        UpstreamCredential,
    ),
    Outcome.FORBIDDEN: (
        OTHER_KEY,
        N,
        False,
        Trips.NAMED,
        "provider_credential_refused",
        UpstreamCredential,
    ),
    Outcome.NOT_FOUND: (
        ANY,
        N,
        False,
        Trips.NAMED,
        "provider_model_not_found",
        AllProvidersFailed,
    ),
    Outcome.TRANSIENT: (Onward.ONCE, N, False, Trips.NO, "", AllProvidersFailed),
    Outcome.CONTEXT: (Onward.LARGER_CONTEXT, N, False, Trips.NO, "", ContextLengthExceeded),
    Outcome.FILTERED: (NONE, N, False, Trips.NO, "", ContentFiltered),
    Outcome.REJECTED: (NONE, N, False, Trips.NO, "", UpstreamRejectedRequest),
    Outcome.OPEN: (ANY, N, False, Trips.NO, "", AllProvidersFailed),
    Outcome.COOLING: (ANY, N, False, Trips.NO, "", AllProvidersFailed),
}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_row_of_the_table_says_what_it_should(outcome: Outcome) -> None:
    row = TAXONOMY[outcome]
    read = (row.onward, row.verdict, row.cools, row.trips, row.alert, row.error)
    assert read == ROWS[outcome]


class After:
    """One failure at `target`, the first of a route, and everything that came of it."""

    def __init__(
        self,
        outcome: Outcome,
        target: Target,
        *,
        headers: dict[str, str] | None = None,
        option: bool = False,
    ) -> None:
        self.of = route(
            target,
            OTHER,
            cooling=Cooling(on_429_s=5.0),
            breaker=BreakerSettings(open_s=5.0),
            failover_on_credential_error=option,
        )
        self.targets = Targets()
        self.failover = Failover(self.of, self.targets, started_s=0.0, total_s=10.0)
        tried(self.failover.start(0.0))
        assert self.failover.alert == ""
        wait_s = retry_after_s(headers or {}, 1_800_000_000.0)
        self.step: Step = self.failover.on(outcome, 0.0, retry_after_s=wait_s)
        self.state = self.targets.state(target, self.of.breaker)

    @property
    def is_open(self) -> bool:
        return self.state.breaker.state(0.0) is State.OPEN


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("outcome", [o for o in Outcome if ROWS[o][5] is not None])
def test_one_failure_opens_only_where_the_table_says_so(outcome: Outcome, *, named: bool) -> None:
    """Every request may name what it likes where the name is passed through: it opens nothing."""
    if outcome in (Outcome.OPEN, Outcome.COOLING):
        return
    after = After(outcome, NAMED if named else PRIMARY)
    trips = ROWS[outcome][3]
    assert after.is_open == (trips is Trips.ALWAYS or (trips is Trips.NAMED and named))
    assert after.failover.alert == ROWS[outcome][4]
    kinds = [change.kind for change in after.failover.changes]
    assert kinds == ["opened"] * after.is_open + ["cooling"] * ROWS[outcome][2]


@pytest.mark.parametrize("outcome", [Outcome.NOT_FOUND, Outcome.FORBIDDEN])
def test_where_callers_name_the_model_an_alert_waits_until_nobody_is_served(
    outcome: Outcome,
) -> None:
    """One caller's slip is no news; a wrong address, which serves nobody, is."""
    of, targets = route(PRIMARY), Targets()

    def alert_after(ending: Outcome) -> str:
        failover = Failover(of, targets, started_s=0.0, total_s=10.0)
        tried(failover.start(0.0))
        if ending is Outcome.OK:
            failover.commit(0.0)
            failover.finished(ending, 0.0)
        else:
            failover.on(ending, 0.0)
        return failover.alert

    name = ROWS[outcome][4]
    assert alert_after(outcome) == name
    assert alert_after(Outcome.OK) == ""
    assert [alert_after(outcome) for _ in range(11)] == [""] * 9 + [name] * 2
    assert targets.state(PRIMARY, of.breaker).wait_s(0.0) == 0.0


WAITS = [
    ({}, 5.0),
    ({"retry-after": "30"}, 30.0),
    ({"retry-after": "-1"}, 5.0),
    ({"retry-after": "0"}, 5.0),
    ({"retry-after": "0.001"}, 0.5),
    ({"retry-after": "86400"}, 600.0),
    ({"retry-after-ms": "1500"}, 1.5),
    ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
    ({"retry-after": "2027-01-15T08:00:30Z"}, 30.0),
    ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
    ({"x-ratelimit-reset-tokens": "250ms"}, 0.5),
    ({"x-ratelimit-reset-tokens": "-1"}, 5.0),
    ({"anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:30Z"}, 30.0),
    ({"x-ratelimit-reset": "1800000030"}, 30.0),
]


@pytest.mark.parametrize(("headers", "rests_s"), WAITS)
def test_a_throttled_target_rests_as_long_as_it_asks_and_its_breaker_hears_nothing(
    headers: dict[str, str], rests_s: float
) -> None:
    after = After(Outcome.RATE_LIMITED, PRIMARY, headers=headers)
    assert after.state.wait_s(0.0) == rests_s
    assert after.state.breaker.reopens_at_s is None
    assert tried(after.step).target == OTHER


QUOTA_ANSWERS = [
    (402, b""),
    (429, b'{"error": {"code": "insufficient_quota", "message": "x"}}'),
    (400, b'{"error": {"message": "Your credit balance is too low to access the API"}}'),
    (403, b'{"error": {"message": "Insufficient balance"}}'),
]


@pytest.mark.parametrize(("status", "body"), QUOTA_ANSWERS, ids=[a[0] for a in QUOTA_ANSWERS])
def test_spent_credit_rests_five_minutes_whatever_the_status(status: int, body: bytes) -> None:
    """BerriAI/litellm #16092: "credit too low" comes as a 400, and did not fall over."""
    outcome = classify(status, {}, body)
    after = After(outcome, PRIMARY, headers={"x-ratelimit-reset-requests": "1s"})
    assert (outcome, after.state.wait_s(0.0)) == (Outcome.QUOTA, 300.0)
    assert after.failover.alert == "provider_quota_exhausted"
    assert tried(after.step).target == OTHER


@pytest.mark.parametrize("outcome", [Outcome.CREDENTIAL, Outcome.FORBIDDEN])
def test_a_refused_key_goes_on_only_with_another_key_and_the_option(outcome: Outcome) -> None:
    """apache/apisix #13852: a revoked key must not take the whole service down."""
    assert isinstance(given_up(After(outcome, NAMED).step), UpstreamCredential)
    assert tried(After(outcome, NAMED, option=True).step).target == OTHER
    same = route(NAMED, Target("primary"), failover_on_credential_error=True)
    failover = Failover(same, Targets(), started_s=0.0, total_s=10.0)
    failover.start(0.0)
    assert isinstance(given_up(failover.on(outcome, 0.0)), UpstreamCredential)


def test_a_trip_is_for_one_key_and_one_model() -> None:
    after = After(Outcome.CREDENTIAL, Target("primary", 0, credential_id="k0"))
    second = Target("primary", 1, credential_id="k1")
    assert after.targets.state(second, after.of.breaker).breaker.permit(0.0) is not None


def test_a_key_that_was_mended_is_found_by_the_next_probe() -> None:
    after = After(Outcome.CREDENTIAL, PRIMARY)
    later = Failover(after.of, after.targets, started_s=5.0, total_s=10.0)
    assert tried(later.start(5.0)).permit.probe
    later.commit()
    later.finished(Outcome.OK, 5.1)
    assert after.state.breaker.state(5.1) is State.CLOSED
    assert [change.kind for change in later.changes] == ["probe", "closed"]


def test_while_every_key_is_refused_the_earliest_return_is_told() -> None:
    after = After(Outcome.CREDENTIAL, PRIMARY, option=True)
    assert isinstance(given_up(after.failover.on(Outcome.CREDENTIAL, 0.1)), UpstreamCredential)
    error = given_up(Failover(after.of, after.targets, started_s=1.0, total_s=10.0).start(1.0))
    assert (error.status, error.retry_after_s) == (503, 4.0)


@pytest.mark.parametrize("outcome", [Outcome.FILTERED, Outcome.REJECTED])
def test_a_verdict_on_the_request_is_final(outcome: Outcome) -> None:
    after = After(outcome, PRIMARY, option=True)
    assert isinstance(after.step, GiveUp)
    assert after.state.wait_s(0.0) == 0.0


@pytest.mark.parametrize("status", [400, 413])
def test_a_prompt_too_long_goes_to_a_larger_declared_window_only(status: int) -> None:
    outcome = classify(status, {}, b'{"error": {"code": "context_length_exceeded"}}')
    small, same, unknown, large = (
        Target(name, context_tokens=tokens)
        for name, tokens in (("s", 8_000), ("t", 8_000), ("u", None), ("l", 9_000))
    )
    failover = Failover(route(small, same, unknown, large), Targets(), started_s=0.0, total_s=9.0)
    failover.start(0.0)
    step = failover.on(outcome, 0.1)
    assert isinstance(step, Try)
    assert step.target == large


STATUSES = [*range(400, 432), 451, 498, 499, *range(500, 512), *range(520, 531), 598, 599]


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b'{"error": {"message": "x"}}'])
def test_every_status_has_a_row_that_neither_crashes_nor_loops(body: bytes) -> None:
    """envoyproxy/ai-gateway #1866, #1855: no fallback, or a crash, on a status of the list."""
    for status in STATUSES:
        outcome = classify(status, {}, body)
        handling = TAXONOMY[outcome]
        of = route(PRIMARY, BACKUP)
        failover = Failover(of, Targets(), started_s=0.0, total_s=10.0)
        failover.start(0.0)
        step = failover.on(outcome, 0.1)
        assert isinstance(step, Try) == (handling.onward in (Onward.ANY, Onward.ONCE))
        if status == 429 or status >= 500:
            assert isinstance(step, Try)
