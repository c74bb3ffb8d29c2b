"""Does the MCP path keep its promises, from the bytes of a request to those of its answer?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_answers import called, offering
from tests.app.mcp_world import (
    DENIED,
    TOKENS,
    World,
    call,
    echo,
    value,
)


def run(body: Any) -> None:
    asyncio.run(body())


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
        world = World(offering(echo, "admin_reset_key"), hide_denied=hide)
        answer = await world.post(call(name))
        error = value(answer)["error"]
        if hide == "full":
            assert error == {"code": -32601, "message": "Unknown tool"}
        else:
            assert (error["code"], error["data"]["tool"]) == (-32001, name)
            assert answer.body.isascii()
        assert called(world) == []

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
