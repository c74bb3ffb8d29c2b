import json

import pytest

from tests.unit.redaction.chat import chunk, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, SSN
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy, TooManyChannels
from tidegate.testing.splits import split_at

POLICY = RedactionPolicy.preset("default")


def test_tool_arguments_are_redacted_inside_strings() -> None:
    head = {"index": 0, "id": "a", "type": "function"}
    events = [
        chunk(
            {"tool_calls": [{**head, "function": {"name": "f", "arguments": '{"to":"jane@exa'}}]}
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'mple.com","n":1}'}}]}),
        finish("tool_calls"),
    ]
    client, redactor = run(events)
    assert client.arguments == {(0, 0): f'{{"to":"{EMAIL}","n":1}}'}
    assert redactor.counts == {"email": 1}
    first = client.frames[0]["choices"][0]["delta"]["tool_calls"][0]
    assert (first["id"], first["type"], first["function"]["name"]) == ("a", "function", "f")


def test_tool_calls_as_providers_send_them_arrive_as_sent() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"p":"1"}'}},
        {"index": 0, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"q"'}},
        {"index": 0, "id": "", "function": {"name": "", "arguments": ':"2"}'}},
        {"index": 1, "id": None, "function": {"arguments": ""}},
    ]
    events = [chunk({"tool_calls": [call]}) for call in calls] + [finish("tool_calls")]
    redactor = ChatStreamRedactor(POLICY)
    assert [data for event in events for data in redactor.feed(event)] == events


def test_calls_without_index_or_with_one_index_for_all_are_told_apart_by_id() -> None:
    for index in ({}, {"index": 0}, {"index": 1}):
        calls = [
            {**index, "id": "a", "function": {"name": "f", "arguments": '{"x":"jane@exa'}},
            {**index, "function": {"arguments": 'mple.com"}'}},
            {**index, "id": "b", "function": {"name": "g"}},
            {**index, "id": "b", "function": {"arguments": '{"y":"4111 1111 '}},
            {**index, "function": {"arguments": '1111 1111"}'}},
        ]
        events = [chunk({"tool_calls": [call]}) for call in calls] + [finish("tool_calls")]
        redactor = ChatStreamRedactor(POLICY)
        out = [json.loads(data) for event in events for data in redactor.feed(event)]
        text = "".join(
            item["function"].get("arguments", "")
            for frame in out
            for item in frame["choices"][0]["delta"].get("tool_calls", [])
        )
        assert text == f'{{"x":"{EMAIL}"}}{{"y":"{CARD}"}}'
        assert all(
            ("index" in item) is bool(index)
            for frame in out
            for item in frame["choices"][0]["delta"].get("tool_calls", [])
        )


def test_a_call_that_is_cut_short_by_the_next_leaves_before_it() -> None:
    events = [
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": '{"x":"jane'}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": "{}"}}]}),
    ]
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(events[0])
    added, event = redactor.feed(events[1])
    assert json.loads(added)["choices"] == [
        {
            "index": 0,
            "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "jane"}}]},
            "finish_reason": None,
        }
    ]
    assert event is events[1]


def test_parallel_calls_in_one_event_have_their_own_state() -> None:
    def both(first: str, second: str) -> bytes:
        texts = enumerate((first, second))
        return chunk(
            {"tool_calls": [{"index": i, "function": {"arguments": text}} for i, text in texts]}
        )

    events = [both('{"a":"jane@exa', '{"b":"536-90'), both('mple.com"}', '-4399"}'), finish()]
    client, _ = run(events)
    assert client.arguments == {(0, 0): f'{{"a":"{EMAIL}"}}', (0, 1): f'{{"b":"{SSN}"}}'}


def test_legacy_function_arguments_and_whole_messages_are_covered() -> None:
    events = [
        chunk({"function_call": {"name": "f", "arguments": '{"to":"jane@'}}),
        chunk({"function_call": {"arguments": 'example.com"}'}}),
    ]
    whole = {"function_call": {"name": "f", "arguments": '{"p":"jane\\u0040example.com"}'}}
    last = json.dumps(
        {"choices": [{"message": whole, "delta": {}, "finish_reason": "function_call"}]}
    )
    redactor = ChatStreamRedactor(POLICY)
    out = [json.loads(data) for event in [*events, last.encode()] for data in redactor.feed(event)]
    calls = [frame["choices"][0]["delta"].get("function_call", {}) for frame in out]
    assert "".join(call.get("arguments", "") for call in calls) == f'{{"to":"{EMAIL}"}}'
    message = out[-1]["choices"][0]["message"]["function_call"]["arguments"]
    assert message == f'{{"p":"{EMAIL}"}}'


@pytest.mark.parametrize(("mode", "found"), [(False, 0), ("detect", 1)])
def test_arguments_may_pass_unread_or_be_counted_only(mode: object, found: int) -> None:
    arguments = '{"to":"jane@example.com","n":1}'
    events = [
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in split_at(arguments, [9, 14])
    ]
    client, redactor = run([*events, finish("tool_calls")], tool_arguments=mode)
    assert client.arguments[0, 0] == arguments
    assert sum(redactor.counts.values()) == found


def test_calls_that_are_complete_make_room_for_more() -> None:
    redactor = ChatStreamRedactor(POLICY)
    for index in range(500):
        call = {"index": index, "id": f"call{index}", "function": {"arguments": '{"a":"b"}'}}
        event = chunk({"tool_calls": [call]})
        assert redactor.feed(event) == [event]
    calls = [{"index": index, "id": f"call{index}"} for index in range(500, 5000)]
    with pytest.raises(TooManyChannels):
        redactor.feed(chunk({"tool_calls": calls}))
