"""Whose answer is this line, and what becomes of everything that is none?"""

import json
from typing import Any

import pytest

from tests.unit.mcp.stdio_talk import ALICE, BOB, answer, asked, hear, note
from tidegate.jsonrpc import Notification, Request
from tidegate.mcp.sessions import NOBODY
from tidegate.mcp.stdio_upstream import (
    NOT_SUPPORTED,
    Conversation,
    Delivered,
    Failed,
    Heard,
    Told,
)

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


# Ids


@pytest.mark.parametrize("client_id", [0, 1, -5, 2**40, "", "1", "a" * 500, "ü\n"])
def test_a_call_goes_out_under_an_id_of_ours_and_comes_back_under_its_own(client_id: Any) -> None:
    talk = Conversation()
    asked(talk, "somebody else")
    call, sent = asked(talk, client_id, name="echo")
    assert sent == {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}}
    (delivered,) = hear(talk, answer(2, "hello"))
    assert isinstance(delivered, Delivered)
    assert (delivered.call, delivered.last) == (call, True)
    assert delivered.incoming.value == answer(client_id, "hello")
    assert json.loads(delivered.incoming.raw or b"") == answer(client_id, "hello")


def test_two_clients_with_the_same_id_at_once_have_their_own_answers() -> None:
    talk = Conversation()
    (first, one), (second, two) = asked(talk, 1, ALICE), asked(talk, 1, BOB)
    events = hear(talk, answer(two["id"], "for bob"), answer(one["id"], "for alice"))
    assert [(e.call, e.incoming.value) for e in events if isinstance(e, Delivered)] == [
        (second, answer(1, "for bob")),
        (first, answer(1, "for alice")),
    ]


def test_an_id_is_never_used_twice_so_a_late_answer_meets_nobody() -> None:
    talk = Conversation()
    call, first = asked(talk, 1)
    hear(talk, answer(first["id"], "once"))
    _, second = asked(talk, 1, BOB)
    assert second["id"] != first["id"]
    assert hear(talk, answer(first["id"], "twice")) == []
    assert (talk.tally.stray_answers, talk.open_calls) == (1, 1)
    assert talk.leave(call) == b""


@pytest.mark.parametrize("strange", ["1", 1.0, True, None, 2, -1, "x", [1], {"a": 1}, 10**30])
def test_an_answer_to_an_id_that_only_looks_like_ours_is_dropped(strange: object) -> None:
    talk = Conversation()
    asked(talk, "1")
    assert hear(talk, answer(strange)) == []
    assert (talk.tally.stray_answers, talk.open_calls) == (1, 1)


@pytest.mark.parametrize(
    "members",
    [{}, {"result": {}, "error": {"code": 1, "message": ""}}],
    ids=["neither", "both"],
)
def test_an_answer_that_is_none_ends_its_call(members: dict[str, Any]) -> None:
    talk = Conversation()
    call, sent = asked(talk)
    assert hear(talk, {"jsonrpc": "2.0", "id": sent["id"], **members}) == [
        Failed(call, "malformed")
    ]
    assert talk.open_calls == 0


def test_errors_come_back_like_results() -> None:
    talk = Conversation()
    asked(talk, "a")
    error = {"code": -32602, "message": "no", "data": {"id": 1}}
    (delivered,) = hear(talk, {"jsonrpc": "2.0", "id": 1, "error": error})
    assert isinstance(delivered, Delivered)
    assert delivered.incoming.value == {"jsonrpc": "2.0", "id": "a", "error": error}


def test_an_array_of_answers_reaches_each_call() -> None:
    talk = Conversation()
    (first, _), (second, _) = asked(talk, 7), asked(talk, 7, BOB)
    events = hear(talk, [answer(2, "b"), answer(1, "a")])
    assert [e.call for e in events if isinstance(e, Delivered)] == [second, first]


def test_a_large_answer_leaves_its_bytes_to_whoever_masks_it() -> None:
    talk = Conversation()
    asked(talk, "a")
    (delivered,) = hear(talk, answer(1, "x" * 70_000))
    assert isinstance(delivered, Delivered)
    assert delivered.incoming.raw is None
    assert delivered.incoming.value == answer("a", "x" * 70_000)


# Progress and subscriptions


@pytest.mark.parametrize("token", [0, 5, "5", "t", ""])
def test_progress_comes_back_under_the_token_of_the_client(token: object) -> None:
    talk = Conversation()
    asked(talk, 1, BOB, _meta={"progressToken": token})
    call, sent = asked(talk, 1, ALICE, name="x", _meta={"progressToken": token, "other": 1})
    assert sent["params"] == {"name": "x", "_meta": {"progressToken": 2, "other": 1}}
    (told,) = hear(talk, note("notifications/progress", progressToken=2, progress=0.5))
    shown = note("notifications/progress", progressToken=token, progress=0.5)
    assert isinstance(told, Delivered)
    assert (told.call, told.last, told.lossy) == (call, False, True)
    assert told.incoming.value == shown
    assert json.loads(told.incoming.raw or b"") == shown


@pytest.mark.parametrize("token", [1, 3, "2", 2.0, None, True, {}])
def test_progress_of_a_call_that_did_not_ask_for_any_is_dropped(token: object) -> None:
    talk = Conversation()
    asked(talk, 1)
    asked(talk, 2, _meta={"progressToken": 3})
    assert hear(talk, note("notifications/progress", progressToken=token)) == []
    assert talk.tally.stray_notes == 1


@pytest.mark.parametrize("token", [True, 1.5, None, [], {}])
def test_a_token_that_is_none_stays_as_it_is(token: object) -> None:
    _, sent = asked(Conversation(), 1, _meta={"progressToken": token})
    assert sent["params"] == {"_meta": {"progressToken": token}}


def test_progress_behind_the_answer_goes_nowhere() -> None:
    talk = Conversation()
    asked(talk, 1, _meta={"progressToken": "t"})
    late = note("notifications/progress", progressToken=1, progress=1)
    assert [type(e) for e in hear(talk, late, answer(1), late)] == [Delivered, Delivered]


@pytest.mark.parametrize("named", [2, "2"])
@pytest.mark.parametrize("client_id", ["mine", 40])
def test_what_belongs_to_a_subscription_reaches_its_call(named: object, client_id: Any) -> None:
    talk = Conversation()
    asked(talk, "another")
    call, _ = asked(talk, client_id)
    own = str(client_id) if isinstance(named, str) else client_id
    changed = note("notifications/tools/list_changed", _meta={SUBSCRIPTION: named, "a": 1})
    (told,) = hear(talk, changed)
    assert isinstance(told, Delivered)
    assert (told.call, told.last, told.lossy) == (call, False, False)
    assert told.incoming.value == note(
        "notifications/tools/list_changed", _meta={SUBSCRIPTION: own, "a": 1}
    )
    end = {"jsonrpc": "2.0", "id": 2, "result": {"_meta": {SUBSCRIPTION: named}}}
    (last,) = hear(talk, end)
    assert isinstance(last, Delivered)
    assert last.incoming.value["result"]["_meta"] == {SUBSCRIPTION: own}  # type: ignore[index]


@pytest.mark.parametrize("named", [9, "9", "x", None, True, "٢", "1" * 400])
def test_what_belongs_to_a_subscription_that_is_none_is_dropped(named: object) -> None:
    talk = Conversation()
    asked(talk)
    assert hear(talk, note("notifications/message", _meta={SUBSCRIPTION: named})) == []
    assert talk.tally.stray_notes == 1


@pytest.mark.parametrize(
    "method",
    ["notifications/tools/list_changed", "notifications/resources/updated", "notifications/x"],
)
def test_what_belongs_to_no_call_is_heard(method: str) -> None:
    talk = Conversation()
    asked(talk)
    assert hear(talk, note(method, level="info")) == [Heard(note(method, level="info"))]


def test_a_log_message_is_for_the_newest_call_of_the_one_owner() -> None:
    talk = Conversation()
    said = note("notifications/message", level="info", data="x")
    assert hear(talk, said) == [Heard(said)]
    talk.ask(Request("s", "subscriptions/listen"), client_id="s", owner="alice")
    assert hear(talk, said) == [Heard(said)]
    talk.ask(Request(1, "tools/call"), client_id=1, owner="alice")
    newest, _ = talk.ask(Request(2, "tools/call"), client_id=2, owner="alice")
    talk.ask(Request(3, "tools/list"), client_id=3, owner=NOBODY)
    (delivered,) = hear(talk, said)
    assert isinstance(delivered, Delivered)
    assert (delivered.call, delivered.incoming.value, delivered.lossy) == (newest, said, True)


@pytest.mark.parametrize("method", ["tools/call", "subscriptions/listen"])
def test_a_log_message_that_may_be_about_a_call_of_somebody_else_is_for_nobody(method: str) -> None:
    """Also after the other's call was answered: a server may log what it did a moment later."""
    talk = Conversation()
    said = note("notifications/message", level="info", data="what alice asked for")
    hers, _ = talk.ask(Request(1, method), client_id=1, owner="alice")
    hear(talk, {"jsonrpc": "2.0", "id": hers.wire_id, "result": {}})
    assert talk.open_calls == 0
    talk.ask(Request(1, "tools/call"), client_id=1, owner="bob")
    assert hear(talk, said) == [Heard(said)]
    talk.ask(Request(2, "tools/call"), client_id=2, owner="alice")
    assert hear(talk, said) == [Heard(said)]


# Questions of the server


@pytest.mark.parametrize("identifier", [0, 1, "1", "", "q"])
def test_a_ping_is_answered_and_every_other_question_refused(identifier: Any) -> None:
    talk = Conversation()
    asked(talk)
    ping = {"jsonrpc": "2.0", "id": identifier, "method": "ping"}
    (told,) = hear(talk, ping)
    assert isinstance(told, Told)
    assert json.loads(told.line) == {"jsonrpc": "2.0", "id": identifier, "result": {}}
    for method in ("roots/list", "sampling/createMessage", "elicitation/create", "x"):
        (told,) = hear(talk, {**ping, "method": method, "params": {}})
        assert isinstance(told, Told)
        assert told.line.endswith(b"}\n")
        refused = {"code": -32601, "message": NOT_SUPPORTED}
        assert json.loads(told.line) == {"jsonrpc": "2.0", "id": identifier, "error": refused}
    assert (talk.tally.questions, talk.open_calls) == (5, 1)


@pytest.mark.parametrize("identifier", [None, True, 1.5, [], "x" * 2000])
def test_a_question_without_a_usable_id_has_no_answer(identifier: object) -> None:
    assert hear(Conversation(), {"jsonrpc": "2.0", "id": identifier, "method": "ping"}) == []


def test_a_server_that_repeats_its_input_answers_nobody() -> None:
    talk = Conversation()
    _, sent = asked(talk)
    assert (
        hear(talk, sent, note("notifications/initialized"), note("notifications/cancelled")) == []
    )
    assert (talk.open_calls, talk.tally.stray_notes) == (1, 3)


# Cancelling


def test_who_leaves_cancels_under_the_id_on_the_wire_and_only_once() -> None:
    talk = Conversation()
    asked(talk, "a", BOB)
    call, _ = asked(talk, "a", ALICE)
    told = json.loads(talk.leave(call))
    assert told["method"] == "notifications/cancelled"
    assert told["params"]["requestId"] == 2
    assert talk.leave(call) == b""
    assert hear(talk, answer(2)) == []


def test_a_cancellation_finds_the_call_of_its_owner_and_is_not_sent_again() -> None:
    talk = Conversation()
    asked(talk, 1, BOB)
    call, _ = asked(talk, 1, ALICE)
    cancelled = Notification("notifications/cancelled", {"requestId": 1, "reason": "r"})
    assert json.loads(talk.tell(cancelled, owner=ALICE)) == note(
        "notifications/cancelled", requestId=2, reason="r"
    )
    assert talk.tell(cancelled, owner=ALICE) == b""
    assert talk.leave(call) == b""


@pytest.mark.parametrize("named", [2, "1", 1.0, True, None, [1], {}])
def test_a_cancellation_of_nothing_is_dropped(named: object) -> None:
    talk = Conversation()
    asked(talk, 1)
    cancelled = Notification("notifications/cancelled", {"requestId": named})
    assert talk.tell(cancelled, owner=ALICE) == b""
    assert talk.tell(Notification("notifications/cancelled"), owner=ALICE) == b""


def test_of_two_calls_with_one_name_and_owner_neither_is_cancelled() -> None:
    talk = Conversation()
    asked(talk, 1)
    asked(talk, 1)
    cancelled = Notification("notifications/cancelled", {"requestId": 1})
    assert talk.tell(cancelled, owner=ALICE) == b""


def test_an_initialize_is_never_cancelled() -> None:
    talk = Conversation()
    call, _ = talk.ask(Request(1, "initialize"), client_id=1, owner=ALICE)
    cancelled = Notification("notifications/cancelled", {"requestId": 1})
    assert talk.tell(cancelled, owner=ALICE) == b""
    assert talk.leave(call) == b""


def test_other_notifications_go_out_as_they_are_but_for_baggage() -> None:
    meta = {"traceparent": "00-0-0-00", "baggage": "user=7"}
    sent = Conversation().tell(Notification("notifications/initialized", {"_meta": meta}), owner=1)
    assert json.loads(sent) == note("notifications/initialized", _meta={"traceparent": "00-0-0-00"})
    assert sent.endswith(b"\n")
    _, asked_for = asked(Conversation(), 1, _meta={"baggage": "user=7"})
    assert asked_for["params"] == {"_meta": {}}
