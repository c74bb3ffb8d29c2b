"""Rows for JSON-RPC over HTTP: denials, lists, batches, streams of messages."""

import json
from typing import Any

from tests.casebook.seen import Exchange, Seen
from tests.unit.casebook.observations import call_of, rpc, seen, streamed, tools_call, web
from tests.unit.casebook.rows_stdio import Row

ADMIN, STATUS = tools_call("admin_reset_key"), tools_call("get_status")
ODD = tools_call("a\u200bdmin")
BATCH = [tools_call("get_status", 1), tools_call("admin_reset_key", 2)]
BOTH = [rpc(1), rpc(2, error=-32001)]
NOTE = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p-1"}}
MADE_UP = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7}}
CURSOR = rpc(1, result={"tools": [], "nextCursor": "c=1&x=%2F"})
BIG = b'{"jsonrpc":"2.0","id":1,"result":{"big":9007199254740993,"dec":0.10}}'
SMALL = b'{"jsonrpc":"2.0","id":1,"result":{"big":9007199254740992,"dec":0.1}}'
HINTED = {"body_encoding": "utf-16"}


def pair(right: Exchange, wrong: Exchange) -> tuple[Seen, Seen]:
    """Both as cases of kind mcp."""
    return seen("mcp", right), seen("mcp", wrong)


def messages(*values: Any, **more: Any) -> Exchange:
    """An answer as an event stream."""
    return streamed(*(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values), **more)


def listed(*names: str, **more: Any) -> Exchange:
    """A list of tools."""
    return web(rpc(1, result={"tools": [{"name": name} for name in names]}), **more)


def ran(value: Any, *names: str, sent: Any = ADMIN) -> Exchange:
    """An answer, and the tools that ran for it."""
    calls = [call_of(sent)] if names else []
    return web(value, sent=sent, executed=list(names), calls=calls)


def paged(upstream: str) -> Seen:
    """Two pages, and the cursor that came upstream for the second."""
    first = web(CURSOR, canned=json.dumps(CURSOR).encode())
    last = listed("get_status")
    last.calls = [call_of({"params": {"cursor": upstream}})]
    return seen("mcp", first, last)


def timed(at: int) -> Exchange:
    """A progress notification as the n-th thing read, and when the upstream wrote its two."""
    pieces = [b": x\n\n"] * at + [b"data: " + json.dumps(NOTE).encode() + b"\n\n"]
    canned = b"data: 1\n\ndata: 2\n\n"
    return streamed(*pieces, canned=canned, writes=[0.0, 0.25])


def meta(token: object) -> Any:
    """A call with that progress token."""
    return tools_call("get_status", _meta={"progressToken": token, "v/x": {"a": 1.0}})


def as_viewer(exchange: Exchange) -> Seen:
    """What a viewer's token gives, beside the base request."""
    expect = {"error_code": -32020}
    return seen("mcp", web(rpc(1)), others={"viewer": [exchange]}, expect=expect)


def variant(exchange: Exchange, words: dict[str, Any]) -> Seen:
    """One request, and a variant of it."""
    exchange.variant = words
    return seen("mcp", web(rpc(1, error=-32001)), variants=[exchange])


DENIED = web(
    rpc(1, error=-32001, data={"tool": "admin_reset_key", "your_role": "viewer"}), sent=ADMIN
)
SHOWN = json.dumps(rpc(1, error=-32001, data={"tool": "a\u200bdmin"})).encode()
HIDDEN = json.dumps(rpc(1, error=-32001, data={"tool": "admin"})).encode()
ODD_STREAM = b"data: not json\n\ndata: " + json.dumps(NOTE).encode() + b"\n\n"

ROWS: list[Row] = [
    (right.case.kind, sentence, right, wrong)
    for sentence, (right, wrong) in [
        (
            "get_status runs exactly once",
            pair(ran(rpc(1), "get_status"), ran(rpc(1), "get_status", "get_status")),
        ),
        ("-32600 with id 1", pair(web(rpc(1, error=-32600)), web(rpc(None, error=-32600)))),
        (
            "id comes back as sent",
            pair(web(rpc("1"), sent=tools_call("x", "1")), web(rpc(1), sent=tools_call("x", "1"))),
        ),
        ("one JSON object, not an array", pair(web(rpc(1)), web([rpc(1)]))),
        (
            "structuredContent and _meta are kept",
            pair(
                web(
                    rpc(1, result={"structuredContent": {}, "_meta": {}}),
                    canned=json.dumps(
                        rpc(1, result={"structuredContent": {}, "_meta": {}})
                    ).encode(),
                ),
                web(
                    rpc(1, result={"structuredContent": {}}),
                    canned=json.dumps(
                        rpc(1, result={"structuredContent": {}, "_meta": {}})
                    ).encode(),
                ),
            ),
        ),
        ("the error is generic", pair(web(rpc(1, error=-32603)), web(rpc(1, error=-32000)))),
        (
            "data.tool is admin_reset_key",
            pair(DENIED, web(rpc(1, error=-32001, data={"tool": "x"}))),
        ),
        ("data.tool, data.your_role", pair(DENIED, web(rpc(1, error=-32001, data={"tool": "x"})))),
        (
            "upstream never sees admin_reset_key",
            pair(DENIED, ran(rpc(1), "admin_reset_key")),
        ),
        (
            "in no variant does a viewer's admin call reach upstream",
            pair(DENIED, ran(rpc(1), "admin_reset_key")),
        ),
        ("the tool is not run", pair(DENIED, ran(rpc(1), "admin_reset_key"))),
        ("id null", pair(web(rpc(None, error=-32600)), web(rpc(1, error=-32600)))),
        ("id 2 error -32001", pair(web(BOTH), web([rpc(1), rpc(2)]))),
        ("id 2: -32001", pair(web(BOTH), web([rpc(1), rpc(2)]))),
        (
            "reply array: id 1 result, in request order",
            pair(web(BOTH, sent=BATCH), web(BOTH[::-1], sent=BATCH)),
        ),
        (
            "the whole batch refused with 400 when the protocol version is 2025-06-18 or later",
            pair(
                web(status=400, asked={"mcp-protocol-version": "2025-11-25"}),
                web(status=400, asked={"mcp-protocol-version": "2025-03-26"}),
            ),
        ),
        (
            "the error data shows the name as sent, escaped",
            pair(web(SHOWN, sent=ODD), web(HIDDEN, sent=ODD)),
        ),
        ("every one is refused (-32001, or -32602 unknown tool)", pair(DENIED, web(rpc(1)))),
        (
            "viewer: every one is refused (-32001)",
            (
                seen("mcp", DENIED, given={"as": "viewer"}),
                seen("mcp", web(rpc(1)), given={"as": "viewer"}),
            ),
        ),
        ("-32001 as usual", pair(DENIED, web(rpc(1)))),
        ("a clear JSON-RPC error", pair(DENIED, web({"error": "no"}))),
        (
            "the result reaches the client JSON-equal, numbers not re-rounded",
            pair(web(BIG, canned=BIG), web(SMALL, canned=BIG)),
        ),
        (
            "upstream sees _meta unchanged",
            pair(
                web(rpc(1), sent=meta("p-1"), calls=[call_of(meta("p-1"))]),
                web(rpc(1), sent=meta("p-1"), calls=[call_of(meta(7))]),
            ),
        ),
        ("token is p-1, not one made up by the gateway", pair(messages(NOTE), messages(MADE_UP))),
        ("first progress event reaches the client before 0.5 s", pair(timed(0), timed(5))),
        (
            "pass through unchanged",
            pair(
                web(
                    rpc(1), sent=STATUS, calls=[call_of(STATUS)], canned=json.dumps(rpc(1)).encode()
                ),
                web(
                    rpc(1), sent=STATUS, calls=[call_of(ADMIN)], canned=json.dumps(rpc(1)).encode()
                ),
            ),
        ),
        ("decoded and judged", pair(DENIED, ran(rpc(1), "admin_reset_key"))),
        (
            "with a viewer token the answer may be -32001 instead",
            (as_viewer(web(rpc(1, error=-32001))), as_viewer(web(rpc(1)))),
        ),
        (
            "the decision is always taken from the body",
            (as_viewer(web(rpc(1, error=-32020))), as_viewer(ran(rpc(1), "admin_reset_key"))),
        ),
        ("exactly two answers", pair(web(BOTH), web(rpc(1)))),
        ("a result", pair(web(rpc(1)), DENIED)),
        (
            "all answers look alike",
            (
                seen("mcp", web(rpc(1, error=-32602)), web(rpc(1, error=-32602))),
                seen("mcp", web(rpc(1, error=-32602)), web(rpc(1, error=-32001))),
            ),
        ),
        ("second call works", pair(ran(rpc(1), "get_status", sent=STATUS), DENIED)),
        (
            "client stream holds the notification",
            pair(messages(NOTE, rpc(1), canned=ODD_STREAM), messages(rpc(1), canned=ODD_STREAM)),
        ),
        (
            "the tools event lists only get_status",
            pair(listed("get_status"), listed("get_status", "admin_reset_key")),
        ),
        ("page 1: get_status", pair(listed("get_status"), listed("other_tool"))),
        (
            "the odd line neither disables the filter nor passes a tool list",
            pair(
                messages(rpc(1, result={"tools": []}), canned=ODD_STREAM),
                messages(rpc(1, result={"tools": [{"name": "admin_x"}]}), canned=ODD_STREAM),
            ),
        ),
        (
            "either the filtered list reaches the client",
            pair(listed("get_status"), listed("admin_x")),
        ),
        ("not an empty tools array", pair(listed("get_status"), listed())),
        ("not the raw body", pair(listed("get_status"), listed("admin_x"))),
        ('"tools": [] (an array, not null)', pair(listed(), web(rpc(1, result={"tools": None})))),
        (
            "nextCursor kept as sent by upstream",
            pair(
                web(CURSOR, canned=json.dumps(CURSOR).encode()),
                web(rpc(1, result={"nextCursor": "c"}), canned=json.dumps(CURSOR).encode()),
            ),
        ),
        ("no nextCursor", pair(listed(), web(CURSOR))),
        ("cursor is passed upstream byte for byte", (paged("c=1&x=%2F"), paged("c=1&x=/"))),
        (
            "the list holds get_status and not admin_reset_key",
            pair(listed("get_status"), listed("get_status", "admin_reset_key")),
        ),
        ("admin tools are hidden", pair(listed("get_status"), listed("admin_reset_key"))),
        (
            "utf-16: 400 with -32700",
            (
                variant(web(rpc(None, error=-32700), status=400), HINTED),
                variant(web(rpc(1)), HINTED),
            ),
        ),
        (
            "first one: 400",
            (variant(web(status=400), HINTED), variant(web(rpc(1)), HINTED)),
        ),
    ]
]
