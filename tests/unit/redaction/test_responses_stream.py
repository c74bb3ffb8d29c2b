import json
from typing import Any

import pytest

from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.responses import POLICY, Client, Upstream, delta, event, run, shown
from tests.unit.redaction.samples import CARD, EMAIL, SECRET, SSN, VISA, key
from tidegate.redaction import (
    BlockedContent,
    ResponsesStreamRedactor,
    TooManyChannels,
)
from tidegate.testing.splits import every_split, split_at

pytestmark = pytest.mark.full

TEXT = f"To jane@example.com: {VISA}, key {key('sk-', 32)}"
SHOWN = f"To {EMAIL}: {CARD}, key {SECRET}"
ARGUMENTS = '{"to":"jane\\u0040example.com","n":[4111111111111111,"536-90-4399"]}'
ARGUMENTS_SHOWN = f'{{"to":"{EMAIL}","n":["{CARD}","{SSN}"]}}'


FULL = pytest.mark.full


@pytest.mark.parametrize(
    "kind",
    [
        "message",
        pytest.param("refusal", marks=FULL),
        "summary",
        pytest.param("reasoning", marks=FULL),
    ],
)
def test_every_cut_of_a_text_gives_the_same_text_in_every_copy(kind: str) -> None:
    for pieces in every_split(TEXT, three_way_max=0):
        upstream = Upstream()
        if kind in {"message", "refusal"}:
            upstream.message(pieces, refusal=kind == "refusal")
        else:
            upstream.reasoning(pieces, summary=kind == "summary")
        client, _ = run(upstream.completed())
        assert client.texts() == [SHOWN]


@pytest.mark.parametrize(
    ("kind", "text", "masked"),
    [
        ("function_call", ARGUMENTS, ARGUMENTS_SHOWN),
        pytest.param("mcp_call", ARGUMENTS, ARGUMENTS_SHOWN, marks=FULL),
        ("custom_tool_call", TEXT, SHOWN),
        pytest.param("code_interpreter_call", f"print('{TEXT}')", f"print('{SHOWN}')", marks=FULL),
    ],
)
def test_every_cut_of_a_call_gives_the_same_call_in_every_copy(
    kind: str, text: str, masked: str
) -> None:
    for pieces in every_split(text, three_way_max=0):
        upstream = Upstream()
        upstream.call(pieces, kind)
        client, _ = run(upstream.completed())
        assert client.texts() == [masked]


@pytest.mark.full
def test_random_cuts_of_everything_at_once_agree() -> None:
    for seed in range(200):
        rnd = seeded(seed)
        upstream = Upstream()
        upstream.reasoning(random_pieces(TEXT, rnd))
        upstream.message(random_pieces(TEXT, rnd))
        upstream.call(random_pieces(ARGUMENTS, rnd))
        upstream.message(random_pieces(TEXT, rnd), refusal=True)
        client, redactor = run(upstream.completed())
        assert client.texts() == [SHOWN, SHOWN, ARGUMENTS_SHOWN, SHOWN]
        assert redactor.pending == 0


def test_one_event_is_added_and_the_numbers_go_on() -> None:
    upstream = Upstream()
    upstream.message(["mail jane@exa", "mple.com"])
    upstream.message(["no", "thing, "])
    events = upstream.completed()
    client, _ = run(events)
    assert client.texts() == [f"mail {EMAIL}", "nothing, "]
    assert [e["sequence_number"] for e in client.events] == list(range(len(events) + 1))
    added = client.events[client.names.index("response.output_text.done") - 1]
    assert added == {
        "type": "response.output_text.delta",
        "sequence_number": 6,
        "item_id": "msg_0",
        "output_index": 0,
        "content_index": 0,
        "delta": EMAIL,
        "logprobs": [],
    }


def test_an_unchanged_stream_is_the_same_objects() -> None:
    upstream = Upstream()
    upstream.message(["Hello! ", "Again, "])
    upstream.call(['{"a":', "1}"])
    redactor = ResponsesStreamRedactor(POLICY)
    for each in upstream.completed():
        ((name, data),) = redactor.feed(each, "some.name")
        assert data is each
        assert name == json.loads(each)["type"]
    assert (redactor.counts, redactor.counts.passed, redactor.counts.unknown) == ({}, {}, 0)
    assert redactor.finish() == []


def test_only_the_number_changes_in_events_after_an_added_one() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    redactor.feed(delta("word", sequence_number=4))
    done = b'{ "type":"response.output_text.done", "sequence_number" : 5,"item_id":"msg_1",'
    done += b'"output_index":0,"content_index":0,"x":[0.10,1E5,"\\u00e9"],"text":"word"}'
    added, (_, data) = redactor.feed(done)
    assert json.loads(added.data)["sequence_number"] == 5
    assert data == done.replace(b" : 5", b" : 6")
    odd = event("response.x", sequence_number=6, text='"sequence_number":6')
    assert shown(redactor, odd)[0]["sequence_number"] == 7


def test_what_is_held_leaves_before_an_item_or_a_response_ends() -> None:
    for last in (
        event("response.output_item.done", output_index=0, item={"id": "msg_1"}),
        event("response.content_part.done", item_id="msg_1", output_index=0, content_index=0),
        event("response.completed", response={"output": []}),
        event("response.incomplete", response={"output": []}),
        event("response.failed", response={"output": []}),
        event("response.output_item.added", output_index=0, item={"id": "msg_2"}),
    ):
        redactor = ResponsesStreamRedactor(POLICY)
        first, added, end = shown(redactor, delta("a jane@example.com"), last)
        assert (first["delta"], added["delta"]) == ("a ", EMAIL)
        assert end == json.loads(last)
        assert redactor.pending == 0


def test_a_stream_without_an_end_is_flushed_and_one_that_broke_is_not() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    redactor.feed(delta("a jane@exa", sequence_number=7))
    ((name, data),) = redactor.finish()
    assert (name, json.loads(data)["delta"]) == ("response.output_text.delta", "jane@exa")
    assert json.loads(data)["sequence_number"] == 8
    for broken in (None, event("error", code="x", message="to a@b.co", param=None)):
        redactor = ResponsesStreamRedactor(POLICY)
        redactor.feed(delta("a jane@exa"))
        assert redactor.pending == 8
        if broken is None:
            redactor.drop()
        else:
            assert shown(redactor, broken)[0]["message"] == f"to {EMAIL}"
        assert (redactor.pending, redactor.finish()) == (0, [])


def test_the_short_way_and_the_long_way_agree() -> None:
    text = f'to jane@example.com, {VISA} \u00e9\u4f60 "q" \\ \n and 536-90-4399, done. '
    for size in (1, 3, 8):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        short = [delta(piece, sequence_number=i) for i, piece in enumerate(pieces)]
        # With the number behind the text, or another field, no event is like the last one.
        back = [e[:-1] + b',"x":%d}' % i for i, e in enumerate(short)]
        texts = []
        for events in (short, back):
            redactor = ResponsesStreamRedactor(POLICY)
            redactor.feed(delta("held", sequence_number=0, output_index=7, item_id="other"))
            done = event("response.output_item.done", output_index=7, sequence_number=1)
            assert len(redactor.feed(done)) == 2
            out = shown(redactor, *events)
            assert [e["sequence_number"] for e in out] == list(range(1, len(pieces) + 1))
            tail = [json.loads(data) for _, data in redactor.finish()]
            texts.append("".join(e["delta"] for e in (*out, *tail)))
        assert texts == [POLICY.redact(text).text] * 2


def test_the_output_of_a_shell_is_two_texts() -> None:
    kind = "response.shell_call_output_content"
    where = {"item_id": "s", "output_index": 0, "command_index": 0}
    redactor = ResponsesStreamRedactor(POLICY)
    out = shown(
        redactor,
        event(f"{kind}.delta", **where, delta={"stdout": "a jane@exa", "stderr": "b 4111 1111 "}),
        event(f"{kind}.delta", **where, delta={"stdout": "mple.com. ", "stderr": "1111 1111! "}),
        event(f"{kind}.done", **where, output=[{"stdout": "a jane@example.com. ", "stderr": ""}]),
    )
    assert "".join(e["delta"]["stdout"] for e in out[:2]) == f"a {EMAIL}. "
    assert "".join(e["delta"]["stderr"] for e in out[:2]) == f"b {CARD}! "
    assert out[2]["output"] == [{"stdout": f"a {EMAIL}. ", "stderr": ""}]


def test_copies_that_nobody_can_redact_are_dropped_or_refused() -> None:
    spelled = [{"token": "jane", "logprob": -0.1, "bytes": [106]}]
    sound = event("response.audio.delta", delta="UklGRg==", sequence_number=1)
    with_copies = delta("ja ", logprobs=spelled, obfuscation="aB3x")
    redactor = ResponsesStreamRedactor(POLICY)
    text, audio = shown(redactor, with_copies, sound)
    assert (text["logprobs"], audio["delta"]) == ([], "")
    assert "obfuscation" not in text
    part = {"type": "output_audio", "data": "UklGRg==", "transcript": "a@b.co"}
    done = event("response.content_part.done", item_id="m", output_index=9, part=part)
    assert shown(redactor, done)[0]["part"] == {**part, "data": "", "transcript": EMAIL}
    with pytest.raises(BlockedContent, match="logprobs"):
        ResponsesStreamRedactor(POLICY, logprobs="refuse").feed(with_copies)
    for refused in (sound, done):
        with pytest.raises(BlockedContent, match="audio"):
            ResponsesStreamRedactor(POLICY, audio="refuse").feed(refused)
    passing = ResponsesStreamRedactor(POLICY, audio="pass")
    assert [e.get("delta", e.get("part")) for e in shown(passing, sound, done)] == [
        "UklGRg==",
        {**part, "transcript": EMAIL},
    ]
    assert passing.counts.passed == {"base64": 1}


def test_the_transcript_of_audio_is_a_text() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    base = "response.audio.transcript"
    out = shown(
        redactor,
        event(f"{base}.delta", delta="a jane@exa", sequence_number=0),
        event(f"{base}.delta", delta="mple.com", sequence_number=1),
        event(f"{base}.done", sequence_number=2),
        event("response.audio.done", sequence_number=3),
    )
    assert "".join(e.get("delta", "") for e in out) == f"a {EMAIL}"
    assert [e["sequence_number"] for e in out] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("mode", "found"), [(False, 0), ("detect", 3)])
def test_arguments_may_pass_unread_or_be_counted_only(mode: Any, found: int) -> None:
    upstream = Upstream()
    upstream.call(split_at(ARGUMENTS, [14, 40]))
    client, redactor = run(upstream.completed(), tool_arguments=mode)
    assert client.texts() == [ARGUMENTS]
    # Every copy is counted: the pieces, the event that ends them, the item, the response.
    assert sum(redactor.counts.values()) == (8 if found else 0)


def test_other_fields_are_redacted_whole_and_structure_passes() -> None:
    annotation = {"type": "url_citation", "url": "https://u:p@example.org/a", "title": "a@b.co"}
    item = {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["about jane@example.com"],
        "results": [{"file_id": "file-1", "text": VISA, "attributes": {"id": "a@b.co"}}],
    }
    events = [
        event("response.output_text.annotation.added", annotation=annotation, item_id="m"),
        event("response.output_item.done", output_index=3, item=item),
        event("response.mcp_call.failed", item_id="m", output_index=4),
        delta("x ", note="to jane@example.com"),
        delta("y", note="to jane@example.com"),
        event("response.image_generation_call.partial_image", partial_image_b64="QUJD" * 99),
    ]
    redactor = ResponsesStreamRedactor(POLICY)
    out = shown(redactor, *events)
    assert out[0]["annotation"] == {
        **annotation,
        "url": f"https://{SECRET}@example.org/a",
        "title": EMAIL,
    }
    assert out[1]["item"]["queries"] == [f"about {EMAIL}"]
    assert out[1]["item"]["results"] == [
        {"file_id": "file-1", "text": CARD, "attributes": {"id": EMAIL}}
    ]
    assert out[2] == json.loads(events[2])
    assert out[5] == json.loads(events[5])
    (tail,) = [json.loads(data) for _, data in redactor.finish()]
    assert (tail["delta"], tail["note"]) == ("y", f"to {EMAIL}")
    assert redactor.counts.passed == {"sealed": 1}


def test_an_event_that_is_not_known_is_redacted_and_counted() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    out = shown(
        redactor,
        event("response.future.thing", text="to jane@example.com", deep=[{"x": VISA}]),
        event("response.future_text.delta", item_id="f", delta="a jane@exa"),
        event("response.future_text.delta", item_id="f", delta="mple.com, "),
        event("no name a@b.co", x=1),
        b'["a@b.co"]',
    )
    assert out[0] == {
        "type": "response.future.thing",
        "text": f"to {EMAIL}",
        "deep": [{"x": CARD}],
    }
    assert out[1]["delta"] + out[2]["delta"] == f"a {EMAIL}, "
    assert out[3]["type"] == f"no name {EMAIL}"
    assert out[4] == [EMAIL]
    assert redactor.counts.unknown == 3
    assert redactor.feed(event("no name a@b.co"))[0].name == ""


@pytest.mark.parametrize("data", [b"", b"{", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\xff"}'])
def test_an_event_that_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ResponsesStreamRedactor(POLICY).feed(data)


def test_block_ends_the_stream_and_too_many_texts_are_refused() -> None:
    redactor = ResponsesStreamRedactor(POLICY.with_actions({"card": "block"}))
    with pytest.raises(BlockedContent, match="card"):
        redactor.feed(delta(f"{VISA}, "))
    redactor = ResponsesStreamRedactor(POLICY)
    for index in range(64):
        redactor.feed(delta("x", output_index=index, item_id=str(index)))
    with pytest.raises(TooManyChannels):
        redactor.feed(delta("x", output_index=64, item_id="64"))


def test_client_helper_notices_what_no_server_may_do() -> None:
    client = Client()
    client.read("response.x", event("response.x", sequence_number=1))
    with pytest.raises(AssertionError):
        client.read("response.x", event("response.x", sequence_number=1))
