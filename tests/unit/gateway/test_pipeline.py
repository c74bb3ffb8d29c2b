"""The response side: what leaves, when, and what is an answer."""

import json

import pytest

from tidegate.errors import Overloaded, RedactionFailed, UpstreamInterrupted
from tidegate.gateway.pipeline import ChatAnswer, ChatStream
from tidegate.redaction import Counts
from tidegate.routing.outcome import Outcome


class Recording:
    """A filter that changes nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.counts = Counts(email=1, ssn=2)
        self.parts: list[bytes] = []
        self.holes = None

    def tally(self) -> str:
        return str(self.counts)

    def feed(self, data: bytes) -> list[bytes]:
        return [data]

    def finish(self) -> list[bytes]:
        return []

    def part(self) -> list[bytes]:
        return self.parts

    def whole(self, body: bytes) -> bytes:
        return body.upper()


class Holding(Recording):
    """A filter that holds everything until the end."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        self.held.append(data)
        return []

    def finish(self) -> list[bytes]:
        return self.held


def payload(index: int = 0, finish: str | None = None, **delta: object) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "c1", "choices": [choice]}).encode()


def event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


ROLE = event(payload(role="assistant", content=""))
HELLO = event(payload(content="Hello"))
THERE = event(payload(content=" there"))
STOP = event(payload(finish="stop"))
USAGE = event(b'{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}')
ERROR = event(b'{"error":{"message":"quota of org-4417","type":"server_error"}}')
DONE = b"data: [DONE]\n\n"


def stream(filter_: Recording | None = None, **options: object) -> ChatStream:
    settings = {"max_event_bytes": 4096, "before_commit_bytes": 1024} | options
    return ChatStream(filter_ or Recording(), **settings)  # type: ignore[arg-type]


def run(stage: ChatStream, data: bytes, *cuts: int) -> bytes:
    out, start = b"", 0
    for end in (*cuts, len(data)):
        out += stage.feed(data[start:end])
        start = end
    return out + stage.finish()


WHOLE = ROLE + HELLO + b": keep-alive\n\n" + THERE + STOP + USAGE + DONE
EXPECTED = ROLE + HELLO + THERE + STOP + USAGE + DONE


def test_every_cut_of_a_stream_gives_the_same_bytes() -> None:
    for cut in range(len(WHOLE) + 1):
        stage = stream()
        assert run(stage, WHOLE, cut) == EXPECTED
        assert stage.complete
        assert stage.broken is None
        assert stage.tokens_seen == 3


def test_a_stream_byte_by_byte_is_the_same_stream() -> None:
    assert run(stream(), WHOLE, *range(len(WHOLE))) == EXPECTED


def test_nothing_leaves_before_the_first_content() -> None:
    stage = stream()
    assert stage.feed(b": comment\n\n" + ROLE + USAGE) == b""
    assert stage.tokens_seen == 0
    assert stage.feed(HELLO) == ROLE + USAGE + HELLO


@pytest.mark.parametrize(
    "first",
    [
        payload(content="x"),
        payload(reasoning_content="x"),
        payload(reasoning="x"),
        payload(refusal="x"),
        payload(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f"}}]),
        payload(function_call={"name": "f", "arguments": ""}),
        payload(finish="content_filter"),
    ],
)
def test_content_of_any_kind_is_the_commit_point(first: bytes) -> None:
    stage = stream()
    assert stage.feed(event(first)) == event(first)


def test_an_error_before_content_breaks_the_answer_and_shows_nothing() -> None:
    stage = stream()
    assert stage.feed(ROLE + ERROR) == b""
    assert stage.broken is not None


def test_content_before_an_error_in_the_same_read_still_leaves() -> None:
    stage = stream()
    assert stage.feed(ROLE + HELLO + ERROR + THERE + DONE) == ROLE + HELLO
    assert stage.broken is not None
    assert stage.feed(THERE) == b""
    assert stage.finish() == b""


@pytest.mark.parametrize("bad", [b"data: not json\n\n", b"data: [1]\n\n", b"data: {\n\n"])
def test_an_event_that_is_not_an_object_breaks_the_answer(bad: bytes) -> None:
    stage = stream()
    assert stage.feed(HELLO + bad + THERE) == HELLO
    assert stage.broken is Outcome.MALFORMED


def test_a_stream_that_ends_without_a_finish_reason_is_cut() -> None:
    stage = stream()
    assert stage.feed(HELLO) == HELLO
    assert stage.finish() == b""
    assert stage.broken is Outcome.INTERRUPTED


def test_with_two_choices_both_must_have_finished() -> None:
    one = event(payload(0, content="a")) + event(payload(1, content="b"))
    one += event(payload(0, finish="stop"))
    stage = stream()
    stage.feed(one)
    stage.finish()
    assert stage.broken is Outcome.INTERRUPTED
    stage = stream()
    stage.feed(one + event(payload(1, finish="length")))
    assert stage.finish() == DONE
    assert stage.complete


def test_a_finished_stream_without_done_gets_one() -> None:
    stage = stream()
    assert stage.feed(HELLO + STOP) == HELLO + STOP
    assert stage.finish() == DONE


def test_only_one_done_and_nothing_after_it() -> None:
    stage = stream()
    assert stage.feed(HELLO + STOP + DONE + DONE + THERE) == HELLO + STOP + DONE
    assert stage.feed(THERE) == b""
    assert stage.finish() == b""


@pytest.mark.parametrize("empty", [DONE, ROLE + DONE, b"", b": hi\n\n", USAGE + DONE])
def test_a_stream_without_content_is_no_answer(empty: bytes) -> None:
    stage = stream()
    assert run(stage, empty) == b""
    assert stage.broken is not None
    assert not stage.complete


def test_what_may_come_before_content_is_bounded() -> None:
    stage = stream(before_commit_bytes=len(ROLE) * 3)
    for _ in range(3):
        assert stage.feed(ROLE) == b""
        assert stage.broken is None
    stage.feed(ROLE)
    assert stage.broken is Outcome.MALFORMED


def test_one_event_larger_than_the_bound_before_content_is_allowed() -> None:
    large = event(payload(role="assistant", content="", x="y" * 3000))
    stage = stream(before_commit_bytes=10)
    assert stage.feed(large) == b""
    assert stage.broken is None
    assert stage.feed(HELLO) == large + HELLO


def test_an_event_beyond_the_cap_breaks_the_answer() -> None:
    stage = stream()
    stage.feed(b"data: " + b"x" * 5000)
    assert stage.broken is Outcome.MALFORMED


def test_the_tail_comment_stands_directly_above_done() -> None:
    stage = stream(tail_comment=True)
    tail = b": guardrail redactions={'email': 1, 'ssn': 2}\ndata: [DONE]\n\n"
    assert run(stage, HELLO + STOP + DONE) == HELLO + STOP + tail


def test_held_text_leaves_before_done() -> None:
    assert run(stream(Holding()), HELLO + STOP + DONE) == HELLO + STOP + DONE


def test_a_failure_is_one_event_without_done_and_drops_held_text() -> None:
    kept = Holding()
    stage = stream(kept)
    stage.feed(HELLO)
    last = stage.fail(UpstreamInterrupted(), "r" * 32)
    assert b"[DONE]" not in last
    assert last.count(b"\n\n") == 1
    assert json.loads(last.removeprefix(b"data: ")) == {
        "error": {
            "type": "upstream_error",
            "code": "gateway.upstream_interrupted",
            "message": UpstreamInterrupted.public_message,
            "request_id": "r" * 32,
        }
    }
    assert stage.complete


def test_usage_is_what_the_upstream_says_else_a_count_of_the_text() -> None:
    stage = stream()
    run(stage, WHOLE)
    assert stage.spent.usage is not None
    assert (stage.spent.usage.prompt, stage.spent.output_tokens) == (5, 7)
    counted = stream()
    run(counted, HELLO + THERE * 20 + STOP + DONE)
    assert counted.spent.usage is None
    assert 15 <= counted.spent.output_tokens <= 45


def test_a_stream_of_ever_new_choices_is_cut_before_it_fills_our_memory() -> None:
    stage = stream()
    fed = 0
    while not stage.broken:
        stage.feed(event(payload(index=fed, content="x")))
        fed += 1
        assert fed < 10_000
    assert stage.broken is Outcome.MALFORMED
    assert fed > 128  # the most that providers take as `n`


def test_the_name_of_an_event_is_text_of_the_upstreams_that_no_detector_reads() -> None:
    named = b"event: vera@corp.example\n" + HELLO
    assert run(stream(), named + STOP + DONE) == run(stream(), HELLO + STOP + DONE)


def test_text_that_came_after_a_report_of_usage_is_counted_on_top_of_it() -> None:
    """Some upstreams report with the first event, and a client may leave before the last."""

    def usage(completion: int) -> bytes:
        return b'"usage":{"prompt_tokens":5,"completion_tokens":%d},' % completion

    for reported in (0, 1):
        first = HELLO.replace(b"data: {", b"data: {" + usage(reported))
        left, whole, told = stream(), stream(), stream()
        left.feed(first + THERE * 20)
        assert 20 <= left.spent.output_tokens <= 45
        run(whole, first + THERE * 20 + STOP + USAGE + DONE)
        assert whole.spent.output_tokens == 7
        # An upstream that adds up as it goes has counted the text of its event.
        for number in range(20):
            told.feed(THERE.replace(b"data: {", b"data: {" + usage(number + 1)))
            assert told.spent.output_tokens == number + 1


COMPLETION = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'


def test_a_whole_answer_leaves_only_when_it_is_whole() -> None:
    for cut in range(len(COMPLETION)):
        answer = ChatAnswer(Recording(), max_bytes=4096)
        assert answer.feed(COMPLETION[:cut]) + answer.feed(COMPLETION[cut:]) == b""
        assert answer.finish() == COMPLETION.upper()
        assert answer.complete
        assert answer.tokens_seen == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"<html>",
        b'{"choices":[]}',
        b'{"error":{"message":"x"}}',
        b"[]",
        COMPLETION[:-5],
    ],
)
def test_what_is_no_completion_breaks_the_answer(body: bytes) -> None:
    answer = ChatAnswer(Recording(), max_bytes=4096)
    answer.feed(body)
    assert answer.finish() == b""
    assert answer.broken is not None
    assert not answer.complete


def test_a_policy_stop_is_an_answer() -> None:
    body = b'{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}'
    answer = ChatAnswer(Recording(), max_bytes=4096)
    answer.feed(body)
    assert answer.finish() == body.upper()


def test_what_the_filter_gives_up_leaves_before_the_error_unless_the_fault_is_ours() -> None:
    for error, count in ((UpstreamInterrupted(), 2), (RedactionFailed(), 1), (Overloaded(), 1)):
        kept = Holding()
        kept.parts = [payload(content="lo")]
        stage = stream(kept)
        stage.feed(HELLO)
        last = stage.fail(error, "r" * 32)
        assert last.count(b"\n\n") == count
        assert last.startswith(event(payload(content="lo"))) == (count == 2)


def test_an_answer_beyond_its_cap_is_dropped() -> None:
    answer = ChatAnswer(Recording(), max_bytes=10)
    answer.feed(COMPLETION)
    assert answer.broken is Outcome.MALFORMED
    assert answer.finish() == b""


def test_a_document_is_no_answer_to_a_stream_request() -> None:
    answer = ChatAnswer(Recording(), max_bytes=4096, acceptable=False)
    answer.feed(COMPLETION)
    assert answer.finish() == b""
    assert answer.broken is Outcome.MALFORMED
