"""Does a client of the handshake era keep its conversation, and nobody else's, over HTTP?"""

import asyncio
from typing import Any

import pytest

from tests.unit.tools.some_tools import CANARY, Gate, Nothing, serving
from tests.unit.tools.web import Answer, ask, handshake, message, play, start
from tidegate.tools import ToolContext, strict_tool
from tidegate.tools.http import HttpApp, HttpOptions

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"]
STREAM = {"method": "GET", "accept": "text/event-stream"}


def call(name: str, id: Any = 1, token: str | None = None) -> dict[str, Any]:  # noqa: A002
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return message("tools/call", {"name": name, "arguments": {}} | meta, id)


@pytest.mark.parametrize("version", LEGACY)
def test_a_session_begins_with_the_handshake_and_ends_when_it_is_told_to(version: str) -> None:
    served = serving().http_app()

    async def body() -> None:
        session = await handshake(served, version)
        listed = await ask(served, message("tools/list"), **session)
        names = [tool["name"] for tool in listed.json["result"]["tools"]]
        assert "echo" in names
        assert (await ask(served, message("ping", id="a"), **session)).json["id"] == "a"
        # A client that does not repeat the version still has it.
        bare = {"mcp_session_id": session["mcp_session_id"]}
        assert (await ask(served, message("ping"), **bare)).status == 200
        assert (await ask(served, method="DELETE", **session)).status == 204
        for method in ("POST", "GET", "DELETE"):
            after = await ask(served, message("ping"), method=method, **session)
            assert (after.status, after.code) == (404, -32600)
        assert len(served.sessions) == 0

    play(served, body)


@pytest.mark.parametrize("asked", ["2030-01-01", "2024-11-05", "2026-07-28", ""])
def test_a_version_that_is_not_served_is_answered_with_the_newest_of_the_era(asked: str) -> None:
    served = serving().http_app()
    about = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    async def body() -> None:
        answer = await ask(served, message("initialize", {"protocolVersion": asked, **about}))
        agreed = answer.json["result"]["protocolVersion"]
        assert agreed == "2025-11-25"
        session = {"mcp_session_id": answer.headers["mcp-session-id"]}
        ping = await ask(served, message("ping"), mcp_protocol_version=agreed, **session)
        assert ping.status == 200

    play(served, body)


def test_sessions_are_bounded_in_number_and_a_place_comes_free() -> None:
    served = HttpApp(serving().server, HttpOptions(most_sessions=2))

    async def body() -> None:
        first, _ = await handshake(served), await handshake(served)
        refused = await ask(served, message("initialize", {}))
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert refused.json["id"] == 1
        await ask(served, method="DELETE", **first)
        await handshake(served)

    play(served, body)


def test_a_session_that_nobody_uses_is_over_and_one_in_use_is_not() -> None:
    gate = Gate()
    served = HttpApp(serving("brief", gate.tool()).server, HttpOptions(session_idle_s=0.05))

    async def body() -> None:
        idle, used = await handshake(served), await handshake(served)
        running = start(served, call("wait"), **used)
        await gate.inside.wait()
        while len(served.sessions) > 1:  # the idle one leaves; play bounds the wait
            await asyncio.wait((running.task,), timeout=0.01)
        assert (await ask(served, message("ping"), **idle)).status == 404
        gate.open.set()
        assert (await running.done()).json["result"]["content"][0]["text"] == "open"

    play(served, body)


def test_an_id_in_flight_is_not_given_twice_and_text_is_no_number() -> None:
    gate = Gate()
    served = serving("brief", gate.tool()).http_app()

    async def body() -> None:
        session = await handshake(served)
        running = start(served, call("wait", 7), **session)
        await gate.inside.wait()
        assert (await ask(served, message("ping", id=7), **session)).code == -32600
        assert (await ask(served, message("ping", id="7"), **session)).json["id"] == "7"
        other = await handshake(served)
        assert (await ask(served, message("ping", id=7), **other)).json["id"] == 7
        gate.open.set()
        assert (await running.done()).json["id"] == 7

    play(served, body)


def test_leaving_is_no_cancellation_but_a_notification_is() -> None:
    gate = Gate()
    served = serving("brief", gate.tool()).http_app()

    async def body() -> None:
        session = await handshake(served)
        left = start(served, call("wait", 1), **session)
        await gate.inside.wait()
        left.leave()
        await left.done()
        assert left.answer.status == 0
        assert not gate.left.is_set()
        gate.inside.clear()
        running = start(served, call("wait", 2), **session)
        await gate.inside.wait()
        params = {"requestId": 2}
        await ask(served, message("notifications/cancelled", params, id=None), **session)
        answer = await running.done()
        assert (answer.json["id"], answer.code) == (2, -32800)
        assert gate.left.is_set()

    play(served, body)


def test_ending_a_session_ends_what_runs_in_it() -> None:
    gate = Gate()
    served = serving("brief", gate.tool()).http_app()

    async def body() -> None:
        session = await handshake(served)
        running = start(served, call("wait"), **session)
        listening = start(served, **STREAM, **session)
        await gate.inside.wait()
        await ask(served, method="DELETE", **session)
        assert "error" in (await running.done()).json
        assert (await listening.done()).ended
        await gate.left.wait()

    play(served, body)


def test_a_stream_that_was_lost_is_taken_up_behind_the_last_event() -> None:
    gate = Gate()
    served = serving("brief", gate.tool()).http_app()

    async def body() -> tuple[Answer, Answer]:
        session = await handshake(served)
        running = start(served, call("wait", 1, "p"), **session)
        await running.heard(b"notifications/progress")
        running.leave()
        await running.done()
        again = start(served, **STREAM, **session, last_event_id=running.answer.ids[0])
        await again.heard(b"notifications/progress")
        gate.open.set()
        end = await again.done()
        gone = await ask(served, **STREAM, **session, last_event_id="99-1")
        assert gone.status == 404
        odd = await ask(served, **STREAM, **session, last_event_id=CANARY)
        assert odd.status == 404
        return running.answer, end

    first, second = play(served, body)
    assert first.events[0] == second.events[0]
    assert second.events[1]["result"]["content"][0]["text"] == "open"
    assert b"id: " in first.body
    assert b"retry: " in first.body


def test_who_comes_back_takes_the_stream_from_a_connection_that_is_dead_unnoticed() -> None:
    gate = Gate()
    served = serving("brief", gate.tool()).http_app()

    async def body() -> tuple[Answer, Answer]:
        session = await handshake(served)
        first = start(served, call("wait", 1, "p"), **session)
        await first.heard(b"notifications/progress")
        again = start(served, **STREAM, **session, last_event_id=first.answer.ids[-1])
        await first.done()
        first.leave()  # noticed now, and no harm to who came back
        gate.open.set()
        return await first.done(), await again.done()

    first, second = play(served, body)
    assert len(first.events) == 1
    assert second.events[0]["result"]["content"][0]["text"] == "open"


@pytest.mark.parametrize("odd", [{"error": 5}, {"error": {"code": "x"}}, {"result": 5}])
def test_an_answer_that_is_none_is_refused(odd: dict[str, Any]) -> None:
    served = serving().http_app()

    async def body() -> Answer:
        session = await handshake(served)
        return await ask(served, {"jsonrpc": "2.0", "id": 1} | odd, **session)

    answer = play(served, body)
    assert (answer.status, answer.code) == (400, -32600)


def test_a_handshake_that_is_broken_off_leaves_no_session() -> None:
    served = serving().http_app()

    async def body() -> None:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}}
        running = start(served, message("initialize", params))
        await asyncio.wait((running.task,), timeout=0)
        running.task.cancel()
        await asyncio.wait((running.task,))
        assert len(served.sessions) == 0

    play(served, body)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_a_revision_without_them_gets_no_event_without_content(version: str) -> None:
    served = serving().http_app()

    async def body() -> Answer:
        session = await handshake(served, version)
        return await ask(served, call("steps", 1, "p"), **session)

    answer = play(served, body)
    assert len(answer.events) == 3
    assert b"data: \n" not in answer.body


def test_a_tool_may_let_its_stream_go_and_the_client_comes_back() -> None:
    @strict_tool
    async def pause(_: Nothing, context: ToolContext) -> str:
        """Lets the connection go."""
        await context.request.close_sse_stream()
        return "after"

    served = serving("brief", pause).http_app()

    async def body() -> Answer:
        session = await handshake(served)
        first = await ask(served, call("pause"), **session)
        assert first.headers["content-type"] == "text/event-stream"
        assert first.events == []
        return await ask(served, **STREAM, **session, last_event_id=first.ids[-1])

    assert play(served, body).events[0]["result"]["content"][0]["text"] == "after"


def test_the_standing_stream_has_one_reader_and_carries_what_belongs_to_no_request() -> None:
    @strict_tool
    async def announce(_: Nothing, context: ToolContext) -> str:
        """Says that the tools changed."""
        await context.request.session.send_tool_list_changed()
        return "said"

    served = serving("brief", announce).http_app()

    async def body() -> Answer:
        session = await handshake(served)
        await ask(served, call("announce"), **session)
        listening = start(served, **STREAM, **session)
        await listening.heard(b"list_changed")
        assert (await ask(served, **STREAM, **session)).status == 409
        refused = await ask(served, method="GET", accept="application/json", **session)
        assert refused.status == 406
        served.let_go()
        return await listening.done()

    answer = play(served, body)
    assert [event["method"] for event in answer.events] == ["notifications/tools/list_changed"]
    assert answer.ended


def test_a_tool_may_ask_its_client_over_the_stream_of_its_call() -> None:
    @strict_tool
    async def consult(_: Nothing, context: ToolContext) -> str:
        """Asks for a name."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        number = context.request.request_id
        found = await context.request.session.elicit_form("Who?", schema, number)
        return str(found.content["name"])

    served = serving("brief", consult).http_app()

    async def body() -> Answer:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "t", "version": "1"},
        }
        opened = await ask(served, message("initialize", params))
        session = {"mcp_session_id": opened.headers["mcp-session-id"]}
        await ask(served, message("notifications/initialized", id=None), **session)
        running = start(served, call("consult"), **session)
        await running.heard(b"elicitation/create")
        asked = running.answer.events[0]
        result = {"action": "accept", "content": {"name": "Jane"}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        assert (await ask(served, answer, **session)).status == 202
        return await running.done()

    answer = play(served, body)
    assert answer.events[-1]["result"]["content"][0]["text"] == "Jane"


def test_who_names_the_stream_first_gets_one() -> None:
    served = serving().http_app()

    async def body() -> Answer:
        session = await handshake(served)
        first = "text/event-stream, application/json"
        return await ask(served, message("ping"), accept=first, **session)

    assert [event["id"] for event in play(served, body).events] == [1]


def batch_of(*messages: dict[str, Any], version: str = "2025-03-26", **more: Any) -> Answer:
    served = serving().http_app()

    async def body() -> Answer:
        session = await handshake(served, version)
        return await ask(served, list(messages), **session | more)

    return play(served, body)


def test_a_batch_is_answered_in_its_order_where_the_revision_has_batches() -> None:
    answer = batch_of(
        message("ping", id="1"),
        message("notifications/x", id=None),
        call("refuse", 1),
        message("nothing", id=2),
        message("ping", id=0),
    )
    assert answer.status == 200
    assert [(each["id"], "result" in each) for each in answer.json] == [
        ("1", True),
        (1, True),
        (2, False),
        (0, True),
    ]
    assert answer.json[1]["result"]["isError"] is True
    only = batch_of(message("notifications/x", id=None), message("notifications/y", id=None))
    assert (only.status, only.body) == (202, b"")


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_elsewhere_a_batch_is_refused_whatever_the_header_says(version: str) -> None:
    for header in (version, None, "2025-03-26"):
        answer = batch_of(message("ping"), version=version, mcp_protocol_version=header)
        assert (answer.status, answer.code) == (400, -32600)


@pytest.mark.parametrize(
    "messages",
    [
        [message("ping"), message("ping")],
        [message("initialize", {}, 1)],
        [message("ping", id=number) for number in range(101)],
        [message("ping"), 5],
        [message("ping"), [message("ping", id=2)]],
    ],
)
def test_a_batch_that_cannot_be_answered_is_refused_whole(messages: list[Any]) -> None:
    answer = batch_of(*messages)
    assert (answer.status, answer.code) == (400, -32600)


def test_a_batch_streams_what_its_tools_report() -> None:
    answer = batch_of(message("ping", id=1), call("steps", 2, "p"))
    kinds = [event.get("id", event.get("method")) for event in answer.events]
    assert sorted(map(str, kinds)) == ["1", "2", *["notifications/progress"] * 2]
