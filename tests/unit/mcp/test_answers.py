"""Does exactly our answer come through, without what it should not carry?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.answers import (
    GENERIC_MESSAGE,
    PASSING_CODES,
    Ask,
    Incoming,
    Note,
    Reply,
    about,
    clean,
    generic,
    parse,
    restored,
    says_unknown,
    sort,
)
from tidegate.mcp.authorize import Subject

OK = {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_bytes_of_one_document_are_kept_and_those_of_an_array_are_not() -> None:
    raw = b' {"jsonrpc":"2.0","id":1,"result":{"big":9007199254740993,"dec":0.10}} '
    assert parse(raw)[0].raw is raw
    assert parse(b"[1,2]") == [Incoming(1), Incoming(2)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"<html>",
        b'{"a":1,"a":2}',
        b'{"tools":[],"tools":[1]}',
        b'{"a":NaN}',
        b"{} {}",
        b"\xff",
        b"[" * 200 + b"]" * 200,
        b'{"a":"\\ud83d","b":NaN}',
        b'"\\ud83d',
    ],
)
def test_what_two_readers_could_read_differently_is_nothing(data: bytes) -> None:
    assert parse(data) == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'"cut \\ud83d"', "cut \ufffd"),
        (b'"\\ude00 cut"', "\ufffd cut"),
        (b'"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
        (b'"\\\\ud83d \\ud83d"', "\\ud83d \ufffd"),
        (b'"\\ud83d\\n"', "\ufffd\n"),
    ],
)
def test_half_a_surrogate_pair_is_mended(data: bytes, text: str) -> None:
    (incoming,) = parse(data)
    assert incoming.value == text
    assert json.loads(incoming.raw or b"") == text


@given(st.text(st.characters(), max_size=12))
def test_mending_leaves_every_other_character_alone(text: str) -> None:
    mended = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    joined = json.loads(json.dumps(text))  # joins halves that happen to meet
    if joined == text:
        assert parse(json.dumps(text).encode())[0].value == mended


@pytest.mark.parametrize("sent", [1, "1", 0, "", 7])
@pytest.mark.parametrize("got", [1, "1", 0, "", None, True, False, 1.0, [1]])
def test_an_answer_is_ours_only_with_our_id_in_its_type(sent: int | str, got: object) -> None:
    ours = type(sent) is type(got) and sent == got
    reply = sort(Incoming({**OK, "id": got}), sent)
    assert isinstance(reply, Reply) is ours
    assert ours or reply is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {},
        {"id": 1, "result": {}},
        {**OK, "jsonrpc": "1.0"},
        {**OK, "error": {}},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "method": 1},
        {"jsonrpc": "2.0", "method": "x", "result": {}},
        {"jsonrpc": "2.0", "method": "x", "id": None},
        {"jsonrpc": "2.0", "method": "x", "id": True},
    ],
)
def test_what_is_no_message_goes_nowhere(value: object) -> None:
    assert sort(Incoming(value), 1) is None


def test_notifications_and_questions_are_told_apart() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    assert sort(Incoming(note, b"raw"), 1) == Note(note, "notifications/message", b"raw")
    question = {"jsonrpc": "2.0", "method": "sampling/createMessage", "id": 1}
    assert sort(Incoming(question), 1) == Ask(question, "sampling/createMessage", 1, None)


def test_nothing_beside_the_members_of_a_message_passes() -> None:
    for extra in ("note", "Result", "results", "METHOD", "_meta"):
        reply = sort(Incoming({**OK, extra: "x"}, b"raw"), 1)
        assert reply == Reply(OK, None)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        assert sort(Incoming({**note, extra: "x"}, b"raw"), 1) == Note(note, note["method"], None)
        ask = {**note, "id": 7}
        assert sort(Incoming({**ask, extra: "x"}, b"raw"), 1) == Ask(ask, ask["method"], 7, None)


def error(code: object, message: object = "text", **more: object) -> Reply:
    return Reply(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message, **more}}, b""
    )


@pytest.mark.parametrize("code", sorted(PASSING_CODES))
def test_errors_of_the_specification_pass(code: int) -> None:
    reply = error(code, "Unknown tool: x", data={"supported": ["2025-11-25"]})
    assert clean(reply, "r1") is reply


LEAK = "secret db-3.internal"


@pytest.mark.parametrize(
    "reply",
    [
        error(-32603, LEAK),
        error(0, LEAK),
        error(-32000, LEAK),
        error(-32700, LEAK),
        error(1, LEAK),
        error(500, LEAK),
        error(-32602.0, LEAK),
        error(True, LEAK),
        error(None, LEAK),
        error("-32602", LEAK),
        error(-32602, None),
        error(-32602, LEAK, trace=LEAK),
        error(-32602, {"text": LEAK}),
        Reply({"jsonrpc": "2.0", "id": 1, "error": LEAK}, None),
        Reply({"jsonrpc": "2.0", "id": 1, "error": None}, None),
    ],
)
def test_any_other_error_becomes_the_generic_one(reply: Reply) -> None:
    cleaned = clean(reply, "r1")
    assert cleaned == Reply(generic(None, "r1"), None)
    assert cleaned.message["error"] == {
        "code": -32603,
        "message": GENERIC_MESSAGE,
        "data": {"request_id": "r1"},
    }


def test_a_long_error_text_is_cut() -> None:
    cleaned = clean(error(-32602, "x" * 5000), "r1")
    assert cleaned.message["error"] == {"code": -32602, "message": "x" * 1000}
    assert cleaned.raw is None


def test_results_pass_whatever_they_hold() -> None:
    reply = Reply({**OK, "result": None}, b"")
    assert clean(reply, "r1") is reply


@pytest.mark.parametrize("id", [{}, {"id": None}, {"id": "server-error"}, {"id": 1}])
def test_an_error_under_a_refusing_status_is_about_what_was_sent(id: dict[str, object]) -> None:  # noqa: A002
    value = {"jsonrpc": "2.0", **id, "error": {"code": -32600, "message": "no"}}
    for status, ours in ((400, True), (404, True), (200, False), (500, False)):
        mine = sort(about(Incoming(value, b"as it came"), "mine", status), "mine")
        assert isinstance(mine, Reply) == ours
    for other in ({"jsonrpc": "2.0", **id, "result": {}}, [value], 5, None):
        assert sort(about(Incoming(other), "mine", 400), "mine") is None


def text_result(*texts: object, is_error: object = True) -> dict[str, object]:
    content = [{"type": "text", "text": text} for text in texts]
    return {**OK, "result": {"content": content, "isError": is_error}}


TOOL, PROMPT, FILE = Subject("tools", "x"), Subject("prompts", "x"), Subject("resources", "x")
UNKNOWN_TEXTS = [
    (TOOL, "Unknown tool: x"),
    (TOOL, "unknown tool 'x'"),
    (TOOL, "Tool x not found"),
    (Subject("tools", "admin_x"), "The tool admin_x does not exist"),
    (TOOL, "MCP error -32602: Tool x not found"),
    (TOOL, "Invalid tool name: x"),
    (PROMPT, "Prompt greet not found"),
    (PROMPT, "No such prompt"),
    (FILE, "Unknown resource: file:///x"),
    (FILE, "Resource file:///x not found"),
    (TOOL, "Tool 'x' is not available"),
    (TOOL, "Unsupported tool x"),
]
OTHER_TEXTS = [
    "customer not found",
    "Invalid arguments for tool x",
    "Invalid tool arguments: x",
    "invalid tool input",
    "the file was not found by the tool",
    "Tool x failed: disk full",
    "",
]


@pytest.mark.parametrize(("subject", "text"), UNKNOWN_TEXTS)
def test_servers_say_unknown_in_many_words(subject: Subject, text: str) -> None:
    assert says_unknown(error(-32602, text).message, subject)
    assert says_unknown(error(-32002, text).message, subject)
    assert says_unknown(text_result(text), subject)


@pytest.mark.parametrize("text", OTHER_TEXTS)
@pytest.mark.parametrize("subject", [TOOL, PROMPT, FILE])
def test_other_failures_are_not_taken_for_unknown(text: str, subject: Subject) -> None:
    assert not says_unknown(error(-32602, text).message, subject)
    assert not says_unknown(text_result(text), subject)


@pytest.mark.parametrize(("subject", "text"), UNKNOWN_TEXTS)
def test_what_is_said_of_another_kind_says_nothing(subject: Subject, text: str) -> None:
    for kind in ("tools", "prompts", "resources"):
        if kind != subject.kind:
            assert not says_unknown(text_result(text), Subject(kind, subject.name))


@pytest.mark.parametrize(
    "text",
    [
        "No such tool",
        "Tool run finished; output file not found",
        "Resource of x not found",
        "tool version not known",
        "Invalid resource id x",
    ],
)
def test_what_does_not_name_a_tool_is_not_about_it(text: str) -> None:
    assert not says_unknown(error(-32602, text).message, TOOL)
    assert not says_unknown(error(-32002, text).message, TOOL)
    assert not says_unknown(text_result(text), TOOL)


def test_unknown_needs_the_right_kind_of_answer() -> None:
    for subject in (TOOL, PROMPT, FILE):
        assert says_unknown(error(-32601, "anything").message, subject)
    assert says_unknown(error(-32002, "anything").message, FILE)
    for message in (
        error(-32603, "Unknown tool: x").message,
        error(-32602, None).message,
        text_result("Unknown tool: x", is_error=False),
        text_result("Unknown tool: x", is_error="yes"),
        text_result("Unknown tool: x", "more"),
        text_result(),
        text_result(5),
        {**OK, "result": None},
        {**OK, "result": {"isError": True}},
        {**OK, "result": {"isError": True, "content": ["x"]}},
    ):
        assert not says_unknown(message, TOOL)


def masked(value: object) -> object:
    """Every text masked, as the worst redactor would."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return "*" if isinstance(value, str) else value


def test_masking_leaves_the_protocol_working() -> None:
    result = {
        "nextCursor": "c",
        "requestState": "s",
        "resultType": "complete",
        "content": [{"type": "text", "text": "t"}],
        "tools": [{"name": "n", "description": "d", "inputSchema": {"const": "x"}}, "odd"],
        "prompts": [{"name": "n", "title": "t"}],
        "resources": [{"uri": "u", "name": "n"}],
        "resourceTemplates": [{"uriTemplate": "u", "name": "n"}],
        "tasks": [{"taskId": "i", "name": "n"}],
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}, "other": "o"},
    }
    assert restored(result, masked(result), lists=True) == {
        "nextCursor": "c",
        "requestState": "s",
        "resultType": "complete",
        "content": [{"type": "*", "text": "*"}],
        "tools": [{"name": "n", "description": "*", "inputSchema": {"const": "x"}}, "*"],
        "prompts": [{"name": "n", "title": "*"}],
        "resources": [{"uri": "u", "name": "*"}],
        "resourceTemplates": [{"uriTemplate": "u", "name": "*"}],
        "tasks": [{"taskId": "i", "name": "*"}],
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}, "other": "*"},
    }


def test_what_only_looks_like_a_list_or_a_handle_stays_masked() -> None:
    result = {"content": [], "resources": [{"uri": "u", "name": "n"}], "uri": "u"}
    assert restored(result, masked(result)) == masked(result)
    updated = {"uri": "u", "title": "t"}
    assert restored(updated, masked(updated), uri=True) == {"uri": "u", "title": "*"}


def test_a_masked_value_that_is_no_object_stays_masked() -> None:
    assert restored("a", "*") == "*"
    assert restored({"_meta": "x", "tools": "y"}, {"_meta": "*", "tools": "*"}, lists=True) == {
        "_meta": "*",
        "tools": "*",
    }


@pytest.mark.parametrize("id", [1, "1", 0, "", None])
def test_without_a_call_nothing_is_its_answer(id: object) -> None:  # noqa: A002
    assert sort(Incoming({**OK, "id": id}), None) is None
    note = {"jsonrpc": "2.0", "method": "notifications/message"}
    assert sort(Incoming(note), None) == Note(note, "notifications/message", None)


def test_a_place_without_a_message_is_nothing_to_anybody() -> None:
    assert sort(Incoming(None, None, "e1", 500), 1) is None
