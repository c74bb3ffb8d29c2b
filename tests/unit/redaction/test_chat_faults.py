"""What if an upstream names choices oddly, ends them early, or writes beside the delta?"""

import json
from typing import Any

import pytest

from tests.unit.redaction.chat import chunk, content, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, VISA
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy, UpstreamAtFault
from tidegate.redaction.chat_fields import FINISH_REASONS
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")


def bare(**choice: Any) -> bytes:
    return json.dumps({"id": "c1", "choices": [choice]}).encode()


def shown(events: list[bytes]) -> list[dict[str, Any]]:
    """The choices of everything that leaves, in order."""
    redactor = ChatStreamRedactor(POLICY)
    out = [data for event in events for data in redactor.feed(event)] + redactor.finish()
    return [choice for data in out for choice in json.loads(data)["choices"]]


@pytest.mark.parametrize("reason", ["null", "", "None", "STOP", "x y", "no", 0, False, ["stop"]])
def test_a_finish_reason_that_nobody_knows_ends_nothing(reason: object) -> None:
    texts = ["to bob@exa", "mple.com now, ", "and 4111 1111 ", "1111 1111"]
    choices = shown([chunk({"content": text}, finish_reason=reason) for text in texts])
    text = "".join(choice["delta"]["content"] for choice in choices)
    assert text == f"to {EMAIL} now, and {CARD}"


@pytest.mark.parametrize("reason", sorted(FINISH_REASONS))
def test_text_after_a_finish_is_the_fault_of_the_upstream(reason: str) -> None:
    redactor = ChatStreamRedactor(POLICY)
    out = redactor.feed(chunk({"content": "to bob@exa"}, finish_reason=reason))
    assert "bob@exa" in out[-1].decode()
    with pytest.raises(UpstreamAtFault):
        redactor.feed(content("mple.com"))
    assert redactor.finish() == []


@pytest.mark.parametrize(
    "late",
    [
        {"delta": {"content": "x"}, "finish_reason": "stop"},
        {"delta": {"reasoning": "x"}},
        {"delta": {"content": [{"type": "text", "text": "x"}]}},
        {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}},
        {"delta": {"function_call": {"arguments": "x"}}},
        {"message": {"content": "x"}},
        {"text": "x"},
    ],
)
@pytest.mark.parametrize("tool_arguments", [True, False])
def test_no_text_of_any_kind_follows_a_finish(
    late: dict[str, Any], *, tool_arguments: bool
) -> None:
    redactor = ChatStreamRedactor(POLICY, tool_arguments=tool_arguments)
    redactor.feed(content("hello "))
    redactor.feed(finish())
    redactor.feed(content("other", 1))
    with pytest.raises(UpstreamAtFault):
        redactor.feed(bare(index=0, **late))


def test_empty_texts_after_a_finish_open_no_short_way_for_others() -> None:
    redactor = ChatStreamRedactor(POLICY)
    for event in (content("a "), finish(), content(""), content("")):
        redactor.feed(event)
    with pytest.raises(UpstreamAtFault):
        redactor.feed(content("mple.com"))


def test_what_is_no_text_may_follow_a_finish() -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("done. "))
    for event in (
        finish(),
        finish(),
        content(""),
        chunk({}),
        chunk({"role": "assistant", "content": None, "annotations": [{"title": "A page"}]}),
        b'{"id":"c1","choices":[],"usage":{"prompt_tokens":5}}',
        content("more, ", 1),
    ):
        assert redactor.feed(event) == [event]


def test_a_finish_in_the_same_event_ends_the_choice_for_what_follows() -> None:
    first = {"index": 0, "delta": {"content": "bob@exa"}, "finish_reason": "stop"}
    second = {"index": 0, "delta": {"content": "mple.com"}}
    with pytest.raises(UpstreamAtFault):
        ChatStreamRedactor(POLICY).feed(json.dumps({"choices": [first, second]}).encode())


def test_choices_without_number_are_counted_by_their_place() -> None:
    choices = shown(
        [
            bare(delta={"content": "to bob@exa"}),
            bare(index=0, delta={"content": "mple.com and 4111 1111 "}),
            json.dumps(
                {
                    "choices": [
                        {"delta": {"content": "1111 1111, "}},
                        {"delta": {"content": "jane@exa"}},
                    ]
                }
            ).encode(),
            bare(index=1, delta={"content": "mple.com"}),
        ]
    )
    texts = {0: "", 1: ""}
    place = {0: 0}
    for choice in choices:
        texts[choice.get("index", place[0])] += choice["delta"]["content"]
        place[0] = 1 if choice["delta"]["content"].startswith(CARD) else 0
    assert texts == {0: f"to {EMAIL} and {CARD}, ", 1: EMAIL}


@pytest.mark.parametrize("index", [0.0, "0", True, False, -1, [], {}, 1.5])
def test_any_other_number_of_a_choice_is_the_fault_of_the_upstream(index: object) -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("to bob@exa"))
    with pytest.raises(UpstreamAtFault):
        redactor.feed(bare(index=index, delta={"content": "mple.com"}))


def test_the_number_of_ended_choices_is_bounded() -> None:
    redactor = ChatStreamRedactor(POLICY)
    ends = [{"index": index, "delta": {}, "finish_reason": "stop"} for index in range(5000)]
    with pytest.raises(UpstreamAtFault):
        redactor.feed(json.dumps({"choices": ends}).encode())


@pytest.mark.parametrize(
    "shape",
    [
        {"text": "TEXT"},
        {"message": {"content": "TEXT"}},
        {"message": {"role": "assistant", "reasoning_content": "TEXT"}},
        {"message": {"refusal": "TEXT"}},
        {"message": {"content": [{"type": "text", "text": "TEXT"}]}},
        {"message": {"audio": {"transcript": "TEXT"}}},
        {"message": {"function_call": {"arguments": '{"a":"TEXT"}'}}},
    ],
)
def test_text_beside_the_delta_goes_on_from_event_to_event(shape: dict[str, Any]) -> None:
    template = json.dumps(shape)
    head, tail = ('{\\"a\\":\\"', '\\"}') if "arguments" in template else ("", "")
    body = template.replace('{\\"a\\":\\"TEXT\\"}', "TEXT")
    text = "to bob@example.com and 4111 1111 1111 1111"
    for pieces in every_split(text, three_way_max=0):
        events = [
            bare(index=0, **json.loads(body.replace("TEXT", piece)))
            for piece in [head, *pieces, tail]
        ]
        found: list[str] = []
        for choice in shown([*events, bare(index=0, finish_reason="stop")]):
            rewritten = {key: value for key, value in choice.items() if key in shape}
            assert choice["index"] == 0
            found += _texts(rewritten)
        joined = "".join(found)
        assert joined == json.loads(f'"{head}to {EMAIL} and {CARD}{tail}"')


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if key not in {"role", "type"}}
        return [text for inner in kept.values() for text in _texts(inner)]
    return []


def test_a_message_that_repeats_what_was_streamed_is_a_text_of_its_own() -> None:
    events = [content("to bob@exa"), content("mple.com!")]
    whole = {"role": "assistant", "content": "to bob@example.com!"}
    last = bare(index=0, delta={}, message=whole, finish_reason="stop")
    choices = shown([*events, last])
    assert "".join(choice["delta"].get("content", "") for choice in choices) == f"to {EMAIL}!"
    assert choices[-1]["message"] == {"role": "assistant", "content": f"to {EMAIL}!"}


def test_a_text_that_looks_like_a_data_url_is_text() -> None:
    hidden = "data:text/plain;base64,4111111111111111"
    client, _ = run([content(hidden), finish()])
    assert client.texts == {0: f"data:text/plain;base64,{CARD}"}


def test_what_carries_held_text_out_is_redacted_like_the_event_it_came_in() -> None:
    leak = "x " * 130 + "jane@example.com"
    parts = [{"type": "jane@example.com", "index": 0, "text": "held"}]
    choice = {"index": 0, "delta": {"reasoning_details": parts}}
    event = {"id": leak, "model": "to a@b.co", "service_tier": VISA, "choices": [choice]}
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(json.dumps(event).encode())
    (added,) = redactor.finish()
    assert json.loads(added) == {
        "id": leak.replace("jane@example.com", EMAIL),
        "model": f"to {EMAIL}",
        "service_tier": CARD,
        "choices": [
            {
                "index": 0,
                "delta": {"reasoning_details": [{"index": 0, "text": "held"}]},
                "finish_reason": None,
            }
        ],
    }
