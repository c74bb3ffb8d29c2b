import fnmatch
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.config.globs import all_covered, covers, matches

PATTERNS = st.text("ab*?", max_size=6)
TEXTS = ["".join(letters) for n in range(5) for letters in itertools.product("ab", repeat=n)]


@settings(deadline=None)
@given(PATTERNS, st.text("ab", max_size=8))
def test_matching_agrees_with_the_shell(pattern: str, text: str) -> None:
    assert matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


@settings(deadline=None)
@given(PATTERNS, PATTERNS)
def test_a_covered_pattern_never_means_a_text_that_the_wider_one_does_not(
    wide: str, narrow: str
) -> None:
    if covers(wide, narrow):
        assert [t for t in TEXTS if matches(narrow, t) and not matches(wide, t)] == []


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("*", "*", True),
        ("*", "gpt-*", True),
        ("gpt-*", "gpt-5*", True),
        ("gpt-*", "*", False),
        ("gpt-?", "gpt-*", False),
        ("gpt-?", "gpt-?", True),
        ("gpt-*", "gpt-?", True),
        ("gpt-5", "gpt-?", False),
        ("a*c", "abc", True),
        ("a*c", "ab*c", True),
        ("a*c", "ab*", False),
        ("", "", True),
        ("", "*", False),
    ],
)
def test_covering(wide: str, narrow: str, *, covered: bool) -> None:
    assert covers(wide, narrow) is covered


def test_a_list_is_covered_when_each_of_its_patterns_is() -> None:
    assert all_covered(["a*", "b"], ["ab", "b"])
    assert not all_covered(["a*"], ["ab", "b"])
    assert all_covered([], [])
