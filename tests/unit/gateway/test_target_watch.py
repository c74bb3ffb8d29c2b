"""Does an operator hear of each change of a target once, with its reason, and of nothing else?"""

import logging
from typing import Any

import pytest

from tests.logged import lines
from tests.unit.gateway.test_metrics import sample, scraped
from tidegate.gateway.logs import AllowListFormatter
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.target_watch import TargetWatch
from tidegate.routing import (
    TAXONOMY,
    BreakerSettings,
    Failover,
    GiveUp,
    Outcome,
    Route,
    Target,
    Targets,
    Try,
)
from tidegate.testing.clock import ManualClock

LOGGER = "tidegate.gateway.target_watch"
NAMED = Target("primary", credential=1, credential_id="aaaaaaaa", upstream_model="large")
BACKUP = Target("backup")
ROUTE = Route(
    "default", (NAMED, BACKUP), breaker=BreakerSettings(consecutive=2, min_results=9, open_s=5.0)
)


class World:
    """Walks over one route, as attempts makes them, watched."""

    def __init__(self, route: Route = ROUTE) -> None:
        self.route, self.targets, self.clock = route, Targets(), ManualClock()
        self.metrics = Metrics()
        self.watch = TargetWatch(self.metrics, self.clock)
        self.requests = 0

    def request(self, *outcomes: Outcome, passing: bool = False) -> None:
        """One request whose attempts end so; OK is the answer of a target."""
        self.requests += 1
        now_s, name = self.clock.monotonic_s(), f"r{self.requests}"
        failover = Failover(self.route, self.targets, started_s=now_s, total_s=60.0)
        step: Any = failover.start(now_s)
        self.watch.note(failover, name)
        for outcome in outcomes:
            assert isinstance(step, Try)
            asked = step.target
            if outcome is Outcome.OK:
                failover.commit(now_s)
                failover.finished(outcome, now_s)
                self.watch.note(failover, name, asked=asked)
                return
            step = failover.on(outcome, now_s, passing=passing)
            self.watch.note(failover, name, asked=asked, then=step)
        assert isinstance(step, GiveUp)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, logger="tidegate")

    def take() -> list[dict[str, object]]:
        form = AllowListFormatter(as_json=True)
        found = []
        for record in lines(caplog, LOGGER):
            form.format(record)
            names = ("provider", "model", "credential", "credential_id", "outcome", "reason")
            also = ("pause_s", "request_id")
            fields = {name: getattr(record, name, None) for name in (*names, *also)}
            found.append(
                {"event": record.getMessage(), "level": record.levelname}
                | {name: value for name, value in fields.items() if value is not None}
            )
        assert form.dropped_fields == 0
        caplog.clear()
        return found

    return take


WHO = {"provider": "primary", "model": "large", "credential": 1, "credential_id": "aaaaaaaa"}
OK, DOWN = Outcome.OK, Outcome.SERVER_ERROR


def test_a_breaker_opens_is_probed_and_closes_in_three_lines(said: Any) -> None:
    world = World()
    world.request(DOWN, OK)
    assert said() == []
    world.request(Outcome.TIMEOUT, OK)
    assert said() == [
        {
            "event": "breaker_opened",
            "level": "WARNING",
            **WHO,
            "outcome": "timeout",
            "reason": "consecutive",
            "pause_s": 5.0,
            "request_id": "r2",
        }
    ]
    world.request(OK)
    assert said() == []
    world.clock.advance(5.0)
    world.request(OK)
    assert said() == [
        {"event": "breaker_half_open", "level": "INFO", **WHO, "request_id": "r4"},
        {"event": "breaker_closed", "level": "INFO", **WHO, "outcome": "ok", "request_id": "r4"},
    ]
    numbers = scraped(world.metrics)
    for state in ("open", "half_open", "closed"):
        assert numbers[sample("breaker_transitions_total", provider="primary", state=state)] == 1


def test_a_failed_probe_says_that_it_was_one_and_how_long_the_next_pause_is(said: Any) -> None:
    world = World()
    for _ in range(2):
        world.request(DOWN, OK)
    said()
    world.clock.advance(5.0)
    world.request(DOWN, OK)
    probe, opened = said()
    assert probe["event"] == "breaker_half_open"
    assert (opened["event"], opened["reason"], opened["pause_s"]) == ("breaker_opened", "probe", 10)


def test_a_rest_is_told_once_and_not_for_each_call_that_was_under_way(said: Any) -> None:
    world = World()
    now_s = world.clock.monotonic_s()
    walks = [Failover(ROUTE, world.targets, started_s=now_s, total_s=60.0) for _ in range(3)]
    for walk in walks:
        walk.start(now_s)
    for walk in walks:
        walk.on(Outcome.RATE_LIMITED, now_s, retry_after_s=20.0)
        world.watch.note(walk, "r", asked=NAMED)
    (line,) = said()
    assert (line["event"], line["outcome"], line["pause_s"]) == (
        "target_cooling",
        "rate_limited",
        20.0,
    )
    assert (
        scraped(world.metrics)[sample("coolings_total", provider="primary", reason="rate_limited")]
        == 1
    )


@pytest.mark.parametrize(
    ("outcome", "alert"),
    [
        (Outcome.QUOTA, "provider_quota_exhausted"),
        (Outcome.CREDENTIAL, "provider_credential_refused"),
        (Outcome.FORBIDDEN, "provider_credential_refused"),
        (Outcome.NOT_FOUND, "provider_model_not_found"),
    ],
)
def test_what_only_an_operator_can_mend_is_an_error_in_the_log(
    outcome: Outcome, alert: str, said: Any
) -> None:
    world = World(Route("default", (NAMED,)))
    world.request(outcome)
    told = {line["event"]: line for line in said()}
    assert told[alert]["level"] == "ERROR"
    assert {name: told[alert][name] for name in WHO} == WHO
    assert "pause_s" in (told.get("breaker_opened") or told["target_cooling"])
    assert (
        scraped(world.metrics)[sample("provider_alerts_total", provider="primary", kind=alert)] == 1
    )


def test_an_alert_that_lasts_is_counted_each_time_and_told_once_a_minute(said: Any) -> None:
    world = World(Route("default", (BACKUP,)))
    for _ in range(4):
        world.request(Outcome.CREDENTIAL)
        world.clock.advance(25.0)
    alerts = [line for line in said() if line["event"] == "provider_credential_refused"]
    assert [line["request_id"] for line in alerts] == ["r1", "r4"]
    assert (
        scraped(world.metrics)[
            sample("provider_alerts_total", provider="backup", kind="provider_credential_refused")
        ]
        == 4
    )


@pytest.mark.parametrize("outcome", [Outcome.NOT_FOUND, Outcome.FORBIDDEN])
def test_what_a_caller_can_provoke_alerts_only_while_the_target_never_answers(
    outcome: Outcome, said: Any
) -> None:
    """Else a wrong address, of which every request is a 404, would be told nowhere."""
    world = World(Route("default", (BACKUP,)))
    world.request(outcome)
    assert [line["event"] for line in said()] == [TAXONOMY[outcome].alert]
    world = World(Route("default", (BACKUP,)))
    world.request(OK)
    told = len(said())
    world.request(outcome)
    assert len(said()) == told


def test_further_attempts_are_counted_by_whom_they_ask() -> None:
    world = World()
    world.request(DOWN, OK)
    world.request(Outcome.REJECTED)
    alone = World(Route("default", (BACKUP,)))
    alone.request(DOWN, OK, passing=True)
    numbers = scraped(world.metrics)
    assert numbers[sample("retries_total", provider="backup", kind="failover")] == 1
    assert sample("retries_total", provider="primary", kind="failover") not in numbers
    numbers = scraped(alone.metrics)
    assert numbers[sample("retries_total", provider="backup", kind="same_target")] == 1


def test_what_was_told_is_not_told_again() -> None:
    world = World()
    now_s = world.clock.monotonic_s()
    walk = Failover(ROUTE, world.targets, started_s=now_s, total_s=60.0)
    walk.start(now_s)
    walk.on(Outcome.QUOTA, now_s)
    for _ in range(3):
        world.watch.note(walk, "r", asked=NAMED)
    numbers = scraped(world.metrics)
    kind = "provider_quota_exhausted"
    assert numbers[sample("provider_alerts_total", provider="primary", kind=kind)] == 1
    assert numbers[sample("coolings_total", provider="primary", reason="quota")] == 1
