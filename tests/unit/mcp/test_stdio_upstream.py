"""Whose answer is this line, and what becomes of everything that is none?"""

import json
from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tidegate.jsonrpc import Notification, Request
from tidegate.lines import LineSplitter, LineTooLong
from tidegate.mcp.stdio_upstream import (
    NOT_SUPPORTED,
    Call,
    Conversation,
    Delivered,
    Event,
    Failed,
    Heard,
    Told,
    read_line,
)

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ALICE, BOB = ("issuer", "acme", "alice", ""), ("issuer", "acme", "bob", "")


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def answer(identifier: object, text: object = "") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": {"text": text}}


def note(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def hear(talk: Conversation, *lines: object) -> list[Event]:
    """What follows from these lines; values are written as JSON."""
    events: list[Event] = []
    for line in lines:
        events += talk.hear(read_line(line if isinstance(line, bytes) else encoded(line)))
    return events


def asked(
    talk: Conversation, client_id: Any = 1, owner: object = ALICE, **params: object
) -> tuple[Call, dict[str, Any]]:
    request = Request(client_id, "tools/call", params or None)
    call, line = talk.ask(request, client_id=client_id, owner=owner)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return call, json.loads(line)


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
    "method", ["notifications/tools/list_changed", "notifications/message", "notifications/x"]
)
def test_what_belongs_to_no_call_is_heard(method: str) -> None:
    talk = Conversation()
    asked(talk)
    assert hear(talk, note(method, level="info")) == [Heard(note(method, level="info"))]


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


# Junk


JUNK = [
    b"listening on stdio",
    b"{",
    b"[]",
    b"[1]",
    b"1",
    b'"text"',
    b"null",
    b'{"a":1}',
    b'{"jsonrpc":"1.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":9,"method":"ping","result":{}}',
    b'{"jsonrpc":"2.0","id":9,"method":7}',
    b"\xff\xfe",
    b"caf\xe9",
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0","id":9,"id":9,"result":{}}',
    b'{"jsonrpc":"2.0","id":9,"result":NaN}',
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":8,"result":{}} trailing',
]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk[:40]))
def test_junk_is_skipped_and_counted_and_disturbs_no_call(junk: bytes) -> None:
    talk = Conversation()
    call, _ = asked(talk, "a")
    assert hear(talk, junk) == []
    assert talk.tally.junk_lines == 1
    assert talk.tally.junk_bytes == len(junk)
    assert [e.call for e in hear(talk, answer(1)) if isinstance(e, Delivered)] == [call]


@pytest.mark.parametrize("before", [b"junk ", b"\xef\xbb\xbf", b"{ ", b'{"a":1}', b"100% "])
def test_a_message_behind_what_was_printed_without_a_line_end_is_found(before: bytes) -> None:
    talk = Conversation()
    call, _ = asked(talk, "a")
    (delivered,) = hear(talk, before + encoded(answer(1, "x")))
    assert isinstance(delivered, Delivered)
    assert (delivered.call, delivered.incoming.value) == (call, answer("a", "x"))
    assert (talk.tally.junk_lines, talk.tally.junk_bytes) == (1, len(before))


def test_two_messages_in_one_line_are_two() -> None:
    talk = Conversation()
    asked(talk, "a")
    asked(talk, "b")
    events = hear(talk, b"oops " + encoded(answer(2)) + encoded(answer(1)))
    assert [e.call.client_id for e in events if isinstance(e, Delivered)] == ["b", "a"]


@pytest.mark.parametrize(
    "broken",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + b"\xff" + b'"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a"',
        b'{"result":{"a":NaN},"jsonrpc":"2.0","id":1}',
        b'print {"jsonrpc":"2.0","id":1,"result":NaN}',
    ],
)
def test_a_call_whose_answer_cannot_be_read_fails_at_once(broken: bytes) -> None:
    talk = Conversation()
    call, _ = asked(talk, "a")
    asked(talk, "b")
    assert hear(talk, broken) == [Failed(call, "malformed")]
    assert talk.open_calls == 1


@pytest.mark.parametrize("identifier", [1, 2, 3, '"1"'])
def test_a_line_beyond_the_bound_fails_the_call_that_it_answers(identifier: object) -> None:
    talk, splitter = Conversation(), LineSplitter(1000)
    calls = [asked(talk, "a")[0], asked(talk, "b")[0]]
    head = f'{{"jsonrpc":"2.0","id":{identifier},"result":{{"text":"'.encode()
    (line,) = splitter.feed(head + b"x" * 5000 + b'"}}\n')
    assert isinstance(line, LineTooLong)
    events = talk.hear(read_line(line))
    known = identifier in (1, 2)
    expected = [Failed(calls[int(str(identifier)) - 1], "too_large")] if known else []
    assert events == expected
    assert (talk.tally.long_lines, talk.tally.junk_lines) == (1, 1)


def test_half_a_surrogate_pair_is_mended_and_the_rest_kept() -> None:
    talk = Conversation()
    asked(talk, "a")
    (delivered,) = hear(talk, b'{"jsonrpc":"2.0","id":1,"result":{"text":"x\\ud83d"}}')
    assert isinstance(delivered, Delivered)
    assert delivered.incoming.value == answer("a", "x\ufffd")


def test_the_end_gives_every_open_call_back() -> None:
    talk = Conversation()
    (first, _), (second, _) = asked(talk, 1), asked(talk, 1)
    assert talk.end() == [first, second]
    assert (talk.end(), hear(talk, answer(1))) == ([], [])


def test_a_line_that_was_not_sent_leaves_no_call() -> None:
    talk = Conversation()
    call, _ = asked(talk, 1)
    talk.forget(call)
    assert (talk.open_calls, talk.leave(call)) == (0, b"")


# Every cut, and random histories against an oracle


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def everything(data: list[bytes], bound: int = 4096) -> list[tuple[object, ...]]:
    """What a conversation with three calls makes of these chunks."""
    talk, splitter = Conversation(), LineSplitter(bound)
    for client_id in ("a", "b", "c"):
        asked(talk, client_id, _meta={"progressToken": client_id})
    lines = [line for chunk in data for line in splitter.feed(chunk)] + [*splitter.finish()]
    seen: list[tuple[object, ...]] = []
    for event in (event for line in lines for event in talk.hear(read_line(line))):
        match event:
            case Delivered(call, incoming, last):
                seen.append((call.client_id, json.dumps(incoming.value), last))
            case Failed(call, reason):
                seen.append((call.client_id, reason))
            case Told(line):
                seen.append((line,))
            case Heard(message):
                seen.append((json.dumps(message),))
    return [*seen, (talk.tally, talk.open_calls)]  # type: ignore[list-item]


STREAM = b"".join(
    (
        b"hi\n\n",
        encoded(answer(2, "zw\u00f6lf \u2028")) + b"\r\n",
        encoded(note("notifications/progress", progressToken=1, progress=1)) + b"\n",
        b'{"jsonrpc":"2.0","id":"q","method":"ping"}\n',
        "caf\u00e9 ".encode() + encoded(answer(1, "x")) + b"\n",
        encoded(note("notifications/message", data="\r")) + b"\n",
        encoded(answer(2, "again")) + b"\n",
        b'{"jsonrpc":"2.0","id":3,"resu',
    )
)


def test_every_cut_of_the_bytes_gives_the_same_events() -> None:
    whole = everything([STREAM])
    assert len(whole) == 6
    for cut in range(len(STREAM)):
        assert everything(pieces(STREAM, (cut,))) == whole
    assert everything([bytes((byte,)) for byte in STREAM]) == whole


@pytest.mark.parametrize("seed", range(20))
def test_random_cuts_with_a_small_bound_give_the_same_events(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a test that repeats
    whole = everything([STREAM], bound=60)
    for _ in range(20):
        cuts = [random.randrange(len(STREAM)) for _ in range(random.randrange(1, 30))]
        assert everything(pieces(STREAM, cuts), bound=60) == whole


class Oracle:
    """Who waits for what, by a second and simpler account."""

    def __init__(self, random: Random) -> None:
        self.random, self.talk = random, Conversation()
        self.open: dict[int, tuple[Call, str]] = {}
        self.over: list[int] = []
        self.secret = 0

    def step(self) -> None:
        kind = self.random.random()
        if kind < 0.35 or not self.open:
            self.asks()
        elif kind < 0.7:
            self.answers(self.random.choice(list(self.open)))
        elif kind < 0.8:
            self.leaves(self.random.choice(list(self.open)))
        elif kind < 0.9:
            self.progress(self.random.choice([*self.open, *self.over]))
        else:
            self.says_nonsense()

    def asks(self) -> None:
        client_id, owner = self.random.choice([0, 1, "0", "1"]), self.random.choice([ALICE, BOB])
        call, sent = asked(self.talk, client_id, owner, _meta={"progressToken": "t"})
        assert sent["id"] not in {*self.open, *self.over}
        self.secret += 1
        self.open[sent["id"]] = call, f"for call {self.secret}"

    def answers(self, wire_id: int) -> None:
        call, text = self.open.pop(wire_id)
        (event,) = hear(self.talk, answer(wire_id, text))
        assert isinstance(event, Delivered)
        assert event.call is call
        assert event.incoming.value == answer(call.client_id, text)
        self.over.append(wire_id)

    def leaves(self, wire_id: int) -> None:
        call, _ = self.open.pop(wire_id)
        assert json.loads(self.talk.leave(call))["params"]["requestId"] == wire_id
        self.over.append(wire_id)

    def progress(self, wire_id: int) -> None:
        events = hear(self.talk, note("notifications/progress", progressToken=wire_id))
        expected = [self.open[wire_id][0]] if wire_id in self.open else []
        assert [e.call for e in events if isinstance(e, Delivered)] == expected

    def says_nonsense(self) -> None:
        wrong = [*self.over, 10**6, "1", None]
        junk = [encoded(answer(self.random.choice(wrong), "wrong")), *JUNK[:-1]]
        events = hear(self.talk, self.random.choice(junk).replace(b'"id":8', b'"id":-1'))
        # A line that begins like an answer may end the call that it names, and only that.
        assert [e for e in events if not isinstance(e, Failed)] == []
        for event in events:
            assert isinstance(event, Failed)
            assert self.open.pop(event.call.wire_id)[0] is event.call
            self.over.append(event.call.wire_id)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_every_answer_reaches_the_call_it_was_made_for(seed: int) -> None:
    oracle = Oracle(Random(seed))  # noqa: S311 - a test that repeats
    for _ in range(200):
        oracle.step()
        assert oracle.talk.open_calls == len(oracle.open)
    assert oracle.talk.end() == [call for call, _ in oracle.open.values()]
