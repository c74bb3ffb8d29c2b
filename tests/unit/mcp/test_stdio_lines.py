"""What becomes of the bytes of a server on stdio that are no message, or no whole one?"""

import json
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest

from tests.unit.mcp.stdio_talk import ALICE, BOB, answer, asked, encoded, hear, note
from tidegate.lines import LineSplitter, LineTooLong
from tidegate.mcp.stdio_upstream import (
    Call,
    Conversation,
    Delivered,
    Failed,
    Heard,
    Told,
    read_line,
)

pytestmark = pytest.mark.full

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
