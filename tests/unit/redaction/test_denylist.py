import itertools
import re
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tidegate.redaction import RedactionPolicy, Redactor
from tidegate.redaction.denylist import (
    MOST_CHARS,
    DenyList,
    Literals,
    UnusableLiteral,
    tokens,
)
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

SHOWN = "[REDACTED_DENIED]"
LITERALS = [
    *("Jane Doe", "Jane", "Jos\u00e9 Garc\u00eda", "O'Brien, Pat", "\u7530\u4e2d\u592a\u90ce"),
    *("\u0418\u0432\u0430\u043d \u041f\u0435\u0442\u0440\u043e\u0432", "+44 20 7946", "x.y-z"),
    *(
        "Stra\u00dfe 12",
        "\uae40\ucca0\uc218",
        "Dr. No",
        "ACME-4711",
        "\u0e2a\u0e21\u0e0a\u0e32\u0e22",
    ),
]
POLICY = RedactionPolicy({}).with_detectors(DenyList(Literals(LITERALS)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("I am Jane Doe.", f"I am {SHOWN}."),
        ("JANE  doe's", f"{SHOWN}'s"),
        ("Janet Doe, xJane, Jane1", "Janet Doe, xJane, Jane1"),
        ("Jane Do", f"{SHOWN} Do"),
        ("jane\n doe", SHOWN),
        (f"Jane{' ' * 32}Doe", SHOWN),
        (f"Jane{' ' * 33}Doe", f"{SHOWN}{' ' * 33}Doe"),
        ("Jose\u0301 Garci\u0301a, jos\u00e9 garcia, JOSE GARCIA", f"{SHOWN}, {SHOWN}, {SHOWN}"),
        ("O\u2019Brien, Pat!", f"{SHOWN}!"),
        ("\u79c1\u306f\u7530\u4e2d\u592a\u90ce\u3067\u3059", f"\u79c1\u306f{SHOWN}\u3067\u3059"),
        ("\u0418\u0412\u0410\u041d \u043f\u0435\u0442\u0440\u043e\u0432!", f"{SHOWN}!"),
        ("\u0418\u0432\u0430\u043d \u041f\u0435\u0442\u0440\u043e\u0432\u0438\u0447", None),
        ("\u0418\u0432\u0430\u043d", None),
        ("call +44\u00a020 7946 now", f"call {SHOWN} now"),
        ("STRASSE 12, Strasse 123", f"{SHOWN}, Strasse 123"),
        ("ax.y-z x.y-z x.y\u2011z", f"ax.y-z {SHOWN} {SHOWN}"),
        ("\uae40\ucca0\uc218\ub294", f"{SHOWN}\ub294"),
        ("\uff2a\uff41\uff4e\uff45\u3000\uff24\uff4f\uff45", SHOWN),
        ("Ja\u200bne Do\u00ade x", f"{SHOWN} x"),
        ("Jane_Doe Dr. No", f"{SHOWN}_Doe {SHOWN}"),
        ("(acme-4711) ACME-47112", f"({SHOWN}) ACME-47112"),
        ("\u0e04\u0e38\u0e13\u0e2a\u0e21\u0e0a\u0e32\u0e22", f"\u0e04\u0e38\u0e13{SHOWN}"),
        ("Jane&nbsp;Doe Jane%20Doe", f"{SHOWN} {SHOWN}"),
        ("a" * 700 + " jane doe", "a" * 700 + f" {SHOWN}"),
        ("a.b.c." * 120 + "Jane.x.Jane Doe", "a.b.c." * 120 + f"{SHOWN}.x.{SHOWN}"),
    ],
)
def test_a_literal_is_masked_whole_in_every_split(text: str, shown: str | None) -> None:
    whole = POLICY.redact(text)
    assert whole.text == (text if shown is None else shown)
    splits = every_split(text, three_way_max=30) if len(text) < 100 else [list(text)]
    for pieces in splits:
        assert streamed(POLICY, pieces) == (whole.text, whole.spans)


def test_of_several_literals_at_one_place_the_longest_counts() -> None:
    made = RedactionPolicy({}).with_detectors(DenyList(Literals(["a1", "a1 b2", "a1 b2 c3 d4"])))
    assert made.redact("a1 b2 c3").text == f"{SHOWN} c3"
    assert made.redact("a1 b2 c3 d4").text == SHOWN
    assert made.redact("a1 c3").text == f"{SHOWN} c3"


def test_several_lists_are_one_family() -> None:
    made = DenyList(Literals(["Jane Doe", "Max"]), Literals(["Jane", "Max M."]), Literals([]))
    shown = RedactionPolicy({}).with_detectors(made).redact("Jane Doe, Jane, Max M. Max")
    assert shown.text == f"{SHOWN}, {SHOWN}, {SHOWN} {SHOWN}"
    assert {span.label for span in shown.spans} == {"deny_list"}


def test_without_literals_nothing_is_found() -> None:
    made = RedactionPolicy({}).with_detectors(DenyList())
    assert (
        made.redact("Jane Doe \u0418\u0432\u0430\u043d").text == "Jane Doe \u0418\u0432\u0430\u043d"
    )


def test_nothing_of_a_literal_leaves_before_it_is_decided() -> None:
    redactor = Redactor(POLICY)
    shown = ""
    for char in "see Jos\u00e9 Garc\u00eda there":
        shown += redactor.feed(char)
        assert "Jos" not in shown
    assert shown + redactor.flush() == f"see {SHOWN} there"


# ---- against a plain search over the whole text --------------------------------------------------

NAMES = ["Jane Doe", "Jane", "Jos\u00e9 X", "x.y-z", "Doe, Jo", "Stra\u00dfe 12", "a-b"]
MADE = RedactionPolicy({}).with_detectors(DenyList(Literals(NAMES)))
FRAGMENTS = [
    *("Jane", "jane", "J", "ane", " ", "  ", "Doe", "doe", "D", "oe", ",", ".", "-", "'", "\n"),
    *("Jos\u00e9", "Jose", "\u0301", " X", "x.y", "-z", "\u2011", "Stra\u00dfe", "SS", "Stra", "e"),
    *("12", " 1", "2", "a", "b", "\u200b", "_", "1", "Jo", "[REDACTED_DENIED]"),
]


def plain(text: str) -> list[tuple[str, int]]:
    """Characters as they are compared, each with the index it comes from."""
    found = []
    for place, char in enumerate(text):
        for part in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()):
            if unicodedata.combining(part) == 0 and part != "\u200b":
                found.append((part, place))
    return found


def masked_by_search(text: str, names: list[str]) -> str | None:
    chars = plain(text)
    view = "".join("-" if char == "\u2010" else char for char, _ in chars)
    spans = []
    for name in names:
        words = "".join(char for char, _ in plain(name))
        pattern = re.escape(words).replace("\\ ", r"\s{1,32}(?!\s)")
        for found in re.finditer(rf"(?<![^\W_])(?={pattern}(?![^\W_]))", view):
            inner = re.compile(f"{pattern}(?![^\\W_])").match(view, found.start())
            assert inner is not None
            spans.append((found.start(), inner.end()))
    longest = {start: max(end for first, end in spans if first == start) for start, _ in spans}
    chosen = sorted(longest.items())
    if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(chosen)):
        return None
    out, place = [], 0
    for start, end in chosen:
        out += [text[place : chars[start][1]], SHOWN]
        place = chars[end - 1][1] + 1
        while place < len(text) and not plain(text[place]):
            place += 1
    return "".join([*out, text[place:]])


@pytest.mark.full
@settings(max_examples=5000, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_many_texts_are_masked_as_by_a_plain_search(fragments: list[str]) -> None:
    _compare_with_a_search("".join(fragments))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=9))
def test_any_text_is_masked_as_by_a_plain_search(fragments: list[str]) -> None:
    _compare_with_a_search("".join(fragments))


def _compare_with_a_search(text: str) -> None:
    assume("\u200b" not in text and "\u0301" not in text and "[" not in text)
    shown = masked_by_search(text, NAMES)
    assume(shown is not None)
    assert MADE.redact(text).text == shown


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=9))
def test_any_text_is_the_same_in_every_two_pieces(fragments: list[str]) -> None:
    text = "".join(fragments)
    whole = MADE.redact(text)
    for place in range(len(text) + 1):
        assert streamed(MADE, [text[:place], text[place:]]) == (whole.text, whole.spans)


def test_long_random_text_is_the_same_in_random_pieces() -> None:
    rnd = seeded(11)
    text = "".join(rnd.choice(FRAGMENTS + LITERALS) for _ in range(700))
    made = RedactionPolicy.preset("default").with_detectors(DenyList(Literals(LITERALS + NAMES)))
    whole = made.redact(text)
    for _ in range(6):
        assert streamed(made, random_pieces(text, rnd)) == (whole.text, whole.spans)
    assert streamed(made, text) == (whole.text, whole.spans)


def test_thousands_of_literals_with_spaces_are_found_in_a_stream() -> None:
    rnd = seeded(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rnd.choice(letters) for _ in range(rnd.randrange(3, 9))) for _ in range(6000)]
    names = [f"{words[i]} {words[i + 1]} {words[i + 2]}" for i in range(0, 6000, 3)]
    made = RedactionPolicy({}).with_detectors(DenyList(Literals(names)))
    chosen = rnd.sample(names, 40)
    text = ", ".join(f"ask {name.upper()} today" for name in chosen)
    assert streamed(made, random_pieces(text, rnd))[0] == ", ".join([f"ask {SHOWN} today"] * 40)


# ---- literals that cannot be looked for ----------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "wrong"),
    [("x" * (MOST_CHARS + 1), "longer than 256"), ("a", "fewer than 2"), ("-- !", "fewer than 2")],
)
def test_a_literal_that_cannot_be_looked_for_says_why(literal: str, wrong: str) -> None:
    with pytest.raises(UnusableLiteral) as refused:
        Literals(["Jane", literal])
    assert wrong in refused.value.wrong
    assert len(literal) == 1 or literal not in str(refused.value)
    assert refused.value.right


def test_the_longest_literal_is_found() -> None:
    literal = ("ab " * 100)[:MOST_CHARS].strip()
    made = RedactionPolicy({}).with_detectors(DenyList(Literals([literal])))
    assert streamed(made, list(f"x {literal} y"))[0] == f"x {SHOWN} y"


def test_spellings_that_count_as_one_are_one_literal() -> None:
    assert Literals(["Jane  Doe", "JANE DOE ", "jane\tdoe", "Jan\u00e9 Doe"]).size == 1
    assert tokens("Dr. No-1") == ["dr", ".", " ", "no", "-", "1"]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*FRAGMENTS, "x1", "\u0416", "\u7530"]), max_size=8))
def test_what_stands_far_away_in_another_script_changes_nothing(fragments: list[str]) -> None:
    """One search serves ASCII, another one all scripts; which of them runs must not matter."""
    text = "".join(fragments)
    for other in ("", "\u0416 ", "\u7530"):
        assert MADE.redact(other + ". " + text).text == other + ". " + MADE.redact(text).text
