"""The entries 108 to 120 of the catalogue: what the wire does to texts."""

import json
from typing import Any

import pytest

from tests.unit.redaction import messages, responses
from tests.unit.redaction.chat import chunk, content, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, SECRET, VISA
from tidegate import sse
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")
USAGE = b'{"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}'
TEXT = f"a {VISA}, jane@example.com."
SHOWN = f"a {CARD}, {EMAIL}."


def shown(*events: bytes) -> list[Any]:
    redactor = ChatStreamRedactor(POLICY)
    return [json.loads(data) for event in events for data in redactor.feed(event)]


def test_108_choices_that_interleave_are_texts_of_their_own() -> None:
    for pieces in every_split(TEXT, three_way_max=0):
        events = []
        for piece in pieces:
            events += [content(piece, index) for index in (0, 1, 2)]
        client, _ = run([*events, *(finish("stop", index) for index in (2, 0, 1))])
        assert client.texts == dict.fromkeys(range(3), SHOWN)
        assert client.late == 0


@pytest.mark.parametrize(
    "delta",
    [{"content": None}, {}, {"content": ""}, {"content": []}, {"content": [{"type": "text"}]}],
)
def test_109_content_may_be_null_absent_empty_or_parts(delta: dict[str, Any]) -> None:
    redactor = ChatStreamRedactor(POLICY)
    odd = chunk(delta)
    assert redactor.feed(odd) == [odd]
    redactor.feed(content("to jane@exa"))
    assert redactor.feed(odd) == [odd]
    (event,) = redactor.feed(content("mple.com, "))
    assert json.loads(event)["choices"][0]["delta"] == {"content": f"{EMAIL}, "}
    parts = chunk({"content": [{"type": "text", "text": f"{VISA}, "}]})
    assert json.loads(redactor.feed(parts)[0])["choices"][0]["delta"] == {
        "content": [{"type": "text", "text": f"{CARD}, "}]
    }


@pytest.mark.parametrize(
    ("field", "wrap"),
    [
        ("reasoning_content", lambda text: text),
        ("reasoning", lambda text: text),
        ("refusal", lambda text: text),
        ("thinking", lambda text: text),
        ("audio", lambda text: {"transcript": text}),
    ],
)
def test_110_every_field_with_text_is_held_and_masked(field: str, wrap: Any) -> None:
    for pieces in every_split(TEXT, three_way_max=0):
        client, _ = run([*(chunk({field: wrap(piece)}) for piece in pieces), finish()])
        assert (client.joined(0) or client.fields[0][field]) == SHOWN


def test_110_citations_and_the_links_of_annotations_are_masked_whole() -> None:
    link = {"type": "url_citation", "url_citation": {"url": "https://u:p@e.org/?q=jane%40e.org"}}
    document = json.loads(chunk({"annotations": [link, {"url": "mailto:jane@example.com"}]}))
    document["citations"] = ["https://u:p@example.org/a", "jane@example.com"]
    (event,) = shown(json.dumps(document).encode())
    assert event["citations"] == [f"https://{SECRET}@example.org/a", EMAIL]
    masked = {"url": f"https://{SECRET}@e.org/?q={EMAIL}"}
    assert event["choices"][0]["delta"]["annotations"] == [
        {"type": "url_citation", "url_citation": masked},
        {"url": f"mailto:{EMAIL}"},
    ]


@pytest.mark.parametrize("legacy", ["", "function_call"])
def test_111_fragments_of_arguments_are_masked_and_names_stay(legacy: str) -> None:
    arguments = '{"to":"jane\\u0040example.com","n":[1,"4111 1111 1111 1111"]}'
    masked = f'{{"to":"{EMAIL}","n":[1,"{CARD}"]}}'
    for pieces in every_split(arguments, three_way_max=0):
        calls = [{"arguments": piece} for piece in pieces]
        calls[0] = {"name": "send_mail", **calls[0]}
        events = [
            chunk({legacy: call} if legacy else {"tool_calls": [{"index": 0, "function": call}]})
            for call in calls
        ]
        client, _ = run([*events, finish("function_call" if legacy else "tool_calls")])
        seen = []
        for frame in client.frames:
            delta = frame["choices"][0]["delta"]
            seen += [delta[legacy]] if legacy and legacy in delta else []
            seen += [item["function"] for item in delta.get("tool_calls", ())]
        assert "".join(call.get("arguments", "") for call in seen) == masked
        assert [call["name"] for call in seen if "name" in call] == ["send_mail"]


def test_112_a_message_is_flushed_before_its_block_stops_and_signatures_follow() -> None:
    upstream = messages.Upstream()
    upstream.thinking(["on jane@exa", "mple.com"])
    upstream.thinking(["fine"])
    upstream.text(["to jane@exa", "mple.com"])
    upstream.tool(['{"to":"jane\\u00', '40example.com"}'])
    client, _ = messages.run(upstream.stopped("tool_use"))
    assert client.texts() == [f"on {EMAIL}", "fine", f"to {EMAIL}", f'{{"to":"{EMAIL}"}}']
    assert [block.get("signature") for block in client.content] == ["", "c2lnbmVk", None, None]


def test_113_every_copy_of_a_response_agrees_and_the_numbers_go_on() -> None:
    upstream = responses.Upstream()
    upstream.reasoning(["on jane@exa", "mple.com"])
    upstream.message(["to jane@exa", "mple.com"])
    upstream.message(["not for jane@exa", "mple.com"], refusal=True)
    upstream.call(['{"to":"jane\\u00', '40example.com"}'])
    client, _ = responses.run(upstream.completed())
    assert client.texts() == [
        f"on {EMAIL}",
        f"to {EMAIL}",
        f"not for {EMAIL}",
        f'{{"to":"{EMAIL}"}}',
    ]
    numbers = [event["sequence_number"] for event in client.events]
    assert numbers == list(range(len(numbers)))


def test_114_held_text_leaves_before_the_finish_and_usage_has_no_choice() -> None:
    events = shown(content("Call 4111 1111 1111 1111"), USAGE, finish(), USAGE)
    assert [event["choices"][0]["delta"] if event["choices"] else None for event in events] == [
        {"content": "Call "},
        None,
        {"content": CARD},
        {"content": ""},
        None,
    ]
    assert [c["finish_reason"] for e in events for c in e["choices"]] == [None, None, "stop"]


def test_115_what_is_held_when_a_stream_breaks_never_leaves_raw() -> None:
    redactor = ChatStreamRedactor(POLICY)
    redactor.feed(content("Call 4111 1111 1111 11"))
    assert redactor.pending == 17
    redactor.drop()
    assert (redactor.pending, redactor.finish()) == (0, [])
    ended = ChatStreamRedactor(POLICY)
    ended.feed(content("mail jane@example.com"))
    (last,) = ended.finish()
    assert json.loads(last)["choices"][0]["delta"] == {"content": EMAIL}


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_116_the_frame_of_an_event_does_not_matter(line_end: bytes) -> None:
    first, second = content("to jane@exa"), content("mple.com. ")
    half = second.index(b'"choices"')
    stream = b"\xef\xbb\xbf: hello\n\nevent: message\ndata:" + first + b"\n\n: ping\n\n"
    stream += b"id: 7\nretry: 5\ndata: " + second[:half] + b"\ndata: " + second[half:]
    stream = stream.replace(b"\n", line_end)
    for cut in range(len(stream)):
        decoder = sse.Decoder(1 << 20)
        events = [*decoder.feed(stream[:cut]), *decoder.feed(stream[cut:])]
        # Without a blank line behind it the last event is none: the stream was cut.
        assert (len(events), decoder.pending) == (1, True)
        events += decoder.feed(line_end * 2)
        client, _ = run([event.data for event in events])
        assert client.texts == {0: f"to {EMAIL}. "}


@pytest.mark.parametrize("escaped", [True, False])
def test_117_a_character_may_be_cut_by_the_network(escaped: bool) -> None:  # noqa: FBT001
    text = "\U0001f469\u200d\U0001f680 jane@example.com \u4f60"
    document = json.loads(content(""))
    document["choices"][0]["delta"]["content"] = text
    stream = b"data: " + json.dumps(document, ensure_ascii=escaped).encode() + b"\n\n"
    for cut in range(len(stream)):
        decoder = sse.Decoder(1 << 20)
        events = [*decoder.feed(stream[:cut]), *decoder.feed(stream[cut:])]
        client, _ = run([event.data for event in events] + [finish()])
        assert client.texts == {0: text.replace("jane@example.com", EMAIL)}


def test_120_an_event_whose_text_is_held_still_leaves() -> None:
    (held,) = shown(chunk({"content": "word"}, x_vendor=[1]))
    assert held["choices"][0] == {
        "index": 0,
        "delta": {"content": ""},
        "finish_reason": None,
        "x_vendor": [1],
    }
    redactor = ChatStreamRedactor(POLICY)
    (role,) = redactor.feed(chunk({"role": "assistant", "content": "word"}))
    assert json.loads(role)["choices"][0]["delta"] == {"role": "assistant", "content": ""}
