"""Does a call end at once when its client cancels it, whatever its server then does?"""

import asyncio
import logging
from typing import Any

import pytest

from tests.app.mcp_answers import BOTH, META, modern, run, run_in_no_time
from tests.app.mcp_streams import (
    STATUS,
    StreamingServer,
    begin,
    calling,
    last_record,
    let_go,
    listen,
    prime,
    reply,
    values,
)
from tests.app.mcp_upstreams import ModernUpstream
from tests.app.mcp_world import Asked, World, call, tell, value
from tidegate.gateway.masking import Masking
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.limits.ledger import Limit
from tidegate.mcp.eras import BATCHING
from tidegate.redaction import RedactionPolicy
from tidegate.transport.upstream import Failure

ONE_AT_A_TIME = Limit("one", "concurrent", cap=1, per="principal", tools=("*",), servers=("*",))


def cancel(id: object = 1) -> Any:  # noqa: A002 - the member's own name
    return tell("notifications/cancelled", requestId=id, reason="enough")


async def turns() -> None:
    """Whatever is about to happen happens."""
    for _ in range(50):
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time


def has_failures(caplog: pytest.LogCaptureFixture) -> bool:
    return any(record.message == "tool_server_failed" for record in caplog.records)


@pytest.mark.parametrize("accept", [BOTH, "application/json"])
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cancelled_call_ends_without_an_answer_and_holds_nothing(
    caplog: pytest.LogCaptureFixture, accept: str, *, has_begun: bool
) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, limits=[ONE_AT_A_TIME])
        session = await begin(world)
        async with calling(world, session, STATUS, accept=accept) as mine:
            asked = await server.arrival()
            if has_begun:
                asked.head(200, "text/event-stream")
                asked.event(tell("notifications/message", data="x"))
                await turns()
            answer = await world.post(cancel(), mcp_session_id=session)
            assert answer.status == 202
            await mine.read()
            assert [v for v in values(mine) if "id" in v] == []
            assert mine.status == (200 if accept == BOTH else 202)
            assert asked.gone.is_set()
            assert server.notices == [cancel()]
            reply(asked)
        assert (await last_record(world, 3)).outcome == "cancelled"
        assert len(world.traffic.relay.calls) == 0
        async with calling(world, session, STATUS) as following:
            asked = await server.arrival()
            asked.result({"content": []})
            await following.read()
        assert b'"content"' in following.body

    with caplog.at_level(logging.INFO):
        run(body)
    assert not has_failures(caplog)


def test_the_id_of_a_cancelled_call_is_taken_at_the_server_until_it_has_been_told() -> None:
    async def body() -> None:
        told, calls = asyncio.Event(), list[Asked]()

        async def script(asked: Asked) -> None:
            if asked.message["method"] == "notifications/cancelled":
                await told.wait()
                asked.head(202)
                asked.end()
            else:
                calls.append(asked)
                await asked.gone.wait()

        world = World(script)
        async with world.exchange(STATUS, accept=BOTH) as mine:
            await turns()
            async with world.exchange(cancel()) as cancelling:
                await mine.read()
                async with world.exchange(STATUS, accept=BOTH, role="second"):
                    await turns()
                told.set()
                await cancelling.read()
        async with world.exchange(STATUS, accept=BOTH, role="second"):
            await turns()
        ids = [asked.message["id"] for asked in calls]
        assert ids[0] == ids[2] == 1
        assert ids[1] != 1

    run(body)


def test_a_cancellation_behind_the_answer_takes_nothing_of_it_away() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as mine:
            asked = await server.arrival()
            asked.result({"content": []})
            await turns()
            await world.post(cancel(), mcp_session_id=session)
            await mine.read()
        assert value(mine)["result"] == {"content": []}
        assert (await last_record(world, 2)).outcome == "ok"

    run(body)


def test_of_a_batch_only_the_cancelled_element_has_no_answer() -> None:
    async def body() -> None:
        server = StreamingServer(version=BATCHING)
        world = World(server)
        session = await begin(world)
        batch = [call("get_status", id=1), call("get_status", id=2)]
        headers = {"mcp_protocol_version": BATCHING}
        async with calling(world, session, batch, **headers) as mine:
            await server.arrival()
            await world.post(cancel(1), mcp_session_id=session)
            (await server.arrival()).result({"content": []})
            await mine.read()
        assert [each["id"] for each in value(mine)] == [2]

    run(body)


def test_a_call_that_its_client_has_come_back_for_can_be_cancelled() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        _, place = await let_go(world, server, session)
        async with listen(world, session, last_event_id=place) as rest:
            asked = await server.arrival()
            await turns()
            await world.post(cancel(), mcp_session_id=session)
            await rest.read()
            assert asked.gone.is_set()
        assert len(world.traffic.relay.resumables) == 0
        assert len(world.traffic.relay.calls) == 0
        outcomes = {each.request_id: each.snapshot().outcome for each in world.records.ends}
        assert outcomes["request2"] == "cancelled"

    run(body)


def test_a_call_that_could_be_resumed_is_not_kept_once_it_is_cancelled() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as mine:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            prime(asked, "1")
            await turns()
            await world.post(cancel(), mcp_session_id=session)
            await mine.read()
        assert len(world.traffic.relay.resumables) == 0
        assert (await last_record(world, 3)).outcome == "cancelled"

    run(body)


async def staying(upstream: Any, asked: Asked, message: Any) -> Any:
    """A tool that never returns."""
    if message["method"] == "tools/call" and message["params"]["name"] == "get_status":
        asked.head(200, "text/event-stream")
        await upstream.stay(asked)
    return None


def test_a_bridged_call_ends_at_once_and_its_server_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        upstream = ModernUpstream(handler=staying)
        world = World(upstream, limits=[ONE_AT_A_TIME])
        session = await begin(world)
        for _ in range(2):
            upstream.streamed.clear()
            async with calling(world, session, STATUS) as mine:
                async with asyncio.timeout(5):
                    await upstream.streamed.wait()
                await world.post(cancel(), mcp_session_id=session)
                await mine.read()
                assert (mine.status, mine.body) == (200, b"")
            assert upstream.streams[-1].gone.is_set()
        assert (await last_record(world, 3)).outcome == "cancelled"
        await world.carriers.close()

    with caplog.at_level(logging.INFO):
        run(body)
    assert not has_failures(caplog)


async def too_slow(asked: Asked) -> None:
    asked.head(200, "text/event-stream")


async def too_long(asked: Asked) -> None:
    asked.head(200, "text/event-stream")
    asked.event(tell("notifications/message", data="x" * 100_000))


async def broken(asked: Asked) -> None:
    asked.fail(Failure.MALFORMED)


async def not_to_be_shown(asked: Asked) -> None:
    asked.head(200, "text/event-stream")
    asked.event(tell("notifications/message", data="write to jane.doe@example.com"))


async def answered_badly(asked: Asked) -> None:
    asked.whole({"jsonrpc": "2.0", "id": 1, "result": {"a": "write to jane.doe@example.com"}})


async def refused(asked: Asked) -> None:
    asked.whole(b"", 503)


async def nobody(asked: Asked) -> None:
    asked.fail(Failure.UNREACHABLE)


BLOCKING = Masking(
    RedactionPolicy.preset().with_actions({"email": "block"}),
    tool_arguments="off",
    tool_results="enforce",
)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (too_slow, 1),
        (too_long, 1),
        (broken, 1),
        (not_to_be_shown, 1),
        (answered_badly, 0),
        (refused, 0),
        (nobody, 0),
    ],
)
@pytest.mark.parametrize("is_modern", [False, True])
def test_a_legacy_server_is_told_of_a_call_that_the_gateway_gives_up(
    script: Any, told: int, *, is_modern: bool
) -> None:
    async def body() -> None:
        notices: list[Any] = []

        async def server(asked: Asked) -> None:
            if "id" in asked.message:
                await script(asked)
            else:
                notices.append(asked.message)
                asked.head(202)
                asked.end()

        times = ToolTimes(total_s=5.0, idle_s=5.0)
        world = World(server, times=times, max_answer_bytes=10_000, masking=BLOCKING)
        params = {"_meta": META} if is_modern else {}
        extra = modern("tools/call", mcp_name="get_status") if is_modern else {}
        answer = await world.post(call("get_status", **params), **extra)
        assert b'"error"' in answer.body
        await world.upstream.drain(5)
        assert [n["method"] for n in notices] == ["notifications/cancelled"] * (
            0 if is_modern else told
        )
        assert all(n["params"]["requestId"] == 1 for n in notices)

    run_in_no_time(body)
