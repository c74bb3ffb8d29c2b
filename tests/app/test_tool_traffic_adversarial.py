"""Does a hostile request or answer ever get further than it may?

One row for each way that gateways were known to be passed: what is sent, the status and code that
come back, and how many messages the server got.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_world import TOKENS, Asked, World, ask, call, events, tell, value
from tests.app.test_tool_traffic_headers import META, MODERN, modern_call

CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}'
ADMIN = call("admin_reset_key")
HEADERS = modern_call("get_status")[1]
IS_MODERN = call("get_status", _meta=META)
ENCODED = "=?base64?YWRtaW5fcmVzZXRfa2V5?="


def modern(**changed: str | None) -> dict[str, str]:
    return {name: text for name, text in {**HEADERS, **changed}.items() if text is not None}


def params(text: str) -> bytes:
    return (CALL % text).encode("utf-8", "surrogatepass")


def argument(text: str) -> bytes:
    return params('{"name":"get_status","arguments":{"a":' + text + "}}")


PARSE, INVALID, HEADER, DENIED = -32700, -32600, -32020, -32001

# what it is, body, headers, status, code (None: a result), messages that the server got
ROWS: list[tuple[str, Any, dict[str, str], int, int | None, int]] = [
    ("two names", params('{"name":"a","name":"admin_reset_key"}'), {}, 400, INVALID, 0),
    ("a Name beside", params('{"name":"a","Name":"admin_reset_key"}'), {}, 400, INVALID, 0),
    ("a Name alone", params('{"Name":"admin_reset_key"}'), {}, 400, INVALID, 0),
    ("two params", params('{"name":"a"},"params":{}'), {}, 400, INVALID, 0),
    ("two methods", params('{"name":"a"},"method":"ping"'), {}, 400, INVALID, 0),
    ("two ids", params('{"name":"a"},"id":2'), {}, 400, INVALID, 0),
    ("two arguments", params('{"name":"a","arguments":{},"arguments":{}}'), {}, 400, INVALID, 0),
    ("two deep keys", argument('{"b":1,"b":2}'), {}, 400, INVALID, 0),
    ("no version", IS_MODERN, modern(mcp_protocol_version=None), 400, HEADER, 0),
    ("an old version", IS_MODERN, modern(mcp_protocol_version="2025-11-25"), 400, HEADER, 0),
    ("another name", call("admin_reset_key", _meta=META), HEADERS, 400, HEADER, 0),
    ("a name in other case", IS_MODERN, modern(mcp_name="Get_Status"), 400, HEADER, 0),
    ("no padding", IS_MODERN, modern(mcp_name="=?base64?Z2V0X3N0YXR1cw?="), 400, HEADER, 0),
    ("upper BASE64", IS_MODERN, modern(mcp_name="=?BASE64?Z2V0X3N0YXR1cw==?="), 400, HEADER, 0),
    ("encoded", call("admin_reset_key", _meta=META), modern(mcp_name=ENCODED), 200, DENIED, 0),
    (
        "an orphan name",
        ask("tools/list", _meta=META),
        modern(mcp_method="tools/list"),
        400,
        HEADER,
        0,
    ),
    ("escapes", params('{"n\\u0061me":"\\u0061dmin_reset_key"}'), {}, 200, DENIED, 0),
    ("UTF-16", json.dumps(ADMIN).encode("utf-16"), {}, 400, PARSE, 0),
    ("UTF-32", json.dumps(ADMIN).encode("utf-32"), {}, 400, PARSE, 0),
    ("a mark", json.dumps(ADMIN).encode("utf-8-sig"), {}, 400, PARSE, 0),
    ("half a pair", params('{"name":"\\ud800"}'), {}, 400, PARSE, 0),
    ("no UTF-8", params('{"name":"\udcff"}'), {}, 400, PARSE, 0),
    ("NaN", argument("NaN"), {}, 400, PARSE, 0),
    ("infinite", argument("1e999"), {}, 400, PARSE, 0),
    ("400 digits", argument("9" * 400), {}, 400, PARSE, 0),
    ("deep", b"[" * 100_000, {}, 400, PARSE, 0),
    ("a batch of one", [ADMIN], {"mcp_protocol_version": "2025-11-25"}, 400, INVALID, 0),
    ("a modern batch", [IS_MODERN], {}, 400, INVALID, 0),
    ("an empty batch", [], {}, 400, INVALID, 0),
    ("a batch in a batch", [[ADMIN]], {}, 400, INVALID, 0),
    ("a number in a batch", [1], {}, 400, INVALID, 0),
    ("one id twice", [call("a"), call("b")], {}, 400, INVALID, 0),
    *(
        (
            f"the id {bad}",
            params("{}").replace(b'"id":1', f'"id":{bad}'.encode()),
            {},
            400,
            INVALID,
            0,
        )
        for bad in ("null", "1.5", "true", "{}", "1e3")
    ),
    ("a result beside", params('{"name":"get_status"},"result":{}'), {}, 400, INVALID, 0),
    ("an answer", {"jsonrpc": "2.0", "id": 1, "result": {}}, modern(), 400, INVALID, 0),
    ("other case of the type", ADMIN, {"content_type": "Application/JSON"}, 200, DENIED, 0),
    ("a longer type", ADMIN, {"content_type": "application/jsonfoo"}, 415, INVALID, 0),
    ("text", ADMIN, {"content_type": "text/plain"}, 415, INVALID, 0),
    ("a charset", ADMIN, {"content_type": "application/json; charset=utf-16"}, 415, INVALID, 0),
    ("gzip", ADMIN, {"content_encoding": "gzip"}, 415, INVALID, 0),
    ("no key", ADMIN, {"authorization": "Basic eDp5"}, 401, -32000, 0),
    ("blanks", ADMIN, {"authorization": "bearer  " + TOKENS["admin"]}, 401, -32000, 0),
    ("arguments as a list", call("get_status", [1]), {}, 200, -32602, 0),
    ("an exact number", argument("9007199254740993"), {}, 200, None, 1),
]


@pytest.mark.parametrize(("what", "body", "headers", "status", "code", "sent"), ROWS)
def test_a_hostile_request_gets_its_answer_and_nothing_further(
    what: str, body: Any, headers: dict[str, str], status: int, code: int | None, sent: int
) -> None:
    async def play() -> None:
        world = World()
        answer = await world.post(body, **headers)
        assert (answer.status, len(world.sent)) == (status, sent), what
        got = value(answer)
        assert got.get("error", {}).get("code") == code
        outcomes = [trail.snapshot().outcome for trail in world.records.ends]
        assert outcomes != ["ok"] or code is None

    asyncio.run(play())


def test_a_call_that_nobody_waits_for_is_judged_as_well() -> None:
    async def play() -> None:
        world = World()
        for message, headers in (
            (tell("tools/call", name="admin_reset_key"), {}),
            (tell("tools/call", name="admin_reset_key", _meta=META), modern(mcp_name=ENCODED)),
            (tell("tools/call", name="admin_reset_key"), {"mcp_protocol_version": MODERN}),
        ):
            answer = await world.post(message, **headers)
            assert (answer.status, answer.body) == (202, b"")
        assert world.sent == []
        assert [trail.snapshot().outcome for trail in world.records.ends] == ["denied"] * 3

    asyncio.run(play())


@pytest.mark.parametrize("form", ["array", "events", "one event"])
def test_of_two_answers_the_client_gets_one(form: str) -> None:
    async def play() -> None:
        async def script(asked: Asked) -> None:
            first, second = ({"jsonrpc": "2.0", "id": 1, "result": {"n": n}} for n in (1, 2))
            asked.head(200, "text/event-stream" if "event" in form else "application/json")
            if form == "events":
                asked.event(first)
                asked.event(second)
            elif form == "one event":
                asked.event([first, second])
            else:
                asked.body(json.dumps([first, second]).encode())
            asked.end()

        both = "application/json, text/event-stream"
        for accept in ("application/json", both):
            answer = await World(script).post(call("get_status"), accept=accept)
            plain = answer.header("content-type") == "application/json"
            got = [value(answer)] if plain else events(answer)
            assert [message["result"] for message in got] == [{"n": 1}]

    asyncio.run(play())
