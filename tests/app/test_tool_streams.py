"""Does a client of the handshake era hear what its server says by itself, and only it?"""

from typing import Any

import pytest

from tests.app.mcp_answers import ENFORCE, MODERN, run_in_no_time
from tests.app.mcp_answers import run as run_in_threads
from tests.app.mcp_streams import (
    CHANGED,
    StreamingServer,
    begin,
    event,
    heard,
    last_record,
    listen,
    said,
    updated,
    values,
)
from tests.app.mcp_world import CREDENTIAL, World, ask, value
from tidegate.gateway.masking import Masking
from tidegate.mcp import Rule, RuleSet
from tidegate.transport.upstream import Failure

MAIL = "jane@example.com"
QUESTION = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"m": 1}}
ANSWER = {"jsonrpc": "2.0", "id": "q1", "result": {"action": "accept"}}


def run(body: Any) -> None:
    run_in_no_time(body)


async def lines(exchange: Any, count: int) -> None:
    """Read on until the client has got `count` events."""
    while len(heard(exchange)) < count:
        assert await exchange.chunk() != b""


def test_what_a_server_says_by_itself_reaches_the_session_it_is_for() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session, mcp_protocol_version="2025-11-25") as mine:
            asked = await server.arrival()
            assert asked.headers == {
                "accept": "text/event-stream",
                "authorization": f"Bearer {CREDENTIAL}",
                "mcp-session-id": "theirs-1",
                "mcp-protocol-version": "2025-11-25",
            }
            assert await mine.head() == 200
            assert mine.header("content-type") == "text/event-stream; charset=utf-8"
            assert mine.header("x-accel-buffering") == "no"
            for message in (CHANGED, updated("test://a"), said("hello")):
                event(asked, message)
            await lines(mine, 3)
            asked.end()
            await mine.read()
        assert values(mine) == [CHANGED, updated("test://a"), said("hello")]
        record = await last_record(world, 2)
        assert (record.surface, record.outcome, record.status) == ("mcp", "ok", 200)
        steps = {step.stage: step for step in record.steps}
        assert steps["stream"].values["reason"] == "server_ended"
        assert [who for who, _ in world.records.intents].count(record.request_id) == 1

    run(body)


def test_a_question_of_the_server_is_answered_by_a_post() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            event(asked, QUESTION)
            await lines(mine, 1)
            before = len(world.sent)
            for number in (1, 2):
                answer = await world.post(ANSWER, mcp_session_id=session)
                assert (answer.status, number) == (202, number)
            assert world.sent[before:] == [ANSWER]
        assert values(mine) == [QUESTION]

    run(body)


def test_what_may_not_be_seen_is_not_heard_and_personal_data_is_masked() -> None:
    async def body() -> None:
        server = StreamingServer()
        rules = RuleSet([Rule("r", "allow", roles=("viewer",), resources=("test://open/*",))])
        world = World(server, rules=rules, hide_denied="full", masking=ENFORCE)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            event(asked, updated("test://secret/1"), id="1")
            event(asked, updated("test://open/1"), id="2")
            event(asked, said(f"mail to {MAIL}"), id="3")
            await lines(mine, 2)
        assert values(mine) == [updated("test://open/1"), said("mail to [REDACTED_EMAIL]")]
        record = await last_record(world, 2)
        (found,) = [step.found for step in record.steps if step.stage == "redact_result"]
        assert found == {"email": 1}

    run(body)


class Broken:
    """A policy whose detectors fail."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(MAIL)


def test_what_cannot_be_checked_is_left_out_and_the_stream_goes_on() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        broken: Any = Broken()
        world.policy = World(server, masking=Masking(broken, tool_results="enforce")).policy
        async with listen(world, session) as mine:
            asked = await server.arrival()
            event(asked, said(MAIL))
            event(asked, CHANGED)
            asked.end()
            await mine.read()
        assert MAIL.encode() not in mine.body
        record = await last_record(world, 2)
        (ended,) = [step for step in record.steps if step.stage == "stream"]
        assert ended.values["dropped"] == 2

    run(body)


def test_answers_to_nobody_and_junk_go_nowhere() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            for stray in (0, 1, "", "q1"):
                event(asked, {"jsonrpc": "2.0", "id": stray, "result": {"secret": 1}})
            asked.body(b"data: no json\n\ndata: 7\n\n: comment\n\n")
            event(asked, [CHANGED, said("b")])
            asked.end()
            await mine.read()
        assert values(mine) == [CHANGED, said("b")]

    run_in_threads(body)


# Who may listen?


@pytest.mark.parametrize("role", ["admin", "second", "guest"])
def test_the_session_of_another_principal_is_unknown_and_its_stream_goes_on(role: str) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            async with listen(world, session, role=role) as theirs:
                await theirs.read()
            assert (theirs.status, value(theirs)["error"]["message"]) == (404, "Session not found")
            assert len(server.gets) == 1
            event(asked, CHANGED)
            await lines(mine, 1)

    run(body)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"mcp_session_id": "unknown"}, 404),
        ({"mcp_session_id": "unknown", "mcp_protocol_version": MODERN}, 405),
        ({"mcp_protocol_version": MODERN}, 405),
        ({}, 400),
        ({"mcp_session_id": "a\tb"}, 400),
        ({"mcp_session_id": "unknown", "mcp_protocol_version": "2099-01-01"}, 400),
        ({"mcp_session_id": "mine", "accept": "application/json"}, 406),
        ({"mcp_session_id": "mine", "last_event_id": "7"}, 400),
        ({"mcp_session_id": "mine", "last_event_id": "s-" + "0" * 32 + "-7"}, 400),
    ],
)
def test_whoever_may_not_listen_is_refused_and_the_server_is_not_asked(
    headers: dict[str, str], status: int
) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        named = {**headers}
        if named.get("mcp_session_id") == "mine":
            named["mcp_session_id"] = session
        async with listen(world, None, **named) as refused:
            await refused.read()
        assert refused.status == status
        assert value(refused)["error"]["code"]
        assert (refused.header("allow") is not None) is (status == 405)
        assert server.gets == []

    run(body)


def test_without_any_session_there_is_no_stream_to_ask_for() -> None:
    async def body() -> None:
        world = World()
        async with listen(world, None) as refused:
            await refused.read()
        assert (refused.status, refused.header("allow")) == (405, "POST")
        async with listen(world, None, role="") as nobody:
            await nobody.read()
        assert nobody.status == 401
        assert world.transport.asked == []

    run(body)


@pytest.mark.parametrize("accept", ["", "*/*", "text/*", "text/event-stream, application/json"])
def test_whoever_takes_anything_takes_a_stream(accept: str) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session, accept=accept) as mine:
            (await server.arrival()).end()
            assert await mine.read() == b""
        assert mine.status == 200

    run(body)


@pytest.mark.parametrize(
    ("theirs", "status", "lives"),
    [
        (405, 405, True),
        (501, 405, True),
        (404, 404, False),
        (409, 409, True),
        (400, 400, True),
        (401, 502, True),
        (500, 502, True),
    ],
)
def test_a_server_without_a_stream_says_so_in_our_words(
    theirs: int, status: int, *, lives: bool
) -> None:
    async def body() -> None:
        server = StreamingServer(refuses=theirs)
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as refused:
            await refused.read()
        assert refused.status == status
        after = await world.post(ask("tools/list"), mcp_session_id=session)
        assert (after.status == 200) is lives

    run(body)


def test_a_server_that_answers_with_a_page_has_no_stream() -> None:
    async def body() -> None:
        async def script(asked: Any) -> None:
            if asked.method == "GET":
                asked.whole(b"<html>", content_type="text/html")
            else:
                await server(asked)

        server = StreamingServer()
        world = World(script)
        session = await begin(world)
        async with listen(world, session) as refused:
            await refused.read()
        assert refused.status == 405

    run(body)


@pytest.mark.parametrize("began", [True, False])
def test_a_server_that_breaks_ends_the_stream(*, began: bool) -> None:
    async def body() -> None:
        async def script(asked: Any) -> None:
            if asked.method == "GET" and not began:
                asked.fail(Failure.UNREACHABLE)
            else:
                await server(asked)

        server = StreamingServer()
        world = World(script)
        session = await begin(world)
        async with listen(world, session) as mine:
            if began:
                asked = await server.arrival()
                event(asked, CHANGED)
                await lines(mine, 1)
                asked.fail()
            await mine.read()
        assert mine.status == (200 if began else 502)
        if began:
            assert values(mine) == [CHANGED]
        else:
            assert value(mine)["error"]["code"] == -32603

    run(body)
