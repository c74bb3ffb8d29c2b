"""Is every thing of several servers reached by its shown name, and by nothing else?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.federated import META, OLD, Federated, Server, modern, places
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import CREDENTIAL, Asked, ask, call, echo, tell, value
from tests.unit.mcp.asking import allow, deny
from tidegate.limits.ledger import Limit
from tidegate.mcp import RuleSet

EVERYTHING = RuleSet([allow()])
NOTHING_OF_B = RuleSet([allow(servers=("a",)), allow(roles=("admin",))])


def completed(kind: str, name: str) -> Any:
    ref = {"type": kind, "name" if kind == "ref/prompt" else "uri": name}
    return ask("completion/complete", ref=ref, argument={"name": "x", "value": "y"})


USES = {
    "tools/call get_status": lambda: call("b__get_status"),
    "prompts/get greet": lambda: ask("prompts/get", name="b__greet"),
    "resources/read file:///a": lambda: ask("resources/read", uri="b+file:///a"),
    "completion/complete greet": lambda: completed("ref/prompt", "b__greet"),
    "completion/complete file:///{name}": lambda: completed("ref/resource", "b+file:///{name}"),
}


@pytest.mark.parametrize("ran", USES)
def test_a_thing_is_used_at_its_server_under_its_own_name(ran: str) -> None:
    async def body() -> None:
        a, b = Server(), Server()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        answer = value(await world.post(USES[ran]()))
        assert "result" in answer
        assert (a.ran, b.ran) == ([], [ran])
        (asked,) = [each for each in world.transport.asked if each.server == "b"][-1:]
        assert asked.headers["authorization"] == f"Bearer {CREDENTIAL}-b"
        assert ("allow", "b") in world.steps("authorize")
        assert ("ok", "b") in world.steps("upstream")
        assert world.to("a") == []

    run(body)


def test_what_a_result_names_can_be_asked_for() -> None:
    async def body() -> None:
        b = Server()
        world = Federated(a=Server(), b=b, rules=EVERYTHING)
        link = value(await world.post(call("b__get_status")))["result"]["content"][1]
        assert link == {"type": "resource_link", "uri": "b+file:///a", "name": "a"}
        read = value(await world.post(ask("resources/read", uri=link["uri"])))
        assert read["result"]["contents"] == [{"uri": "b+file:///a", "text": "t"}]
        assert read["result"]["cacheScope"] == "private"
        assert b.ran == ["tools/call get_status", "resources/read file:///a"]

    run(body)


@pytest.mark.parametrize("legacy", [True, False])
def test_a_link_that_becomes_a_text_can_be_read_too(
    legacy: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    class Linking(Server):
        async def run(self, asked: Asked) -> None:
            links = [
                {"type": "resource_link", "uri": uri, "name": "a"}
                for uri in ("file:///a", "https://web.example/a")
            ]
            asked.result({"content": links, "resultType": "complete"})

    async def body() -> None:
        world = Federated(a=Server(), b=Linking(legacy=legacy), rules=EVERYTHING)
        oldest = {"mcp_protocol_version": "2025-03-26"}
        answer = value(await world.post(call("b__get_status"), **oldest))
        assert answer["result"]["content"] == [
            {"type": "text", "text": "a: b+file:///a"},
            {"type": "text", "text": "a: https://web.example/a"},
        ]
        await world.over()

    run(body)


def test_a_modern_call_says_its_own_name_in_its_header_and_the_servers_in_ours() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        message = call("b__get_status", _meta=META)
        answer = await world.post(message, **modern("tools/call", mcp_name="b__get_status"))
        assert answer.status == 200
        asked = next(
            each
            for each in world.transport.asked
            if each.raw and each.message["method"] == "tools/call"
        )
        assert asked.headers["mcp-name"] == "get_status"
        assert asked.message["params"]["name"] == "get_status"
        lying = await world.post(message, **modern("tools/call", mcp_name="get_status"))
        assert (lying.status, value(lying)["error"]["code"]) == (400, -32020)

    run(body)


ABSENT = {
    "tools/call": (call("b__secret"), call("nobody__x"), call("plain")),
    "prompts/get": (
        ask("prompts/get", name="b__secret"),
        ask("prompts/get", name="nobody__x"),
        ask("prompts/get", name="x"),
    ),
    "resources/read": (
        ask("resources/read", uri="b+db://secret"),
        ask("resources/read", uri="nobody+db://x"),
        ask("resources/read", uri="db://x"),
    ),
    "completion/complete": (
        completed("ref/prompt", "b__secret"),
        completed("ref/prompt", "nobody__x"),
        completed("ref/prompt", "x"),
    ),
}


@pytest.mark.parametrize("errors", ["brief", "spec"])
@pytest.mark.parametrize("method", ABSENT)
def test_a_name_of_no_server_is_answered_like_a_denied_one(method: str, errors: str) -> None:
    async def body() -> None:
        a, b = Server(), Server()
        world = Federated(a=a, b=b, rules=NOTHING_OF_B, hide_denied="full", errors=errors)
        seen = set()
        for message in ABSENT[method]:
            answer = await world.post(message)
            headers = tuple(pair for pair in answer.headers if "request-id" not in pair[0])
            headers = tuple(pair for pair in headers if pair[0] != "content-length")
            named = message["params"].get("uri", "no resource")
            body = value(answer)
            data = body["error"].pop("data", None)
            assert data in (None, {"uri": named})
            seen.add((answer.status, headers, json.dumps(body)))
        assert len(seen) == 1
        assert world.transport.asked == []

    run(body)


@pytest.mark.parametrize("code", [-32602, -32002])
def test_what_a_server_does_not_have_is_told_like_what_is_denied_under_the_clients_name(
    code: int,
) -> None:
    async def body() -> None:
        class Empty(Server):
            async def run(self, asked: Asked) -> None:
                error = {"code": code, "message": "Resource not found", "data": {"uri": "db://x"}}
                asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}, 400)

        rules = RuleSet([deny(resources=("db://secret",)), allow()])
        world = Federated(a=Server(), b=Empty(), rules=rules, hide_denied="full")
        told = []
        for name in ("x", "secret"):
            answer = await world.post(ask("resources/read", uri=f"b+db://{name}"))
            told.append((answer.status, answer.body.replace(name.encode(), b"NAME")))
        assert told[0] == told[1]
        assert b"b+db://NAME" in told[0][1]

    asyncio.run(body())  # part of it runs in a thread


def test_where_denials_are_shown_an_unknown_name_is_still_unknown() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING, hide_denied="off")
        answer = value(await world.post(call("nobody__x")))
        assert answer["error"] == {"code": -32601, "message": "Unknown tool"}

    run(body)


def test_a_denial_names_what_the_client_wrote() -> None:
    async def body() -> None:
        a, b = Server(), Server()
        rules = RuleSet([deny(tools=("admin_*",), unless_roles=("admin",)), allow()])
        world = Federated(a=a, b=b, rules=rules, hide_denied="off")
        denied = value(await world.post(call("b__admin_reset")))
        assert denied["error"] == {
            "code": -32001,
            "message": "Unauthorized Tool Call",
            "data": {
                "tool": "b__admin_reset",
                "required_role": "admin",
                "your_role": "viewer",
            },
        }
        assert (a.ran, b.ran) == ([], [])
        (step,) = [s for s in world.records.ends[0].snapshot().steps if s.stage == "authorize"]
        assert (step.values["tool"], step.values["server"]) == ("admin_reset", "b")
        assert "result" in value(await world.post(call("b__admin_reset"), role="admin"))

    run(body)


def test_a_rule_for_one_server_says_nothing_about_another() -> None:
    async def body() -> None:
        a, b = Server(), Server()
        rules = RuleSet([allow(servers=("a",), tools=("get_*",))])
        world = Federated(a=a, b=b, rules=rules, hide_denied="full")
        assert "result" in value(await world.post(call("a__get_status")))
        assert "error" in value(await world.post(call("b__get_status")))
        assert "error" in value(await world.post(call("a__admin_reset")))
        assert (a.ran, b.ran) == (["tools/call get_status"], [])

    run(body)


@pytest.mark.parametrize(
    "name",
    ["A__get_status", "a_get_status", "a.get_status", "get_status", "a__", "a__a__get_status"],
)
def test_a_name_is_never_split_or_guessed(name: str) -> None:
    """agentgateway splits at the first `_`, others at any separator; see mcp.md D1."""

    async def body() -> None:
        a, b = Server(), Server()
        rules = RuleSet([allow(tools=("get_status",))])
        world = Federated(a=a, b=b, rules=rules, hide_denied="full")
        assert "error" in value(await world.post(call(name)))
        assert (a.ran, b.ran) == ([], [])

    run(body)


def test_each_element_of_a_batch_goes_to_its_own_server() -> None:
    async def body() -> None:
        a, b = Server(), Server()
        world = Federated(a=a, b=b, rules=NOTHING_OF_B)
        batch = [
            call("b__get_status", id="1"),
            call("a__get_status", id=1),
            ask("tools/list", id=2),
            tell("notifications/initialized"),
            ask("ping", id=3),
            call("nobody__x", id=4),
        ]
        answers = value(await world.post(batch))
        assert [(answer["id"], "result" in answer) for answer in answers] == [
            ("1", False),
            (1, True),
            (2, True),
            (3, True),
            (4, False),
        ]
        assert {tool["name"] for tool in answers[2]["result"]["tools"]} == {
            "a__get_status",
            "a__admin_reset",
        }
        assert (a.ran, b.ran) == (["tools/call get_status"], [])

    run(body)


def test_limits_count_a_tool_of_one_server_by_its_own_name() -> None:
    async def body() -> None:
        a, b = Server(), Server()
        once = Limit(
            "once", "requests", cap=1, per="principal", servers=("b",), tools=("get_status",)
        )
        world = Federated(a=a, b=b, rules=EVERYTHING, limits=[once])
        answers = [
            value(await world.post(call(f"{server}__get_status"))) for server in ("b", "a", "b")
        ]
        assert ["result" in answer for answer in answers] == [True, True, False]
        assert answers[2]["error"]["code"] == -31000
        assert len(b.ran) == 1

    run(body)


def test_a_reload_adds_and_removes_servers_and_ids_stay() -> None:
    async def body() -> None:
        a, b, c = Server(), Server(), Server()
        world = Federated(a=a, b=b, c=c, rules=EVERYTHING)
        three = world.policy.servers
        world.reload(places(("a", "b")))
        assert "error" in value(await world.post(call("c__get_status")))
        opened = await world.post(
            ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        )
        session = opened.header("mcp-session-id")
        assert session
        world.reload(three)
        listed = value(await world.post(ask("tools/list"), mcp_session_id=session))
        assert [tool["name"] for tool in listed["result"]["tools"]] == [
            f"{server}__{tool}" for server in "abc" for tool in ("get_status", "admin_reset")
        ]
        assert "result" in value(await world.post(call("c__get_status"), mcp_session_id=session))
        # With one server left everything has its own name, and the session was with us.
        world.reload(places(("a",)))
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 404
        assert "result" in value(await world.post(call("get_status")))
        assert a.ran == ["tools/call get_status"]

    run(body)


def test_a_single_server_keeps_its_names() -> None:
    async def body() -> None:
        world = Federated(a=echo, rules=EVERYTHING)
        answer = value(await world.post(call("a__get_status", {"x": 1}), **OLD))
        assert answer["result"]["echo"] == {"name": "a__get_status", "arguments": {"x": 1}}

    run(body)


def test_the_clients_token_reaches_no_server() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        for message in (ask("tools/list"), call("a__get_status"), ask("resources/list")):
            await world.post(message)
        told = {(asked.server, asked.message["method"]) for asked in world.transport.asked}
        lists = {(name, f"{kind}/list") for name in "ab" for kind in ("tools", "resources")}
        assert told >= {*lists, ("a", "tools/call")}
        for asked in world.transport.asked:
            assert asked.headers["authorization"] == f"Bearer {CREDENTIAL}-{asked.server}"
            assert "viewer-token" not in json.dumps([asked.headers, asked.message])

    run(body)
