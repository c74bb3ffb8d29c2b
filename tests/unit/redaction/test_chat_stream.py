import json

import pytest

from tests.unit.redaction.chat import Client, chunk, content, finish, run
from tests.unit.redaction.samples import CARD, DEMO, DEMO_MASKED, EMAIL, SECRET, VISA, key, pem
from tidegate.redaction import (
    BlockedContent,
    ChatStreamRedactor,
    RedactionPolicy,
    TooManyChannels,
)
from tidegate.testing.splits import every_split, split_at

POLICY = RedactionPolicy.preset("default")
LABELS = ["email", "ssn", "credit_card", "api_key"]


def test_demo_stream_that_cuts_every_value_comes_out_exactly() -> None:
    cuts = [DEMO.index(mark) + 4 for mark in ("doe@exa", "-45-6", "1111 1111 1111", "5gH7")]
    client, redactor = run([*(content(piece) for piece in split_at(DEMO, cuts)), finish()])
    assert client.texts == {0: DEMO_MASKED}
    assert list(redactor.counts.items()) == [(label, 1) for label in LABELS]
    assert client.finished == {0: "stop"}


def test_every_cut_of_a_text_gives_the_same_answer() -> None:
    text = "Write to jane.doe+x@mail.example.co.uk today"
    for pieces in every_split(text, three_way_max=0):
        client, _ = run([*(content(piece) for piece in pieces), finish()])
        assert client.texts == {0: f"Write to {EMAIL} today"}
        assert client.late == 0


def test_held_text_leaves_in_one_event_before_the_finish_reason() -> None:
    events = [content("Call 4111 1111 1111 11"), content("11"), finish()]
    out = ChatStreamRedactor(POLICY)
    frames = [json.loads(data) for event in events for data in out.feed(event)]
    assert [frame["choices"][0] for frame in frames] == [
        {"index": 0, "delta": {"content": "Call "}, "finish_reason": None},
        {"index": 0, "delta": {"content": ""}, "finish_reason": None},
        {"index": 0, "delta": {"content": CARD}, "finish_reason": None},
        {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"},
    ]
    assert [{k: v for k, v in frame.items() if k != "choices"} for frame in frames] == [
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    ] * 4
    assert out.finish() == []


def test_an_unchanged_event_is_the_same_object() -> None:
    redactor = ChatStreamRedactor(POLICY)
    for event in [
        chunk({"role": "assistant", "content": ""}),
        content("Hello! "),
        content("again, "),
        chunk({}),
        b'{"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}',
        b'{"id":"c1","choices":[],"prompt_filter_results":[]}',
        b"[1, 2]",
        b'"text"',
    ]:
        assert redactor.feed(event)[0] is event


def test_a_changed_event_keeps_every_other_byte() -> None:
    before = '{"id":"c1", "x_big":12345678901234567890123,"x_num":[0.10,1E5,-0.0], "choices":'
    event = before + '[{"index":0,"delta":{"content":"to jane@example.com, \\u00fc\\/"},"y":null}]}'
    redactor = ChatStreamRedactor(POLICY)
    (data,) = redactor.feed(event.encode())
    shown = event.replace("jane@example.com", EMAIL).replace("\\u00fc\\/", "\u00fc/")
    assert data.decode() == shown


def test_tails_of_one_choice_are_joined_in_one_delta() -> None:
    calls = [{"index": i, "function": {"arguments": '{"a":"b'}} for i in (0, 1)]
    events = [
        chunk({"content": "c", "reasoning": {"text": "d", "content": "e"}, "tool_calls": calls}),
        finish(),
    ]
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(events[0])
    added, _ = redactor.feed(events[1])
    tails = [{"index": i, "function": {"arguments": "b"}} for i in (0, 1)]
    assert json.loads(added)["choices"][0]["delta"] == {
        "content": "c",
        "reasoning": {"text": "d", "content": "e"},
        "tool_calls": tails,
    }


def test_two_choices_are_kept_apart_and_each_tail_has_its_index() -> None:
    events = [
        content("a 4111 1111 ", 0),
        content("b jane@exa", 1),
        content("1111 1111 z", 0),
        content("mple.com y", 1),
        finish("stop", 1),
        finish("length", 0),
    ]
    client, redactor = run(events)
    assert client.texts == {0: f"a {CARD} z", 1: f"b {EMAIL} y"}
    assert client.finished == {1: "stop", 0: "length"}
    assert client.late == 0
    assert list(redactor.counts) == ["credit_card", "email"]


def test_choices_that_finish_together_share_one_added_event() -> None:
    both = json.dumps(
        {"choices": [{"index": i, "delta": {}, "finish_reason": "stop"} for i in (0, 1)]}
    )
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("one", 0))
    redactor.feed(content("two", 1))
    added, last = redactor.feed(both.encode())
    assert [c["delta"] for c in json.loads(added)["choices"]] == [
        {"content": "one"},
        {"content": "two"},
    ]
    assert json.loads(last) == json.loads(both)


def test_reasoning_and_refusal_are_channels_of_their_own() -> None:
    events = [
        chunk({"reasoning_content": "user is jane@exam"}),
        chunk({"content": "of "}),
        chunk({"reasoning_content": "ple.com, "}),
        chunk({"reasoning": "card 4111111111111111"}),
        chunk({"refusal": "not for jane@example.com"}),
        chunk({"content": "ok"}, finish_reason="stop"),
    ]
    client, _ = run(events)
    assert client.fields[0] == {
        "reasoning_content": f"user is {EMAIL}, ",
        "content": "of ok",
        "reasoning": f"card {CARD}",
        "refusal": f"not for {EMAIL}",
    }
    assert client.late == 0


@pytest.mark.parametrize(
    "delta",
    [
        {"audio": {"id": "a", "transcript": "TEXT"}},
        {"content": [{"type": "text", "text": "TEXT"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "TEXT"}]}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "TEXT"}]},
        {"tool_calls": [{"index": 0, "type": "custom", "custom": {"name": "f", "input": "TEXT"}}]},
    ],
)
def test_nested_texts_go_on_from_event_to_event(delta: dict[str, object]) -> None:
    def event(text: str) -> bytes:
        return chunk(json.loads(json.dumps(delta).replace("TEXT", text)))

    client, _ = run([event("x jane@exa"), event("mple.com and 4111 1111 "), event(""), finish()])
    assert client.joined(0) == f"x {EMAIL} and 4111 1111 "
    client, _ = run([event("x jane@exa"), finish()])
    assert client.joined(0) == "x jane@exa"


def test_log_probabilities_are_dropped_or_refused() -> None:
    event = chunk({"content": "jane, "}, logprobs={"content": [{"token": "jane", "bytes": [1]}]})
    (data,) = ChatStreamRedactor(POLICY).feed(event)
    assert json.loads(data)["choices"][0]["logprobs"] is None
    with pytest.raises(BlockedContent):
        ChatStreamRedactor(POLICY, logprobs="refuse").feed(event)
    plain = chunk({"content": "jane, "}, logprobs=None)
    assert ChatStreamRedactor(POLICY, logprobs="refuse").feed(plain) == [plain]


def test_other_strings_are_scanned_whole_and_structure_passes() -> None:
    doc = {
        "id": "536-90-4399",
        "model": "jane@example.com",
        "citations": ["https://u:p@example.org/a"],
        "x_vendor": {"note": "to jane@example.com", "k": 1},
        "choices": [
            {
                "index": 0,
                "delta": {"role": "assistant", "annotations": [{"text": VISA}]},
                "finish_reason": None,
                "matched_stop": 5,
            }
        ],
    }
    redactor = ChatStreamRedactor(POLICY)
    (data,) = redactor.feed(json.dumps(doc).encode())
    shown = json.loads(data)
    assert (shown["id"], shown["model"]) == (doc["id"], doc["model"])
    assert shown["citations"] == [f"https://{SECRET}@example.org/a"]
    assert shown["x_vendor"] == {"note": f"to {EMAIL}", "k": 1}
    assert shown["choices"][0]["delta"]["annotations"] == [{"text": CARD}]
    assert list(redactor.counts) == ["api_key", "email", "credit_card"]


@pytest.mark.parametrize("field", ["record_field", "output", "data", "url"])
def test_a_string_of_a_delta_that_nobody_knows_is_a_text_like_any_other(field: str) -> None:
    text = "see jane@example.com and 4111-1111-1111-1111"
    for pieces in every_split(text, three_way_max=0):
        events = [chunk({"content": "", field: piece}) for piece in pieces]
        client, _ = run([*events, finish()])
        assert client.fields[0][field] == f"see {EMAIL} and {CARD}"
        assert client.late == 0


def test_a_structural_name_does_not_hide_a_long_text() -> None:
    doc = {"id": "x " * 200 + "jane@example.com", "choices": []}
    (data,) = ChatStreamRedactor(POLICY).feed(json.dumps(doc).encode())
    assert EMAIL in json.loads(data)["id"]


def test_a_stream_without_finish_reason_is_flushed_at_its_end() -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("to jane@example.com", 3))
    (last,) = redactor.finish()
    assert json.loads(last)["choices"] == [
        {"index": 3, "delta": {"content": EMAIL}, "finish_reason": None}
    ]
    assert redactor.finish() == []


def test_what_an_interrupted_stream_held_is_forgotten() -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("to jane@exa"))
    assert redactor.pending == 8
    redactor.drop()
    assert (redactor.pending, redactor.finish()) == (0, [])


def test_an_image_of_three_megabytes_passes_untouched() -> None:
    image = "data:image/png;base64," + "iVBORw0KGgo4111111111111111/" * 107_000
    event = chunk({"images": [{"type": "image_url", "image_url": {"url": image}}]})
    redactor = ChatStreamRedactor(POLICY)
    assert redactor.feed(event)[0] is event
    assert redactor.counts.unscanned == 1
    client, _ = run([event, content("done"), finish()])
    assert client.texts == {0: "done"}


def test_text_beside_base64_does_not_pass_as_base64() -> None:
    image = "data:image/png;base64,QUJD, jane@example.com"
    (data,) = ChatStreamRedactor(POLICY).feed(chunk({"images": [{"url": image}]}))
    assert EMAIL in data.decode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'{"choices":[],"choices":[{"delta":{"content":"x"}}]}',
        b'{"a":NaN}',
        b'{"a":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
)
def test_an_event_that_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ChatStreamRedactor(POLICY).feed(data)


def test_too_many_open_texts_are_refused() -> None:
    redactor = ChatStreamRedactor(POLICY)
    for index in range(64):
        redactor.feed(content("x", index))
    with pytest.raises(TooManyChannels):
        redactor.feed(content("x", 64))


def test_odd_shapes_pass_through_the_general_walk() -> None:
    for doc in (
        {"choices": None},
        {"choices": ["jane@example.com", 1, None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"index": None, "delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"delta": {"tool_calls": ["x", {"function": None}]}}]},
        {"error": {"message": "jane@example.com"}},
    ):
        (data,) = ChatStreamRedactor(POLICY).feed(json.dumps(doc).encode())
        assert json.loads(data) == json.loads(json.dumps(doc).replace("jane@example.com", EMAIL))


def test_an_error_event_does_not_spoil_the_envelope() -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("hello"))
    redactor.feed(b'{"error":{"message":"x"}}')
    assert json.loads(redactor.finish()[0])["id"] == "c1"


def test_block_ends_the_stream() -> None:
    redactor = ChatStreamRedactor(POLICY.with_actions({"key": "block"}))
    redactor.feed(content("the key " + key("sk-", 10)))
    with pytest.raises(BlockedContent):
        redactor.feed(content("x" * 20 + " and"))


def test_text_in_the_finishing_event_leaves_with_it() -> None:
    client, _ = run([content("a jane@exa"), chunk({"content": "mple.com b"}, finish_reason="stop")])
    assert client.texts == {0: f"a {EMAIL} b"}
    assert len(client.frames) == 2


def test_client_helper_counts_text_after_finish() -> None:
    client = Client()
    client.read(finish())
    client.read(content("x"))
    assert client.late == 1


def test_an_empty_text_that_comes_with_the_finish_changes_no_order() -> None:
    client, _ = run([content(pem(3)), content("\nafter"), finish()])
    assert client.texts == {0: f"{SECRET}\nafter"}


def test_the_bytes_of_speech_are_dropped_refused_or_passed() -> None:
    spoken = {"id": "a", "data": "UklG" * 20, "transcript": "to jane@example.com. "}
    event = chunk({"audio": spoken})
    (data,) = ChatStreamRedactor(POLICY).feed(event)
    shown = {**spoken, "data": "", "transcript": f"to {EMAIL}. "}
    assert json.loads(data)["choices"][0]["delta"]["audio"] == shown
    passing = ChatStreamRedactor(POLICY, audio="pass")
    (data,) = passing.feed(event)
    assert json.loads(data)["choices"][0]["delta"]["audio"] == {**shown, "data": "UklG" * 20}
    assert passing.counts.passed == {"base64": 1}
    with pytest.raises(BlockedContent, match="audio"):
        ChatStreamRedactor(POLICY, audio="refuse").feed(event)
