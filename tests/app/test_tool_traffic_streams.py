"""Does an answer reach its client live and masked, and only its own client?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_answers import (
    BOTH,
    ENFORCE,
    META,
    NOTE,
    STREAM,
    answering,
    generic,
    modern,
    offering,
    result,
)
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, World, call, echo, events, value
from tidegate.gateway.masking import Masking
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.redaction import RedactionPolicy
from tidegate.testing.asgi import WAIT_S

# Is a stream live?


def test_progress_reaches_the_client_before_the_result_exists() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            token = asked.message["params"]["_meta"]["progressToken"]
            asked.head(200, STREAM)
            asked.event(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1},
                }
            )
            await go.wait()
            asked.event(result({"content": []}))
            asked.end()

        world = World(script)
        meta = {"progressToken": "p-1", "vendor/x": {"a": 1}}
        async with world.exchange(call("get_status", _meta=meta)) as exchange:
            first = await exchange.chunk()
            assert b'"progressToken": "p-1"' in first
            assert exchange.header("content-type") == "text/event-stream; charset=utf-8"
            assert exchange.header("x-accel-buffering") == "no"
            go.set()
            await exchange.read()
        assert events(exchange)[-1] == result({"content": []})
        assert world.sent[0]["params"]["_meta"] == meta

    run(body)


def test_a_silent_stream_is_kept_alive() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            asked.head(200, STREAM)
            asked.event(NOTE)
            await go.wait()
            asked.event(result({}))
            asked.end()

        world = World(script, times=ToolTimes(keep_alive_s=0.005))
        async with world.exchange(call("get_status"), accept=BOTH) as exchange:
            await exchange.chunk()
            assert await exchange.chunk() == b": keep-alive\n\n"
            go.set()
            await exchange.read()
        assert events(exchange) == [NOTE, result({})]

    run(body)


def test_a_server_that_says_nothing_runs_into_its_deadline() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            await asked.gone.wait()

        for times in (ToolTimes(idle_s=0.01), ToolTimes(total_s=0.01)):
            world = World(script, times=times)
            answer = await world.post(call("get_status"))
            assert generic(answer)
            assert world.transport.asked[0].gone.is_set()

    run(body)


def test_unknown_fields_and_exact_numbers_survive() -> None:
    async def body() -> None:
        full = {
            "content": [
                {"type": "text", "text": "\u017elu\u0165ou\u010dk\u00fd \U0001f40e"},
                {"type": "resource_link", "uri": "file:///a", "size": 3, "priority": 0.5},
                {"type": "future_block", "x": 1},
            ],
            "structuredContent": {"big": 9007199254740993, "huge": 10**40, "dec": 0.1},
            "isError": False,
            "_meta": {"vendor/trace": "t1"},
            "resultType": "complete",
            "x-new": {"k": [None]},
        }
        raw = json.dumps(result(full), ensure_ascii=False).encode()
        for masking in (ENFORCE, None):
            extra = {} if masking is None else {"masking": masking}
            for hide in ("off", "full"):
                world = World(offering(answering(raw), "get_status"), hide_denied=hide, **extra)
                answer = await world.post(call("get_status"))
                assert answer.body == raw

    run(body)


# Does anything personal get out?

MAIL = "jane@example.com"
PLACES = {
    "text": result({"content": [{"type": "text", "text": MAIL}]}),
    "structured": result({"structuredContent": {"deep": [{"mail": MAIL}]}, "nextCursor": MAIL}),
    "resource": result({"contents": [{"uri": "a:b", "text": f"to {MAIL}"}]}),
    "error": {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32602, "message": f"no {MAIL}", "data": {"given": MAIL}},
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_personal_data_is_masked_wherever_it_stands(place: str) -> None:
    async def body() -> None:
        raw = json.dumps(PLACES[place]).encode()
        world = World(answering(raw), masking=ENFORCE)
        answer = await world.post(call("get_status"))
        expected = json.dumps(PLACES[place]).replace(MAIL, "[REDACTED_EMAIL]")
        if place == "structured":
            expected = expected.replace(
                '"nextCursor": "[REDACTED_EMAIL]"', f'"nextCursor": "{MAIL}"'
            )
        assert value(answer) == json.loads(expected)
        trail = world.records.ends[0].snapshot()
        (found,) = [step.found for step in trail.steps if step.stage == "redact_result"]
        assert found["email"] >= 1

    run(body)


def test_detecting_counts_and_changes_nothing() -> None:
    async def body() -> None:
        raw = json.dumps(PLACES["text"]).encode()
        masking = Masking(RedactionPolicy.preset(), tool_arguments="detect", tool_results="detect")
        world = World(answering(raw), masking=masking)
        message = call("get_status", {"mail": MAIL})
        answer = await world.post(message)
        assert answer.body == raw
        assert world.sent == [message]
        steps = {step.stage: step.found for step in world.records.ends[0].snapshot().steps}
        assert steps["redact_result"] == steps["redact_arguments"] == {"email": 1}

    run(body)


def test_arguments_are_masked_before_they_leave() -> None:
    async def body() -> None:
        masking = Masking(RedactionPolicy.preset(), tool_arguments="enforce", tool_results="off")
        world = World(masking=masking)
        await world.post(call("get_status", {"to": MAIL, "n": 1}))
        assert world.sent[0]["params"]["arguments"] == {"to": "[REDACTED_EMAIL]", "n": 1}

    run(body)


def test_notifications_of_a_stream_are_masked_too() -> None:
    async def body() -> None:
        progress = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": MAIL, "message": f"mailing {MAIL}"},
        }

        async def script(asked: Asked) -> None:
            asked.head(200, STREAM)
            asked.event(progress)
            asked.event(result({}))
            asked.end()

        answer = await World(script, masking=ENFORCE).post(call("get_status"), accept=BOTH)
        params = events(answer)[0]["params"]
        assert params == {"progressToken": MAIL, "message": "mailing [REDACTED_EMAIL]"}

    run(body)


class Broken:
    """A policy whose detectors fail."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(MAIL)


def test_a_redactor_that_fails_lets_nothing_through() -> None:
    async def body() -> None:
        broken: Any = Broken()
        raw = json.dumps(PLACES["text"]).encode()
        after = Masking(broken, tool_arguments="off", tool_results="enforce")
        world = World(answering(raw), masking=after)
        answer = await world.post(call("get_status"))
        assert value(answer)["error"]["data"]["reason"] == "gateway.redaction_failed"
        assert MAIL.encode() not in answer.body
        before = Masking(broken, tool_arguments="enforce", tool_results="off")
        world = World(echo, masking=before)
        answer = await world.post(call("get_status"))
        assert value(answer)["error"]["data"]["reason"] == "gateway.redaction_failed"
        assert world.sent == []
        assert world.records.ends[0].snapshot().outcome == "gateway.redaction_failed"

    run(body)


# Do two clients get in each other's way?


def test_equal_ids_of_two_clients_never_meet() -> None:
    async def body() -> None:
        arrived: list[Asked] = []
        both = asyncio.Event()

        async def script(asked: Asked) -> None:
            arrived.append(asked)
            if len(arrived) % 2 == 0:
                both.set()
            await both.wait()
            asked.result({"mine": asked.message["params"]["arguments"]["x"]})

        world = World(script)
        for turn in range(50):
            both.clear()
            answers = await asyncio.gather(
                world.post(call("get_status", {"x": f"a{turn}"}, id=0)),
                world.post(call("get_status", {"x": f"b{turn}"}, id=0), role="admin"),
            )
            got = [value(answer) for answer in answers]
            assert got == [result({"mine": f"{who}{turn}"}, 0) for who in "ab"]
        ids = [message["id"] for message in world.sent]
        assert all(one != two for one, two in zip(ids[::2], ids[1::2], strict=True))
        assert 0 in ids

    run(body)


def test_a_cancellation_hits_the_call_of_its_own_client() -> None:
    async def body() -> None:
        calls: dict[str, Asked] = {}
        cancelled: list[Any] = []
        ready = asyncio.Event()

        async def script(asked: Asked) -> None:
            message = asked.message
            if message["method"] == "notifications/cancelled":
                cancelled.append(message["params"]["requestId"])
                asked.head(202)
                asked.end()
                return
            calls[message["params"]["arguments"]["of"]] = asked
            if len(calls) == 2:
                ready.set()

        world = World(script)
        first = world.exchange(call("get_status", {"of": "x"}, id=7))
        second = world.exchange(call("get_status", {"of": "y"}, id=7), role="admin")
        async with first, second:
            async with asyncio.timeout(WAIT_S):
                await ready.wait()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            answer = await world.post({**cancel, "params": {"requestId": 7}})
            assert (answer.status, answer.body) == (202, b"")
            assert cancelled == [calls["x"].message["id"]]
            for stray in ("7", 8, None):
                await world.post({**cancel, "params": {"requestId": stray}})
            await world.post({**cancel, "params": {"requestId": 7}}, role="second")
            assert len(cancelled) == 1
            for asked in calls.values():
                asked.result({"done": True})
            assert json.loads(await second.read()) == result({"done": True}, 7)
            await first.read()

    run(body)


@pytest.mark.parametrize("is_modern", [True, False])
def test_a_client_that_leaves_ends_its_call(*, is_modern: bool) -> None:
    async def body() -> None:
        arrived, told = asyncio.Event(), asyncio.Event()

        async def script(asked: Asked) -> None:
            if asked.message["method"] == "notifications/cancelled":
                asked.head(202)
                asked.end()
                told.set()
            arrived.set()

        world = World(script)
        extra = modern("tools/call", mcp_name="get_status") if is_modern else {}
        params = {"_meta": META} if is_modern else {}
        async with world.exchange(call("get_status", id=7, **params), **extra) as exchange:
            async with asyncio.timeout(WAIT_S):
                await arrived.wait()
            await exchange.disconnect()
        assert world.transport.asked[0].gone.is_set()
        if not is_modern:
            async with asyncio.timeout(WAIT_S):
                await told.wait()
            await world.upstream.drain(WAIT_S)
            params = world.sent[1]["params"]
            assert params == {"requestId": 7, "reason": "the client has gone"}
        assert len(world.sent) == (1 if is_modern else 2)
        assert world.records.ends[0].snapshot().outcome == "cancelled"

    run(body)
