"""The two documents of the webhook: what is asked, and what counts as an answer."""

import json

import pytest

from tidegate.gateway.verdicts import MOST_CHARS, MOST_TEXTS, batches, question, verdicts
from tidegate.redaction.holes import Found
from tidegate.redaction.spans import Kind

TEXTS = ("I am Jane Doe. ", "J\u00fcrgen \U0001f600 x", "Hi")
NAME = Kind("NAME", "name")


def span(start: object, end: object, kind: object = "NAME", **more: object) -> dict[str, object]:
    return {"start": start, "end": end, "kind": kind, **more}


def read(*lists: object) -> object:
    return verdicts(json.dumps({"spans": lists}).encode(), TEXTS)


def test_spans_are_counted_in_characters_and_come_by_start() -> None:
    own = Kind("STREET_ADDRESS", "street_address")
    assert read([span(9, 12), span(5, 9)], [span(0, 10, "STREET_ADDRESS", score=0.5)], []) == [
        (Found(5, 9, NAME), Found(9, 12, NAME)),
        (Found(0, 10, own),),
        (),
    ]


NO_SPAN = [
    None,
    7,
    [],
    {},
    span(5, 5),
    span(6, 5),
    span(-1, 3),
    span(0, 16),
    span(0, 1.0),
    span("0", 3),
    span(False, True),
    span(0, 1, None),
    span(0, 1, ""),
    span(0, 1, "name"),
    span(0, 1, "JANE DOE"),
    span(0, 1, "A" * 17),
    span(0, 1, "A_A_A_A_A"),
    {"start": 0, "end": 1},
]


@pytest.mark.parametrize("wrong", NO_SPAN)
def test_one_wrong_span_makes_the_whole_no_answer(wrong: object) -> None:
    assert read([span(0, 1), wrong], [], []) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"spans": null}',
        b'{"spans": []}',
        b'{"spans": [[], []]}',
        b'{"spans": [[], [], [], []]}',
        b'{"spans": [[], [], {}]}',
        b'{"spans": [[], [], "Hi"]}',
        b'{"spans": [[], [], []], "spans": [[], [], []]}',
        b'{"spans": [[], [], []]} x',
        b"\xff",
        json.dumps({"spans": [[span(0, 4), span(3, 5)], [], []]}).encode(),
        json.dumps({"spans": [[span(i, i + 1) for i in range(8)] * 9, [], []]}).encode(),
        b'{"spans": [[], [], ' + b"[" * 70 + b"]" * 70 + b"]}",
    ],
)
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert verdicts(body, TEXTS) is None


def test_a_question_holds_the_direction_and_the_texts_in_ascii() -> None:
    asked = question(TEXTS, "response")
    assert asked.isascii()
    assert json.loads(asked) == {"direction": "response", "texts": list(TEXTS)}
    assert json.loads(question(["half \ud83d"], "request"))["texts"] == ["half \ud83d"]


def test_texts_go_out_in_batches_of_a_bounded_size_and_in_order() -> None:
    texts = [f"{number} {'x' * (number % 240)}" for number in range(1000)]
    groups = batches(texts)
    assert [text for group in groups for text in group] == texts
    assert all(len(group) <= MOST_TEXTS for group in groups)
    assert all(sum(map(len, group)) <= MOST_CHARS for group in groups)
    assert batches(["y" * (MOST_CHARS + 1), "z"]) == [["y" * (MOST_CHARS + 1)], ["z"]]
    assert batches([]) == []
