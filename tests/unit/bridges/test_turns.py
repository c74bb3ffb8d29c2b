"""Does every message of a stdio client become the right request, and only its answer come back?"""

import json
from typing import Any

import pytest

from tidegate.bridges import refusals
from tidegate.bridges.endpoint import endpoint
from tidegate.bridges.turns import Post, Turn, Turns
from tidegate.mcp.answers import parse

TOKEN = "-".join(("token", "of", "the", "test"))
ACCEPT = ("Accept", "application/json, text/event-stream")
JSON = ("Content-Type", "application/json")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def turns(token: str | None = None) -> Turns:
    return Turns(endpoint("https://mcp.example.com/mcp", token))


def line(method: str, identifier: object = None, **params: object) -> bytes:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if identifier is None else {**message, "id": identifier}).encode()


def modern(method: str, identifier: object, **params: object) -> bytes:
    return line(method, identifier, **params, _meta=META)


def post(turn: Turn) -> Post:
    assert turn.post is not None
    assert turn.to_client == b""
    return turn.post


def came(bridge: Turns, sent: Post, *messages: object) -> list[Any]:
    told = b""
    for message in messages:
        for incoming in parse(json.dumps(message).encode()):
            told += bridge.from_server(sent, incoming).to_client
    return [json.loads(part) for part in told.splitlines()]


def result(identifier: object, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": identifier, "result": members}


def in_session(token: str | None = None) -> Turns:
    """A bridge whose client has done the handshake of 2025-11-25."""
    bridge = turns(token)
    hello = post(bridge.from_client(line("initialize", 0, protocolVersion="2025-11-25")))
    assert dict(hello.headers).keys() <= {"Accept", "Content-Type", "Authorization"}
    bridge.head(hello, 200, {"mcp-session-id": "abc"})
    assert came(bridge, hello, result(0, protocolVersion="2025-11-25"))
    return bridge


def test_the_headers_of_a_modern_call_are_computed_from_its_body() -> None:
    bridge = turns(TOKEN)
    listed = post(bridge.from_client(modern("tools/list", 1)))
    schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    tools = [{"name": "wetter ü", "inputSchema": schema}]
    assert came(bridge, listed, result(1, tools=tools)) == [result(1, tools=tools)]
    call = modern("tools/call", 2, name="wetter ü", arguments={"region": "eu"})
    sent = post(bridge.from_client(call))
    assert sent.body == call
    assert sent.headers == (
        ACCEPT,
        JSON,
        ("Authorization", f"Bearer {TOKEN}"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?d2V0dGVyIMO8?="),
        ("Mcp-Param-Region", "eu"),
    )
    read = post(bridge.from_client(modern("resources/read", 3, uri="file:///a")))
    assert ("Mcp-Name", "file:///a") in read.headers


def test_a_session_begins_with_the_answer_to_initialize_and_ends_with_a_delete() -> None:
    bridge = turns()
    assert bridge.listening() is None
    assert bridge.ending() is None
    bridge = in_session()
    session = (("Mcp-Session-Id", "abc"), ("MCP-Protocol-Version", "2025-11-25"))
    assert post(bridge.from_client(line("tools/list", 1))).headers == (ACCEPT, JSON, *session)
    note = post(bridge.from_client(line("notifications/initialized")))
    assert (note.key, note.headers) == (None, (ACCEPT, JSON, *session))
    listening, ending = bridge.listening(), bridge.ending()
    assert listening is not None
    assert ending is not None
    assert listening.headers == (("Accept", "text/event-stream"), *session)
    assert (ending.headers, ending.body) == (session, b"")


def test_a_second_handshake_ends_the_first_session() -> None:
    bridge = in_session()
    again = bridge.from_client(line("initialize", 5))
    assert again.ending is not None
    assert ("Mcp-Session-Id", "abc") in again.ending.headers
    assert post(again).headers == (ACCEPT, JSON)


@pytest.mark.parametrize("session", ["a b", "ä", "", "x" * 1025, "a\x00"])
def test_a_session_id_that_does_not_fit_into_a_header_is_none(session: str) -> None:
    bridge = turns()
    hello = post(bridge.from_client(line("initialize", 0)))
    bridge.head(hello, 200, {"mcp-session-id": session})
    assert bridge.ending() is None


def test_only_the_answer_to_initialize_names_a_session() -> None:
    bridge = in_session()
    other = post(bridge.from_client(line("tools/list", 1)))
    bridge.head(other, 200, {"mcp-session-id": "stolen"})
    ending = bridge.ending()
    assert ending is not None
    assert ("Mcp-Session-Id", "abc") in ending.headers


def test_an_answer_passes_once_with_its_own_id_and_no_other() -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("tools/list", 1)))
    other = post(bridge.from_client(modern("tools/list", "1")))
    wrong = [result("1"), result(2), {"jsonrpc": "2.0", "id": 1}, {"id": 1, "result": {}}, 7]
    assert came(bridge, sent, *wrong) == []
    assert came(bridge, sent, result(1), result(1), result("1")) == [result(1)]
    assert came(bridge, other, result("1")) == [result("1")]


def test_an_answer_that_comes_after_its_id_is_in_use_again_is_dropped() -> None:
    bridge = in_session()
    first = post(bridge.from_client(line("tools/list", 1)))
    bridge.from_client(line("notifications/cancelled", requestId=1))
    second = post(bridge.from_client(line("tools/list", 1)))
    assert came(bridge, first, result(1, old=True)) == []
    assert bridge.failed(first, {}) == Turn()
    assert came(bridge, second, result(1)) == [result(1)]


def test_a_document_of_several_lines_becomes_one() -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("tools/list", 1)))
    (incoming,) = parse(b'{\r\n "jsonrpc": "2.0",\n "id": 1,\n "result": {"x": 1.10}\n}\n')
    told = bridge.from_server(sent, incoming).to_client
    assert told.count(b"\n") == 1
    assert b"\r" not in told
    assert b"1.10" in told


def test_requests_of_the_server_pass_in_a_session_and_their_answers_go_back_once() -> None:
    bridge = in_session()
    sent = post(bridge.from_client(line("tools/call", 1, name="x")))
    ask = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    assert came(bridge, sent, ask, note) == [ask, note]
    reply = json.dumps(result(1, ok=True)).encode()
    assert bridge.from_client(json.dumps(result("1")).encode()).post is None
    back = post(bridge.from_client(reply))
    assert (back.key, back.body) == (None, reply)
    assert bridge.from_client(reply).post is None


def test_a_modern_server_cannot_ask() -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("tools/call", 1, name="x")))
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    assert came(bridge, sent, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, note) == [note]


def test_a_cancelled_modern_call_is_closed_and_a_legacy_one_is_told() -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("tools/call", 1, name="x")))
    turn = bridge.from_client(line("notifications/cancelled", requestId=1, _meta=META))
    assert (turn.close, turn.post) == ((False, 1), None)
    assert came(bridge, sent, result(1)) == []
    bridge = in_session()
    sent = post(bridge.from_client(line("tools/call", 1, name="x")))
    told = bridge.from_client(line("notifications/cancelled", requestId=1))
    assert told.close is None
    assert post(told).key is None
    # Whether it still answers is the server's affair; an error of ours would surprise.
    assert bridge.failed(sent, {"code": 1, "message": "m"}) == Turn()
    assert turns().from_client(line("notifications/cancelled", requestId=9)) == Turn()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b"[" + line("ping", 1) + b"]", -32600),
        (line("ping", 1.5), -32600),
        (line("tools/list", 1, _meta={"io.modelcontextprotocol/protocolVersion": 7}), -32600),
        (line("tools/list", 1, _meta={"io.modelcontextprotocol/protocolVersion": "a\nb"}), -32600),
    ],
)
def test_a_bad_line_is_answered_here(bad: bytes, code: int) -> None:
    turn = turns().from_client(bad)
    assert turn.post is None
    told = json.loads(turn.to_client)
    assert (told["id"], told["error"]["code"]) == (None, code)


def test_an_id_in_flight_and_too_many_calls_are_refused() -> None:
    bridge = turns()
    post(bridge.from_client(modern("ping", 0)))
    assert json.loads(bridge.from_client(modern("ping", 0)).to_client)["id"] is None
    for identifier in range(1, 256):
        post(bridge.from_client(modern("ping", identifier)))
    told = json.loads(bridge.from_client(modern("ping", 999)).to_client)
    assert (told["id"], told["error"]["message"]) == (999, refusals.TOO_MANY)


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (302, -31002, "redirect"),
        (400, -32603, "refused"),
        (401, -31003, "unauthenticated"),
        (403, -31003, "forbidden"),
        (404, -31002, "no_endpoint"),
        (405, -31002, "no_endpoint"),
        (413, -31001, "too_large"),
        (429, -31000, "rate_limited"),
        (500, -31002, "server_failed"),
        (503, -31002, "server_failed"),
        (202, -32603, "no_answer"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>secret</html>", b'{"error":"secret"}', b"\xff"])
def test_a_status_without_an_error_of_its_own_becomes_one_of_ours(
    status: int, code: int, reason: str, body: bytes
) -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("ping", "a")))
    told = bridge.refused(sent, status, body, None).to_client
    error = json.loads(told)
    assert (error["id"], error["error"]["code"]) == ("a", code)
    assert error["error"]["data"] == {"reason": reason, "status": status}
    assert b"secret" not in told
    assert bridge.refused(sent, status, body, None) == Turn()


@pytest.mark.parametrize("identifier", [None, 1, "server-error", 99])
def test_an_error_of_the_server_passes_for_the_call_that_asked(identifier: object) -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("ping", 1)))
    error = {"code": -32020, "message": "Header mismatch", "data": {"x": 1}}
    body = json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error}).encode()
    told = json.loads(bridge.refused(sent, 400, body, None).to_client)
    assert told == {"jsonrpc": "2.0", "id": 1, "error": error}


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ("30", {"retryAfterMs": 30000}),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {"retryAfter": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        ("\x1b[31m", {}),
        ("x" * 65, {}),
    ],
)
def test_retry_after_is_kept_in_the_data(header: str, data: dict[str, object]) -> None:
    bridge = turns()
    sent = post(bridge.from_client(modern("ping", 1)))
    told = json.loads(bridge.refused(sent, 429, b"", header).to_client)
    assert told["error"]["data"] == {"reason": "rate_limited", "status": 429, **data}


def test_what_a_client_is_told_about_its_token_and_its_session() -> None:
    bridge = turns(TOKEN)
    sent = post(bridge.from_client(modern("ping", 1)))
    told = json.loads(bridge.refused(sent, 401, b"", None).to_client)
    assert told["error"]["message"] == "The server does not accept TIDEGATE_TOKEN."
    bridge = in_session()
    sent = post(bridge.from_client(line("ping", 1)))
    told = json.loads(bridge.refused(sent, 404, b"", None).to_client)
    assert told["error"]["data"]["reason"] == "session_ended"


def test_at_the_end_every_open_call_gets_an_error() -> None:
    bridge = turns()
    for identifier in (1, "1"):
        post(bridge.from_client(modern("ping", identifier)))
    told = [json.loads(part) for part in bridge.ended().splitlines()]
    assert [part["id"] for part in told] == [1, "1"]
    assert {part["error"]["code"] for part in told} == {-32603}
    assert bridge.ended() == b""


@pytest.mark.parametrize(
    ("method", "twice"),
    [("tools/list", True), ("prompts/get", True), ("tools/call", False), ("initialize", False)],
)
def test_what_may_be_sent_twice_is_what_the_gateway_sends_twice(
    method: str, *, twice: bool
) -> None:
    assert Post((), method=method).harmless is twice
