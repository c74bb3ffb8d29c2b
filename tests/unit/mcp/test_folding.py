"""Is a text folded to what a careless reader takes it for, and is that never much work?"""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.folding import (
    MAX_FOLDED_CHARS,
    compatible,
    fold,
    folded_names,
    is_invisible,
    is_short,
)

LIGATURE = "\ufdfa"
"""Eighteen characters in NFKC."""


DISGUISES = [
    "admin_reset",
    "ADMIN_Reset",
    " admin_reset ",
    "admin\u200b_reset",
    "admin\u00ad_reset",
    "admin_reset\u0000",
    "\ufeffadmin_reset",
    "admin\u3164_reset",
    "ad\ufe0fmin_reset",
    "\uff41\uff44\uff4d\uff49\uff4e\uff3freset",
    "admin_re\u017fet",
    "\U0001d41admin_reset",
    "\u24d0dmin_reset",
]


@pytest.mark.parametrize("text", DISGUISES)
def test_a_disguise_folds_to_the_plain_name(text: str) -> None:
    assert fold(text) == "admin_reset"


def test_of_ascii_a_fold_keeps_what_is_seen_in_lower_case() -> None:
    for code in range(128):
        seen = chr(code).lower() if 0x20 < code < 0x7F else ""
        assert fold(f"A{chr(code)}Z") == f"a{seen}z"


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert not any(map(is_invisible, once))


def test_a_text_of_combining_marks_is_folded_in_linear_time() -> None:
    # Unicode sorts combining marks by insertion: for all of these that would take an hour.
    for marks in ("\u0315\u0300", "\u0315\uff9e", "\u0315\u0f73"):
        assert len(fold("a" + marks * 200_000)) < 100


@given(st.text(alphabet="a\u00e9\u0300\u0315\u0f73\uff9e\u0344\u1100\u1161\u11a8", min_size=40))
@pytest.mark.full
def test_long_runs_of_marks_are_folded_once_and_for_all(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=60))
def test_ordinary_text_is_normalized_as_the_standard_says(text: str) -> None:
    assert compatible(text) == unicodedata.normalize("NFKC", text)


def naive(text: str) -> str:
    for _round in range(3):
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = "".join(c for c in folded if not is_invisible(c))
    return text


@given(st.text(max_size=30) | st.text("aK\u200b\u0301\u0345\u1e9b\ufdfa\u0130\u03d3 ", max_size=30))
def test_a_fold_is_what_its_definition_says(text: str) -> None:
    assert fold(text) == naive(text)


def test_a_text_is_short_if_it_is_so_in_nfkc() -> None:
    for character, grown in (("a", 1), ("\u00e9", 1), ("\u2026", 3), (LIGATURE, 18)):
        most = MAX_FOLDED_CHARS // grown
        assert is_short(character * most)
        assert not is_short(character * (most + 1))


def test_no_character_grows_to_more_than_is_reckoned_with() -> None:
    folds = {len(unicodedata.normalize("NFKC", chr(c))) for c in range(sys.maxunicode + 1)}
    assert max(folds) == len(unicodedata.normalize("NFKC", LIGATURE)) == 18
    assert is_short(LIGATURE * (MAX_FOLDED_CHARS // 18))


@given(st.lists(st.text(max_size=12), max_size=20))
def test_names_are_folded_each_as_it_would_be_alone(names: list[str]) -> None:
    assert folded_names(names) == list(map(fold, names))


def test_names_are_folded_up_to_a_bound_of_what_is_outside_of_ascii() -> None:
    plain = [f"name{number}" for number in range(10_000)]
    assert folded_names(plain) == plain
    kana = [f"\u30c6\u30b9\u30c8{number}" for number in range(300)]
    assert folded_names([*plain, *kana]) is not None
    assert folded_names(kana * 3) is None
    assert folded_names([LIGATURE * 10] * 20) is not None
    assert folded_names([LIGATURE * 10] * 30) is None
    assert folded_names(["\u0315\u0300" * 2_000_000]) is None
