"""Is the era the body's, and is a header that says something else refused?"""

from dataclasses import replace
from itertools import product

import pytest

from tests.unit.mcp.asking import ask, call, tell
from tidegate.jsonrpc import Batch, Call, Code, Notification, Request, Response
from tidegate.mcp.eras import (
    LEGACY,
    MODERN,
    SUPPORTED,
    McpHeaders,
    Rejection,
    Revision,
    accepts_events,
    read_headers,
    settle,
    upstream_headers,
    with_arguments,
)
from tidegate.mcp.header_values import encode_value

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def headers(**pairs: str | list[str]) -> McpHeaders:
    """`mcp_name="x"` stands for the header Mcp-Name; a list for several of that name."""
    raw = []
    for name, values in pairs.items():
        for value in values if isinstance(values, list) else [values]:
            raw.append((name.replace("_", "-").encode(), value.encode("latin-1")))
    return read_headers(raw)


def modern(message: Call, version: object = MODERN, *, capabilities: bool = True) -> Call:
    meta: dict[str, object] = {VERSION: version}
    if capabilities:
        meta[CAPABILITIES] = {}
    params = {**(message.params or {}), "_meta": meta}
    if isinstance(message, Request):
        return Request(message.id, message.method, params)
    return Notification(message.method, params)


def full(message: Call, **more: str) -> McpHeaders:
    """The headers that 2026-07-28 demands for this message."""
    pairs: dict[str, str] = {"mcp_protocol_version": MODERN, "mcp_method": message.method, **more}
    name = (message.params or {}).get("name")
    if isinstance(name, str) and message.method in ("tools/call", "prompts/get"):
        pairs.setdefault("mcp_name", encode_value(name))
    return headers(**pairs)


MISMATCH = Code.HEADER_MISMATCH
CALL = call("admin_reset_key")


def code_of(outcome: Revision | Rejection) -> int | None:
    return outcome.code if isinstance(outcome, Rejection) else None


def test_a_modern_message_with_its_headers_is_modern() -> None:
    for message in (modern(CALL), modern(ask("tools/list")), modern(tell("notifications/x"))):
        assert settle(message, full(message)) == Revision(MODERN)


VERSIONS = [None, MODERN, *LEGACY, "2024-11-05", "2099-01-01"]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != MODERN])
@pytest.mark.parametrize("names", [{}, {"mcp_method": "tools/call", "mcp_name": "admin_reset_key"}])
def test_no_version_header_talks_a_modern_body_out_of_the_rules(
    version: str | None, names: dict[str, str]
) -> None:
    pairs = dict(names) if version is None else {"mcp_protocol_version": version, **names}
    assert code_of(settle(modern(CALL), headers(**pairs))) == MISMATCH


def test_two_version_headers_are_refused_in_both_orders() -> None:
    for versions in ([MODERN, LEGACY[0]], [LEGACY[0], MODERN], [MODERN, MODERN]):
        sent = headers(
            mcp_protocol_version=versions, mcp_method="tools/call", mcp_name="admin_reset_key"
        )
        assert code_of(settle(modern(CALL), sent)) == MISMATCH


METHODS = [None, "tools/call", "tools/list", "Tools/Call"]
NAMES = [
    None,
    "admin_reset_key",
    "get_status",
    "Admin_reset_key",
    "=?base64?YWRtaW5fcmVzZXRfa2V5?=",
    "=?base64?Z2V0X3N0YXR1cw==?=",
    "=?BASE64?YWRtaW5fcmVzZXRfa2V5?=",
    "=?base64?YWRtaW5fcmVzZXRfa2V5",
    "=?base64?YWRtaW5fcmVzZXRfa2V6=?=",
    "=?base64?*?=",
    "=?base64?/w==?=",
]
RIGHT_NAMES = {"admin_reset_key", "=?base64?YWRtaW5fcmVzZXRfa2V5?="}


@pytest.mark.parametrize(
    ("is_modern", "method", "name"), list(product([True, False], METHODS, NAMES))
)
def test_method_and_name_headers_agree_with_the_body_or_the_request_is_refused(
    method: str | None, name: str | None, *, is_modern: bool
) -> None:
    message = modern(CALL) if is_modern else CALL
    pairs = {} if method is None else {"mcp_method": method}
    if name is not None:
        pairs["mcp_name"] = name
    if is_modern:
        pairs["mcp_protocol_version"] = MODERN
    good_method = method == "tools/call" or (method is None and not is_modern)
    good_name = name in RIGHT_NAMES or (name is None and not is_modern)
    outcome = settle(message, headers(**pairs))
    if good_method and good_name:
        assert outcome == Revision(MODERN if is_modern else None)
    else:
        assert code_of(outcome) == MISMATCH


@pytest.mark.parametrize("message", [ask("tools/list"), ask("tools/call"), call(5), tell("x")])
@pytest.mark.parametrize("is_modern", [True, False])
def test_a_name_header_without_a_name_in_the_body_is_refused(
    message: Call, *, is_modern: bool
) -> None:
    pairs = {"mcp_name": "echo", "mcp_method": message.method}
    if is_modern:
        pairs["mcp_protocol_version"] = MODERN
    sent = modern(message) if is_modern else message
    assert code_of(settle(sent, headers(**pairs))) == MISMATCH


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_version_needs_no_other_header(version: str) -> None:
    assert settle(CALL, headers(mcp_protocol_version=version)) == Revision(version)


def test_without_any_version_the_session_tells_or_nobody() -> None:
    assert settle(CALL, headers()) == Revision(None)
    assert settle(CALL, headers(), session_version="2025-06-18") == Revision("2025-06-18")


@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", "x" * 200])
@pytest.mark.parametrize(
    "message", [CALL, tell("notifications/x"), Response(1, {}), Batch((CALL,))]
)
def test_an_unknown_version_is_told_which_are_known(version: str, message: Call) -> None:
    outcome = settle(message, headers(mcp_protocol_version=version))
    assert outcome == Rejection(
        Code.UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        {"supported": list(SUPPORTED), "requested": version[:64]},
    )


@pytest.mark.parametrize("version", [*LEGACY, "2099-01-01"])
def test_an_envelope_of_another_version_is_unsupported(version: str) -> None:
    outcome = settle(modern(ask("ping"), version), headers(mcp_protocol_version=version))
    assert code_of(outcome) == Code.UNSUPPORTED_VERSION


def test_an_envelope_with_an_odd_version_contradicts_every_header() -> None:
    for version in (1, True, [MODERN], {}, None, ""):
        envelope = modern(ask("ping"), version)
        assert code_of(settle(envelope, full(ask("ping")))) == MISMATCH
        assert code_of(settle(envelope, headers())) == MISMATCH
        assert code_of(settle(Batch((envelope,)), headers())) == Code.INVALID_REQUEST


def test_a_modern_header_demands_the_envelope() -> None:
    sent = full(ask("ping"))
    assert code_of(settle(ask("ping"), sent)) == Code.INVALID_PARAMS
    assert code_of(settle(modern(ask("ping"), capabilities=False), sent)) == Code.INVALID_PARAMS
    assert settle(tell("ping"), sent) == Revision(MODERN)


def test_a_modern_header_without_a_name_is_a_mismatch_before_all_else() -> None:
    sent = headers(mcp_protocol_version=MODERN, mcp_method="tools/call")
    assert code_of(settle(CALL, sent)) == MISMATCH


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("session", [None, *LEGACY])
def test_batches_belong_to_one_revision(version: str | None, session: str | None) -> None:
    sent = headers() if version is None else headers(mcp_protocol_version=version)
    outcome = settle(Batch((CALL, tell("x"))), sent, session_version=session)
    effective = version or session
    if effective in (None, "2025-03-26"):
        assert outcome == Revision(effective)
    elif effective in SUPPORTED:
        assert code_of(outcome) == Code.INVALID_REQUEST
    else:
        assert code_of(outcome) == Code.UNSUPPORTED_VERSION


def test_a_batch_has_no_envelope_and_no_describing_headers() -> None:
    assert code_of(settle(Batch((CALL, modern(CALL))), headers())) == Code.INVALID_REQUEST
    for pairs in ({"mcp_method": "tools/call"}, {"mcp_name": "x"}, {"mcp_param_x": "y"}):
        assert code_of(settle(Batch((CALL,)), headers(**pairs))) == MISMATCH


def test_only_legacy_clients_post_answers() -> None:
    answer = Response(1, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert settle(answer, headers(), session_version="2025-11-25") == Revision("2025-11-25")
    sent = headers(mcp_protocol_version=MODERN)
    assert code_of(settle(answer, sent)) == Code.INVALID_REQUEST


@pytest.mark.parametrize(
    "pairs",
    [
        {"mcp_name": ["a", "a"]},
        {"Mcp_Name": "a", "mcp_name": "a"},
        {"mcp_param_x": ["a", "a"]},
        {"mcp_session_id": ["a", "b"]},
        {"mcp_method": "tools/\x7fcall"},
        {"mcp_name": "\xe9"},
        {"mcp_name": ""},
        {"mcp_session_id": "a\tb"},
        {f"mcp_param_{n}": "x" for n in range(65)},
    ],
)
def test_doubled_and_dirty_headers_are_refused(pairs: dict[str, str]) -> None:
    assert code_of(settle(CALL, headers(**pairs))) == MISMATCH


def test_what_goes_upstream_comes_from_the_body() -> None:
    message = modern(call("a b"))
    sent = full(message, mcp_param_region="eu", traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    assert upstream_headers(message, Revision(MODERN), sent) == [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "a b"),
        ("mcp-param-region", "eu"),
        ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"),
    ]


def test_a_header_follows_the_argument_that_it_repeats() -> None:
    sent = full(CALL, mcp_param_a="old", mcp_param_b=encode_value("\u00e4"), mcp_param_c="same")
    old = {"a": "old", "deep": {"b": "\u00e4"}, "c": "same"}
    moved = with_arguments(sent, old, {"a": "new \u00e4", "deep": {"b": "plain"}, "c": "same"})
    assert dict(moved.params) == {
        "mcp-param-a": encode_value("new \u00e4"),
        "mcp-param-b": "plain",
        "mcp-param-c": "same",
    }
    assert replace(moved, params=sent.params) == sent
    lost = with_arguments(sent, old, {"c": "same"})
    assert lost.params == (("mcp-param-c", "same"),)


ARGUMENTS = {"amount": 5, "deep": {"note": "caf\u00e9"}, "list": ["in a list"], "none": None}


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize(
    ("value", "is_said"),
    [
        ("5", True),
        ("5.0", True),
        (encode_value("caf\u00e9"), True),
        ("900", False),
        ("in a list", False),
        ("null", False),
        ("None", False),
    ],
)
def test_a_param_header_repeats_an_argument_or_the_request_is_refused(
    method: str, value: str, *, is_said: bool
) -> None:
    message = modern(ask(method, name="pay", arguments=ARGUMENTS))
    outcome = settle(message, full(message, mcp_param_amount=value))
    if is_said:
        assert outcome == Revision(MODERN)
    else:
        wrong = "Header mismatch: an Mcp-Param header says what no argument does"
        assert outcome == Rejection(MISMATCH, wrong)
    both = full(message, mcp_param_note="5", mcp_param_other=value)
    assert (settle(message, both) == Revision(MODERN)) is is_said


@pytest.mark.parametrize(
    "message", [CALL, call("x", []), call("x", "5"), ask("tools/list"), tell("notifications/x")]
)
def test_without_arguments_no_param_header_is_right(message: Call) -> None:
    sent = modern(message)
    assert settle(sent, full(sent)) == Revision(MODERN)
    assert code_of(settle(sent, full(sent, mcp_param_x="5"))) == MISMATCH


def test_a_call_without_an_answer_has_no_other_headers_either() -> None:
    told = modern(tell("tools/call", name="pay", arguments=ARGUMENTS))
    assert settle(told, full(told, mcp_param_amount="5")) == Revision(MODERN)
    assert code_of(settle(told, full(told, mcp_param_amount="6"))) == MISMATCH


@pytest.mark.parametrize("version", [None, *LEGACY])
def test_before_2026_07_28_a_param_header_means_nothing_and_goes_nowhere(
    version: str | None,
) -> None:
    pairs = {} if version is None else {"mcp_protocol_version": version}
    message, sent = call("pay", ARGUMENTS), headers(mcp_param_amount="900", **pairs)
    revision = settle(message, sent)
    assert revision == Revision(version)
    assert isinstance(revision, Revision)
    assert not any("param" in name for name, _ in upstream_headers(message, revision, sent))


def test_legacy_requests_carry_their_version_and_nothing_else() -> None:
    sent = headers(mcp_method="tools/call", mcp_param_x="1", traceparent="nonsense")
    assert upstream_headers(CALL, Revision("2025-11-25"), sent) == [
        ("MCP-Protocol-Version", "2025-11-25")
    ]
    assert upstream_headers(CALL, Revision(None), sent) == []
    assert upstream_headers(ask("initialize"), Revision("2025-11-25"), sent) == []


def test_parameters_of_headers_go_with_tool_calls_only() -> None:
    message = modern(ask("tools/list"))
    assert upstream_headers(message, Revision(MODERN), full(message, mcp_param_x="1")) == [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/list"),
    ]


@pytest.mark.parametrize(
    ("accept", "named", "any_"),
    [
        (None, False, True),
        ("*/*", False, True),
        ("text/*;q=0.5", False, True),
        ("application/json", False, False),
        ("application/json, text/event-stream", True, True),
        ("Text/Event-Stream; q=1", True, True),
        (["application/json", "text/event-stream"], True, True),
    ],
)
def test_what_a_client_takes_is_read_from_accept(
    accept: str | list[str] | None, *, named: bool, any_: bool
) -> None:
    sent = headers() if accept is None else headers(accept=accept)
    assert accepts_events(sent, named=True) is named
    assert accepts_events(sent, named=False) is any_
