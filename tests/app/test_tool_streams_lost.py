"""When does a call that waits for its client end otherwise, and who can come back at all?"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.app.mcp_answers import BOTH, result, run_in_no_time
from tests.app.mcp_streams import (
    EVENTS_FIRST,
    RESULT,
    STATUS,
    StreamingServer,
    begin,
    calling,
    event,
    heard,
    last_record,
    let_go,
    listen,
    passes,
    prime,
    reply,
    said,
    taken_up,
    values,
)
from tests.app.mcp_world import World, call, value
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.sse import Event

MAIL = "jane@example.com"


def run(body: Any) -> None:
    run_in_no_time(body)


def test_whoever_comes_back_takes_the_stream_from_a_connection_that_hangs() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as hanging:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            prime(asked, "e1")
            await hanging.chunk()
            (primed,) = heard(hanging)
            async with taken_up(world, server, session, str(primed.id)) as (back, again):
                assert asked.gone.is_set()
                assert hanging.ended
                reply(again, to=asked)
                await back.read()
        assert values(back) == [result(RESULT)]
        assert server.notices == []

    run(body)


@pytest.mark.parametrize("status", [400, 405, 500])
def test_a_server_that_has_forgotten_the_call_is_a_failure_of_the_call(status: int) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        _, place = await let_go(world, server, session)
        server.refuses = status
        async with listen(world, session, last_event_id=place) as back:
            await back.read()
        assert back.status == 200
        (told,) = values(back)
        assert (told["id"], told["error"]["code"]) == (1, -32603)
        assert told["error"]["data"] == {"request_id": "request2"}
        await passes(1.0)
        records = {trail.request_id: trail.snapshot() for trail in world.records.ends}
        assert records["request2"].outcome == "gateway.upstream_failed"

    run(body)


def test_a_server_that_still_holds_the_stream_is_asked_again() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        server.refuses = 409
        async with listen(world, session, last_event_id=place) as early:
            await early.read()
        assert early.status == 409
        server.refuses = 0
        async with taken_up(world, server, session, place) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]

    run(body)


def test_the_deadline_of_a_call_holds_across_its_streams() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, times=ToolTimes(total_s=100.0))
        began_s = world.clock.monotonic_s()
        session = await begin(world)
        _, place = await let_go(world, server, session)
        await passes(50.0)
        async with taken_up(world, server, session, place) as (back, _):
            await back.read()
        (told,) = values(back)
        assert told["error"]["code"] == -32603
        assert world.clock.monotonic_s() - began_s < 120.0

    run(body)


@pytest.mark.parametrize("served", [True, False])
def test_the_end_of_a_session_ends_its_calls(*, served: bool) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        _, place = await let_go(world, server, session)
        async with AsyncExitStack() as stack:
            if served:
                back, _ = await stack.enter_async_context(taken_up(world, server, session, place))
                await back.head()
            async with world.exchange(b"", method="DELETE", mcp_session_id=session) as ending:
                await ending.read()
            if served:
                assert await back.read() == b""
        await passes(1.0)
        records = {trail.request_id: trail.snapshot() for trail in world.records.ends}
        assert records["request2"].outcome == "cancelled"
        assert server.notices == []

    run(body)


# Who gets places at all?


@pytest.mark.parametrize(
    ("version", "accept", "primed", "marked"),
    [
        ("2025-11-25", BOTH, True, True),
        ("2025-06-18", BOTH, False, True),
        ("2025-11-25", "*/*", False, False),
        ("2025-11-25", "application/json", False, False),
    ],
)
def test_places_are_told_to_those_who_know_them(
    version: str, accept: str, *, primed: bool, marked: bool
) -> None:
    async def body() -> None:
        server = StreamingServer(version=version)
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS, accept=accept) as exchange:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            prime(asked, "e1")
            event(asked, said("working"), id="e2")
            reply(asked, id="e3")
            asked.end()
            await exchange.read()
        if accept == "application/json":
            assert value(exchange) == result(RESULT)
            return
        found = heard(exchange)
        assert [each.data == b"" for each in found] == [True] * primed + [False, False]
        assert {each.id is not None for each in found} == {marked}
        assert values(exchange) == [said("working"), result(RESULT)]
        await passes(61.0)

    run(body)


@pytest.mark.parametrize("without", ["session", "place"])
def test_a_stream_that_ends_early_without_a_way_back_is_a_failure(without: str) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        headers = {"accept": BOTH}
        if without != "session":
            headers["mcp_session_id"] = session
        async with world.exchange(STATUS, **headers) as exchange:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            if without == "session":
                prime(asked, "e1")
            event(asked, said("working"))
            asked.end()
            await exchange.read()
        assert [each.get("error", {}).get("code") for each in values(exchange)] == [None, -32603]
        assert all(each.id is None for each in heard(exchange))

    run(body)


def test_an_id_that_is_no_header_is_not_told() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as exchange:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            prime(asked, "é")
            event(asked, said("working"), id="日")
            asked.end()
            await exchange.read()
        assert [each.id for each in heard(exchange)] == [None, None]

    run(body)


@pytest.mark.parametrize("batch", [True, False])
def test_a_stream_is_asked_for_where_its_client_can_come_back(*, batch: bool) -> None:
    async def body() -> None:
        version = "2025-03-26" if batch else "2025-11-25"
        server = StreamingServer(version=version)
        world = World(server)
        session = await begin(world)
        message = [STATUS] if batch else STATUS
        async with calling(world, session, message, accept=EVENTS_FIRST) as exchange:
            asked = await server.arrival()
            asked.result(RESULT)
            await exchange.read()
        assert asked.headers["accept"] == (BOTH if batch else EVENTS_FIRST)

    run(body)


def test_where_nobody_can_come_back_nothing_says_so() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, times=ToolTimes(resume_s=0.0))
        session = await begin(world)
        async with calling(world, session, STATUS, accept=EVENTS_FIRST) as exchange:
            asked = await server.arrival()
            assert asked.headers["accept"] == BOTH
            asked.head(200, "text/event-stream")
            prime(asked, "e1")
            event(asked, said("working"), id="e2")
            reply(asked, id="e3")
            asked.end()
            await exchange.read()
        plain = [Event(each.data, each.event) for each in heard(exchange)]
        assert heard(exchange) == plain
        assert len(plain) == 2

    run(body)


def test_the_end_of_the_gateway_settles_what_waits() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        await let_go(world, server, session)
        await world.traffic.close()
        record = await last_record(world, 2)
        assert (record.request_id, record.outcome) == ("request2", "cancelled")

    run(body)


def test_many_calls_wait_and_each_gets_its_own_answer() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        waiting = [
            await let_go(world, server, session, call("get_status", {"n": number}, id=number))
            for number in range(20)
        ]

        async def fetch(number: int) -> None:
            asked, place = waiting[number]
            async with taken_up(world, server, session, place) as (back, again):
                assert again.headers["last-event-id"] == f"e{number + 1}"
                own = {"jsonrpc": "2.0", "id": asked.message["id"], "result": {"n": number}}
                event(again, own)
                await back.read()
            assert values(back) == [result({"n": number}, number)]

        for number in reversed(range(20)):
            await fetch(number)
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        await passes(61.0)
        assert len(world.traffic.relay.resumables) == 0

    run(body)
