"""Is a call whose stream ended before its answer came back still that call, and nobody else's?"""

from typing import Any

import pytest

from tests.app.mcp_answers import ENFORCE, offering, result, run_in_no_time
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
from tests.app.mcp_world import Asked, World, ask, call, value
from tidegate.limits.ledger import Limit
from tidegate.mcp.stream_places import LEAST_RETRY_MS
from tidegate.transport.upstream import Failure

MAIL = "jane@example.com"


def run(body: Any) -> None:
    run_in_no_time(body)


def test_a_call_that_was_let_go_is_answered_by_a_get() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS, accept=EVENTS_FIRST) as exchange:
            asked = await server.arrival()
            assert asked.headers["accept"] == EVENTS_FIRST
            asked.head(200, "text/event-stream")
            prime(asked, "e1", 700)
            assert await exchange.chunk() == exchange.body
            event(asked, said("working"), id="e2")
            asked.end()
            await exchange.read()
        first, second = heard(exchange)
        assert (first.data, first.retry_ms) == (b"", 700)
        assert values(exchange) == [said("working")]
        assert len(world.records.ends) == 1
        back = listen(world, session, last_event_id=str(second.id))
        async with back:
            again = await server.arrival()
            assert again.headers["last-event-id"] == "e2"
            assert again.headers["mcp-session-id"] == "theirs-1"
            event(again, said("nearly"), id="e3")
            reply(again, to=asked, id="e4")
            await back.read()
        await passes(1.0)
        assert again.gone.is_set()
        assert values(back) == [said("nearly"), result(RESULT)]
        posted, got = await last_record(world, 2), await last_record(world, 3)
        if posted.request_id != "request2":
            posted, got = got, posted
        assert (posted.request_id, posted.outcome, posted.status) == ("request2", "ok", 200)
        assert [step.stage for step in posted.steps][-1] == "redact_result"
        assert (got.request_id, got.outcome) == ("request3", "ok")
        (resumed,) = [step for step in got.steps if step.stage == "resume"]
        assert resumed.values == {
            "reason": "answered",
            "method": "tools/call",
            "tool": "get_status",
        }
        assert [who for who, _ in world.records.intents] == ["request1", "request2", "request3"]

    run(body)


def test_the_answer_that_comes_later_is_masked_and_counted_for_its_call() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(offering(server, "get_status"), masking=ENFORCE, hide_denied="full")
        session = await begin(world)
        _, place = await let_go(world, server, session)
        async with taken_up(world, server, session, place) as (back, again):
            event(again, said(MAIL))
            text = [{"type": "text", "text": MAIL}]
            event(again, {"jsonrpc": "2.0", "id": 1, "result": {"content": text}})
            await back.read()
        assert MAIL.encode() not in back.body
        assert values(back)[1]["result"]["content"][0]["text"] == "[REDACTED_EMAIL]"
        posted = next(
            record
            for record in [await last_record(world, number) for number in (2, 3)]
            if record.request_id == "request2"
        )
        (found,) = [step.found for step in posted.steps if step.stage == "redact_result"]
        assert found == {"email": 2}

    run(body)


def test_a_list_that_comes_later_is_filtered() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            if asked.method == "POST" and asked.message.get("method") == "tools/list":
                asked.head(200, "text/event-stream")
                prime(asked, "e1")
                asked.end()
            else:
                await server(asked)

        server = StreamingServer()
        world = World(script, hide_denied="full")
        session = await begin(world)
        async with calling(world, session, ask("tools/list")) as exchange:
            await exchange.read()
        (primed,) = heard(exchange)
        async with taken_up(world, server, session, str(primed.id)) as (back, again):
            tools = [
                {"name": name, "inputSchema": {}} for name in ("admin_reset_key", "get_status")
            ]
            event(again, result({"tools": tools}))
            await back.read()
        assert [tool["name"] for tool in values(back)[0]["result"]["tools"]] == ["get_status"]

    run(body)


def test_what_a_call_is_charged_stays_charged_until_it_is_answered() -> None:
    async def body() -> None:
        server = StreamingServer()
        one_at_a_time = Limit("one", unit="concurrent", per="principal", cap=1, tools=("*",))
        world = World(server, limits=[one_at_a_time])
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        refused = await world.post(call("get_status", id=2), mcp_session_id=session)
        assert "one" in value(refused)["error"]["message"]
        async with taken_up(world, server, session, place) as (back, again):
            reply(again, to=asked)
            await back.read()
        await passes(0.01)
        async with calling(world, session, call("get_status", id=3)) as exchange:
            (await server.arrival()).result(RESULT)
            await exchange.read()
        assert value(exchange) == result(RESULT, 3)

    run(body)


def test_what_a_call_carried_is_not_kept_until_its_client_is_back() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        message = call("get_status", {"large": "x" * 1000}, _meta={"progressToken": "p"})
        asked, place = await let_go(world, server, session, message)
        assert asked.message["params"] == message["params"]
        viewer = world.records.ends[0].principal
        opened = world.traffic.relay.sessions.find(session, viewer, world.clock.monotonic_s())
        assert opened is not None
        kept = world.traffic.relay.resumables.find(opened, place.split("-")[0])
        assert kept is not None
        assert kept.shaper.call.params == {"name": "get_status", "_meta": {"progressToken": "p"}}
        async with taken_up(world, server, session, place) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]

    run(body)


@pytest.mark.parametrize("how", ["the client leaves", "the connection to the server breaks"])
def test_a_lost_connection_loses_no_call_whose_client_can_come_back(how: str) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as exchange:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            event(asked, said("working"), id="e1")
            await exchange.chunk()
            if how == "the client leaves":
                await exchange.disconnect()
            else:
                asked.fail(Failure.RESET)
                await exchange.read()
        assert server.notices == []
        (seen,) = heard(exchange)
        async with taken_up(world, server, session, str(seen.id)) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]
        await passes(1.0)
        outcomes = [trail.snapshot().outcome for trail in world.records.ends]
        assert outcomes == ["ok", "ok", "ok"]

    run(body)


def test_a_call_that_nobody_comes_back_for_is_cancelled_at_its_server() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        await passes(59.0)
        assert (server.notices, len(world.records.ends)) == ([], 1)
        await passes(2.0)
        (notice,) = server.notices
        assert notice["method"] == "notifications/cancelled"
        assert notice["params"]["requestId"] == asked.message["id"]
        record = await last_record(world, 2)
        assert (record.request_id, record.outcome) == ("request2", "cancelled")
        async with listen(world, session, last_event_id=place) as late:
            await late.read()
        assert late.status == 400
        assert server.gets == []

    run(body)


def test_a_client_may_cancel_what_it_waits_for() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        _, place = await let_go(world, server, session)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await world.post({**cancel, "params": {"requestId": 1}}, mcp_session_id=session)
        assert [each["params"]["requestId"] for each in server.notices] == [1]
        async with listen(world, session, last_event_id=place) as late:
            await late.read()
        assert late.status == 400
        await passes(100.0)
        assert len(server.notices) == 1

    run(body)


def test_a_place_is_of_use_in_its_own_session_alone() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        mine = await begin(world)
        others = {
            "viewer": (await begin(world), 400),
            "second": (await begin(world, "second"), 400),
            "admin": (mine, 404),
        }
        asked, place = await let_go(world, server, mine)
        for role, (session, status) in others.items():
            async with listen(world, session, role=role, last_event_id=place) as stolen:
                await stolen.read()
            assert stolen.status == status
        assert server.gets == []
        async with taken_up(world, server, mine, place) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]

    run(body)


def test_a_standing_stream_is_taken_up_behind_its_last_event() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            prime(asked, "s0", 0)
            event(asked, said("a"), id="s1")
            event(asked, said("b"))
            asked.end()
            await mine.read()
        primed, first, second = heard(mine)
        assert (primed.data, primed.retry_ms) == (b"", LEAST_RETRY_MS)
        assert second.id is None
        async with taken_up(world, server, session, str(first.id)) as (back, again):
            assert again.headers["last-event-id"] == "s1"
            event(again, said("c"), id="s2")
            again.end()
            await back.read()
        assert values(back) == [said("c")]

    run(body)


def test_two_calls_with_one_id_wait_side_by_side() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        waiting = [await let_go(world, server, session) for _ in range(2)]
        assert waiting[0][0].message["id"] != waiting[1][0].message["id"]
        for asked, place in reversed(waiting):
            async with taken_up(world, server, session, place) as (back, again):
                for each, _ in waiting:
                    if each is not asked:
                        reply(again, to=each)
                reply(again, to=asked)
                await back.read()
            assert values(back) == [result(RESULT)]

    run(body)


def test_a_server_may_let_go_more_than_once() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        for number in range(3):
            async with taken_up(world, server, session, place) as (back, again):
                prime(again, f"more{number}")
                again.end()
                await back.read()
            (primed,) = heard(back)
            place = str(primed.id)
            await passes(50.0)
        async with taken_up(world, server, session, place) as (back, again):
            assert again.headers["last-event-id"] == "more2"
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]

    run(body)


def test_the_answer_can_be_had_again_for_a_while() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        for _ in range(2):
            async with taken_up(world, server, session, place) as (back, again):
                reply(again, to=asked)
                await back.read()
            assert values(back) == [result(RESULT)]
        await passes(61.0)
        async with listen(world, session, last_event_id=place) as late:
            await late.read()
        assert late.status == 400
        assert [trail.request_id for trail in world.records.ends].count("request2") == 1

    run(body)


def test_the_answer_to_a_client_that_was_there_can_be_had_again_too() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with calling(world, session, STATUS) as exchange:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            prime(asked, "e1")
            reply(asked, id="e2")
            asked.end()
            await exchange.read()
        primed, answered = heard(exchange)
        assert answered.id is not None
        assert values(exchange) == [result(RESULT)]
        async with taken_up(world, server, session, str(primed.id)) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert values(back) == [result(RESULT)]
        outcomes = [trail.snapshot().outcome for trail in world.records.ends]
        assert outcomes == ["ok", "ok", "ok"]
        await passes(61.0)

    run(body)
