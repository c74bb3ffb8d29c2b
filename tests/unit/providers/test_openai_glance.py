"""What one event or one whole answer says."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.providers import Glance, MalformedEvent, Usage
from tidegate.providers.openai import glance, glance_completion
from tidegate.routing import Outcome


def chunk(delta: object = None, **choice: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, **choice}]}).encode()


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}

COMMITS = [
    (chunk({"content": "Hi"}), "Hi"),
    (chunk({"content": " "}), " "),
    (chunk({"role": "assistant", "content": "Hi"}), "Hi"),
    (chunk({"content": [{"type": "text", "text": "Hi"}]}), "Hi"),
    (chunk({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}]}), "hm"),
    (chunk({"reasoning_content": "hm"}), "hm"),
    (chunk({"reasoning": "hm"}), "hm"),
    (chunk({"reasoning": "hm", "reasoning_content": "hm"}), "hm"),
    (chunk({"refusal": "no"}), "no"),
    (chunk({"tool_calls": [CALL]}), 'f{"a":'),
    (chunk({"tool_calls": [{"custom": {"name": "f", "input": "x"}}, 7]}), "fx"),
    (chunk({"tool_calls": {"odd": 1}}), ""),
    (chunk({"function_call": {"name": "f", "arguments": "{}"}}), "f{}"),
    (chunk({"audio": {"transcript": "Hi", "data": "AAAA"}}), "Hi"),
    (chunk({"audio": "AAAA"}), ""),
    (chunk(text="Hi"), "Hi"),
    (chunk(message={"content": "Hi"}), "Hi"),
    (
        b'{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}',
        "ab",
    ),
]
FINISHES = [
    chunk({}, finish_reason="stop"),
    chunk(None, finish_reason="content_filter"),
    chunk({"content": ""}, finish_reason="length"),
]
SILENT = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"role": "assistant", "content": None, "refusal": None, "tool_calls": None}),
    chunk({}),
    chunk(None),
    chunk({"content": "", "tool_calls": [], "function_call": {}}, finish_reason=None),
    chunk({"content": ""}, finish_reason=""),
    chunk(text=""),
    b'{"choices":[]}',
    b'{"choices":null}',
    b"{}",
    b'{"type":"ping"}',
    b'{"error":null,"choices":[]}',
    b'{"error":{},"choices":[]}',
    b'{"type":"response.created","response":{"id":"r","status":"in_progress"}}',
    b'{"type":"message_start","message":{"role":"assistant","content":[]}}',
    b'{"type":["error"],"response":7,"choices":[]}',
    b'{"choices":[{}],"unknown":{"content":"x"}}',
]


@pytest.mark.parametrize(("data", "text"), COMMITS)
def test_generated_content_lets_the_answer_begin(data: bytes, text: str) -> None:
    found = glance(data)
    assert (found.content, found.text, found.error) == (True, text, None)


@pytest.mark.parametrize("data", FINISHES)
def test_a_finish_reason_lets_the_answer_begin(data: bytes) -> None:
    assert glance(data) == Glance(content=True, finished=(0,))


@pytest.mark.parametrize("data", SILENT)
def test_what_holds_nothing_for_the_client_does_not(data: bytes) -> None:
    found = glance(data)
    assert (found.content, found.text, found.error, found.finished) == (False, "", None, ())


@pytest.mark.parametrize(
    ("data", "open_choices", "finished"),
    [
        (chunk({"role": "assistant"}), (0,), ()),
        (chunk({"content": "x"}), (0,), ()),
        (chunk({"content": "x"}, finish_reason="stop"), (), (0,)),
        (b'{"choices":[{"delta":{"content":"x"}}]}', (0,), ()),
        (b'{"choices":[{"index":2,"text":"x"}]}', (2,), ()),
        (b'{"choices":[{"index":null,"delta":{"content":"x"}}]}', (0,), ()),
        (b'{"choices":[{"index":true,"finish_reason":"stop"}]}', (), (0,)),
        # Annotations that follow the finish reason do not open the choice again.
        (b'{"choices":[{"index":0,"content_filter_offsets":{},"finish_reason":null}]}', (), ()),
        (chunk({}), (), ()),
        (
            b'{"choices":[{"index":1,"delta":{"content":"x"}},{"index":3,"finish_reason":"stop"}]}',
            (1,),
            (3,),
        ),
    ],
)
def test_which_choices_are_open_and_which_have_finished(
    data: bytes, open_choices: tuple[int, ...], finished: tuple[int, ...]
) -> None:
    found = glance(data)
    assert (found.open_choices, found.finished) == (open_choices, finished)


@pytest.mark.parametrize("data", [b"[DONE]", b" [DONE] "])
def test_the_end_mark(data: bytes) -> None:
    assert glance(data) == Glance(done=True)


@pytest.mark.parametrize(
    ("data", "event", "outcome"),
    [
        (b'{"error":{"message":"x"}}', None, Outcome.SERVER_ERROR),
        (b'{"error":"overloaded"}', None, Outcome.SERVER_ERROR),
        (b'{"error":{"code":429}}', None, Outcome.RATE_LIMITED),
        (b'{"error":{"code":"insufficient_quota"}}', None, Outcome.QUOTA),
        (b'{"error":{"code":"context_length_exceeded"}}', None, Outcome.CONTEXT),
        (b'{"object":"error","message":"x","code":400}', None, Outcome.REJECTED),
        (b'{"type":"error","error":{"type":"overloaded_error"}}', None, Outcome.SERVER_ERROR),
        (b'{"type":"error","code":"insufficient_quota","message":"x"}', None, Outcome.QUOTA),
        (
            b'{"type":"response.failed","response":{"status":"failed","error":'
            b'{"code":"rate_limit_exceeded","message":"x"}}}',
            None,
            Outcome.RATE_LIMITED,
        ),
        (b'{"type":"response.failed","response":{"error":null}}', None, Outcome.SERVER_ERROR),
        (b'{"type":"response.failed"}', None, Outcome.SERVER_ERROR),
        (
            b'{"error":{"code":502},"choices":[{"delta":{"content":"x"}}]}',
            None,
            Outcome.SERVER_ERROR,
        ),
        (chunk({"content": "x"}, finish_reason="error"), None, Outcome.SERVER_ERROR),
        (b'{"message":"x"}', "error", Outcome.SERVER_ERROR),
        (b"not json", "error", Outcome.SERVER_ERROR),
        (b'{"error":{"code":429}}', "error", Outcome.RATE_LIMITED),
    ],
)
def test_an_error_object_is_an_outcome_and_no_content(
    data: bytes, event: str | None, outcome: Outcome
) -> None:
    assert glance(data, event=event) == Glance(error=outcome)


MALFORMED = [
    b"",
    b"x",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b'{"choices":[{"delta":',
    b'{"choices":{}}',
    b'{"choices":[7]}',
    b'{"choices":[{"delta":"x"}]}',
    b'{"choices":[{"delta":{"content":NaN}}]}',
    b'{"choices":[{"delta":{"content":"\xff"}}]}',
    b'{"choices":[{"delta":{"content":"\\ud800"}}]}',
    b'{"choices":' + b"[" * 100_000,
    b'{"a":' * 100_000,
    b"data: {}",
    b"<html></html>",
    b"{}{}",
]


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_object_of_the_dialect_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedEvent):
        glance(data)
    assert glance_completion(data) is Outcome.MALFORMED


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 9}, Usage(3, 6, 9)),
        ({"total_tokens": 9}, Usage(None, 0, 9)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 9}, Usage(None, 0, 9)),
        ({"completion_tokens": 5}, Usage(None, 5, 5)),
        ({"completion_tokens": 5, "total_tokens": 5}, Usage(None, 5, 5)),
        ({"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 5}, Usage(None, 5, 5)),
        ({"prompt_tokens": "5", "completion_tokens": 5}, Usage(None, 5, 5)),
        ({"completion_tokens": 5, "total_tokens": 12}, Usage(7, 5, 12)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 1}, Usage(3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": None}, Usage(3, 0, 3)),
        ({"prompt_tokens": 3.0, "completion_tokens": -4}, Usage(3, 0, 3)),
        ({"prompt_tokens": 2.1, "completion_tokens": 0.5}, Usage(3, 1, 4)),
        ({"prompt_tokens": 3, "completion_tokens": 20_000_001}, Usage(3, 0, 3)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 1e9}, Usage(3, 4, 7)),
        ({"prompt_tokens": -3, "completion_tokens": 4, "total_tokens": -7}, Usage(None, 4, 4)),
        ({"prompt_tokens": "3", "completion_tokens": True, "total_tokens": 10**30}, None),
        ({"prompt_tokens": "12", "completion_tokens": -31, "total_tokens": 1}, None),
        ({"prompt_tokens": [12], "total_tokens": 1}, None),
        ({"completion_tokens": 20_000_001, "total_tokens": 1}, None),
        ({"prompt_tokens": "12", "completion_tokens": 5, "total_tokens": 17}, Usage(12, 5, 17)),
        ({"prompt_tokens": None, "completion_tokens": 0, "total_tokens": 9}, Usage(None, 0, 9)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({}, None),
        (None, None),
        ([3, 4], None),
        ("7", None),
    ],
)
def test_usage_is_believed_only_as_far_as_it_is_numbers(
    usage: object, expected: Usage | None
) -> None:
    data = json.dumps({"choices": [], "usage": usage}).encode()
    assert glance(data) == Glance(usage=expected, only_usage=usage is not None)


@pytest.mark.parametrize(
    ("more", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 8}}, 8),
        ({"prompt_cache_hit_tokens": 8}, 8),
        ({"prompt_tokens_details": {"cached_tokens": 11}}, 10),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, 0),
        ({"prompt_tokens_details": {"cached_tokens": "8"}}, 0),
        ({"prompt_tokens_details": None}, 0),
        ({"prompt_tokens_details": [8]}, 0),
    ],
)
def test_of_the_prompt_no_more_is_cached_than_there_is(
    more: dict[str, object], cached: int
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, **more}
    data = json.dumps({"choices": [], "usage": usage}).encode()
    assert glance(data).usage == Usage(10, 4, 14, cached)


@pytest.mark.parametrize(
    ("event", "only"),
    [
        ({"choices": [], "usage": {}}, True),
        ({"usage": {"total_tokens": 0}}, True),
        ({"choices": [], "usage": None, "prompt_filter_results": []}, False),
        ({"choices": [{"index": 0, "delta": {}}], "usage": {"total_tokens": 3}}, False),
        ({"choices": []}, False),
    ],
)
def test_an_event_with_nothing_but_usage_is_told_apart(event: object, *, only: bool) -> None:
    assert glance(json.dumps(event).encode()).only_usage is only


def message(content: object = "Hi", **choice: object) -> dict[str, object]:
    return {"index": 0, "message": {"role": "assistant", "content": content}, **choice}


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ([message(finish_reason="stop")], "Hi"),
        ([message(), message("there")], "Hithere"),
        ([message("", finish_reason="content_filter")], ""),
        ([message(None, finish_reason="tool_calls")], ""),
        ([{"text": "Hi"}], "Hi"),
        ([{"text": ""}], ""),
        ([{"message": {}}], ""),
    ],
)
def test_a_completion_with_a_choice_is_an_answer(choices: object, text: str) -> None:
    body = json.dumps(
        {"id": "x", "choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    ).encode()
    found = glance_completion(body)
    assert isinstance(found, Glance)
    assert (found.error, found.text, found.usage) == (None, text, Usage(1, 2, 3))


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"choices":[]}', Outcome.MALFORMED),
        (b'{"choices":null}', Outcome.MALFORMED),
        (b"{}", Outcome.MALFORMED),
        (b'{"choices":[{}]}', Outcome.MALFORMED),
        (b'{"choices":[{"message":null,"finish_reason":"stop"}]}', Outcome.MALFORMED),
        (b'{"choices":[{"delta":{"content":"x"}}]}', Outcome.MALFORMED),
        (b'{"error":{"message":"x"}}', Outcome.SERVER_ERROR),
        (b'{"error":{"code":"content_filter"}}', Outcome.FILTERED),
        (b'{"error":{"code":429},"choices":[{"message":{"content":"x"}}]}', Outcome.RATE_LIMITED),
        (b'{"object":"error","code":503}', Outcome.SERVER_ERROR),
        (b'data: {"choices":[{"message":{}}]}', Outcome.MALFORMED),
        (b'{"choices":[{"message":{"content":"x"}}]', Outcome.MALFORMED),
    ],
)
def test_a_200_that_is_none(body: bytes, outcome: Outcome) -> None:
    assert glance_completion(body) is outcome


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "error",
                    "usage",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(anything)
def test_any_json_is_a_glance_or_malformed(value: object) -> None:
    data = json.dumps(value).encode()
    try:
        found = glance(data)
    except MalformedEvent:
        assert glance_completion(data) is Outcome.MALFORMED
        return
    assert not (found.error and found.content)


def test_text_nested_without_end_is_not_followed() -> None:
    deep = b"[" * 400 + b'"x"' + b"]" * 400
    found = glance(b'{"choices":[{"delta":{"content":' + deep + b"}}]}")
    assert (found.content, found.text) == (True, "")
