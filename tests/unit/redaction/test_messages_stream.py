import json
from typing import Any

import pytest

from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.messages import POLICY, Client, Upstream, run
from tests.unit.redaction.samples import CARD, EMAIL, SECRET, SSN, VISA, key
from tidegate.redaction import (
    BlockedContent,
    MessagesStreamRedactor,
    TooManyChannels,
    UpstreamAtFault,
)
from tidegate.testing.splits import every_split, split_at

TEXT = f"To jane@example.com: {VISA}, key {key('sk-', 32)}"
SHOWN = f"To {EMAIL}: {CARD}, key {SECRET}"
INPUT = '{"to":"jane\\u0040example.com","n":[4111111111111111,"536-90-4399"]}'
INPUT_SHOWN = f'{{"to":"{EMAIL}","n":["{CARD}","{SSN}"]}}'
START = {"type": "message_start", "message": {"id": "m", "content": []}}


def event(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()


def start(block: dict[str, Any], index: int = 0) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(kind: str, index: int = 0, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": f"{kind}_delta", **fields})


def text(piece: str, index: int = 0) -> bytes:
    return delta("text", index, text=piece)


def stop(index: int = 0) -> bytes:
    return event("content_block_stop", index=index)


BLANK = start({"type": "text", "text": ""})
BLANK_THOUGHT = start({"type": "thinking", "thinking": "", "signature": ""})


def shown(redactor: MessagesStreamRedactor, *events: bytes) -> list[dict[str, Any]]:
    return [json.loads(data) for each in events for _, data in redactor.feed(each)]


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_every_cut_of_a_text_gives_the_same_block(kind: str) -> None:
    for pieces in every_split(TEXT, three_way_max=0):
        upstream = Upstream()
        getattr(upstream, kind)(pieces)
        client, redactor = run(upstream.stopped())
        assert client.texts() == [SHOWN]
        assert client.stop_reason == "end_turn"
        assert redactor.counts == {"email": 1, "credit_card": 1, "api_key": 1}


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
def test_every_cut_of_an_input_parses_and_is_the_same(kind: str) -> None:
    for pieces in every_split(INPUT, three_way_max=0):
        upstream = Upstream()
        upstream.tool(pieces, kind)
        client, _ = run(upstream.stopped("tool_use"))
        assert client.texts() == [INPUT_SHOWN]
        assert json.loads(client.texts()[0]) == json.loads(INPUT_SHOWN)


@pytest.mark.full
def test_random_cuts_of_everything_at_once_agree() -> None:
    for seed in range(200):
        rnd = seeded(seed)
        upstream = Upstream()
        upstream.thinking(random_pieces(TEXT, rnd))
        upstream.text(random_pieces(TEXT, rnd))
        upstream.tool(random_pieces(INPUT, rnd))
        upstream.text(random_pieces(TEXT, rnd))
        client, redactor = run(upstream.stopped())
        assert client.texts() == [SHOWN, SHOWN, INPUT_SHOWN, SHOWN]
        assert redactor.pending == 0


def test_what_is_held_leaves_in_one_event_before_the_block_stops() -> None:
    redactor = MessagesStreamRedactor(POLICY)
    out = shown(redactor, BLANK, text("Call 4111 1111 1111 11"), text("11"), stop())
    assert out == [
        json.loads(BLANK),
        json.loads(text("Call ")),
        json.loads(text("")),
        json.loads(text(CARD)),
        json.loads(stop()),
    ]


def test_an_unchanged_stream_is_the_same_objects() -> None:
    upstream = Upstream()
    upstream.thinking(["Hm. ", "So. "], "c2lnbmVk" * 8)
    upstream.text(["Hello! ", "Again, ", "and again. "])
    upstream.tool(['{"a":', '"b."}'])
    redactor = MessagesStreamRedactor(POLICY)
    for each in upstream.stopped():
        ((name, data),) = redactor.feed(each, "some.name")
        assert data is each
        assert name == json.loads(each)["type"]
    assert redactor.counts == {}
    assert redactor.counts.passed == {"sealed": 1}
    assert (redactor.counts.unknown, redactor.finish()) == (0, [])


def test_a_changed_event_keeps_every_other_byte() -> None:
    redactor = MessagesStreamRedactor(POLICY)
    redactor.feed(BLANK)
    odd = '{ "type":"content_block_delta", "index" : 0,"x":[0.10,1E5],"delta":{"type":"text_delta",'
    odd += '"text":"to jane@example.com, \\u00fc\\/"}}'
    ((_, data),) = redactor.feed(odd.encode())
    assert data.decode() == odd.replace("jane@example.com", EMAIL).replace("\\u00fc\\/", "\u00fc/")


def test_a_signature_stays_while_the_thinking_does() -> None:
    upstream = Upstream()
    upstream.thinking(["nothing ", "to hide"])
    client, _ = run(upstream.stopped())
    assert client.content[0]["signature"] == "c2lnbmVk"
    names = [e["delta"]["type"] for e in client.events if "delta" in e and "index" in e]
    assert names == ["thinking_delta", "thinking_delta", "thinking_delta", "signature_delta"]


@pytest.mark.parametrize("cut", range(1, len("it is jane@example.com")))
def test_a_signature_goes_when_the_thinking_was_changed(cut: int) -> None:
    upstream = Upstream()
    upstream.thinking(split_at("it is jane@example.com", [cut]))
    upstream.text(["ok. "])
    client, _ = run(upstream.stopped())
    assert client.texts() == [f"it is {EMAIL}", "ok. "]
    assert client.content[0]["signature"] == ""


def test_a_signature_goes_also_when_the_change_is_a_value_that_never_ends() -> None:
    upstream = Upstream()
    upstream.thinking(["see ", key("sk-ant-api03-", 93), key("", 600)])
    client, _ = run(upstream.stopped())
    assert client.content[0] == {
        "type": "thinking",
        "thinking": f"see {SECRET}",
        "signature": "",
        "partial_json": "",
        "text": "",
    }


def test_thinking_may_be_left_out_and_the_indexes_close_up() -> None:
    upstream = Upstream()
    upstream.thinking(["it is jane@example.com"])
    upstream.text(["a jane@exa", "mple.com"])
    upstream.say(
        "content_block_start", index=2, content_block={"type": "redacted_thinking", "data": "QUJD"}
    )
    upstream.say("content_block_stop", index=2)
    upstream._blocks = 3
    upstream.tool(['{"a":"jane@exa', 'mple.com"}'])
    client, redactor = run(upstream.stopped(), thinking="drop")
    assert [block["type"] for block in client.content] == ["text", "tool_use"]
    assert client.texts() == [f"a {EMAIL}", f'{{"a":"{EMAIL}"}}']
    assert redactor.counts == {"email": 2}


def test_thinking_may_pass_as_it_is_and_is_counted() -> None:
    upstream = Upstream()
    upstream.thinking(["it is jane@exa", "mple.com"])
    upstream.text(["a jane@exa", "mple.com"])
    client, redactor = run(upstream.stopped(), thinking="pass")
    assert client.texts() == ["it is jane@example.com", f"a {EMAIL}"]
    assert client.content[0]["signature"] == "c2lnbmVk"
    assert redactor.counts == {"email": 2}


def test_encrypted_thinking_passes_and_is_counted() -> None:
    block = {"type": "redacted_thinking", "data": "QUJD/4111111111111111" * 4}
    redactor = MessagesStreamRedactor(POLICY)
    assert shown(redactor, start(block))[0]["content_block"] == block
    assert redactor.counts.passed == {"base64": 1}


def test_a_block_may_begin_with_its_text() -> None:
    redactor = MessagesStreamRedactor(POLICY)
    first = start({"type": "text", "text": "a jane@exa", "citations": [{"cited_text": "b@c.de"}]})
    out = shown(redactor, first, text("mple.com, "), stop())
    assert out[0]["content_block"] == {
        "type": "text",
        "text": "a ",
        "citations": [{"cited_text": EMAIL}],
    }
    assert [e["delta"]["text"] for e in out[1:-1]] == [f"{EMAIL}, "]
    thought = start({"type": "thinking", "thinking": "a@b.co", "signature": "c2ln"})
    out = shown(MessagesStreamRedactor(POLICY), thought, stop())
    assert out[0]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert out[1]["delta"] == {"type": "thinking_delta", "thinking": EMAIL}


def test_an_input_that_comes_whole_is_redacted_leaf_by_leaf() -> None:
    tool = {
        "type": "tool_use",
        "id": "t",
        "name": "f",
        "input": {"id": "a@b.co", "n": 4111111111111111},
    }
    (out,) = shown(MessagesStreamRedactor(POLICY), start(tool))
    assert out["content_block"] == {**tool, "input": {"id": EMAIL, "n": CARD}}
    assert shown(MessagesStreamRedactor(POLICY, tool_arguments=False), start(tool))[
        0
    ] == json.loads(start(tool))
    observing = MessagesStreamRedactor(POLICY, tool_arguments="detect")
    assert shown(observing, start(tool))[0] == json.loads(start(tool))
    assert observing.counts == {"email": 1}


@pytest.mark.parametrize(("mode", "found"), [(False, 0), ("detect", 2)])
def test_inputs_may_pass_unread_or_be_counted_only(mode: Any, found: int) -> None:
    upstream = Upstream()
    upstream.tool(split_at(INPUT, [14, 40]))
    client, redactor = run(upstream.stopped(), tool_arguments=mode)
    assert client.texts() == [INPUT]
    assert sum(redactor.counts.values()) == found


def test_other_fields_are_redacted_whole_and_structure_passes() -> None:
    citation = {
        "type": "web_search_result_location",
        "url": "https://u:p@h.org",
        "cited_text": VISA,
        "encrypted_index": "QUJD" * 16,
    }
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://e.org",
                "title": "a@b.co",
                "encrypted_content": "QUJD" * 16,
            }
        ],
    }
    redactor = MessagesStreamRedactor(POLICY)
    out = shown(
        redactor,
        event("message_start", message={"id": "m", "model": "m-1", "role": "assistant"}),
        BLANK,
        delta("citations", citation=citation),
        stop(),
        start(result, 1),
        stop(1),
        event("message_delta", delta={"stop_reason": "stop_sequence", "stop_sequence": "a@b.co"}),
        event("ping"),
        event("error", error={"type": "overloaded_error", "message": "to a@b.co"}),
    )
    assert out[2]["delta"]["citation"] == {
        **citation,
        "url": f"https://{SECRET}@h.org",
        "cited_text": CARD,
    }
    assert out[4]["content_block"]["content"][0]["title"] == EMAIL
    assert out[6]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": EMAIL}
    assert out[8]["error"] == {"type": "overloaded_error", "message": f"to {EMAIL}"}
    assert redactor.counts.passed == {"sealed": 2}
    assert redactor.counts.unknown == 0


def test_what_is_not_known_is_redacted_and_counted() -> None:
    redactor = MessagesStreamRedactor(POLICY)
    out = shown(
        redactor,
        event("future_event", text="to jane@example.com", deep=[{"x": VISA}]),
        BLANK,
        delta("future", words="to jane@example.com"),
        event("content_block_delta", index=0, delta="a@b.co"),
        event("no name a@b.co"),
        b'["a@b.co"]',
    )
    assert out[0] == {"type": "future_event", "text": f"to {EMAIL}", "deep": [{"x": CARD}]}
    assert out[2]["delta"] == {"type": "future_delta", "words": f"to {EMAIL}"}
    assert out[3]["delta"] == EMAIL
    assert out[4] == {"type": f"no name {EMAIL}"}
    assert out[5] == [EMAIL]
    assert redactor.counts.unknown == 5
    assert redactor.feed(event("no name a@b.co"))[0].name == ""


@pytest.mark.parametrize(
    "events",
    [
        [text("x")],
        [stop()],
        [BLANK, BLANK],
        [BLANK, stop(), BLANK],
        [BLANK, stop(), text("x")],
        [BLANK, text("4111 1111 "), event("message_stop"), text("1111 1111")],
        [
            BLANK,
            text("4111 1111 "),
            event("message_delta", delta={"stop_reason": "end_turn"}),
            text("1111 1111"),
        ],
        [
            BLANK_THOUGHT,
            delta("thinking", thinking="4111 "),
            delta("signature", signature="x"),
            delta("thinking", thinking="1111"),
        ],
        *(
            [start({"type": "text", "text": ""}, index=index)]
            for index in (-1, True, "0", None, 1.0)
        ),
    ],
)
def test_no_upstream_can_end_or_split_a_block_to_leak(events: list[bytes]) -> None:
    redactor = MessagesStreamRedactor(POLICY)
    for each in events[:-1]:
        redactor.feed(each)
    with pytest.raises(UpstreamAtFault):
        redactor.feed(events[-1])


def test_a_stream_without_an_end_is_flushed_and_one_that_broke_is_not() -> None:
    redactor = MessagesStreamRedactor(POLICY)
    shown(redactor, BLANK, text("a jane@exa"))
    assert redactor.pending == 8
    ((name, data),) = redactor.finish()
    assert (name, json.loads(data)) == ("content_block_delta", json.loads(text("jane@exa")))
    for broken in (None, event("error", error={"message": "x"})):
        redactor = MessagesStreamRedactor(POLICY)
        shown(redactor, BLANK, text("a jane@exa"))
        if broken is None:
            redactor.drop()
        else:
            redactor.feed(broken)
        assert (redactor.pending, redactor.finish()) == (0, [])


@pytest.mark.parametrize(
    "last", [event("message_stop"), event("message_delta", delta={"stop_reason": "max_tokens"})]
)
def test_the_end_of_a_message_flushes_blocks_that_did_not_stop(last: bytes) -> None:
    redactor = MessagesStreamRedactor(POLICY)
    out = shown(redactor, BLANK, text("a jane@example.com"), last, stop())
    assert [e["delta"]["text"] for e in out[1:3]] == ["a ", EMAIL]
    assert out[3:] == [json.loads(last), json.loads(stop())]


@pytest.mark.parametrize("data", [b"", b"{", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\xff"}'])
def test_an_event_that_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        MessagesStreamRedactor(POLICY).feed(data)


def test_block_ends_the_stream_and_too_many_texts_are_refused() -> None:
    redactor = MessagesStreamRedactor(POLICY.with_actions({"card": "block"}))
    redactor.feed(BLANK)
    with pytest.raises(BlockedContent, match="card"):
        redactor.feed(text(f"{VISA}, "))
    redactor = MessagesStreamRedactor(POLICY)
    for index in range(64):
        shown(redactor, start({"type": "text", "text": ""}, index), text("x", index))
    with pytest.raises(TooManyChannels):
        redactor.feed(start({"type": "text", "text": ""}, 64))


@pytest.mark.full
def test_the_number_of_blocks_is_bounded() -> None:
    redactor = MessagesStreamRedactor(POLICY)

    def feed_all() -> None:
        for index in range(5000):
            shown(redactor, start({"type": "image"}, index), stop(index))

    with pytest.raises(UpstreamAtFault):
        feed_all()


def test_client_helper_notices_what_no_server_may_do() -> None:
    client = Client()
    with pytest.raises(AssertionError):
        client.read("content_block_start", start({}, 1))
