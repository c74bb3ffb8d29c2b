import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.redaction.charsets import ANY, DIGITS, LAST, CharSet
from tidegate.redaction.patterns import (
    Chain,
    Choice,
    Node,
    One,
    Repeat,
    UnsafePattern,
    read_class,
    read_pattern,
)
from tidegate.redaction.shapes import (
    MOST_STEPS,
    alphabet,
    anchors,
    first,
    prefix_regex,
    regex,
    sample,
    steps,
    widths,
)

pytestmark = pytest.mark.full

ACCEPTED = [
    *("EMP-[0-9]{6,8}", r"[A-Z]{2}\d{6}", r"(?:\d{4}[ -]?){3}\d{4}", r"\(\d{3}\) \d{3}-\d{4}"),
    *(r"AB\d{4}|CD\d{6}", r"(?:Mr|Mrs|Ms) [A-Z][a-z]{1,20}(?: [A-Z][a-z]{1,20})?", r"\[\]\{\}"),
    *(r"[^\s@]{1,20}", r"[\w.-]{2,9}\x40x", r"[]a]b", r"[a-]b", r"\.\d{,3}z", "K\u00f6ln[0-9]"),
    *(r"x(?:y|z|)w", r"(?:ab){3}", r"\D\S\W", "[\u4e00-\u9fff]{2,4}", r"[+]49\d{6,12}", "a.c"),
]
# Each with the place and a word of the reason.
REFUSED = [
    ("a+", 1, "greatest width"),
    ("ab*", 2, "greatest width"),
    ("a{2,}", 1, "greatest width"),
    ("(a{1,3}){1,3}", 8, "inside a repeat"),
    ("(?:x[0-9]{1,2}y){2}", 16, "inside a repeat"),
    ("(?=x)y", 0, "look-ahead"),
    ("a(?!x)", 1, "look-ahead"),
    ("(?<=x)y", 0, "look-behind"),
    ("(?<!x)y", 0, "look-behind"),
    (r"(a)\1", 3, "back-reference"),
    ("(?P<n>a)", 0, "named group"),
    ("(?P=n)", 0, "back-reference"),
    ("(?>a)", 0, "atomic"),
    ("(?(1)a)", 0, "condition"),
    ("(?#a)", 0, "comment"),
    ("(?i:a)", 0, "flag"),
    ("a(?i)", 1, "flag"),
    ("^a", 0, "line"),
    ("a$", 1, "line"),
    (r"a\bc", 1, r"\b is not allowed"),
    (r"\Aa", 0, r"\A is not allowed"),
    (r"[\b]", 0, "backspace"),
    ("(a", 0, "without a closing"),
    ("a)", 1, "without an opening"),
    ("[a", 0, "not closed"),
    ("[]", 0, "not closed"),
    ("[[:alpha:]]", 0, "square bracket"),
    ("[z-a]", 0, "range"),
    (r"[\d-z]", 0, "range"),
    ("*a", 0, "of nothing"),
    ("a??", 2, "second sign"),
    ("a{1,2}+", 6, "second sign"),
    ("a{3}{2}", 4, "second sign"),
    ("{", 0, "brace"),
    ("a{,}", 1, "brace"),
    ("a{x}", 1, "brace"),
    ("a{0}", 1, "out of range"),
    ("a{1,9999}", 1, "out of range"),
    ("a{1,99999999}", 1, "brace"),
    ("a{5,2}", 1, "wrong way"),
    ("a\\", 1, "ends too early"),
    (r"\q", 0, r"\q is not known"),
    (r"\xz1", 0, "number of a character"),
    (r"\U00110000", 0, "number of a character"),
    ("\u200bx", 0, "invisible"),
    ("x\ufb01", 1, "detectors see 'fi'"),
    ("(" * 17 + "a" + ")" * 17, 16, "too deeply"),
    ("x" * 1025, 0, "longer than"),
    (r"[^\D\d]", 0, "without characters"),
]


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_an_accepted_pattern_means_what_re_means(pattern: str) -> None:
    tree, plain = read_pattern(pattern), re.compile(pattern.replace("{,3}", "{0,3}"), re.ASCII)
    ours = re.compile(regex(tree))
    for turn in range(40):
        value = sample(tree, turn)
        for text in (value, value[:-1], value + "0", value.swapcase(), "x" + value[1:]):
            assert bool(ours.fullmatch(text)) == bool(plain.fullmatch(text)), text


@pytest.mark.parametrize(("pattern", "at", "reason"), REFUSED)
def test_a_refused_pattern_says_where_and_why(pattern: str, at: int, reason: str) -> None:
    with pytest.raises(UnsafePattern) as refused:
        read_pattern(pattern)
    assert (refused.value.at, reason in refused.value.wrong) == (at, True), str(refused.value)
    assert refused.value.right


def test_a_pattern_is_folded_like_the_text_it_will_see() -> None:
    assert read_pattern("\uff21\u2011\u00a0[\uff10-\uff19]") == read_pattern("A- [0-9]")


def test_ignoring_case_concerns_letters_and_classes_but_no_complements() -> None:
    assert read_pattern("(?i)aB[c-d]1") == read_pattern("[aA][bB][cdCD]1")
    assert read_pattern("(?i)[^a]") == read_pattern("[^aA]")
    assert read_pattern("(?i)\u00e9") == read_pattern("[\u00e9\u00c9]")


def test_word_boundaries_at_either_end_are_what_is_checked_anyway() -> None:
    assert read_pattern(r"\bab\b") == read_pattern("ab")
    assert read_pattern(r"a\\b") == Chain(tuple(One(CharSet.chars(c)) for c in r"a\b"))


@pytest.mark.parametrize("text", ["[0-9]", r"\d", "7", "(?i)[a-f]"])
def test_a_class_is_one_character(text: str) -> None:
    assert read_class(text)


@pytest.mark.parametrize("text", ["ab", "[0-9]{2}", "a|b", ""])
def test_more_or_less_than_one_character_is_no_class(text: str) -> None:
    with pytest.raises(UnsafePattern):
        read_class(text)


# ---- sets of characters ------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8)).map(lambda p: (p[0], sum(p))))


@given(RANGES, RANGES)
def test_sets_of_characters_obey_the_laws_of_sets(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    def members(chars: CharSet) -> set[int]:
        return {code for code in range(80) if chr(code) in chars}

    a, b = CharSet.of(one), CharSet.of(other)
    assert members(a) == {code for low, high in one for code in range(low, high + 1)}
    assert members(a | b) == members(a) | members(b)
    assert members(a & b) == members(a) & members(b)
    assert members(a - b) == members(a) - members(b)
    assert members(~a) == set(range(80)) - members(a)
    assert a.meets(b) == bool(members(a) & members(b))
    assert a.size == len(members(a))
    pattern = re.compile(a.regex())
    assert members(a) == {code for code in range(80) if pattern.fullmatch(chr(code))}
    assert {a.sample(turn) for turn in range(a.size)} <= {chr(code) for code in members(a)}


def test_the_complement_reaches_to_the_last_character() -> None:
    assert ~CharSet() == ANY
    assert chr(LAST) in ~DIGITS
    assert ~~DIGITS == DIGITS
    with pytest.raises(ValueError, match="empty"):
        CharSet().sample()


# ---- what follows from a tree --------------------------------------------------------------------

CHARS = st.sampled_from(["a", "b", "ab", "0", "-", "a0-"]).map(CharSet.chars)


def nodes(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(leaves, min_size=1, max_size=3).map(tuple)
    bounds = st.tuples(st.integers(0, 3), st.integers(0, 2))
    return st.one_of(
        several.map(Chain),
        several.map(Choice),
        st.tuples(leaves, bounds).map(lambda p: Repeat(p[0], p[1][0], max(1, sum(p[1])))),
    )


TREES = st.recursive(CHARS.map(One), nodes, max_leaves=6)


@pytest.mark.full
@settings(max_examples=120, deadline=None, derandomize=True)
@given(TREES, st.text("ab0-", max_size=8))
def test_widths_first_characters_and_alphabet_hold_for_every_match(tree: Node, text: str) -> None:
    least, most = widths(tree)
    begin, empty = first(tree)
    values = [sample(tree, turn) for turn in range(6)]
    values += [text] if re.fullmatch(regex(tree), text) else []
    for value in values:
        assert least <= len(value) <= most
        assert (value[0] in begin) if value else empty
        assert all(char in alphabet(tree) for char in value)


@pytest.mark.full
@settings(max_examples=120, deadline=None, derandomize=True)
@given(TREES, st.text("ab0-", max_size=6))
def test_the_prefix_pattern_knows_exactly_the_beginnings_of_values(tree: Node, text: str) -> None:
    known = re.compile(prefix_regex(tree)).fullmatch(text) is not None
    assert known == (text in beginnings(tree))


def beginnings(tree: Node) -> set[str]:
    """Every beginning of every value, by writing all values down."""
    return {value[:size] for value in values_of(tree) for size in range(len(value) + 1)}


def values_of(tree: Node, limit: int = 4000) -> set[str]:
    match tree:
        case One(chars):
            return {char for char in "ab0-" if char in chars}
        case Choice(parts):
            return set().union(*map(values_of, parts))
        case Chain(parts):
            found = {""}
            for part in parts:
                found = {a + b for a in found for b in values_of(part)}
                found = set(sorted(found)[:limit]) if len(found) > limit else found
            return found
        case Repeat(part, least, most):
            inner, layer, found = values_of(part), {""}, set()
            for count in range(most + 1):
                found |= layer if count >= least else set()
                layer = {a + b for a in layer for b in inner} if count < most else set()
            return found


@pytest.mark.full
@settings(max_examples=120, deadline=None, derandomize=True)
@given(TREES, st.sampled_from(["", "-", "0", "b-"]))
def test_every_value_has_an_anchor_before_the_first_barrier(tree: Node, barriers: str) -> None:
    found = anchors(tree, until=CharSet.chars(barriers))
    pattern = re.compile("|".join(f"(?:[{chars}]{rest})" for chars, rest in found))
    for value in values_of(tree):
        if value:
            cut = min((value.find(c) for c in barriers if c in value), default=len(value))
            assert pattern.search(value[: cut + 1]), (value, found)


def test_anchors_prefer_what_is_rare_in_text() -> None:
    def of(pattern: str) -> tuple[tuple[str, str], ...]:
        return anchors(read_pattern(pattern), until=CharSet())

    assert of("EMP-[0-9]{2,8}") == (("P", r"(?<=EMP)\-[0-9][0-9]"),)
    assert of("ete-[0-9]{2}")[0][0] == r"\-"
    assert of("[a-z]{2}[0-9]{3}")[0][0] == "0-9"
    assert of("\u00e9[a-z]{3}x[a-z]{3}")[0][0] == "x"
    assert [chars for chars, _ in of("(?:a-|b#)[a-z]{3}")] == [r"\-", r"\#"]


# ---- what a search may cost ----------------------------------------------------------------------


class Counted:
    """A plain backtracking search that fails at the end, whatever it found, and its steps."""

    def __init__(self, tree: Node, text: str) -> None:
        self.steps, self._text = 0, text
        list(self._walk(tree, 0, self._fail))

    def _fail(self, _: int) -> Iterator[None]:
        self.steps += 1
        return iter(())

    def _walk(self, node: Node, at: int, then: Callable[[int], Iterator[None]]) -> Iterator[None]:
        match node:
            case One(chars):
                self.steps += 1
                if self._text[at : at + 1] and self._text[at] in chars:
                    yield from then(at + 1)
            case Choice(parts):
                for part in parts:
                    yield from self._walk(part, at, then)
            case Chain(()):
                yield from then(at)
            case Chain(parts):
                rest: Node = Chain(parts[1:])
                yield from self._walk(parts[0], at, lambda stop: self._walk(rest, stop, then))
            case Repeat(part, least, most):
                if most > 0:
                    rest = Repeat(part, max(0, least - 1), most - 1)
                    yield from self._walk(part, at, lambda stop: self._walk(rest, stop, then))
                if least == 0:
                    yield from then(at)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(TREES, st.text("ab0-", max_size=9))
def test_no_search_takes_more_steps_than_the_bound_says(tree: Node, text: str) -> None:
    leaves = len(re.findall("One", repr(tree)))
    for tried in (text, sample(tree, 0) * 2, sample(tree, 1) * 2, "a" * 12, "0" * 12):
        assert Counted(tree, tried).steps <= 3 * leaves * max(1, steps(tree))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a{0,20}a{0,20}a{0,20}b", "a" * 60),
        ("(?:a?){13}b", "a" * 13),
        ("(?:a|a){12}b", "a" * 12),
        ("(?:a|aa){12}b", "a" * 18),
        (".{0,200}x.{0,200}y", "x" * 400),
        ("[a-z]{1,100}[a-z0-9]{1,100}[0-9]{1,100}!", "a1" * 150),
    ],
)
def test_what_makes_a_search_explode_is_beyond_the_bound(pattern: str, text: str) -> None:
    tree = read_pattern(pattern)
    assert steps(tree) > MOST_STEPS
    if widths(tree)[1] < 50:
        assert Counted(tree, text).steps > MOST_STEPS


@pytest.mark.parametrize("pattern", ["[a-z]{1,900}-[0-9]{1,100}", "(?:ab?){100}c", "a{900}b?c"])
def test_what_the_next_character_decides_costs_no_more_than_its_width(pattern: str) -> None:
    tree = read_pattern(pattern)
    assert steps(tree) == widths(tree)[1] <= MOST_STEPS
