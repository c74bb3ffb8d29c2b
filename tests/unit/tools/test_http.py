"""Is every HTTP request refused, in words of JSON-RPC, that must be, and the rest served?"""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.tools.some_tools import CANARY, Gate, serving
from tests.unit.tools.web import (
    ENVELOPE,
    MODERN,
    Answer,
    ask,
    ask_modern,
    handshake,
    message,
    mirrored,
    modern,
    play,
    start,
)

PING = message("ping")
LIST = modern("tools/list")
ECHO = modern("tools/call", {"name": "echo", "arguments": {"word": "hi"}})


def one(body: object = b"", *, app: Any = None, **how: Any) -> Answer:
    served = app or serving().http_app()
    return play(served, lambda: ask(served, body, **how))


def told(answer: Answer) -> tuple[int, Any]:
    """Status and code; the body is always one error of JSON-RPC."""
    body = answer.json
    assert answer.headers["content-type"] == "application/json"
    assert body["jsonrpc"] == "2.0"
    assert set(body) == {"jsonrpc", "id", "error"}
    assert CANARY not in answer.body.decode()
    return answer.status, body["error"]["code"]


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"host": "evil.example"}, (421, -32600)),
        ({"host": None}, (400, -32600)),
        ({"origin": "http://evil.example"}, (403, -31003)),
        ({"origin": "null"}, (403, -31003)),
        ({"path": "/"}, (404, -32600)),
        ({"path": "/mcpx"}, (404, -32600)),
        ({"path": "/mcp/../mcp"}, (404, -32600)),
        ({"method": "PUT"}, (405, -32600)),
        ({"method": "OPTIONS"}, (405, -32600)),
        ({"method": "HEAD"}, (405, -32600)),
        ({"method": "GET"}, (405, -32600)),
        ({"method": "DELETE"}, (405, -32600)),
        ({"method": "GET", "mcp_protocol_version": "2025-11-25"}, (400, -32600)),
        ({"method": "GET", "mcp_session_id": CANARY}, (404, -32600)),
        ({"method": "DELETE", "mcp_session_id": CANARY}, (404, -32600)),
        ({"content_type": "text/plain"}, (415, -32600)),
        ({"content_type": "application/jsonfoo"}, (415, -32600)),
        ({"content_type": "application/json; charset=utf-16"}, (415, -32600)),
        ({"content_type": None}, (415, -32600)),
        ({"content_encoding": "gzip"}, (415, -32600)),
        ({"content_length": "5000000"}, (413, -32600)),
        ({"accept": "text/html"}, (406, -32600)),
        ({"body": b""}, (400, -32700)),
        ({"body": CANARY.encode()}, (400, -32700)),
        ({"body": b'"\xff' + CANARY.encode()}, (400, -32700)),
        ({"body": b"\xef\xbb\xbf" + json.dumps(PING).encode()}, (400, -32700)),
        ({"body": json.dumps(PING).encode("utf-16")}, (400, -32700)),
        ({"body": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'}, (400, -32600)),
        ({"body": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}'}, (400, -32700)),
        ({"body": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}'}, (400, -32700)),
        ({"body": b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}'}, (400, -32700)),
        ({"body": deep(65)}, (400, -32700)),
        ({"body": deep(100_000)}, (400, -32700)),
        ({"body": b'"x"'}, (400, -32600)),
        ({"body": {"jsonrpc": "1.0", "id": 1, "method": "ping"}}, (400, -32600)),
        ({"body": message("ping") | {"id": None}}, (400, -32600)),
        ({"body": message("ping", id=1.5)}, (400, -32600)),
        ({"body": message("ping") | {"result": {}}}, (400, -32600)),
        ({"body": message("ping") | {CANARY: 1}}, (400, -32600)),
        ({"body": message("ping", [CANARY])}, (400, -32600)),
        ({"body": message("tools/call", {"Name": "echo"})}, (400, -32600)),
        ({"body": []}, (400, -32600)),
        ({"body": [[PING]]}, (400, -32600)),
        ({"body": PING}, (400, -32600)),
        ({"body": PING, "mcp_session_id": CANARY}, (404, -32600)),
        ({"body": PING, "mcp_protocol_version": "1999-01-01"}, (400, -32022)),
        ({"body": PING, "mcp_protocol_version": MODERN, "mcp_method": "ping"}, (400, -32602)),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_in_words_of_json_rpc(
    how: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert told(one(how.get("body", PING), **{k: v for k, v in how.items() if k != "body"})) == (
        expected
    )


@pytest.mark.parametrize("server", ["127.0.0.1", "10.0.0.5", "2001:db8::5"])
def test_host_and_origin_are_checked_on_whatever_address_the_server_is_reached(
    server: str,
) -> None:
    assert one(LIST, server=server, **mirrored(LIST)).status == 200
    assert one(LIST, server=server, host="evil.example", **mirrored(LIST)).status == 421
    host = f"[{server}]:9000" if ":" in server else f"{server}:9000"
    evil = {"host": host, "origin": "http://evil.example"}
    assert one(LIST, server=server, **evil, **mirrored(LIST)).status == 403
    assert one(LIST, server=server, host=host, **mirrored(LIST)).status == 200


def test_methods_that_are_not_served_are_named() -> None:
    assert one(method="PUT").headers["allow"] == "POST, GET, DELETE"
    assert one(method="GET").headers["allow"] == "POST"


def test_a_body_beyond_the_cap_is_refused_while_it_comes() -> None:
    served = serving(max_body_bytes=1000).http_app()

    async def body() -> tuple[Answer, int]:
        chunks = [b" " * 400 for _ in range(100)]
        call = start(served, chunks=chunks)
        return await call.done(), len(chunks)

    answer, unread = play(served, body)
    assert told(answer) == (413, -32600)
    assert unread == 97
    exact = json.dumps(LIST).encode()
    assert one(exact.ljust(1000), app=served, **mirrored(LIST)).status == 200
    assert one(exact.ljust(1001), app=served, **mirrored(LIST)).status == 413


def test_the_media_type_is_read_without_case_and_the_body_in_pieces() -> None:
    data = json.dumps(LIST).encode()
    cut = [data[:10], b"", data[10:]]
    answer = one(chunks=cut, content_type="APPLICATION/Json; charset=utf-8", **mirrored(LIST))
    assert answer.status == 200


MISMATCHES: list[dict[str, Any]] = [
    {"mcp_protocol_version": None},
    {"mcp_protocol_version": "2025-11-25"},
    {"mcp_protocol_version": "2025-03-26"},
    {"mcp_protocol_version": "1999-01-01"},
    {"headers": [("mcp-protocol-version", MODERN)]},
    {"headers": [("mcp-protocol-version", "2025-11-25")]},
    {"mcp_protocol_version": "2025-11-25", "headers": [("mcp-protocol-version", MODERN)]},
    {"mcp_method": None},
    {"mcp_method": "tools/list"},
    {"mcp_method": "Tools/Call"},
    {"mcp_name": None},
    {"mcp_name": "crash"},
    {"mcp_name": "Echo"},
    {"mcp_name": "=?base64?Y3Jhc2g=?="},
    {"mcp_name": "=?base64?ZWNobw?="},
    {"headers": [("mcp-name", "echo")]},
]


# One of each kind in the fast tier.
FULL_MISMATCHES = [pytest.param(how, marks=pytest.mark.full) for how in MISMATCHES[3:]]


@pytest.mark.parametrize("how", MISMATCHES)
def test_the_body_decides_the_era_and_a_header_that_disagrees_is_refused(
    how: dict[str, Any],
) -> None:
    assert told(one(ECHO, **mirrored(ECHO) | how)) == (400, -32020)


@pytest.mark.parametrize("how", [*MISMATCHES[:3], *FULL_MISMATCHES])
def test_a_session_is_no_way_around_that(how: dict[str, Any]) -> None:
    served = serving().http_app()

    async def body() -> Answer:
        session = await handshake(served)
        return await ask(served, ECHO, **session | mirrored(ECHO) | how)

    assert told(play(served, body)) == (400, -32020)


def test_a_name_in_a_header_is_compared_when_it_is_decoded() -> None:
    assert one(ECHO, **mirrored(ECHO) | {"mcp_name": "=?base64?ZWNobw==?="}).status == 200


def test_an_envelope_that_is_not_whole_is_refused() -> None:
    for key in ENVELOPE:
        body = message("tools/list", {"_meta": {k: v for k, v in ENVELOPE.items() if k != key}})
        assert told(one(body, **mirrored(body)))[0] == 400
    body = message("tools/list", {"_meta": dict.fromkeys(ENVELOPE)})
    assert told(one(body, **mirrored(body))) == (400, -32020)


def test_the_versions_that_are_served_are_named() -> None:
    old = one(PING, mcp_protocol_version="1999-01-01").json["error"]["data"]
    assert old["supported"] == [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"]
    body = modern("tools/list", {"_meta": {next(iter(ENVELOPE)): "2030-01-01"}})
    new = one(body, **mirrored(body) | {"mcp_protocol_version": "2030-01-01"}).json["error"]
    assert (new["code"], new["data"]["supported"]) == (-32022, [MODERN])


def test_what_modern_clients_may_not_send_is_refused() -> None:
    version = {"mcp_protocol_version": MODERN}
    assert told(one([LIST], **version)) == (400, -32600)
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert told(one(reply, **version)) == (400, -32600)
    for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe", CANARY):
        body = modern(method)
        assert told(one(body, **mirrored(body))) == (404, -32601)
    assert one(message("notifications/x", id=None), **version).status == 202


def test_a_tool_sees_the_number_that_was_sent() -> None:
    data = json.dumps(modern("tools/call", {"name": "double", "arguments": {"amount": 0}}))
    body = data.replace('"amount": 0', '"amount": 0.10000000000000000001').encode()
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "double"}
    result = one(body, **headers).json["result"]
    assert result["structuredContent"] == {"total": "0.20000000000000000002"}
    huge = data.replace('"amount": 0', '"amount": 1e400').encode()
    (fault,) = one(huge, **headers).json["error"]["data"]["faults"]
    assert (fault["pointer"], fault["rule"]) == ("/amount", "finite_number")


def test_the_token_is_asked_for_before_anything_is_read() -> None:
    secret = "x" * 20
    served = serving().http_app(token=secret)
    answer = one(CANARY.encode(), app=served, path="/nowhere")
    assert told(answer) == (401, -32000)
    assert answer.headers["www-authenticate"] == "Bearer"
    bears = {"authorization": f"Bearer {secret}"}
    assert one(LIST, app=served, **bears, **mirrored(LIST)).status == 200


def test_an_allowed_page_may_ask_and_read_and_another_one_may_not() -> None:
    served = serving().http_app(allowed_origins=["https://app.example"], token="x" * 20)
    question = {
        "method": "OPTIONS",
        "access_control_request_method": "POST",
        "access_control_request_headers": "content-type, mcp-session-id",
    }
    answer = one(app=served, origin="https://app.example", **question)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["access-control-allow-headers"] == "content-type, mcp-session-id"
    assert one(app=served, origin="https://other.example", **question).status == 403


def test_a_client_of_the_stateless_era_cancels_by_leaving() -> None:
    gate = Gate()

    async def body(served: Any) -> None:
        call = start(served, call_of("wait"), **mirrored(call_of("wait")))
        await gate.inside.wait()
        call.leave()
        await gate.left.wait()
        await call.done()
        assert call.answer.status == 0

    served = serving("brief", gate.tool()).http_app()
    play(served, lambda: body(served))


def call_of(name: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return modern("tools/call", {"name": name, "arguments": {}, "_meta": meta or {}})


def test_progress_is_streamed_before_the_answer_to_who_asked_for_it() -> None:
    gate = Gate()

    async def body(served: Any) -> Answer:
        asked = call_of("wait", {"progressToken": "p"})
        call = start(served, asked, **mirrored(asked))
        await call.heard(b"notifications/progress")
        assert not gate.open.is_set()
        gate.open.set()
        return await call.done()

    served = serving("brief", gate.tool()).http_app()
    answer = play(served, lambda: body(served))
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert [event.get("method", event.get("id")) for event in answer.events] == [
        "notifications/progress",
        1,
    ]
    assert answer.ended


@pytest.mark.parametrize("accept", ["application/json", "*/*", None])
def test_who_takes_no_stream_gets_the_answer_alone(accept: str | None) -> None:
    asked = call_of("steps", {"progressToken": "p"})
    answer = one(asked, accept=accept, **mirrored(asked))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["result"]["content"][0]["text"] == "done"


def test_what_takes_long_is_kept_alive_by_comments() -> None:
    from tidegate.tools.http import HttpApp, HttpOptions  # noqa: PLC0415

    gate = Gate()

    async def body(served: Any) -> Answer:
        call = start(served, call_of("wait"), **mirrored(call_of("wait")))
        await call.heard(b": ping\n\n: ping\n\n")
        gate.open.set()
        return await call.done()

    tools = serving("brief", gate.tool())
    served = HttpApp(tools.server, HttpOptions(ping_s=0.001))
    answer = play(served, lambda: body(served))
    assert [event["id"] for event in answer.events] == [1]


def test_headers_that_repeat_an_argument_are_compared_with_it() -> None:
    tools = serving()
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "x-mcp-header": "Word"}},
    }
    tools.server.get_tool_input_schema = lambda _: schema
    served = tools.http_app()
    right = {"mcp_param_word": "hi"}
    assert one(ECHO, app=served, **mirrored(ECHO), **right).status == 200
    assert told(one(ECHO, app=served, **mirrored(ECHO))) == (400, -32020)
    wrong = {"mcp_param_word": "ho"}
    assert told(one(ECHO, app=served, **mirrored(ECHO), **wrong)) == (400, -32020)
    twice = {"headers": [("mcp-param-word", "hi"), ("Mcp-Param-Word", "hi")]}
    assert told(one(ECHO, app=served, **mirrored(ECHO), **twice)) == (400, -32020)


def test_the_lifespan_of_asgi_begins_and_ends_what_the_server_needs() -> None:
    served = serving().http_app()

    async def body() -> list[str]:
        events = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
        said: list[str] = []

        async def receive() -> Any:
            return events.pop(0)

        async def send(message: Any) -> None:
            said.append(message["type"])

        await served({"type": "lifespan"}, receive, send)
        return said

    assert asyncio.run(body()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_discover_says_what_is_served() -> None:
    served = serving("brief", version="1.2", instructions="Be brief.").http_app()
    result = play(served, lambda: ask_modern(served, "server/discover")).json["result"]
    assert result["supportedVersions"] == [MODERN]
    assert result["instructions"] == "Be brief."
    assert result["resultType"] == "complete"
    info = result["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert info == {"name": "some", "version": "1.2"}


def test_there_is_no_second_page() -> None:
    served = serving().http_app()
    answer = play(served, lambda: ask_modern(served, "tools/list", {"cursor": CANARY}))
    assert told(answer) == (400, -32602)
    assert answer.json["error"]["message"] == "Invalid cursor"


def test_it_may_be_mounted_below_a_path() -> None:
    served = serving().http_app()

    async def body() -> Answer:
        call = start(served, LIST, path="/tools/mcp", root_path="/tools", **mirrored(LIST))
        return await call.done()

    assert play(served, body).status == 200
    assert one(LIST, path="/tools/mcp", **mirrored(LIST)).status == 404
