"""Are our requests built from nothing, and are messages found in whatever comes back?"""

import json
from itertools import product
from typing import Any

import pytest

from tests.unit.mcp.asking import ask, call, tell
from tidegate import sse
from tidegate.jsonrpc import Response
from tidegate.mcp.answers import Incoming
from tidegate.mcp.eras import MODERN, McpHeaders, Revision
from tidegate.mcp.http_upstream import (
    AnswerReader,
    AnswerTooLarge,
    ending,
    listening,
    outgoing,
)
from tidegate.mcp.servers import ServerAddress
from tidegate.transport.upstream import UpstreamRequest

SERVER = ServerAddress("s", "http://127.0.0.1:9/mcp", "-".join(("service", "credential")))
ALWAYS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def test_a_legacy_call_carries_our_credential_session_and_version() -> None:
    sent = outgoing(call("x"), SERVER, Revision("2025-11-25"), McpHeaders(), session="u1")
    assert dict(sent.headers) == {
        **ALWAYS,
        "Authorization": "Bearer service-credential",
        "Mcp-Session-Id": "u1",
        "MCP-Protocol-Version": "2025-11-25",
    }
    assert json.loads(sent.body) == call("x").encode()


def test_a_modern_call_has_no_session_and_all_its_headers() -> None:
    sent = outgoing(call("x"), SERVER, Revision(MODERN), McpHeaders(), session="u1")
    assert dict(sent.headers) == {
        **ALWAYS,
        "Authorization": "Bearer service-credential",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "x",
    }


def test_another_id_changes_nothing_else() -> None:
    open_server = ServerAddress("s", "http://127.0.0.1:9/mcp")
    sent = outgoing(call("x"), open_server, Revision(), McpHeaders(), upstream_id=9)
    assert dict(sent.headers) == ALWAYS
    assert json.loads(sent.body) == {**call("x").encode(), "id": 9}


@pytest.mark.parametrize("send", [ask, tell])
def test_baggage_does_not_cross_the_gateway(send: Any) -> None:
    meta = {"baggage": "user=jane", "traceparent": "t", "progressToken": 1}
    message = send("ping", _meta=meta, baggage="an argument of its own")
    sent = json.loads(outgoing(message, SERVER, Revision(), McpHeaders()).body)
    assert sent["params"] == {
        "_meta": {"traceparent": "t", "progressToken": 1},
        "baggage": "an argument of its own",
    }
    assert meta["baggage"] == "user=jane"


def test_notifications_answers_and_endings_are_forwarded_too() -> None:
    note = outgoing(tell("notifications/x"), SERVER, Revision("2025-06-18"), McpHeaders())
    assert json.loads(note.body) == {"jsonrpc": "2.0", "method": "notifications/x"}
    value = {"jsonrpc": "2.0", "id": 4, "result": {}}
    answer = outgoing(Response(4, value), SERVER, Revision("2025-06-18"), McpHeaders(), session="u")
    assert json.loads(answer.body) == value
    assert dict(answer.headers)["MCP-Protocol-Version"] == "2025-06-18"
    end = ending(SERVER, None, "u")
    assert dict(end.headers) == {
        "Authorization": "Bearer service-credential",
        "Mcp-Session-Id": "u",
    }
    assert end.body == b""


def test_only_what_does_no_harm_twice_may_be_sent_twice() -> None:
    def replayable(message: object) -> bool:
        return outgoing(message, SERVER, Revision(), McpHeaders()).replayable  # type: ignore[arg-type]

    assert [replayable(each) for each in (ask("tools/list"), ask("resources/read"))] == [True] * 2
    assert [replayable(each) for each in (call("x"), tell("x"), ask("tasks/cancel"))] == [False] * 3


ONE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"x": "\u2028é"}}
TWO = {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}
RAW = [json.dumps(value, ensure_ascii=False).encode() for value in (ONE, TWO)]

BODIES = {
    "json": (RAW[1], [TWO]),
    "json with blanks": (b"\r\n  " + RAW[1] + b"\n", [TWO]),
    "json with mark": (b"\xef\xbb\xbf" + RAW[1], [TWO]),
    "array": (b"[" + RAW[0] + b"," + RAW[1] + b"]", [ONE, TWO]),
    "events": (b"".join(map(sse.encode, RAW)), [ONE, TWO]),
    "events with crlf": (
        b"event: message\r\ndata: %b\r\n\r\ndata:%b\r\n\r\n" % tuple(RAW),
        [ONE, TWO],
    ),
    "events with noise": (
        b": keep\n\nid: 1\ndata:\n\ndata: not json\n\ndata: " + RAW[1] + b"\n\n",
        [TWO],
    ),
    "events in lines": (b'data: {"jsonrpc":"2.0",\ndata: "id":1,"result":{"a":1}}\n\n', [TWO]),
    "events with mark": (b"\xef\xbb\xbf" + sse.encode(RAW[1]), [TWO]),
    "html": (b"<html><body>502</body></html>", []),
    "text": (b"Internal Server Error: db-3.internal", []),
    "nothing": (b"", []),
    "blanks": (b" \n ", []),
    "half json": (RAW[1][:-1], []),
}


def read(chunks: list[bytes]) -> list[object]:
    reader = AnswerReader(1 << 16)
    arrived = [each for chunk in chunks for each in reader.feed(chunk)]
    return [each.value for each in arrived + reader.finish()]


@pytest.mark.parametrize("name", BODIES)
def test_messages_are_found_whatever_the_form_and_the_cuts(name: str) -> None:
    body, messages = BODIES[name]
    assert read([body]) == messages
    assert read([body[at : at + 1] for at in range(len(body))]) == messages
    for cut in range(len(body)):
        assert read([body[:cut], body[cut:]]) == messages


def test_the_form_is_known_once_a_byte_tells() -> None:
    reader = AnswerReader(100)
    reader.feed(b" ")
    assert not reader.is_stream
    reader.feed(b"data: {}\n\n")
    assert reader.is_stream


def test_it_tells_how_much_it_holds() -> None:
    reader = AnswerReader(100)
    reader.feed(b'{"a":')
    assert reader.held_bytes == 5
    reader = AnswerReader(100)
    reader.feed(b"data: {}\ndata: x")
    assert reader.held_bytes == 16
    reader.feed(b"\n\n")
    assert reader.held_bytes == 0


def test_a_message_of_a_stream_is_there_before_the_next() -> None:
    reader = AnswerReader(1 << 16)
    assert [each.value for each in reader.feed(sse.encode(RAW[0]))] == [ONE]
    assert [each.value for each in reader.feed(sse.encode(RAW[1]))] == [TWO]


@pytest.mark.parametrize(
    ("start", "size"), list(product([b"{", b"data: ", b"x", b" "], [1, 7, 100]))
)
def test_a_body_or_event_beyond_the_bound_is_refused(start: bytes, size: int) -> None:
    reader = AnswerReader(100)
    filler = b" " if start == b" " else b"a"

    def feed() -> None:
        for _ in range(0, 400, size):
            reader.feed(start + filler * size)

    with pytest.raises(AnswerTooLarge):
        feed()


def test_many_small_events_are_not_a_large_one() -> None:
    reader = AnswerReader(100)
    assert sum(len(reader.feed(sse.encode(b"1"))) for _ in range(1000)) == 1000


def test_no_credential_is_part_of_what_a_traceback_could_show() -> None:
    server = ServerAddress("backend", "http://host/mcp?key=secret", "secret")
    message = outgoing(ask("ping"), server, Revision(), McpHeaders())
    request = UpstreamRequest("POST", "http://host/mcp", message.headers, b"secret")
    assert "secret" not in repr((server, message, request))


def test_marks_stand_with_the_last_message_of_their_event() -> None:
    reader = AnswerReader(1 << 10, marks=True)
    wire = b"".join(
        (
            sse.encode(b"", id="p", retry_ms=500),
            sse.encode(RAW[0], id="1"),
            sse.encode(b"[1,2]", id="2"),
            sse.encode(b"no json", id="3"),
            sse.encode(RAW[0]),
        )
    )
    assert reader.feed(wire) == [
        Incoming(None, None, "p", 500),
        Incoming(ONE, RAW[0], "1"),
        Incoming(1),
        Incoming(2, None, "2"),
        Incoming(None, None, "3"),
        Incoming(ONE, RAW[0]),
    ]
    assert [each.value for each in AnswerReader(1 << 10).feed(wire)] == [ONE, 1, 2, ONE]


@pytest.mark.parametrize("last_event_id", [None, "e-7"])
def test_listening_names_the_session_and_the_place_and_nothing_of_the_client(
    last_event_id: str | None,
) -> None:
    sent = listening(SERVER, "2025-11-25", "u1", last_event_id)
    place = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    assert dict(sent.headers) == {
        "Accept": "text/event-stream",
        "Authorization": "Bearer service-credential",
        "Mcp-Session-Id": "u1",
        "MCP-Protocol-Version": "2025-11-25",
        **place,
    }
    assert (sent.body, sent.replayable) == (b"", True)
