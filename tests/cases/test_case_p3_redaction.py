"""Does the redaction keep its word where a case of pillar 3 needs several steps?

One function for each case, named by its id; tests.casebook calls and cites them.
"""
# ruff: noqa: N802 - the id of a case has capitals

import sys
from pathlib import Path

import pytest

from tests.casebook import behaviors
from tests.casebook.seen import Exchange, check, equal, short
from tests.casebook.world import World, lacks, play

pytestmark = pytest.mark.full
ROOT = Path(__file__).parent.parent.parent
CARD = " ".join(["4111", "1111", "1111", "1111"])
MAIL = "jane@example.com"
KEY = "-".join(["sk", "abcdef0123456789abcd"])


def test_case_P3_31() -> None:
    async def body() -> None:
        command = (sys.executable, "-m", "tests.cases.broken_detector", "serve")
        environment = {"PYTHONPATH": str(ROOT)}
        async with World(command=command, environment=environment) as world:
            asked = await world.chat(text=f"I am {MAIL}")
            check(asked.status >= 500, f"request: status {asked.status}")
            check(str(asked.error_code).startswith("gateway."), f"request: {asked.error_code}")
            check(world.reached() == 0, "the upstream got the request")
            # With pauses, so that the answer has begun when the detector fails.
            texts = ["hello there ", f"write {MAIL} ", "now "]
            world.behave("primary", behaviors.deltas(texts, every_s=0.1))
            stream = await world.chat(stream=True)
            check(stream.status == 200, f"stream: status {stream.status}")
            equal(stream.chat.text(), "hello there ", "text before the failure")
            codes = [error["error"]["code"] for error in stream.chat.errors]
            equal(codes, ["gateway.redaction_failed"], "error events")
            check(stream.chat.done == 0, "a [DONE] after the failure")
            plain = await world.chat(text="hi")
            world.behave("primary", behaviors.says(f"write {MAIL}"))
            whole = await world.chat(text="hi")
            check(whole.status >= 500, f"whole answer: status {whole.status}")
            for exchange in (asked, stream, plain, whole):
                lacks([MAIL], exchange.text, "the answer")
            lacks([MAIL], world.gateway.log, "the log")

    play(body)


def test_case_P3_41() -> None:
    async def body() -> None:
        config = {
            "telemetry": {"level": "debug"},
            "redaction": {"detectors": {"card": {"action": "block"}}},
            "store": {"url": "sqlite:///ledger.db"},
        }
        async with World(config=config) as world:
            blocked = await world.chat(text=f"pay with {CARD}")
            check(blocked.status == 400, f"blocked: status {blocked.status}")
            error = blocked.json["error"]
            check(error["code"] == "gateway.content_blocked", f"blocked: {error['code']}")
            check("card" in error["message"], f"the rule is not named: {short(error['message'])}")
            check(world.reached() == 0, "the blocked request reached the upstream")
            for name in ("primary", "backup"):
                world.behave(name, "500")
            failed = await world.chat(text=f"I am {MAIL}")
            check(failed.status == 502, f"upstream 500: status {failed.status}")
            late = await world.chat(text="x" * 194 + f" {MAIL} and more")
            for exchange in (blocked, failed, late):
                lacks([CARD, MAIL, "jane@exa", "4111"], exchange.text, "an answer")
            await written(world, late)
            lacks(["4111 1111", MAIL, "jane@exa"], world.gateway.log, "the log")
            lacks(["4111", "jane"], world.gateway.metrics(), "the metrics")
            lacks(["4111 1111", "jane@exa", "jane@"], world.gateway.database_text(), "a file")

    play(body)


async def written(world: World, exchange: Exchange) -> None:
    """Its record is on disk, so that the files can be searched."""
    request_id = exchange.header("x-request-id") or ""
    await world.metric("tidegate_records_waiting", lambda value: value == 0)
    record = world.gateway.record(request_id)
    check(record.get("request_id") == request_id, f"no record of {request_id}: {short(record)}")


def test_case_P3_43() -> None:
    async def body() -> None:
        async with World() as world:
            text = f"{MAIL} 123-45-6789 {KEY}"
            world.behave("primary", behaviors.says(text))
            whole = await world.chat()
            stream = await world.chat(stream=True)
            for name, exchange in (("whole", whole), ("stream", stream)):
                check(exchange.status == 200, f"{name}: status {exchange.status}")
                check(exchange.body.strip(), f"{name}: an empty body")
                wanted = "[REDACTED_EMAIL] [REDACTED_SSN] [REDACTED_SECRET]"
                equal(exchange.chat.text(), wanted, f"{name}: text")
                lacks([MAIL, "123-45-6789", KEY], exchange.text, name)
            equal(stream.header("x-accel-buffering"), "no", "X-Accel-Buffering")
            equal(stream.header("cache-control"), "no-cache", "Cache-Control")

    play(body)
