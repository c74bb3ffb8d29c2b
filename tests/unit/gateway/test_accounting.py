"""Each request has exactly one end, and it says what happened."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate.errors import (
    ContentBlocked,
    NotFound,
    RateLimited,
    RequestExceedsLimit,
    StoreUnavailable,
)
from tidegate.gateway.accounting import Accounting
from tidegate.gateway.charge import Charge
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.respond import Responder
from tidegate.limits.ledger import Need
from tidegate.policy import Principal
from tidegate.records.entries import Trail
from tidegate.testing.clock import ManualClock

WHO = Principal("acme", "acme", ("tenant",), "k1")
LIMITED = RateLimited(
    limit="tokens", scope="tenant", cap=100, used=90, requested=20, retry_after_s=3.0
)


@dataclass(slots=True)
class Records:
    """What was handed to the recorder, in order."""

    calls: list[str] = field(default_factory=list)

    def begin(self, trail: Trail) -> None:
        self.calls.append(f"begin {trail.request_id}")

    def end(self, trail: Trail) -> None:
        snapshot = trail.snapshot()
        self.calls.append(f"end {snapshot.outcome} {snapshot.status}")


async def nothing(_message: Any) -> None:
    """A client that takes everything."""


class Scene:
    """One request under accounting."""

    def __init__(self) -> None:
        self.records, self.metrics, self.clock = Records(), Metrics(), ManualClock()
        accounting = Accounting(self.records, self.metrics, self.clock)  # type: ignore[arg-type]
        self.responder = Responder(nothing, "r1")
        self.trail = Trail.begin("chat", "r1", WHO, "rev")
        self.account = accounting.accounted(self.trail, self.responder)

    def numbers(self, name: str) -> list[str]:
        lines = self.metrics.render()[1].decode().splitlines()
        return [line for line in lines if line.startswith(f"tidegate_{name}{{")]


ENDS: list[tuple[BaseException | None, int, str]] = [
    (None, 200, "ok 200"),
    (NotFound(), 0, "gateway.not_found 404"),
    (NotFound(), 200, "gateway.not_found 200"),
    (StoreUnavailable(), 0, "gateway.store_unavailable 503"),
    (LIMITED, 0, "gateway.rate_limited 429"),
    (asyncio.CancelledError(), 0, "cancelled 0"),
    (asyncio.CancelledError(), 200, "cancelled 200"),
    (RuntimeError("a bug"), 0, "gateway.internal 500"),
    (RuntimeError("a bug"), 200, "gateway.internal 200"),
    (KeyboardInterrupt(), 0, "gateway.internal 500"),
]


@pytest.mark.parametrize(("error", "status", "end"), ENDS)
def test_whatever_ends_a_request_it_has_one_end(
    error: BaseException | None, status: int, end: str
) -> None:
    async def request(scene: Scene) -> None:
        async with scene.account:
            assert scene.responder.known
            assert scene.records.calls == ["begin r1"]
            scene.responder.status = status
            scene.clock.advance(2.0)
            if error is not None:
                raise error

    async def body() -> None:
        scene = Scene()
        if error is None:
            await request(scene)
        else:
            with pytest.raises(type(error)):
                await request(scene)
        assert scene.records.calls == ["begin r1", f"end {end}"]
        outcome = end.partition(" ")[0]
        labels = f'outcome="{outcome}",route="",surface="chat",tenant="acme"'
        assert scene.numbers("requests_total") == [f"tidegate_requests_total{{{labels}}} 1.0"]
        assert scene.numbers("request_seconds_sum")[0].endswith(" 2.0")

    asyncio.run(body())


def test_the_outcome_of_an_answer_that_had_begun_is_its_code() -> None:
    async def body() -> None:
        scene = Scene()
        async with scene.account as account:
            scene.responder.status = 200
            account.outcome = "gateway.upstream_interrupted"
            account.route = "default"
        assert scene.records.calls[-1] == "end gateway.upstream_interrupted 200"
        assert 'route="default"' in scene.numbers("requests_total")[0]

    asyncio.run(body())


def test_who_leaves_with_the_whole_answer_has_not_cancelled_it() -> None:
    async def request(scene: Scene, outcome: str) -> None:
        async with scene.account as account:
            await scene.responder.json(200, {})
            account.outcome = outcome
            raise asyncio.CancelledError

    async def body() -> None:
        for outcome in ("ok", "gateway.upstream_interrupted"):
            scene = Scene()
            with pytest.raises(asyncio.CancelledError):
                await request(scene, outcome)
            assert scene.records.calls[-1] == f"end {outcome} 200"

    asyncio.run(body())


def test_a_limit_that_refused_is_named_with_its_numbers() -> None:
    async def body() -> None:
        scene = Scene()
        with pytest.raises(RateLimited):
            async with scene.account:
                raise LIMITED
        step = scene.trail.snapshot().steps[-1]
        assert (step.stage, step.verdict) == ("limits", "deny")
        assert step.values == {
            "limit": "tokens",
            "scope": "tenant",
            "cap": 100,
            "requested": 20,
            "used": 90,
            "retry_after_s": 3.0,
        }
        assert len(scene.numbers("limit_rejections_total")) == 1

    asyncio.run(body())


def test_a_request_that_never_fits_has_no_time_to_come_back() -> None:
    async def body() -> None:
        scene = Scene()
        with pytest.raises(RequestExceedsLimit):
            async with scene.account:
                raise RequestExceedsLimit(limit="tokens", scope="tenant", cap=100, requested=200)
        values = scene.trail.snapshot().steps[-1].values
        assert {name: value for name, value in values.items() if value is not None} == {
            "limit": "tokens",
            "scope": "tenant",
            "cap": 100,
            "requested": 200,
        }

    asyncio.run(body())


def test_a_block_names_its_detector() -> None:
    async def body() -> None:
        scene = Scene()
        with pytest.raises(ContentBlocked):
            async with scene.account:
                raise ContentBlocked("email")
        step = scene.trail.snapshot().steps[-1]
        assert (step.stage, step.verdict, step.values) == (
            "redaction",
            "block",
            {"detector": "email"},
        )

    asyncio.run(body())


def test_usage_is_noted_when_there_is_any_and_it_is_charged() -> None:
    async def body() -> None:
        scene = Scene()
        unknown, released, settled = Charge(), Charge(), Charge()
        unknown.commit()
        released.use(Need(1, 2))
        settled.use(Need(5, 7, money_micros=11), counted=True)
        settled.commit()
        async with scene.account as account:
            for charge in (unknown, released, settled):
                account.used(charge)
        (step,) = (step for step in scene.trail.snapshot().steps if step.stage == "limits")
        assert step.verdict == "settle"
        assert step.values == {
            "input_tokens": 5,
            "output_tokens": 7,
            "money_micros": 11,
            "counted": True,
        }
        assert {line.rsplit(" ", 1)[1] for line in scene.numbers("tokens_total")} == {"5.0", "7.0"}
        assert [line.rsplit(" ", 1)[1] for line in scene.numbers("cost_micros_total")] == ["11.0"]

    asyncio.run(body())


@pytest.mark.parametrize(
    ("error", "level"), [(NotFound(), "INFO"), (StoreUnavailable(), "WARNING")]
)
def test_a_refusal_is_one_log_line_with_its_id(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        scene = Scene()
        with pytest.raises(type(error)):
            async with scene.account:
                raise error

    with caplog.at_level(logging.INFO):
        asyncio.run(body())
    (record,) = (r for r in caplog.records if r.name == "tidegate.gateway.accounting")
    assert (record.msg, record.levelname) == ("request_refused", level)
    assert record.__dict__["request_id"] == "r1"
