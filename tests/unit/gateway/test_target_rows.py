"""Does every target of the configuration have its row, and does no row say too much?"""

import msgspec
import pytest

from tidegate.gateway.target_rows import (
    Credential,
    TargetRow,
    TargetsReport,
    of_workers,
    resting_routes,
    target_rows,
)
from tidegate.routing import BreakerSettings, Outcome, Route, Target, Targets, Verdict

SETTINGS = BreakerSettings(consecutive=1, open_s=5.0)
PRIMARY = Target("primary", credential=0, credential_id="aaaaaaaa")
SECOND = Target("primary", credential=1, credential_id="bbbbbbbb", upstream_model="large")
OPEN = Target("open-upstream")
ROUTES = (Route("fast", (PRIMARY, OPEN)), Route("large", (SECOND, PRIMARY, PRIMARY)))


def fail(targets: Targets, target: Target) -> None:
    state = targets.state(target, SETTINGS)
    permit = state.breaker.permit(0.0)
    assert permit is not None
    state.breaker.record(permit, Verdict.FAILURE, 0.0)


def idle(provider: str, routes: tuple[str, ...], **also: object) -> TargetRow:
    known: dict[str, object] = {
        "model": None,
        "credential": None,
        "state": "closed",
        "reason": None,
        "cooling_s": 0.0,
        "wait_s": 0.0,
        "share": 1.0,
        "first_token_ms": None,
        "successes": 0,
        "failures": 0,
        "recent": (),
    }
    return TargetRow(provider=provider, routes=routes, **(known | also))  # type: ignore[arg-type]


def test_targets_that_were_never_called_have_a_row_and_shared_ones_have_one() -> None:
    targets = Targets()
    assert target_rows(ROUTES, targets, 0.0) == (
        idle("primary", ("fast", "large"), credential=Credential(0, "aaaaaaaa")),
        idle("open-upstream", ("fast",)),
        idle("primary", ("large",), credential=Credential(1, "bbbbbbbb"), model="large"),
    )
    assert targets.snapshot(0.0) == ()


def test_a_row_tells_state_rest_wait_and_what_became_of_attempts() -> None:
    targets = Targets()
    fail(targets, PRIMARY)
    state = targets.state(OPEN, SETTINGS)
    state.cool(0.0, 30.0)
    for outcome in (Outcome.OK, Outcome.OK, Outcome.TIMEOUT, Outcome.RATE_LIMITED):
        state.history.saw(outcome)
    sick, busy, _ = target_rows(ROUTES, targets, 1.0004)
    assert (sick.state, sick.cooling_s, sick.wait_s) == ("open", 0.0, 4.0)
    assert (busy.state, busy.cooling_s, busy.wait_s) == ("closed", 29.0, 29.0)
    assert (busy.successes, busy.failures) == (2, 1)
    assert busy.recent == ("ok", "ok", "timeout", "rate_limited")


def test_a_route_rests_when_none_of_its_targets_may_be_called() -> None:
    targets = Targets()
    assert resting_routes(ROUTES, targets, 0.0) == []
    fail(targets, PRIMARY)
    assert resting_routes(ROUTES, targets, 0.0) == []
    targets.state(OPEN, SETTINGS).cool(0.0, 3.0)
    assert resting_routes(ROUTES, targets, 1.0) == ["fast"]
    assert resting_routes(ROUTES, targets, 3.0) == []
    fail(targets, SECOND)
    assert resting_routes(ROUTES, targets, 4.0) == ["large"]
    assert resting_routes(ROUTES, targets, 5.0) == []


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_rows_of_workers_stand_target_by_target_and_name_their_worker(
    order: tuple[int, int],
) -> None:
    rows = target_rows(ROUTES, Targets(), 0.0)
    together = of_workers(dict.fromkeys(order, rows))
    assert [(row.provider, row.model, row.worker) for row in together] == [
        ("primary", None, 1),
        ("primary", None, 2),
        ("open-upstream", None, 1),
        ("open-upstream", None, 2),
        ("primary", "large", 1),
        ("primary", "large", 2),
    ]


def test_a_report_reads_back_as_it_was_written() -> None:
    report = TargetsReport(revision="r", targets=target_rows(ROUTES, Targets(), 0.0))
    assert msgspec.json.decode(msgspec.json.encode(report), type=TargetsReport) == report
