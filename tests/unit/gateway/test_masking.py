"""Which redaction applies in which direction, and what happens when it fails."""

import json
from dataclasses import replace
from secrets import token_bytes
from typing import Any

import pytest

from tidegate.errors import ContentBlocked, InvalidRequest, Overloaded, RedactionFailed
from tidegate.gateway.classifier import ClassifierSettings
from tidegate.gateway.filters import Masked, PassThrough, WholeAnswer, guarded
from tidegate.gateway.masking import Masking, Mode, Prompt
from tidegate.providers.base import MalformedEvent
from tidegate.redaction import BlockedContent, RedactionPolicy
from tidegate.redaction.tenants import TenantPolicies

MODES: tuple[Mode, ...] = ("off", "detect", "enforce")
MAIL = "jane@example.com"
POLICY = RedactionPolicy.preset()
BLOCKING = POLICY.with_actions({"email": "block"})
MARK = "[REDACTED_EMAIL]"


def request() -> dict[str, object]:
    return {"messages": [{"role": "user", "content": f"I am {MAIL}"}], "x": [1]}


RAW = b"the bytes of the client"


def prompt(masking: Masking, document: dict[str, object]) -> Prompt:
    return masking.begin("acme", token_bytes).prompt(document, RAW)


def stream(masking: Masking) -> PassThrough | Masked:
    return masking.begin("acme", token_bytes).stream_filter()


def whole(masking: Masking) -> WholeAnswer:
    return masking.begin("acme", token_bytes).answer_filter()


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
    found = prompt(Masking(POLICY, request=mode), body)
    assert found.found == ({} if mode == "off" else {"email": 1})
    assert body == request()
    if mode == "enforce":
        content = {"role": "user", "content": f"I am {MARK}"}
        assert json.loads(found.body()) == {"messages": [content], "x": [1]}
    else:
        assert found.body() is RAW
    harmless: dict[str, object] = {"messages": [{"content": "hi"}]}
    assert prompt(Masking(POLICY, request=mode), harmless).body() is RAW


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_answer_keeps_its_bytes_unless_something_is_masked(mode: Mode) -> None:
    filter_ = whole(Masking(POLICY, response=mode))
    body = answer(content=f"mail {MAIL}")
    out = filter_.whole(body)
    assert filter_.counts == ({} if mode == "off" else {"email": 1})
    if mode == "enforce":
        assert json.loads(out) == json.loads(body.replace(MAIL.encode(), MARK.encode()))
    else:
        assert out is body
    calm = answer(content="hello")
    assert whole(Masking(POLICY, response=mode)).whole(calm) is calm


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_passes_as_it_came_unless_it_is_enforced(mode: Mode) -> None:
    filter_ = stream(Masking(POLICY, response=mode))
    sent = [payload(content=f"mail {MAIL} now "), payload(content="bye"), payload("stop")]
    out = [one for data in sent for one in filter_.feed(data)] + filter_.finish()
    assert filter_.counts == ({} if mode == "off" else {"email": 1})
    # What a client is told is what it does not see.
    assert filter_.tally() == ("{'email': 1}" if mode == "enforce" else "{}")
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
    answered, streamed = whole(masking), stream(masking)
    plain = answered.whole(answer(content=None, tool_calls=calls))
    events = streamed.feed(payload(tool_calls=calls)) + streamed.feed(payload("tool_calls"))
    masked = response == "enforce" and arguments == "enforce"
    for seen in (plain, b"".join([*events, *streamed.finish()])):
        assert (MAIL.encode() in seen) == (not masked)
        assert (MARK.encode() in seen) == masked
    searched = response != "off" and arguments != "off"
    assert answered.counts == streamed.counts == ({"email": 1} if searched else {})
    assert answered.counts.hidden == streamed.counts.hidden == ({"email": 1} if masked else {})


@pytest.mark.parametrize("mode", MODES)
def test_a_block_is_a_block_only_where_it_is_enforced(mode: Mode) -> None:
    masking = Masking(BLOCKING, mode, mode, tool_results=mode, tool_arguments=mode)
    calls = [
        lambda: prompt(masking, request()),
        lambda: masking.mask_result({"text": MAIL}, "acme"),
        lambda: masking.mask_arguments({"arguments": {"text": MAIL}}, "acme"),
        lambda: whole(masking).whole(answer(content=MAIL)),
        lambda: stream(masking).feed(payload(content=f"{MAIL} is it ")),
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
    broken: Any = Broken()
    masking = Masking(broken, mode, mode, tool_results=mode, tool_arguments=mode)
    calls = [
        lambda: prompt(masking, request()),
        lambda: masking.mask_result({"text": MAIL}, "acme"),
        lambda: masking.mask_arguments({"arguments": {"text": MAIL}}, "acme"),
        lambda: whole(masking).whole(answer(content=MAIL)),
        lambda: stream(masking).feed(payload(content=MAIL)),
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
        whole(masking).whole(data)
    with pytest.raises(MalformedEvent):
        stream(masking).feed(data)
    off = replace(masking, response="off")
    assert whole(off).whole(data) is data
    assert stream(off).feed(data) == [data]


def test_text_of_a_choice_that_has_finished_is_the_upstreams_fault() -> None:
    filter_ = stream(Masking(POLICY))
    filter_.feed(payload("stop", content="mail jane@exa"))
    with pytest.raises(MalformedEvent) as caught:
        filter_.feed(payload(content="mple.com"))
    assert "mple" not in str(caught.value)
    assert filter_.part() == []


@pytest.mark.parametrize("event", [payload(content="more"), b'{"choices": [{"index": "x"}]}'])
def test_what_enforcing_would_cut_passes_and_is_counted_where_we_only_detect(event: bytes) -> None:
    filter_ = stream(Masking(POLICY, response="detect"))
    filter_.feed(payload("stop", content=f"{MAIL} is it"))
    assert filter_.feed(event) == [event]
    assert filter_.feed(event) == [event]
    assert filter_.counts == {"email": 1}
    assert filter_.counts.unscanned == 2


def test_text_beside_the_delta_may_not_leave_by_half_either() -> None:
    filter_ = stream(Masking(POLICY))
    choice = {"index": 0, "delta": {"content": "Hel"}, "text": "jane@exa"}
    filter_.feed(json.dumps({"choices": [choice]}).encode())
    assert filter_.part() == []
    filter_.feed(json.dumps({"choices": [{"index": 1, "text": "Well"}]}).encode())
    assert b"Well" in b"".join(filter_.part())


@pytest.mark.parametrize("text", ["Hel", "Well,", "don't"])
def test_an_ordinary_word_that_was_held_may_leave_without_its_end(text: str) -> None:
    filter_ = stream(Masking(POLICY))
    left = filter_.feed(payload(content=text)) + filter_.part()
    assert "".join(json.loads(one)["choices"][0]["delta"]["content"] for one in left) == text


@pytest.mark.parametrize(
    "text", ["4111 1111 11", "12", "AKIAIOSF", "jane_doe", "jane@exa", "x" * 30, "DE"]
)
def test_what_could_be_half_a_secret_may_not_leave_without_its_end(text: str) -> None:
    filter_ = stream(Masking(POLICY))
    filter_.feed(payload(content=text))
    assert filter_.part() == []


def test_each_choice_is_judged_alone_when_the_stream_breaks() -> None:
    filter_ = stream(Masking(POLICY))
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


LOGPROBS = {"content": [{"token": "hi", "logprob": -0.1}]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("field", ["logprobs", "top_logprobs"])
def test_a_request_for_what_is_refused_is_refused_itself_where_answers_are_enforced(
    mode: Mode, field: str
) -> None:
    masking = Masking(POLICY, response=mode, logprobs="refuse")
    for absent in ({}, {field: None}, {"logprobs": False}):
        masking.begin("acme", token_bytes).admit(absent)
    Masking(POLICY).begin("acme", token_bytes).admit({field: 5})
    for asked in (True, 5, 0 if field == "top_logprobs" else 1):
        if mode != "enforce":
            masking.begin("acme", token_bytes).admit({field: asked})
            continue
        with pytest.raises(InvalidRequest) as caught:
            masking.begin("acme", token_bytes).admit({field: asked})
        assert caught.value.param == field


@pytest.mark.parametrize("mode", MODES)
def test_log_probabilities_nobody_asked_for_end_only_an_answer_that_is_enforced(
    mode: Mode,
) -> None:
    masking = Masking(POLICY, response=mode, logprobs="refuse")
    choice = {"index": 0, "delta": {"content": "hi"}, "logprobs": LOGPROBS}
    body = json.dumps({"choices": [{**choice, "message": {"content": "hi"}}]}).encode()
    if mode == "enforce":
        with pytest.raises(ContentBlocked):
            stream(masking).feed(body)
        with pytest.raises(ContentBlocked):
            whole(masking).whole(body)
    else:
        assert stream(masking).feed(body) == [body]
        assert whole(masking).whole(body) is body


def said(filter_: PassThrough | Masked, *events: bytes) -> str:
    out = [one for data in events for one in filter_.feed(data)] + filter_.finish()
    deltas = [choice["delta"] for one in out for choice in json.loads(one)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


@pytest.mark.parametrize("response", MODES)
@pytest.mark.parametrize("arguments", MODES)
def test_a_prompts_values_come_back_in_every_mode_of_the_answer(
    response: Mode, arguments: Mode
) -> None:
    masking = Masking(
        POLICY, request="enforce", response=response, tool_arguments=arguments, vault=True
    )
    call = masking.begin("acme", token_bytes)
    sent = json.loads(call.prompt(request(), RAW).body())["messages"][0]["content"]
    placeholder = sent.removeprefix("I am ")
    assert MAIL not in sent
    other = "john@example.org"
    shown = MARK if response == "enforce" else other
    text = f"{placeholder} and {other} "
    assert said(call.stream_filter(), payload(content=text), payload("stop")) == (
        f"{MAIL} and {shown} "
    )
    calls = [{**CALLS[0], "function": {"name": "f", "arguments": json.dumps({"a": text})}}]
    filter_ = call.answer_filter()
    message = json.loads(filter_.whole(answer(content=text, tool_calls=calls)))["choices"][0]
    assert message["message"]["content"] == f"{MAIL} and {shown} "
    inside = json.loads(message["message"]["tool_calls"][0]["function"]["arguments"])["a"]
    enforced = response == arguments == "enforce"
    assert inside == f"{MAIL} and {MARK if enforced else other} "
    found = {"off": 0, "detect": 1, "enforce": 1}
    expected = found[response] * (1 + found[arguments])
    assert filter_.counts == ({"email": expected} if expected else {})


def test_a_request_without_values_leaves_nothing_to_put_back() -> None:
    masking = Masking(POLICY, request="enforce", response="off", vault=True)
    call = masking.begin("acme", token_bytes)
    assert call.prompt({"messages": [{"content": "hi"}]}, RAW).body() is RAW
    event = payload(content="[EMAIL_x]")
    assert call.stream_filter().feed(event) == [event]
    assert call.answer_filter().whole(RAW) is RAW


def test_two_requests_have_no_placeholder_in_common() -> None:
    masking = Masking(POLICY, request="enforce", vault=True)
    first, second = (masking.begin("acme", token_bytes) for _ in range(2))
    one, other = (call.prompt(request(), RAW).body() for call in (first, second))
    assert one != other
    placeholder = json.loads(other)["messages"][0]["content"].removeprefix("I am ")
    event = payload(content=f"{placeholder} it is")
    assert said(first.stream_filter(), event, payload("stop")) == f"{placeholder} it is"


def test_text_that_no_classifier_has_read_never_leaves_when_the_stream_breaks() -> None:
    masking = Masking(POLICY, classifier=ClassifierSettings("http://127.0.0.1:1/"))
    filter_ = stream(masking)
    filter_.feed(payload(content="Hel"))
    assert filter_.part() == []


def test_a_classifier_is_asked_where_a_direction_is_enforced() -> None:
    for mode in MODES:
        settings = ClassifierSettings("http://127.0.0.1:1/")
        masking = Masking(POLICY, request=mode, response=mode, classifier=settings)
        call = masking.begin("acme", token_bytes)
        asked = [call.prompt(request(), RAW), call.stream_filter(), call.answer_filter()]
        assert [one.holes is not None for one in asked] == [mode == "enforce"] * 3


def test_a_prompt_in_which_a_classifier_finds_nothing_leaves_in_the_clients_own_bytes() -> None:
    settings = ClassifierSettings("http://127.0.0.1:1/")
    masking = Masking(POLICY, request="enforce", classifier=settings)
    asked = prompt(masking, {"messages": [{"content": "I am Jane"}]})
    with pytest.raises(RedactionFailed):
        asked.body()
    assert asked.holes is not None
    for text in asked.holes.wanted:
        asked.holes.judge(text, ())
    assert asked.body() is RAW


def test_each_tenant_has_its_own_policy_in_every_direction() -> None:
    own = POLICY.with_actions({"email": None})
    policies = TenantPolicies(POLICY, {"acme": own})
    masking = Masking(POLICY, request="enforce", policies=policies)
    for tenant, hidden in (("acme", False), ("other", True)):
        call = masking.begin(tenant, token_bytes)
        body = call.prompt(request(), RAW).body()
        result, _ = masking.mask_result({"text": MAIL}, tenant)
        plain = call.answer_filter().whole(answer(content=MAIL))
        shown = said(call.stream_filter(), payload(content=f"{MAIL} "), payload("stop"))
        assert (body is RAW) == (not hidden)
        for seen in (repr(result), plain.decode(), shown):
            assert (MAIL in seen) == (not hidden)
            assert (MARK in seen) == hidden
