"""Do method, headers and era of an MCP request decide what reaches the server, and how?"""

import asyncio
from typing import Any

import pytest

from tests.app.mcp_world import CREDENTIAL, TOKENS, Asked, World, ask, call, tell, value
from tidegate.gateway.masking import Masking
from tidegate.mcp.eras import LEGACY
from tidegate.mcp.header_values import decode_value, encode_value
from tidegate.redaction import RedactionPolicy

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def run(body: Any) -> None:
    asyncio.run(body())


def modern_call(name: str) -> tuple[Any, dict[str, str]]:
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": name}
    return call(name, _meta=META), headers


@pytest.mark.parametrize("version", [None, *LEGACY, MODERN])
def test_a_call_without_an_id_is_judged_and_answered_with_nothing(version: str | None) -> None:
    async def body() -> None:
        headers = {} if version is None else {"mcp_protocol_version": version}
        world = World()
        for role, name, forwarded in (
            ("viewer", "admin_reset_key", 0),
            ("admin", "admin_reset_key", 1),
        ):
            message = tell("tools/call", name=name)
            answer = await world.post(message, role=role, **headers)
            assert (answer.status, answer.body) == (202, b"")
            assert answer.header("content-length") == "0"
            assert len(world.sent) == forwarded
        assert world.records.ends[0].snapshot().outcome == "denied"

    run(body)


@pytest.mark.parametrize(
    ("method", "known"),
    [
        ("notifications/initialized", True),
        ("notifications/roots/list_changed", True),
        ("notifications/unknown", True),
        ("notifications/tools/list_changed", False),
    ],
)
def test_a_notification_is_forwarded_once_and_gets_202(method: str, *, known: bool) -> None:
    """But for those that only servers tell: from a client they reach nobody."""

    async def body() -> None:
        world = World()
        message = tell(method, a=1)
        answer = await world.post(message)
        assert (answer.status, answer.body) == (202, b"")
        assert world.sent == [message] * known

    run(body)


@pytest.mark.parametrize("status", [0, 500, 404])
def test_a_notification_that_cannot_be_delivered_is_accepted_and_recorded(status: int) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            if status:
                asked.whole({}, status)
            else:
                asked.fail()

        world = World(script)
        assert (await world.post(tell("notifications/roots/list_changed"))).status == 202
        steps = [(step.stage, step.verdict) for step in world.records.ends[0].snapshot().steps]
        assert ("upstream", "ok" if status else "failed") in steps

    run(body)


def test_a_retry_with_the_state_of_another_call_is_judged_by_its_own_body() -> None:
    async def body() -> None:
        world = World()
        state = {"requestState": "opaque/==", "inputResponses": {"q": {"action": "accept"}}}
        denied = await world.post(call("admin_reset_key", **state))
        assert value(denied)["error"]["code"] == -32001
        await world.post(call("get_status", **state))
        assert [message["params"]["requestState"] for message in world.sent] == ["opaque/=="]

    run(body)


@pytest.mark.parametrize(
    "method", ["Tools/Call", "tools/call ", "tools//call", "x/y", "notifications/cancelled"]
)
@pytest.mark.parametrize("modern", [True, False])
def test_an_unknown_method_is_answered_without_asking_anybody(method: str, *, modern: bool) -> None:
    async def body() -> None:
        world = World()
        params: dict[str, Any] = {"_meta": META} if modern else {}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": method.strip()} if modern else {}
        if modern and method != method.strip():
            headers["mcp_method"] = "=?base64?dG9vbHMvY2FsbCA=?="
        answer = await world.post(ask(method, **params), role="admin", **headers)
        error = value(answer)["error"]
        if "base64" in headers.get("mcp_method", ""):
            assert (answer.status, error["code"]) == (400, -32020)
        else:
            assert (answer.status, error["code"]) == (404 if modern else 200, -32601)
        assert world.sent == []

    run(body)


@pytest.mark.parametrize("method", ["ping", "initialize", "resources/list", "server/discover"])
def test_the_protocol_passes_unchanged_without_any_header(method: str) -> None:
    async def body() -> None:
        world = World()
        message = (
            ask(method, protocolVersion="2025-11-25", capabilities={})
            if "init" in method
            else ask(method)
        )
        answer = await world.post(message)
        assert answer.status == 200
        assert world.sent == [message]

    run(body)


@pytest.mark.parametrize(
    "headers",
    [
        {
            "mcp_protocol_version": "2025-11-25",
            "mcp_method": "tools/call",
            "mcp_name": "get_status",
        },
        {"mcp_protocol_version": "2025-11-25", "mcp_method": "tools/list"},
        {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"},
        {"mcp_protocol_version": MODERN, "mcp_name": "admin_reset_key"},
        {"mcp_name": "get_status"},
    ],
)
@pytest.mark.parametrize("modern", [True, False])
def test_headers_that_name_another_call_are_refused(
    headers: dict[str, str], *, modern: bool
) -> None:
    async def body() -> None:
        world = World()
        message = modern_call("admin_reset_key")[0] if modern else call("admin_reset_key")
        answer = await world.post(message, role="admin", **headers)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32020)
        assert value(answer)["id"] == 1
        assert world.sent == []

    run(body)


@pytest.mark.parametrize("version", [None, *LEGACY, "2024-11-05"])
def test_no_version_header_takes_a_modern_body_past_its_checks(version: str | None) -> None:
    async def body() -> None:
        world = World()
        message, headers = modern_call("get_status")
        message["params"]["name"] = "admin_reset_key"
        del headers["mcp_protocol_version"]
        if version is not None:
            headers["mcp_protocol_version"] = version
        answer = await world.post(message, role="admin", **headers)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32020)
        assert world.sent == []

    run(body)


def test_an_unknown_version_is_told_what_is_supported() -> None:
    async def body() -> None:
        answer = await World().post(call("get_status"), mcp_protocol_version="1999-01-01")
        assert answer.status == 400
        assert value(answer)["error"]["code"] == -32022
        assert value(answer)["error"]["data"] == {
            "supported": [MODERN, *LEGACY],
            "requested": "1999-01-01",
        }

    run(body)


def test_a_modern_call_reaches_the_server_with_headers_of_our_making() -> None:
    async def body() -> None:
        world = World()
        message, headers = modern_call("get_status")
        message["params"]["arguments"] = {"x": 1}
        answer = await world.post(message, mcp_session_id="ignored", mcp_param_x="1", **headers)
        assert answer.status == 200
        (asked,) = world.transport.asked
        assert asked.headers == {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "authorization": f"Bearer {CREDENTIAL}",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "get_status",
            "mcp-param-x": "1",
        }
        assert len(asked.header_names) == len(asked.headers)
        assert world.sent == [message]

    run(body)


def test_a_masked_argument_is_masked_in_its_header_too() -> None:
    async def body() -> None:
        masking = Masking(RedactionPolicy.preset(), tool_arguments="enforce", tool_results="off")
        world = World(masking=masking)
        message, headers = modern_call("get_status")
        mail, umlaut = "jane@example.com", "j\u00e4ne jane@example.com"
        message["params"]["arguments"] = {"to": mail, "deep": {"cc": umlaut}, "n": 5, "l": [mail]}
        await world.post(
            message,
            mcp_param_to=mail,
            mcp_param_cc=encode_value(umlaut),
            mcp_param_n="5",
            **headers,
        )
        (asked,) = world.transport.asked
        arguments = asked.message["params"]["arguments"]
        assert arguments["to"] == asked.headers["mcp-param-to"] == "[REDACTED_EMAIL]"
        assert decode_value(asked.headers["mcp-param-cc"]) == arguments["deep"]["cc"]
        assert asked.headers["mcp-param-n"] == "5"
        assert mail not in str(asked.headers)

    run(body)


def test_nothing_of_the_client_but_its_message_travels() -> None:
    async def body() -> None:
        world = World()
        await world.post(
            call("get_status"),
            cookie="sid=1",
            x_api_key="k",
            proxy_authorization="Basic eDp5",
            x_forwarded_for="203.0.113.9",
            x_user="root",
            user_agent="spy/1",
            baggage="a=b",
            traceparent=f"00-{'a' * 32}-{'b' * 16}-01",
        )
        (asked,) = world.transport.asked
        assert asked.headers == {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "authorization": f"Bearer {CREDENTIAL}",
            "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        }
        assert TOKENS["viewer"].encode() not in asked.raw

    run(body)
