"""Which redaction applies in which direction, and what happens when it fails."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tidegate.errors import ContentBlocked, Overloaded, RedactionFailed
from tidegate.gateway.masking import Masking, Mode, guarded
from tidegate.providers.base import MalformedEvent
from tidegate.redaction import BlockedContent, RedactionPolicy

MODES: tuple[Mode, ...] = ("off", "detect", "enforce")
MAIL = "jane@example.com"
POLICY = RedactionPolicy.preset()
BLOCKING = POLICY.with_actions({"email": "block"})
MARK = "[REDACTED_EMAIL]"


def request() -> dict[str, object]:
    return {"messages": [{"role": "user", "content": f"I am {MAIL}"}], "x": [1]}


def answer(**message: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "x": 1.0}).encode()


def payload(finish: str | None = None, **delta: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


class Broken:
    """A policy whose every part is broken, and says so with somebody's address."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(f"{name} {MAIL}")


@pytest.mark.parametrize("mode", MODES)
def test_a_request_is_searched_as_its_mode_says_and_changed_only_if_enforced(mode: Mode) -> None:
    body = request()
    masked, found = Masking(POLICY, request=mode).mask_request(body)
    assert found == ({} if mode == "off" else {"email": 1})
    assert body == request()
    if mode == "enforce":
        assert masked["messages"] == [{"role": "user", "content": f"I am {MARK}"}]
        assert masked["x"] is body["x"]
    else:
        assert masked is body
    harmless: dict[str, object] = {"messages": [{"content": "hi"}]}
    assert Masking(POLICY, request=mode).mask_request(harmless)[0] is harmless


@pytest.mark.parametrize("mode", MODES)
def test_a_result_is_searched_as_its_mode_says_and_changed_only_if_enforced(mode: Mode) -> None:
    result = {"content": [{"type": "text", "text": MAIL}]}
    masked, found = Masking(POLICY, tool_results=mode).mask_result(result)
    assert found == ({} if mode == "off" else {"email": 1})
    assert (masked is result) == (mode != "enforce")
    assert (MARK in repr(masked)) == (mode == "enforce")


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_answer_keeps_its_bytes_unless_something_is_masked(mode: Mode) -> None:
    filter_ = Masking(POLICY, response=mode).answer_filter()
    body = answer(content=f"mail {MAIL}")
    out = filter_.whole(body)
    assert filter_.counts == ({} if mode == "off" else {"email": 1})
    if mode == "enforce":
        assert json.loads(out) == json.loads(body.replace(MAIL.encode(), MARK.encode()))
    else:
        assert out is body
    calm = answer(content="hello")
    assert Masking(POLICY, response=mode).answer_filter().whole(calm) is calm


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_passes_as_it_came_unless_it_is_enforced(mode: Mode) -> None:
    filter_ = Masking(POLICY, response=mode).stream_filter()
    sent = [payload(content=f"mail {MAIL} now "), payload(content="bye"), payload("stop")]
    out = [one for data in sent for one in filter_.feed(data)] + filter_.finish()
    assert filter_.counts == ({} if mode == "off" else {"email": 1})
    if mode == "enforce":
        text = "".join(json.loads(one)["choices"][0]["delta"].get("content", "") for one in out)
        assert text == f"mail {MARK} now bye"
    else:
        assert out == sent
        assert filter_.part() == []


ARGUMENTS = json.dumps({"to": MAIL})
CALLS = [{"index": 0, "id": "a", "type": "function"}]


@pytest.mark.parametrize("response", MODES)
@pytest.mark.parametrize("arguments", MODES)
def test_tool_arguments_have_a_mode_of_their_own(response: Mode, arguments: Mode) -> None:
    masking = Masking(POLICY, response=response, tool_arguments=arguments)
    calls = [{**CALLS[0], "function": {"name": "f", "arguments": ARGUMENTS}}]
    whole, streamed = masking.answer_filter(), masking.stream_filter()
    plain = whole.whole(answer(content=None, tool_calls=calls))
    events = streamed.feed(payload(tool_calls=calls)) + streamed.feed(payload("tool_calls"))
    masked = response == "enforce" and arguments == "enforce"
    for seen in (plain, b"".join([*events, *streamed.finish()])):
        assert (MAIL.encode() in seen) == (not masked)
        assert (MARK.encode() in seen) == masked
    searched = response != "off" and arguments != "off"
    assert whole.counts == streamed.counts == ({"email": 1} if searched else {})


@pytest.mark.parametrize("mode", MODES)
def test_a_block_is_a_block_only_where_it_is_enforced(mode: Mode) -> None:
    masking = Masking(BLOCKING, mode, mode, tool_results=mode)
    calls = [
        lambda: masking.mask_request(request()),
        lambda: masking.mask_result({"text": MAIL}),
        lambda: masking.answer_filter().whole(answer(content=MAIL)),
        lambda: masking.stream_filter().feed(payload(content=f"{MAIL} is it ")),
    ]
    for call in calls:
        if mode == "enforce":
            with pytest.raises(ContentBlocked) as caught:
                call()
            assert caught.value.kind == "email"
        else:
            call()


@pytest.mark.parametrize("mode", ["detect", "enforce"])
def test_a_failure_inside_is_ours_and_quotes_nothing(mode: Mode) -> None:
    masking = Masking(Broken(), mode, mode, tool_results=mode)  # type: ignore[arg-type]
    calls = [
        lambda: masking.mask_request(request()),
        lambda: masking.mask_result({"text": MAIL}),
        lambda: masking.answer_filter().whole(answer(content=MAIL)),
        lambda: masking.stream_filter().feed(payload(content=MAIL)),
    ]
    for call in calls:
        with pytest.raises((RedactionFailed, KeyError)) as caught:
            call()
        assert isinstance(caught.value, RedactionFailed), caught.value
        assert MAIL not in repr(caught.value) + caught.value.detail + caught.value.message


def test_nothing_but_failures_is_turned_into_our_error() -> None:
    def raises(error: BaseException) -> None:
        raise error

    with pytest.raises(Overloaded):
        guarded(raises, Overloaded())
    with pytest.raises(KeyboardInterrupt):
        guarded(raises, KeyboardInterrupt())
    with pytest.raises(ContentBlocked):
        guarded(raises, BlockedContent("email"))
    with pytest.raises(RedactionFailed) as caught:
        guarded(raises, ZeroDivisionError(MAIL))
    assert caught.value.detail == "ZeroDivisionError"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


AMBIGUOUS = [
    b'{"choices": [], "choices": []}',
    b'{"choices": [{"index": 0, "delta": {"content": "a", "content": "b"}}]}',
    b'{"a": NaN}',
    b'{"a": "\xff"}',
    b'{"a": ',
    b'{"a": 1}{}',
]


@pytest.mark.parametrize("data", AMBIGUOUS)
def test_what_two_parsers_read_differently_is_the_upstreams_fault(data: bytes) -> None:
    masking = Masking(POLICY)
    with pytest.raises(MalformedEvent):
        masking.answer_filter().whole(data)
    with pytest.raises(MalformedEvent):
        masking.stream_filter().feed(data)
    off = replace(masking, response="off")
    assert off.answer_filter().whole(data) is data
    assert off.stream_filter().feed(data) == [data]


@pytest.mark.parametrize("mode", ["detect", "enforce"])
def test_text_of_a_choice_that_has_finished_is_the_upstreams_fault(mode: Mode) -> None:
    filter_ = Masking(POLICY, response=mode).stream_filter()
    filter_.feed(payload("stop", content="mail jane@exa"))
    with pytest.raises(MalformedEvent) as caught:
        filter_.feed(payload(content="mple.com"))
    assert "mple" not in str(caught.value)
    assert filter_.part() == []


def test_text_beside_the_delta_may_not_leave_by_half_either() -> None:
    filter_ = Masking(POLICY).stream_filter()
    choice = {"index": 0, "delta": {"content": "Hel"}, "text": "jane@exa"}
    filter_.feed(json.dumps({"choices": [choice]}).encode())
    assert filter_.part() == []
    filter_.feed(json.dumps({"choices": [{"index": 1, "text": "Well"}]}).encode())
    assert b"Well" in b"".join(filter_.part())


@pytest.mark.parametrize("text", ["Hel", "Well,", "don't"])
def test_an_ordinary_word_that_was_held_may_leave_without_its_end(text: str) -> None:
    filter_ = Masking(POLICY).stream_filter()
    left = filter_.feed(payload(content=text)) + filter_.part()
    assert "".join(json.loads(one)["choices"][0]["delta"]["content"] for one in left) == text


@pytest.mark.parametrize(
    "text", ["4111 1111 11", "12", "AKIAIOSF", "jane_doe", "jane@exa", "x" * 30, "DE"]
)
def test_what_could_be_half_a_secret_may_not_leave_without_its_end(text: str) -> None:
    filter_ = Masking(POLICY).stream_filter()
    filter_.feed(payload(content=text))
    assert filter_.part() == []


def test_each_choice_is_judged_alone_when_the_stream_breaks() -> None:
    filter_ = Masking(POLICY).stream_filter()
    choices = [
        {"index": 0, "delta": {"content": "Hel"}},
        {"index": 1, "delta": {"content": "4111 1111"}},
    ]
    filter_.feed(json.dumps({"id": "c1", "choices": choices}).encode())
    (part,) = filter_.part()
    assert json.loads(part) == {
        "id": "c1",
        "choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}],
    }
