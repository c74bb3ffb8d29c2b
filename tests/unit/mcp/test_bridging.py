"""What becomes of every method between any two revisions, and of its params on the way?"""

import itertools
from typing import Any

import pytest

from tidegate.jsonrpc import Code, Notification, Request
from tidegate.mcp import bridging
from tidegate.mcp.bridging import LEVELS, Course, Envelope, Refused, course, is_told, to_server
from tidegate.mcp.eras import LEGACY, MODERN

OLD, NEW = "2025-11-25", MODERN
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "gateway", "version": "1"}
OURS = {
    f"{PREFIX}protocolVersion": MODERN,
    f"{PREFIX}clientCapabilities": {},
    f"{PREFIX}clientInfo": CLIENT,
}
THEIRS = {
    f"{PREFIX}protocolVersion": MODERN,
    f"{PREFIX}clientCapabilities": {"sampling": {}},
    f"{PREFIX}clientInfo": {"name": "somebody"},
    f"{PREFIX}logLevel": "info",
}
CLIENTS = (MODERN, *LEGACY, None)
SERVERS = (MODERN, *LEGACY, "2024-11-05")
CARRIED = (
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/call",
    "tools/list",
)
# method: (legacy client, modern server), (modern, legacy), (legacy, legacy)
TABLE = {
    **dict.fromkeys(CARRIED, (Course.FORWARD, Course.FORWARD, Course.FORWARD)),
    "initialize": (Course.INTRODUCE, Course.UNKNOWN, Course.INTRODUCE),
    "server/discover": (Course.UNKNOWN, Course.INTRODUCE, Course.UNKNOWN),
    "ping": (Course.PONG, Course.UNKNOWN, Course.PONG),
    "logging/setLevel": (Course.LEVEL, Course.UNKNOWN, Course.LEVEL),
    "resources/subscribe": (Course.SUBSCRIBE, Course.UNKNOWN, Course.SUBSCRIBE),
    "resources/unsubscribe": (Course.UNSUBSCRIBE, Course.UNKNOWN, Course.UNSUBSCRIBE),
    "subscriptions/listen": (Course.UNKNOWN, Course.LISTEN, Course.UNKNOWN),
    "tasks/update": (Course.UNKNOWN, Course.UNKNOWN, Course.UNKNOWN),
    "x/unheard-of": (Course.UNKNOWN, Course.UNKNOWN, Course.UNKNOWN),
}
TASKS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")


@pytest.mark.parametrize("method", TABLE)
def test_every_method_has_its_course_between_any_two_revisions(method: str) -> None:
    upward, downward, level = TABLE[method]
    for client, server in itertools.product(CLIENTS, SERVERS):
        expected = (
            Course.FORWARD
            if client == server == MODERN
            else downward
            if client == MODERN
            else upward
            if server == MODERN
            else level
        )
        assert course(Request(1, method), client, server) is expected, (client, server)


@pytest.mark.parametrize("method", TASKS)
def test_tasks_are_carried_between_two_that_know_the_same_ones(method: str) -> None:
    for client, server in itertools.product(CLIENTS, SERVERS):
        same = client == server and client in (MODERN, "2025-11-25")
        expected = Course.FORWARD if same else Course.UNKNOWN
        assert course(Request(1, method), client, server) is expected, (client, server)


def test_notifications_are_dropped_but_for_cancellations_and_between_two_of_2026() -> None:
    for client, server in itertools.product(CLIENTS, SERVERS):
        gone = course(Notification("notifications/cancelled"), client, server)
        assert gone is Course.CANCEL
        for method in ("initialized", "progress", "roots/list_changed", "unheard_of"):
            found = course(Notification(f"notifications/{method}"), client, server)
            same = client == server == MODERN
            assert found is (Course.FORWARD if same else Course.DROP)


def sent(params: Any, client: str | None, server: str, **ours: Any) -> Any:
    message = to_server(Request(5, "tools/call", params), client, server, Envelope(CLIENT, **ours))
    assert isinstance(message, Request)
    assert (message.id, message.method) == (5, "tools/call")
    return message.params


@pytest.mark.parametrize("client", [*LEGACY, None])
def test_a_modern_server_gets_the_gateway_s_envelope(client: str | None) -> None:
    assert sent({"name": "t"}, client, NEW) == {"name": "t", "_meta": OURS}
    assert sent(None, client, NEW) == {"_meta": OURS}
    for level in LEVELS:
        told = sent({}, client, NEW, level=level)
        assert told == {"_meta": {**OURS, f"{PREFIX}logLevel": level}}
    forged = {"_meta": {**THEIRS, "traceparent": "00-x", "progressToken": 3}}
    kept = {"traceparent": "00-x", "progressToken": "own"}
    assert sent(forged, client, NEW, progress="own") == {"_meta": {**kept, **OURS}}


@pytest.mark.parametrize("server", [*LEGACY, "2024-11-05"])
def test_a_legacy_server_gets_no_envelope(server: str) -> None:
    whole = {"name": "t", "_meta": {**THEIRS, "progressToken": 0, "x": 1}}
    assert sent(whole, NEW, server, progress=9) == {
        "name": "t",
        "_meta": {"progressToken": 9, "x": 1},
    }
    assert sent({"_meta": THEIRS}, NEW, server) is None
    assert sent({"name": "t", "_meta": THEIRS}, NEW, server) == {"name": "t"}
    assert sent({"_meta": "odd"}, NEW, server) is None


def test_a_progress_token_is_replaced_only_where_there_was_one() -> None:
    for client, server in itertools.product(CLIENTS, SERVERS):
        meta = sent({"_meta": {"x": 1}}, client, server, progress="own")["_meta"]
        assert "progressToken" not in meta
        meta = sent({"_meta": {"progressToken": 0}}, client, server, progress="own")["_meta"]
        assert meta["progressToken"] == "own"


def test_a_request_between_two_of_one_revision_is_what_it_was() -> None:
    for version in LEGACY:
        params = {"name": "t", "task": {"ttl": 1}, "_meta": {"x": 1}}
        assert sent(params, version, version) == params
    params = {"name": "t", "requestState": "s", "inputResponses": {}, "_meta": THEIRS}
    assert sent(params, NEW, NEW) == params


def test_a_task_that_no_one_agreed_on_is_not_asked_for() -> None:
    for client, server in itertools.product(LEGACY, SERVERS):
        params = sent({"name": "t", "task": {"ttl": 1}}, client, server)
        assert ("task" in params) == (client == server)


def test_a_state_that_no_server_gave_out_is_refused_and_an_answer_to_nothing_left_out() -> None:
    for server in LEGACY:
        call = Request(1, "tools/call", {"name": "t", "requestState": "s"})
        refused = to_server(call, NEW, server, Envelope(CLIENT))
        assert isinstance(refused, Refused)
        assert refused.code == Code.INVALID_PARAMS
        assert sent({"name": "t", "inputResponses": {"a": {}}}, NEW, server) == {"name": "t"}


def test_nothing_of_the_client_s_message_is_written_to() -> None:
    params = {"name": "t", "task": {}, "_meta": {**THEIRS, "progressToken": 1}}
    before = repr(params)
    for client, server in itertools.product(CLIENTS, SERVERS):
        to_server(Request(1, "tools/call", params), client, server, Envelope(CLIENT, "info", "x"))
    assert repr(params) == before


def test_there_and_back_nothing_but_the_envelope_has_changed() -> None:
    plain = {"name": "t", "arguments": {"a": [1, "1", None]}, "_meta": {"x": 1}}
    for old in LEGACY:
        assert sent(sent(plain, old, NEW), NEW, old) == plain


def test_our_own_requests_wear_the_envelope_where_there_is_one() -> None:
    old = bridging.own_request("i", "tools/list", {}, OLD, Envelope(CLIENT))
    new = bridging.own_request("i", "tools/list", {}, NEW, Envelope(CLIENT))
    assert (old.params, new.params) == (None, {"_meta": OURS})


def test_levels_reach_who_wants_them_or_less_important_ones() -> None:
    for told, wanted in itertools.product(LEVELS, LEVELS):
        assert is_told(told, wanted) == (LEVELS.index(told) >= LEVELS.index(wanted))
    for odd in (None, "loud", 3, ["info"]):
        assert not is_told(odd, "debug")
    assert not is_told("emergency", None)


@pytest.mark.parametrize(
    ("meta", "level", "token"),
    [
        (None, None, None),
        ({}, None, None),
        ("odd", None, None),
        ({f"{PREFIX}logLevel": "loud", "progressToken": True}, None, None),
        ({f"{PREFIX}logLevel": "error", "progressToken": 0}, "error", 0),
        ({f"{PREFIX}logLevel": ["info"], "progressToken": ""}, None, ""),
        ({f"{PREFIX}logLevel": None, "progressToken": 1.5}, None, None),
    ],
)
def test_the_level_and_the_token_of_a_request(meta: object, level: object, token: object) -> None:
    params: Any = None if meta is None else {"_meta": meta}
    assert bridging.level_wanted(params) == level
    assert bridging.progress_token(params) == token


def test_a_ping_is_answered_and_nothing_else_that_a_server_asks() -> None:
    assert bridging.refusal_of_ask("ping") is None
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "x"):
        refused = bridging.refusal_of_ask(method)
        assert refused is not None
        assert refused.code == Code.METHOD_NOT_FOUND
