"""Does each machine-readable key hold for the right observation and fail for a wrong one?"""

from typing import Any

import pytest

from tests.casebook.rules import profiles
from tests.casebook.rules.keys import KEYS
from tests.casebook.seen import Exchange, Mismatch, Seen
from tests.unit.casebook.observations import (
    MAIL,
    call_of,
    calling,
    envelope,
    ping,
    rpc,
    seen,
    streamed,
    talk,
    texts,
    web,
)

pytestmark = pytest.mark.full

NAMED = calling({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"n": 1}'}})
OTHER = calling({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"n": "1"}'}})
TWO = streamed(
    b'data: {"choices":[{"index":0,"delta":{"content":"a"}},'
    b'{"index":1,"delta":{"content":"b"}}]}\n\n'
)


def chat(exchange: Exchange) -> Seen:
    return seen("llm", exchange)


def tools(*exchanges: Exchange, **more: Any) -> Seen:
    return seen("mcp", *exchanges, **more)


def ran(*names: str) -> Exchange:
    return web(rpc(1), executed=list(names))


def to(*servers: str) -> Seen:
    return chat(web({}, calls=[call_of({}, server=server) for server in servers]))


def raised(error: BaseException | None) -> Seen:
    return chat(texts("A", by_sdk=True, sdk_text="A", client_error=error))


ROWS: list[tuple[str, Any, Seen, Seen]] = [
    ("status", [202, 400], tools(web(status=202)), tools(web(status=200))),
    ("status", 400, tools(web(status=400), web(status=400)), tools(web(status=400), web({}))),
    ("statuses", [200, [401, 403]], tools(web({}), web(status=403)), tools(web({}), web({}))),
    ("error_code", -32600, tools(web(rpc(1, error=-32600))), tools(web(rpc(1)))),
    ("error_code", "gateway.x", chat(web(envelope("gateway.x"))), chat(web(envelope("gateway.y")))),
    ("error_code", -32602, talk(rpc(1, error=-32602), rpc(2)), talk(rpc(1), rpc(2))),
    ("stream_text", "AB", chat(texts("A", "B")), chat(texts("A"))),
    ("text", "AB", chat(texts("A", "B")), chat(texts("A"))),
    ("content", "AB", chat(texts("A", "B")), chat(texts("A"))),
    ("stream_texts", {"0": "a", "1": "b"}, chat(TWO), chat(texts("a"))),
    ("tool_arguments", '{"n":1}', chat(streamed(NAMED)), chat(streamed(OTHER))),
    ("tool_arguments", {"n": 1}, chat(streamed(NAMED)), chat(streamed(OTHER))),
    ("must_not_contain", [MAIL], chat(texts("x")), chat(texts("jane@", "example.com"))),
    ("must_not_contain", ["hidden"], talk(rpc(1)), talk(rpc(1, error=-1, message="hidden"))),
    ("must_contain", ["ok"], chat(texts("o", "k")), chat(texts("o"))),
    (
        "upstream_must_not_contain",
        [MAIL],
        chat(web({}, calls=[call_of({"a": "x"})])),
        chat(web({}, calls=[call_of({"a": f"to {MAIL}"})])),
    ),
    (
        "upstream_must_contain",
        ["x"],
        chat(web({}, calls=[call_of({"a": "x"})])),
        chat(web({}, calls=[call_of({})])),
    ),
    ("upstream_requests", 1, to("primary"), to("primary", "backup")),
    ("primary_requests", 1, to("primary", "backup"), to("backup")),
    ("backup_requests", 1, to("primary", "backup"), to("primary")),
    ("executed", [], tools(ran()), tools(ran("a"))),
    ("executed", ["a", "b"], tools(ran("a"), ran("b")), tools(ran("b"), ran("a"))),
    ("executed_lacks", ["a"], tools(ran("b")), tools(ran(), variants=[ran("a")])),
    ("reply_ids", ["1", 0], talk(rpc(0), rpc("1")), talk(rpc(0), rpc(1))),
    ("reply_ids", [1], talk(rpc(1)), talk(rpc(1), rpc(1))),
    (
        "replies",
        [{"id": None, "error_code": -32700}, {"id": 2, "result": {}}],
        talk(rpc(2), rpc(None, error=-32700)),
        talk(rpc(2, result={"a": 1}), rpc(None, error=-32700)),
    ),
    ("exit_code", 0, talk(), talk(exit_code=1)),
    ("exit_within_s", 2, talk(), talk(exit_after_s=7.0)),
    ("client_error", None, raised(None), raised(ValueError("x"))),
    ("client_error", "ValueError", raised(UnicodeError("x")), raised(None)),
    ("valid_ids", [1], talk(rpc(1)), talk(rpc(1, error=-32602))),
    ("invalid_ids", [1], talk(rpc(1, error=-32602)), talk(rpc(1), sent=[ping(1)])),
    ("headers", {"x-a": "b", "x-c": None}, chat(web(headers={"x-a": "b"})), chat(web())),
    ("finish_reason", "stop", chat(texts("a")), chat(TWO)),
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_key_holds_for_what_it_says_and_fails_for_something_else(
    row: tuple[str, Any, Seen, Seen],
) -> None:
    key, wanted, right, wrong = row
    KEYS[key](right, wanted)
    with pytest.raises(Mismatch):
        KEYS[key](wrong, wanted)


def test_every_key_is_shown_to_have_teeth() -> None:
    assert set(KEYS) == {row[0] for row in ROWS}


def test_keys_speak_of_the_base_request_and_not_of_variants() -> None:
    made = tools(web(status=403), variants=[web({}, executed=["a"])])
    KEYS["status"](made, 403)
    KEYS["executed"](made, [])


def test_without_an_exchange_no_key_about_answers_holds() -> None:
    for key in ("status", "error_code", "stream_text", "must_not_contain", "client_error"):
        with pytest.raises(Mismatch):
            KEYS[key](seen("llm"), None if key == "client_error" else [])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (-32602, rpc(1, result={"isError": True})),
        (-32601, rpc(1, error=-32602)),
        (-32001, rpc(1, error=-31001, data={"reason": "denied"})),
    ],
)
def test_the_profile_spec_translates_the_codes_of_the_brief(wanted: int, message: Any) -> None:
    KEYS["error_code"](tools(web(message), profile="spec"), wanted)
    with pytest.raises(Mismatch):
        KEYS["error_code"](tools(web(message)), wanted)


FAULTS = {"tidegate/faults": [{"pointer": "/amount", "rule": "missing", "sentence": "required"}]}
IN_RESULT = rpc(1, result={"isError": True, "_meta": FAULTS})


@pytest.mark.parametrize(
    ("message", "brief", "spec"),
    [
        (rpc(1, error=-32602), True, False),
        (IN_RESULT, False, True),
        (rpc(1, result={"isError": True}), False, False),
        (rpc(1, result={"isError": True, "_meta": {"tidegate/faults": []}}), False, False),
        (rpc(1), False, False),
    ],
)
def test_wrong_arguments_are_told_from_an_unwilling_world(
    message: Any, *, brief: bool, spec: bool
) -> None:
    assert profiles.wrong_arguments(message, "brief") is brief
    assert profiles.wrong_arguments(message, "spec") is spec
