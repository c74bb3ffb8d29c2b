"""Of what a request does to its targets: what the log, the numbers and the record tell."""

import logging
from typing import Any

import pytest

from tests.app.chat_upstreams import answers, completion, fails
from tests.app.chat_world import ChatWorld, run
from tests.logged import lines
from tidegate.routing.breaker import BreakerSettings
from tidegate.testing.clock import ManualClock

HELLO = answers(completion("hello"))
NO_KEY = answers({"error": {"message": "no"}}, status=401)
DOWN = answers({"error": {"message": "no"}}, status=503)
QUICK = BreakerSettings(consecutive=2, min_results=100, open_s=5.0)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    """The lines about targets so far: the event and its provider."""
    found = lines(caplog, "tidegate.gateway.target_watch")
    return [(record.getMessage(), getattr(record, "provider", None)) for record in found]


def test_a_breaker_is_told_when_it_opens_lets_a_probe_through_and_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="tidegate")

    async def body() -> None:
        clock = ManualClock()
        world = ChatWorld(clock=clock, breaker=QUICK, primary=[DOWN, DOWN, HELLO], backup=HELLO)
        for _ in range(2):
            assert (await world.post()).status == 200
        assert told(caplog) == [("breaker_opened", "primary")]
        skipped = await world.post()
        assert skipped.header("x-tidegate-attempts") == "primary:open,backup:ok"
        attempt = world.records.steps[world.records.stages().index("attempt")]
        assert attempt.verdict == "open"
        assert attempt.values["reason"] == "consecutive"
        assert 4.0 <= attempt.values["wait_s"] <= 6.0  # type: ignore[operator]
        clock.advance(6.1)
        assert (await world.post()).header("x-tidegate-attempts") == "primary:ok"
        assert told(caplog)[1:] == [
            ("breaker_half_open", "primary"),
            ("breaker_closed", "primary"),
        ]
        ids = [getattr(r, "request_id", "") for r in lines(caplog, "tidegate.gateway.target_watch")]
        assert ids[0] == world.records.ends[1].request_id
        assert ids[1:] == [world.records.ends[3].request_id] * 2
        for state in ("open", "half_open", "closed"):
            assert world.metric("breaker_transitions_total", provider="primary", state=state) == 1
        assert world.metric("retries_total", provider="backup", kind="failover") == 2
        await world.assert_clean(4)

    run(body())


def test_a_key_that_is_refused_is_an_error_in_the_log_once_and_a_count_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        clock = ManualClock()
        world = ChatWorld(clock=clock, targets=("primary",), primary=NO_KEY, breaker=QUICK)
        for _ in range(2):
            assert (await world.post()).status == 502
            clock.advance(6.1)
        kind = "provider_credential_refused"
        alerts = [r for r in lines(caplog, "tidegate.gateway.target_watch") if r.msg == kind]
        assert [record.levelname for record in alerts] == ["ERROR"]
        assert world.metric("provider_alerts_total", provider="primary", kind=kind) == 2
        await world.assert_clean(2)

    run(body())


def test_a_second_call_to_the_same_target_is_a_retry_of_its_own_kind() -> None:
    async def body() -> None:
        world = ChatWorld(targets=("primary",), primary=[fails(), HELLO])
        answer = await world.post()
        assert answer.header("x-tidegate-attempts") == "primary:unreachable,primary:ok"
        assert world.metric("retries_total", provider="primary", kind="same_target") == 1
        assert world.metric("retries_total", kind="failover") == 0
        first, second = (step for step in world.records.steps if step.stage == "attempt")
        assert (first.verdict, second.verdict) == ("unreachable", "ok")
        assert all(float(step.values["took_ms"]) >= 0 for step in (first, second))  # type: ignore[arg-type]
        await world.assert_clean(1)

    run(body())
