"""Which events of a response belong together, and what no upstream can do with their names."""

import json
from typing import Any

import pytest

from tests.unit.redaction.responses import POLICY, delta, event, shown
from tests.unit.redaction.samples import CARD
from tidegate.redaction import ResponsesStreamRedactor, UpstreamAtFault


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


@pytest.mark.parametrize(
    "endless",
    [
        lambda index: event("response.output_item.done", output_index=index),
        lambda index: event("response.output_item.added", item={"id": str(index)}),
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
