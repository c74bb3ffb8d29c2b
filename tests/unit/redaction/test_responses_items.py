"""Which events of a response belong together, and what no upstream can do with their names."""

import json
from typing import Any

import pytest

from tests.unit.redaction.responses import POLICY, delta, event, shown
from tests.unit.redaction.samples import CARD, EMAIL
from tidegate.redaction import ResponsesStreamRedactor, UpstreamAtFault
from tidegate.testing.splits import split_at


@pytest.mark.parametrize(
    "end",
    [
        event(
            "response.output_text.done", item_id="msg_1", output_index=0, content_index=0, text=""
        ),
        event("response.content_part.done", item_id="msg_1", output_index=0, content_index=0),
        event("response.output_item.done", output_index=0, item={"id": "msg_1"}),
    ],
)
def test_no_upstream_can_end_a_text_and_go_on_with_it(end: bytes) -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    shown(redactor, delta("4111 1111 "), end)
    with pytest.raises(UpstreamAtFault):
        redactor.feed(delta("1111 1111"))


@pytest.mark.parametrize(
    "names",
    [
        ({"item_id": "a"}, {"item_id": "b"}),
        ({"output_index": 0}, {"output_index": 1}),
        ({"output_index": None}, {"output_index": None}),
        ({"item_id": None}, {"item_id": None}),
        ({"item_id": "a", "output_index": None}, {"item_id": "a"}),
    ],
)
def test_pieces_belong_together_if_the_index_or_the_id_is_the_same(names: Any) -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    first, second = names
    texts = shown(redactor, delta("a 4111 1111 ", **first), delta("1111 1111, b", **second))
    assert "".join(each["delta"] for each in texts) == f"a {CARD}, "


def test_items_that_share_an_index_or_an_id_begin_anew_when_they_say_so() -> None:
    added = "response.output_item.added"
    for first, second in (((0, "a"), (0, "b")), ((0, "a"), (1, "a")), ((0, "a"), (1, "b"))):
        redactor = ResponsesStreamRedactor(POLICY)
        out = []
        for index, ident in (first, second):
            where = {"output_index": index, "item_id": ident}
            begin = event(added, output_index=index, item={"id": ident, "type": "message"})
            end = event("response.output_item.done", output_index=index, item={"id": ident})
            pieces = [delta("4111 1111 ", **where), delta("1111 1111", **where)]
            out += shown(redactor, begin, *pieces, end)
        texts = [each["delta"] for each in out if "delta" in each]
        assert "".join(texts) == CARD * 2


def test_two_parts_of_one_item_are_texts_of_their_own() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    first, second = delta("4111 1111 "), delta("1111 1111 ", content_index=1)
    assert [each["delta"] for each in shown(redactor, first, second)] == ["", ""]
    tails = [json.loads(data) for _, data in redactor.finish()]
    assert [(t["content_index"], t["delta"]) for t in tails] == [
        (0, "4111 1111 "),
        (1, "1111 1111 "),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"output_index": 0.0},
        {"output_index": "0"},
        {"output_index": -1},
        {"output_index": True},
        {"content_index": 0.0},
        {"content_index": "0"},
        {"item_id": 5},
    ],
)
def test_a_name_that_clients_read_in_two_ways_is_the_fault_of_the_upstream(odd: Any) -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    redactor.feed(delta("4111 1111 "))
    with pytest.raises(UpstreamAtFault):
        redactor.feed(delta("1111 1111", **odd))


def test_only_the_number_of_its_own_kind_divides_an_item() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    out = shown(
        redactor,
        delta("4111 1111 ", summary_index=0),
        delta("1111 1111, ", summary_index=1, command_index=2),
    )
    assert "".join(e["delta"] for e in out) == f"{CARD}, "


@pytest.mark.full
@pytest.mark.parametrize(
    "endless",
    [
        lambda index: event("response.output_item.done", output_index=index),
        lambda index: event("response.output_item.added", item={"id": str(index)}),
        lambda index: event("response.content_part.done", output_index=0, content_index=index),
    ],
)
def test_the_number_of_items_is_bounded(endless: Any) -> None:
    redactor = ResponsesStreamRedactor(POLICY)

    def feed_all() -> None:
        for index in range(9000):
            redactor.feed(endless(index))

    with pytest.raises(UpstreamAtFault):
        feed_all()


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
def test_no_text_comes_after_the_end_of_a_response(kind: str) -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    end = event(f"response.{kind}", response={"output": []})
    shown(redactor, delta("4111 1111 "), end, delta(""))
    with pytest.raises(UpstreamAtFault):
        redactor.feed(delta("1111 1111"))


WHERE = {"item_id": "m", "output_index": 0}
PART = {**WHERE, "content_index": 0}
SUMMARY = {**WHERE, "summary_index": 0}
BEGINNINGS: list[tuple[str, Any, list[str | int], str, dict[str, Any]]] = [
    (
        "response.content_part.added",
        {**PART, "part": {"type": "output_text", "text": "TEXT", "annotations": []}},
        ["part", "text"],
        "response.output_text",
        PART,
    ),
    (
        "response.content_part.added",
        {**PART, "part": {"type": "refusal", "refusal": "TEXT"}},
        ["part", "refusal"],
        "response.refusal",
        PART,
    ),
    (
        "response.reasoning_summary_part.added",
        {**SUMMARY, "part": {"type": "summary_text", "text": "TEXT"}},
        ["part", "text"],
        "response.reasoning_summary_text",
        SUMMARY,
    ),
    (
        "response.output_item.added",
        {"output_index": 0, "item": {"id": "m", "type": "custom_tool_call", "input": "TEXT"}},
        ["item", "input"],
        "response.custom_tool_call_input",
        WHERE,
    ),
    (
        "response.output_item.added",
        {
            "output_index": 0,
            "item": {
                "id": "m",
                "type": "message",
                "content": [{"type": "output_text", "text": "TEXT"}],
            },
        },
        ["item", "content", 0, "text"],
        "response.output_text",
        PART,
    ),
    (
        "response.in_progress",
        {
            "response": {
                "output": [
                    {
                        "id": "m",
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": "TEXT"}],
                    }
                ]
            }
        },
        ["response", "output", 0, "summary", 0, "text"],
        "response.reasoning_summary_text",
        SUMMARY,
    ),
    (
        "response.shell_call_command.added",
        {**WHERE, "command_index": 0, "command": "TEXT"},
        ["command"],
        "response.shell_call_command",
        {**WHERE, "command_index": 0},
    ),
]


@pytest.mark.parametrize(("kind", "fields", "place", "base", "where"), BEGINNINGS)
def test_a_text_may_begin_where_it_is_added(
    kind: str, fields: Any, place: list[str | int], base: str, where: Any
) -> None:
    text = "to jane.doe@example.com, 4111 1111 1111 1111"
    for cut in range(1, len(text)):
        first, rest = split_at(text, [cut])
        redactor = ResponsesStreamRedactor(POLICY)
        begin = json.loads(json.dumps(fields).replace("TEXT", first))
        out = shown(
            redactor,
            event(kind, sequence_number=0, **begin),
            event(f"{base}.delta", sequence_number=1, delta=rest, **where),
            event("response.output_item.done", sequence_number=2, output_index=0),
        )
        seen: Any = out[0]
        for step in place:
            seen = seen[step]
        assert seen + "".join(e.get("delta", "") for e in out[1:]) == f"to {EMAIL}, {CARD}"
        assert [e["sequence_number"] for e in out] == list(range(len(out)))
        assert redactor.pending == 0


def test_arguments_may_begin_where_their_item_is_added() -> None:
    raw = '{"to":"jane.doe\\u0040example.com","n":4111111111111111}'
    for kind, base in (("function_call", "function_call"), ("mcp_call", "mcp_call")):
        for cut in range(1, len(raw)):
            first, rest = split_at(raw, [cut])
            redactor = ResponsesStreamRedactor(POLICY)
            item = {"id": "f", "type": kind, "name": "n", "arguments": first}
            where = {"item_id": "f", "output_index": 0}
            out = shown(
                redactor,
                event("response.output_item.added", output_index=0, item=item),
                event(f"response.{base}_arguments.delta", delta=rest, **where),
                event("response.output_item.done", output_index=0, item={**item, "arguments": raw}),
            )
            joined = out[0]["item"]["arguments"] + "".join(e.get("delta", "") for e in out[1:])
            assert json.loads(joined) == {"to": EMAIL, "n": CARD}
            assert out[-1]["item"]["arguments"] == joined


def test_what_carries_the_rest_of_a_beginning_repeats_no_text_in_the_place_of_an_id() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    item = {"id": "to a@b.co", "type": "custom_tool_call", "input": "held"}
    shown(redactor, event("response.output_item.added", output_index=0, item=item))
    ((_, data),) = redactor.finish()
    assert json.loads(data) == {
        "type": "response.custom_tool_call_input.delta",
        "output_index": 0,
        "delta": "held",
    }


@pytest.mark.parametrize(
    "odd",
    [
        event("response.output_item.added", output_index=0, item="x"),
        event("response.output_item.added"),
        event("response.output_item.added", item={"type": "reasoning", "summary": ["x", {}]}),
        event("response.output_item.added", item={"type": "function_call", "arguments": 5}),
        event("response.content_part.added", part=None),
        event("response.in_progress", response={"output": "x"}),
        event("response.created", response=None),
        event("response.output_text.delta", delta=5),
        event("response.output_text.delta", delta=[{"x": "y. "}]),
    ],
)
def test_events_of_an_odd_shape_pass(odd: bytes) -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    assert [data for _, data in redactor.feed(odd)] == [odd]


def test_an_item_that_is_added_twice_goes_on() -> None:
    redactor = ResponsesStreamRedactor(POLICY)
    added = event("response.output_item.added", output_index=0, item={"id": "msg_1"})
    out = shown(redactor, added, delta("4111 1111 "), added, delta("1111 1111, "))
    assert "".join(e.get("delta", "") for e in out) == f"{CARD}, "
