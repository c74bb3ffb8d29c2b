"""Does the MCP path keep its promises, from the bytes of a request to those of its answer?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_world import (
    CREDENTIAL,
    DENIED,
    TOKENS,
    Asked,
    World,
    ask,
    call,
    echo,
    served_by,
    tell,
    value,
)
from tidegate.demo.mcp_backend import McpBackend
from tidegate.limits.ledger import Limit
from tidegate.mcp.eras import LEGACY

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


def test_an_allowed_call_is_forwarded_and_its_result_comes_back() -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(call("get_status", {"service": "x"}))
        assert answer.status == 200
        assert answer.header("content-type") == "application/json"
        assert answer.header("x-request-id") == "request1"
        params = {"name": "get_status", "arguments": {"service": "x"}}
        assert value(answer) == {"jsonrpc": "2.0", "id": 1, "result": {"echo": params}}
        assert world.sent == [call("get_status", {"service": "x"})]

    run(body)


def test_a_denied_call_gets_exactly_the_denial_and_never_leaves() -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin_reset_key"}}'
        )
        assert answer.status == 200
        assert answer.header("content-type") == "application/json"
        assert answer.body == json.dumps(DENIED, separators=(",", ":")).encode()
        assert world.sent == []
        assert world.records.intents == []
        assert value(await world.post(call("get_status")))["result"]
        assert value(await world.post(call("admin_reset_key"), role="admin"))["result"]

    run(body)


@pytest.mark.parametrize(
    "headers",
    [
        {"role": ""},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic dmVyYTp4"},
        {"authorization": "Bearer  " + TOKENS["viewer"]},
        {"authorization": TOKENS["viewer"]},
    ],
)
def test_without_a_key_there_is_a_401_that_both_layers_understand(headers: dict[str, str]) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(call("get_status"), **headers)
        assert answer.status == 401
        assert answer.header("www-authenticate") == "Bearer"
        error = value(answer)
        assert (error["jsonrpc"], error["id"], error["error"]["code"]) == ("2.0", None, -32000)
        assert world.sent == []
        assert world.records.ends == []

    run(body)


UNREADABLE = {
    b"{": -32700,
    b"": -32700,
    b"not json": -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}': -32700,
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}': -32700,
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"): -32700,
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-32"): -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"p\xffing"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"9" * 400 + b"}}": -32700,
    b"[" * 100_000: -32700,
    b'{"a":' * 100_000: -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"get_status","name":"admin_reset_key"}}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"admin_reset_key","name":"get_status"}}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"get_status","Name":"admin_reset_key"}}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":{"b":1,"b":2}}}}': -32600,
    b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"get_status"}}': -32600,
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/call"}': -32600,
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["get_status"]}': -32600,
    b'"ping"': -32600,
    b"[]": -32600,
    b"[[]]": -32600,
    b"[1]": -32600,
}


@pytest.mark.parametrize("data", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_is_not_one_unambiguous_message_is_refused(data: bytes) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(data, role="admin")
        assert answer.status == 400
        assert value(answer)["error"]["code"] == UNREADABLE[data]
        assert world.sent == []
        assert len(world.records.ends) == 1

    run(body)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "Application/JSON"}, 200),
        ({"content_type": "application/json; charset=utf-8"}, 200),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/json"}, 200),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/jsonfoo"}, 415),
        ({"content_type": "application/json; charset=utf-16"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"content_length": "99999999"}, 413),
    ],
)
def test_headers_of_real_clients_change_nothing_and_odd_ones_are_refused(
    headers: dict[str, str], status: int
) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(call("admin_reset_key"), **headers)
        assert answer.status == status
        assert value(answer) == DENIED or status != 200
        assert value(answer)["jsonrpc"] == "2.0"
        assert world.sent == []

    run(body)


DISGUISES = [
    "Admin_Reset_Key",
    "ADMIN_RESET_KEY",
    " admin_reset_key",
    "admin_reset_key ",
    "admin_reset_key\u0000",
    "admin_reset_key\u200b",
    "\uff41\uff44\uff4d\uff49\uff4e_reset_key",
    "\u0430dmin_reset_key",
    "admin\u00ad_reset_key",
]


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("hide", ["off", "list", "full"])
def test_a_tool_in_disguise_is_denied_to_everybody_who_may_not_call_it(
    name: str, hide: str
) -> None:
    async def body() -> None:
        world = World(hide_denied=hide)
        answer = await world.post(call(name))
        error = value(answer)["error"]
        if hide == "full":
            assert error == {"code": -32601, "message": "Unknown tool"}
        else:
            assert (error["code"], error["data"]["tool"]) == (-32001, name)
            assert answer.body.isascii()
        assert world.sent == []

    run(body)


def test_an_escaped_name_is_the_same_name() -> None:
    async def body() -> None:
        world = World()
        for data in (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u0061dmin_reset_key"}}',
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\\u0061me":"admin_reset_key"}}',
        ):
            assert value(await world.post(data)) == DENIED
        assert world.sent == []

    run(body)


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


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/unknown"])
def test_a_notification_is_forwarded_once_and_gets_202(method: str) -> None:
    async def body() -> None:
        world = World()
        message = tell(method, a=1)
        answer = await world.post(message)
        assert (answer.status, answer.body) == (202, b"")
        assert world.sent == [message]

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


def batch_ids(answer: Any) -> list[tuple[type, Any, int | None]]:
    return [(type(each["id"]), each["id"], each.get("error", {}).get("code")) for each in answer]


def test_a_batch_is_decided_element_by_element_in_order() -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        world = World(served_by(backend))
        batch = [
            call("get_status", id=1),
            call("admin_reset_key", id="1"),
            tell("notifications/initialized"),
            tell("tools/call", name="admin_delete_tenant"),
            call("search_docs", id=2),
            ask("x/y", id=3),
        ]
        for headers in ({}, {"mcp_protocol_version": "2025-03-26"}):
            answer = await world.post(batch, **headers)
            assert answer.status == 200
            assert batch_ids(value(answer)) == [
                (int, 1, None),
                (str, "1", -32001),
                (int, 2, None),
                (int, 3, -32601),
            ]
        assert backend.log == ["get_status", "search_docs"] * 2
        assert [type(message) for message in world.sent] == [dict] * 6

    run(body)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])
def test_later_revisions_have_no_batches(version: str) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post([call("get_status")], mcp_protocol_version=version)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32600)
        assert world.sent == []

    run(body)


@pytest.mark.parametrize(
    "batch",
    [
        [call("get_status", id=1), call("get_status", id=1)],
        [ask("initialize"), call("get_status", id=2)],
        [call("get_status", id=n) for n in range(101)],
        [call("get_status"), modern_call("get_status")[0] | {"id": 2}],
        [call("get_status"), [call("get_status", id=2)]],
        [call("get_status"), {"jsonrpc": "2.0", "id": None, "method": "ping"}],
    ],
)
def test_a_batch_that_cannot_be_split_is_refused_whole(batch: Any) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(batch)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32600)
        assert world.sent == []

    run(body)


def test_a_batch_of_notifications_gets_202_and_the_denied_ones_stay() -> None:
    async def body() -> None:
        world = World()
        batch = [
            tell("notifications/a"),
            tell("tools/call", name="admin_x"),
            tell("notifications/b"),
        ]
        answer = await world.post(batch)
        assert (answer.status, answer.body) == (202, b"")
        assert world.sent == [batch[0], batch[2]]

    run(body)


def test_the_intent_is_recorded_before_anything_leaves_and_the_end_once() -> None:
    async def body() -> None:
        world = World()

        async def script(asked: Asked) -> None:
            world.records.order.append("upstream")
            await echo(asked)

        world.transport.script = script
        await world.post(call("get_status"))
        assert world.records.order == ["intent", "upstream", "end"]
        (trail,) = world.records.ends
        snapshot = trail.snapshot()
        assert (snapshot.outcome, snapshot.status, snapshot.surface) == ("ok", 200, "mcp")
        steps = [(step.stage, step.verdict, step.rule) for step in snapshot.steps]
        assert ("authorize", "allow", "mcp.rules[1]") in steps

    run(body)


def test_without_a_record_nothing_leaves() -> None:
    async def body() -> None:
        world = World()
        world.records.fails = True
        answer = await world.post(call("get_status", id="a"))
        assert answer.status == 503
        assert answer.header("retry-after") == "1"
        assert (value(answer)["id"], value(answer)["error"]["code"]) == ("a", -31002)
        assert world.sent == []
        assert value(await world.post(call("admin_reset_key"))) == DENIED

    run(body)


def limit(**parts: Any) -> Limit:
    values: dict[str, Any] = {"servers": ("*",), "tools": ("get_*",), **parts}
    return Limit("calls", "requests", cap=2, window_s=60.0, per="principal", **values)


def test_calls_beyond_their_limit_are_refused_and_denied_ones_are_free() -> None:
    async def body() -> None:
        world = World(limits=[limit(tools=("get_*", "admin_*"))])
        for _ in range(5):
            assert value(await world.post(call("admin_reset_key"))) == DENIED
        for _ in range(2):
            assert "result" in value(await world.post(call("get_status")))
        answer = await world.post(call("get_status"))
        error = value(answer)["error"]
        assert (answer.status, error["code"]) == (200, -31000)
        assert 0 < error["data"]["retryAfterMs"] <= 61_000
        assert "result" in value(await world.post(call("search_docs")))
        assert "result" in value(await world.post(call("get_status"), role="second"))
        assert len(world.sent) == 4

    run(body)


def test_a_batch_is_cut_where_its_limit_ends() -> None:
    async def body() -> None:
        world = World(limits=[limit()])
        answer = await world.post([call("get_status", id=n) for n in range(4)])
        codes = [each.get("error", {}).get("code") for each in value(answer)]
        assert codes == [None, None, -31000, -31000]
        assert len(world.sent) == 2

    run(body)


def test_a_notification_beyond_its_limit_is_dropped() -> None:
    async def body() -> None:
        world = World(limits=[limit()])
        for _ in range(4):
            assert (await world.post(tell("tools/call", name="get_status"))).status == 202
        assert len(world.sent) == 2

    run(body)


def test_the_spec_profile_refuses_with_statuses() -> None:
    async def body() -> None:
        world = World(limits=[limit()], errors="spec")
        for _ in range(2):
            await world.post(call("get_status"))
        limited = await world.post(call("get_status"))
        assert (limited.status, value(limited)["error"]["code"]) == (429, -31000)
        assert int(limited.header("retry-after") or 0) > 0
        denied = await world.post(call("admin_reset_key"))
        assert (denied.status, value(denied)["error"]["code"]) == (403, -31003)
        challenge = 'Bearer error="insufficient_scope", scope="admin"'
        assert denied.header("www-authenticate") == challenge

    run(body)


def test_other_http_methods_are_not_allowed() -> None:
    async def body() -> None:
        world = World()
        for method in ("GET", "PUT", "HEAD"):
            async with world.exchange(b"", method=method) as exchange:
                await exchange.read()
            assert (exchange.status, exchange.header("allow")) == (405, "POST")
        assert world.transport.asked == []

    run(body)


def test_without_a_server_there_is_nothing_to_serve() -> None:
    async def body() -> None:
        world = World()
        object.__setattr__(world.policy, "servers", {})
        assert (await world.post(call("get_status"))).status == 404

    run(body)


def test_a_large_message_is_read_like_a_small_one() -> None:
    async def body() -> None:
        world = World()
        message = call("get_status", {"text": "x" * 400_000})
        assert value(await world.post(message))["result"]["echo"] == message["params"]
        assert world.sent == [message]

    run(body)


def test_numbers_reach_the_server_as_they_were_written() -> None:
    async def body() -> None:
        world = World()
        data = (
            b'{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":'
            b'{"name":"get_status","arguments":{"big":9007199254740993,"dec":0.1,"e":1e2}}}'
        )
        answer = await world.post(data)
        (asked,) = world.transport.asked
        assert b'"big":9007199254740993,"dec":0.1,' in asked.raw
        assert value(answer)["id"] == 9007199254740993
        assert value(answer)["result"]["echo"]["arguments"]["big"] == 9007199254740993

    run(body)
