"""Does everything that outlives an MCP request stay with its principal?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_world import CREDENTIAL, Asked, World, ask, call, echo, events, tell, value
from tests.app.virtual import run_timeless
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.transport.upstream import Failure

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"
STREAM = "text/event-stream"


def run(body: Any) -> None:
    run_timeless(body())


class Stateful:
    """A server of 2025-11-25 that mints sessions and answers 404 for those it does not know."""

    def __init__(self, *, delete_status: int = 200, stream: bool = False) -> None:
        self.live: list[str] = []
        self._delete_status = delete_status
        self._stream = stream

    async def __call__(self, asked: Asked) -> None:
        session = asked.headers.get("mcp-session-id")
        if asked.method == "DELETE":
            if self._delete_status < 300 and session in self.live:
                self.live.remove(session)
            asked.whole({}, self._delete_status)
        elif asked.message["method"] == "initialize":
            self.live.append(f"theirs-{len(self.live)}")
            self._initialize(asked)
        elif session not in self.live:
            asked.whole({"jsonrpc": "2.0", "id": None, "error": {"code": -32600}}, 404)
        else:
            await echo(asked)

    def _initialize(self, asked: Asked) -> None:
        result = {"protocolVersion": "2025-11-25", "capabilities": {}}
        message = {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}
        if self._stream:
            asked.head(200, STREAM, mcp_session_id=self.live[-1])
            asked.event(message)
            asked.end()
        else:
            asked.whole(message, mcp_session_id=self.live[-1])


INITIALIZE = ask(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c"}
)


async def begin(world: World, role: str = "viewer", **headers: str) -> str:
    answer = await world.post(INITIALIZE, role=role, **headers)
    session = answer.header("mcp-session-id")
    assert answer.status == 200
    assert session
    return session


@pytest.mark.parametrize("stream", [True, False])
def test_a_session_lives_from_initialize_to_delete_under_an_id_of_ours(*, stream: bool) -> None:
    async def body() -> None:
        server = Stateful(stream=stream)
        world = World(server)
        session = await begin(world, accept=BOTH)
        assert session not in server.live
        for message, status in ((tell("notifications/initialized"), 202), (ask("tools/list"), 200)):
            answer = await world.post(message, mcp_session_id=session)
            assert answer.status == status
            asked = world.transport.asked[-1]
            assert asked.headers["mcp-session-id"] == "theirs-0"
            assert asked.headers["mcp-protocol-version"] == "2025-11-25"
        gone = await world.post(ask("tools/list"), mcp_session_id="gone")
        assert (gone.status, value(gone)["id"]) == (404, 1)
        async with world.exchange(b"", method="DELETE", mcp_session_id=session) as exchange:
            await exchange.read()
        assert exchange.status == 200
        assert world.transport.asked[-1].headers == {
            "authorization": f"Bearer {CREDENTIAL}",
            "mcp-session-id": "theirs-0",
            "mcp-protocol-version": "2025-11-25",
        }
        assert server.live == []
        after = await world.post(ask("tools/list"), mcp_session_id=session)
        assert after.status == 404

    run(body)


@pytest.mark.parametrize("role", ["admin", "second", "guest"])
def test_the_session_of_another_principal_is_unknown_and_survives(role: str) -> None:
    async def body() -> None:
        world = World(Stateful())
        session = await begin(world)
        asked = len(world.transport.asked)
        post = await world.post(ask("tools/list"), role=role, mcp_session_id=session)
        note = await world.post(
            tell("notifications/roots/list_changed"), role=role, mcp_session_id=session
        )
        exchange = world.exchange(b"", role=role, method="DELETE", mcp_session_id=session)
        async with exchange:
            await exchange.read()
        assert [post.status, note.status, exchange.status] == [404, 404, 404]
        assert len(world.transport.asked) == asked
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200

    run(body)


def test_a_valid_session_is_no_credential() -> None:
    async def body() -> None:
        world = World(Stateful())
        session = await begin(world)
        answer = await world.post(ask("tools/list"), role="", mcp_session_id=session)
        assert answer.status == 401

    run(body)


def test_a_session_the_server_has_forgotten_is_gone_for_good() -> None:
    async def body() -> None:
        server = Stateful()
        world = World(server)
        for message in (ask("tools/list"), tell("notifications/roots/list_changed")):
            session = await begin(world)
            server.live.clear()
            for _ in range(2):
                asked = await world.post(message, mcp_session_id=session)
                assert asked.status == 404
                assert value(asked)["error"]["message"] == "Session not found"

    run(body)


@pytest.mark.parametrize(("status", "answered"), [(202, 202), (204, 204), (404, 404), (500, 502)])
def test_the_status_of_a_delete_comes_back(status: int, answered: int) -> None:
    async def body() -> None:
        world = World(Stateful(delete_status=status))
        session = await begin(world)
        async with world.exchange(b"", method="DELETE", mcp_session_id=session) as exchange:
            await exchange.read()
        assert exchange.status == answered
        alive = (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200
        assert alive is (status == 500)

    run(body)


def test_a_server_without_delete_says_so() -> None:
    async def body() -> None:
        world = World(Stateful(delete_status=405))
        session = await begin(world)
        async with world.exchange(b"", method="DELETE", mcp_session_id=session) as exchange:
            await exchange.read()
        assert (exchange.status, exchange.header("allow")) == (405, "POST")
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200

    run(body)


def test_a_delete_needs_one_session_and_a_legacy_client() -> None:
    async def body() -> None:
        world = World(Stateful())
        for headers, status in (
            ({}, 400),
            ({"mcp_session_id": "unknown"}, 404),
            ({"mcp_session_id": "unknown", "mcp_protocol_version": MODERN}, 405),
        ):
            async with world.exchange(b"", method="DELETE", **headers) as exchange:
                await exchange.read()
            assert exchange.status == status
        assert world.transport.asked == []

    run(body)


def test_a_delete_that_gets_no_answer_is_a_failure() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            if asked.method == "DELETE":
                asked.fail(Failure.UNREACHABLE)
            else:
                await server(asked)

        server = Stateful()
        world = World(script)
        session = await begin(world)
        async with world.exchange(b"", method="DELETE", mcp_session_id=session) as exchange:
            await exchange.read()
        assert exchange.status == 502

    run(body)


def test_no_session_is_minted_for_a_modern_client_or_by_another_method() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.result({}, mcp_session_id="theirs")

        world = World(script)
        answer = await world.post(ask("tools/list"))
        assert answer.header("mcp-session-id") is None
        answer = await world.post(
            ask("ping", _meta=META), mcp_protocol_version=MODERN, mcp_method="ping"
        )
        assert answer.header("mcp-session-id") is None

    run(body)


# Questions of a server to its client


QUESTION = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"m": 1}}
ANSWER = {"jsonrpc": "2.0", "id": "q1", "result": {"action": "accept"}}


class Asking(Stateful):
    """Asks the client something before it answers a tool call."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()
        self.answers: list[Any] = []

    async def __call__(self, asked: Asked) -> None:
        message = asked.message
        if "method" not in message:
            self.answers.append(message)
            asked.head(202)
            asked.end()
            self.heard.set()
        elif message["method"] == "tools/call":
            asked.head(200, STREAM)
            asked.event(QUESTION)
            await self.heard.wait()
            asked.event({"jsonrpc": "2.0", "id": message["id"], "result": {"ok": 1}})
            asked.end()
        else:
            await super().__call__(asked)


def test_a_question_reaches_the_session_it_is_for_and_its_answer_comes_back() -> None:
    async def body() -> None:
        server = Asking()
        world = World(server)
        session = await begin(world)
        other = await begin(world, "admin")
        headers = {"accept": BOTH, "mcp_session_id": session}
        async with world.exchange(call("get_status"), **headers) as exchange:
            assert json.loads((await exchange.chunk()).split(b"data: ")[1]) == QUESTION
            foreign = await world.post(ANSWER, role="admin", mcp_session_id=other)
            wrong_type = await world.post({**ANSWER, "id": 1}, mcp_session_id=session)
            assert (foreign.status, wrong_type.status, server.answers) == (202, 202, [])
            for _ in range(2):
                assert (await world.post(ANSWER, mcp_session_id=session)).status == 202
            assert server.answers == [ANSWER]
            await exchange.read()
        assert events(exchange)[-1]["result"] == {"ok": 1}

    run(body)


@pytest.mark.parametrize("is_modern", [True, False])
def test_a_question_that_nobody_could_answer_is_dropped(*, is_modern: bool) -> None:
    async def body() -> None:
        server = Asking()
        server.heard.set()
        world = World(server)
        extra: dict[str, str] = {"accept": BOTH}
        message = call("get_status")
        if is_modern:
            message = call("get_status", _meta=META)
            extra |= {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}
            extra["mcp_name"] = "get_status"
        answer = await world.post(message, **extra)
        assert [each.get("method") for each in events(answer)] == [None]

    run(body)


def test_a_modern_client_does_not_post_answers() -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(ANSWER, mcp_protocol_version=MODERN)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32600)
        assert (await world.post(ANSWER)).status == 202
        assert world.sent == []

    run(body)


# Tasks


@pytest.mark.parametrize("shape", ["task", "flat"])
def test_a_task_belongs_to_whoever_began_it(shape: str) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            match asked.message["method"]:
                case "tools/call":
                    begun = {"taskId": "t1", "status": "working"}
                    asked.result({"task": begun} if shape == "task" else begun)
                case "tasks/list":
                    asked.result({"tasks": [{"taskId": "t1"}, {"taskId": "t2"}]})
                case _:
                    await echo(asked)

        world = World(script)
        poll = ask("tasks/get", taskId="t1")
        assert value(await world.post(poll))["error"]["message"] == "Unknown task"
        await world.post(call("get_status"))
        assert "result" in value(await world.post(poll))
        for role in ("admin", "second"):
            assert value(await world.post(poll, role=role))["error"]["code"] == -32602
        mine = value(await world.post(ask("tasks/list")))["result"]
        theirs = value(await world.post(ask("tasks/list"), role="second"))["result"]
        assert (mine, theirs) == ({"tasks": [{"taskId": "t1"}]}, {"tasks": []})

    run(body)


# Subscriptions


def test_a_subscription_runs_without_deadline_under_the_id_of_its_client() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
            asked.head(200, STREAM)
            for method in ("subscriptions/acknowledged", "tools/list_changed"):
                asked.event(tell(f"notifications/{method}", _meta=meta))
            await go.wait()
            asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"_meta": meta}})
            asked.end()

        world = World(script, times=ToolTimes(idle_s=0.01, total_s=0.01, keep_alive_s=0.005))
        message = ask("subscriptions/listen", _meta=META, notifications={"toolsListChanged": True})
        headers = {
            "accept": BOTH,
            "mcp_protocol_version": MODERN,
            "mcp_method": "subscriptions/listen",
        }
        first = world.exchange(message, **headers)
        second = world.exchange(message, role="admin", **headers)
        async with first, second:
            comments = 0
            while comments < 5:
                came = await first.chunk()
                assert came
                comments += came.startswith(b":")
            go.set()
            await first.read()
            await second.read()
        one, two = (each["id"] for each in world.sent)
        assert one != two
        for exchange in (first, second):
            for each in events(exchange):
                meta = each.get("params", each.get("result"))["_meta"]
                assert meta == {"io.modelcontextprotocol/subscriptionId": 1}

    run(body)
