"""Does the id of an event open the stream it was given out for, and no other?"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.answers import Incoming
from tidegate.mcp.stream_places import (
    LEAST_RETRY_MS,
    MOST_RETRY_MS,
    STANDING,
    UNMARKED,
    Mark,
    Place,
    mark,
    place,
)

ALICE, BOB = b"secret of one session", b"secret of another one"
IDS = ["0", "7", "a-b-c", "s-1", "x" * 512, "with blank", "f3c1/2", "-", "~!"]
STREAMS = [STANDING, "0", "1f", "ffffffff"]


def given_out(secret: bytes, stream: str, theirs: str) -> str:
    made = mark(secret, stream, Incoming(None, None, theirs)).id
    assert made is not None
    return made


@pytest.mark.parametrize(("stream", "theirs"), list(itertools.product(STREAMS, IDS)))
def test_an_id_leads_back_to_its_stream_and_place(stream: str, theirs: str) -> None:
    ours = given_out(ALICE, stream, theirs)
    assert ours.isascii()
    assert place(ALICE, ours) == Place(stream, theirs)


@pytest.mark.parametrize(("stream", "theirs"), list(itertools.product(STREAMS, IDS)))
def test_an_id_holds_in_its_own_session_alone(stream: str, theirs: str) -> None:
    assert place(BOB, given_out(ALICE, stream, theirs)) is None
    assert given_out(ALICE, stream, theirs) != given_out(BOB, stream, theirs)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(STREAMS, 2)))
def test_an_id_holds_for_its_own_stream_alone(one: str, other: str) -> None:
    moved = given_out(ALICE, one, "7").replace(f"{one}-", f"{other}-", 1)
    assert place(ALICE, moved) is None


def test_every_change_of_an_id_is_noticed() -> None:
    ours = given_out(ALICE, "1f", "a-7")
    for at, letter in itertools.product(range(len(ours)), "0af-s7"):
        changed = ours[:at] + letter + ours[at + 1 :]
        expected = Place("1f", "a-7") if changed == ours else None
        assert place(ALICE, changed) == expected
    for cut in range(len(ours)):
        assert place(ALICE, ours[:cut]) is None


@given(st.text(max_size=80))
def test_whatever_else_is_sent_is_no_place(text: str) -> None:
    assert place(ALICE, text) is None


@pytest.mark.parametrize("theirs", ["x" * 513, "", " a", "a ", "a\nb", "a\tb", "é", "\x7f", "日"])
def test_an_id_that_a_header_would_not_bring_back_is_left_out(theirs: str) -> None:
    assert mark(ALICE, STANDING, Incoming(1, None, theirs)) == UNMARKED


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (None, None),
        (0, LEAST_RETRY_MS),
        (LEAST_RETRY_MS, LEAST_RETRY_MS),
        (500, 500),
        (MOST_RETRY_MS, MOST_RETRY_MS),
        (999_999_999, MOST_RETRY_MS),
    ],
)
def test_the_time_to_come_back_is_bounded(asked: int | None, told: int | None) -> None:
    assert mark(ALICE, STANDING, Incoming(None, None, None, asked)) == Mark(None, told)
    assert mark(ALICE, STANDING, Incoming(None, None, "7", asked)).retry_ms == told
