"""Does a cursor lead on for the one it was given to, in its list, and for nobody else?"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.authorize import LISTED_KIND
from tidegate.mcp.cursors import (
    KEY_BYTES,
    MOST_CHARS,
    Cursors,
    Whose,
    id_of,
    key_of,
    names_next,
)
from tidegate.mcp.sessions import owner_of
from tidegate.policy import Principal

ONE, OTHER = Cursors(b"1" * KEY_BYTES), Cursors(b"2" * KEY_BYTES)
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
def test_a_cursor_comes_back_as_the_server_wrote_it(theirs: str) -> None:
    ours = ONE.given(theirs, WHOSE)
    assert ours != theirs
    assert ONE.taken(ours, WHOSE) == theirs
    assert len(ours) == len(theirs) + 50
    assert ONE.given(theirs, WHOSE) == ours


@pytest.mark.parametrize(("theirs", "whose"), list(itertools.product(THEIRS, OTHERS)))
def test_a_cursor_is_of_no_use_to_anybody_else_or_anywhere_else(theirs: str, whose: Whose) -> None:
    assert ONE.taken(ONE.given(theirs, WHOSE), whose) is None


def test_an_altered_cursor_is_none_wherever_it_was_altered() -> None:
    ours = ONE.given("page 2", WHOSE)
    for at, character in enumerate(ours):
        swapped = "1" if character != "1" else "2"
        for altered in (
            ours[:at] + swapped + ours[at + 1 :],
            ours[:at] + ours[at + 1 :],
            ours[:at] + " " + ours[at:],
            ours[:at] + character.upper() + ours[at + 1 :],
        ):
            assert altered == ours or ONE.taken(altered, WHOSE) is None
    for altered in (ours + "0", ours + "\n", ours + "\0", ours[:-1], ours.split("-")[2]):
        assert ONE.taken(altered, WHOSE) is None


MADE_UP = ["", "2", "-", "--", "\u0660" * 16 + "-" + "0" * 32 + "-2", f"{ONE.key_id}-", 2, None, {}]


@pytest.mark.parametrize("given", [*MADE_UP, f"{ONE.key_id}-{'0' * 32}-2", [ONE.key_id]])
def test_what_was_never_given_is_not_taken(given: object) -> None:
    assert ONE.taken(given, WHOSE) is None


def test_no_cursor_is_longer_than_one_that_we_give() -> None:
    ours = ONE.given("x" * (MOST_CHARS + 1), WHOSE)
    assert ONE.taken(ours, WHOSE) is None
    assert ONE.unknown_key(ours) is None


def test_a_cursor_of_another_process_is_taken_once_its_key_is_known() -> None:
    here, ours = Cursors(b"3" * KEY_BYTES), OTHER.given("2", WHOSE)
    assert here.taken(ours, WHOSE) is None
    assert here.unknown_key(ours) == OTHER.key_id == id_of(OTHER.key)
    here.learn(OTHER.key)
    assert here.unknown_key(ours) is None
    assert here.taken(ours, WHOSE) == "2"
    assert [here.taken(ours, each) for each in OTHERS] == [None] * len(OTHERS)
    assert here.unknown_key(here.given("2", WHOSE)) is None
    assert [here.unknown_key(each) for each in MADE_UP] == [None] * len(MADE_UP)


def test_the_keys_of_others_are_bounded() -> None:
    here = Cursors(b"3" * KEY_BYTES)
    keys = [bytes([number % 256, number // 256]) * 16 for number in range(300)]
    for key in keys:
        here.learn(key)
    taken = [here.taken(Cursors(key).given("2", WHOSE), WHOSE) for key in keys]
    assert taken == [None] * 44 + ["2"] * 256


def test_who_shares_a_secret_shares_the_key_and_nobody_else_has_it() -> None:
    assert key_of(b"one secret") == key_of(b"one secret") != key_of(b"another secret")
    assert len(key_of(b"one secret")) == KEY_BYTES


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
GIVEN = st.tuples(st.text(min_size=1, max_size=8), WHOSES, st.sampled_from([ONE, OTHER]))


@given(st.lists(GIVEN, max_size=4), WHOSES, st.data())
def test_a_cursor_works_exactly_if_it_was_given_to_this_one_for_this_list(
    pages: list[tuple[str, Whose, Cursors]], asks: Whose, data: st.DataObject
) -> None:
    known = {by.given(cursor, whose): (cursor, whose, by) for cursor, whose, by in pages}
    presented = data.draw(st.sampled_from([*known, *(page[0] for page in pages)] or ["2"]))
    cursor, whose, by = known.get(presented, (None, None, None))
    assert ONE.taken(presented, asks) == (cursor if (whose, by) == (asks, ONE) else None)
