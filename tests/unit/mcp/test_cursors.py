"""Does a cursor lead on for the one it was given to, in its list, and for nobody else?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.authorize import LISTED_KIND
from tidegate.mcp.cursors import MOST_CHARS, Cursors, Whose, is_cursor, mark_of, names_next
from tidegate.mcp.sessions import owner_of
from tidegate.policy import Principal

VERA = owner_of(Principal("vera", "acme", ("viewer",), "k1"))
WHOSE = Whose(VERA, "https://backend.example/mcp", "tools/list")
THEIRS = ["2", "eyJwYWdlIjogM30=", "c 2/==", "-", "a-b\nc", "\u00e9\U0001f600", "x" * MOST_CHARS]

OTHERS = [
    WHOSE._replace(owner=owner)
    for owner in (
        ("https://issuer.example", *VERA[1:]),
        (VERA[0], "other", *VERA[2:]),
        (*VERA[:2], "viktor", VERA[3]),
        (*VERA[:3], "desktop"),
        (VERA[0], "acmevera", "", VERA[3]),
    )
]
OTHERS += [
    WHOSE._replace(server="https://other.example/mcp"),
    *(WHOSE._replace(method=method) for method in LISTED_KIND if method != WHOSE.method),
]


@pytest.mark.parametrize("theirs", THEIRS)
def test_a_cursor_is_known_for_whom_and_where_it_was_given(theirs: str) -> None:
    cursors = Cursors()
    assert not cursors.was_given(theirs, WHOSE)
    cursors.give(theirs, WHOSE)
    assert cursors.was_given(theirs, WHOSE)
    assert not any(cursors.was_given(theirs, whose) for whose in OTHERS)
    for altered in (theirs + "0", theirs[:-1], theirs.upper() + " ", f" {theirs}"):
        assert not cursors.was_given(altered, WHOSE)


@pytest.mark.parametrize("odd", ["", None, 2, True, ["2"], {}, "x" * (MOST_CHARS + 1)])
def test_what_is_no_place_in_a_list_was_given_to_nobody(odd: object) -> None:
    cursors = Cursors()
    cursors.give("2", WHOSE)
    assert not is_cursor(odd)
    assert not cursors.was_given(odd, WHOSE)


def test_what_is_remembered_says_nothing_of_a_cursor_and_differs_for_each() -> None:
    marks = {mark_of(theirs, whose) for theirs in THEIRS for whose in (WHOSE, *OTHERS)}
    assert len(marks) == len(THEIRS) * (1 + len(OTHERS))
    assert {len(mark) for mark in marks} == {64}


def test_nobody_can_have_the_cursors_of_others_forgotten() -> None:
    cursors = Cursors()
    cursors.give("mine", OTHERS[0])
    for number in range(1_000):
        cursors.give(str(number), WHOSE)
    assert cursors.was_given("mine", OTHERS[0])
    known = [number for number in range(1_000) if cursors.was_given(str(number), WHOSE)]
    assert known == list(range(1_000 - 128, 1_000))


def test_of_very_many_clients_those_are_forgotten_that_were_given_nothing_for_longest() -> None:
    cursors = Cursors()
    clients = [WHOSE._replace(owner=("", "acme", str(number), "")) for number in range(1_100)]
    for whose in clients:
        cursors.give("2", whose)
        cursors.give("2", clients[0])
    known = [cursors.was_given("2", whose) for whose in clients]
    assert known == [True, *[False] * 100, *[True] * 999]


@pytest.mark.parametrize("result", [{"nextCursor": "c"}, {"nextCursor": 2}, {"nextCursor": {}}])
def test_a_page_that_is_not_the_last_names_the_next_one(result: object) -> None:
    assert names_next(result)


@pytest.mark.parametrize(
    "result", [{}, {"nextCursor": None}, {"nextCursor": ""}, {"NextCursor": "c"}, None, ["x"], "x"]
)
def test_the_last_page_names_none(result: object) -> None:
    assert not names_next(result)


NAMES = st.sampled_from(["", "vera", "viktor", "acme", '","'])
OWNERS = st.tuples(NAMES, NAMES, NAMES, NAMES)
WHOSES = st.builds(
    Whose, OWNERS, st.sampled_from(["https://a", "stdio:a"]), st.sampled_from(sorted(LISTED_KIND))
)
CURSORS = st.sampled_from(["1", "2", '"', '","', "a"])


@given(st.lists(st.tuples(CURSORS, WHOSES), max_size=6), CURSORS, WHOSES)
def test_a_cursor_works_exactly_if_it_was_given_to_this_one_for_this_list(
    pages: list[tuple[str, Whose]], presented: str, asks: Whose
) -> None:
    cursors = Cursors()
    for cursor, whose in pages:
        cursors.give(cursor, whose)
    assert cursors.was_given(presented, asks) is ((presented, asks) in pages)
