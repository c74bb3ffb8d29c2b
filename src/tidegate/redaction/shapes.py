"""How wide, how costly and how rare are the texts of a pattern?

Lives here: what follows from the tree of a pattern (patterns): width, first characters, the
regular expression for its values and for their beginnings, what a prefilter may look for, the
number of ways in which a search can go wrong. Does not live here: reading patterns.
"""

from collections.abc import Iterator, Sequence
from functools import reduce

from tidegate.redaction.charsets import LAST, CharSet
from tidegate.redaction.patterns import Chain, Choice, Node, One, Repeat

MOST_STEPS = 4096
"""Steps that a search may take at one place of a text before it knows."""
_ENOUGH = 1 << 20

EDGE = r"(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9]))"
"""Not between two letters or digits: where a value may begin and end."""


def widths(node: Node) -> tuple[int, int]:
    """The fewest and the most characters of a value."""
    match node:
        case One():
            return 1, 1
        case Repeat(part, least, most):
            low, high = widths(part)
            return low * least, high * most
        case Chain(parts):
            pairs = [widths(part) for part in parts]
            return sum(low for low, _ in pairs), sum(high for _, high in pairs)
        case Choice(parts):
            pairs = [widths(part) for part in parts]
            return min(low for low, _ in pairs), max(high for _, high in pairs)


def first(node: Node) -> tuple[CharSet, bool]:
    """The characters that a value can begin with, and whether it can be empty."""
    match node:
        case One(chars):
            return chars, False
        case Repeat(part, least, _):
            chars, empty = first(part)
            return chars, empty or least == 0
        case Choice(parts):
            found = [first(part) for part in parts]
            return _union(chars for chars, _ in found), any(empty for _, empty in found)
        case Chain(parts):
            chars = CharSet()
            for part in parts:
                more, empty = first(part)
                chars |= more
                if not empty:
                    return chars, False
            return chars, True


def alphabet(node: Node) -> CharSet:
    """Every character that some value contains."""
    match node:
        case One(chars):
            return chars
        case Repeat(part, _, _):
            return alphabet(part)
        case Chain(parts) | Choice(parts):
            return _union(alphabet(part) for part in parts)


def _union(sets: Iterator[CharSet]) -> CharSet:
    return reduce(CharSet.__or__, sets, CharSet())


def steps(node: Node) -> int:
    """An upper bound for the steps of one search at one place, up to about a million.

    The number of ways to read a text, times its width. A repeat adds ways only where what comes
    behind it can begin with the same characters; everything else is decided by the next one.
    """
    ways, width = _ways(node, CharSet()), widths(node)[1]
    return min(ways * max(width, 1), _ENOUGH)


def _ways(node: Node, after: CharSet) -> int:
    """The ways through `node` if the characters `after` can follow it."""
    match node:
        case One():
            return 1
        case Repeat(part, least, most):
            begin, empty = first(part)
            inner = _ways(part, begin | after)
            ways: int = min(inner, _ENOUGH) ** min(most, 20)
            if least != most and (empty or begin.meets(after)):
                ways *= most - least + 1
            return min(ways, _ENOUGH)
        case Choice(parts):
            inner_ways = [_ways(part, after) for part in parts]
            apart = not any(
                one.meets(other) for one, other in _pairs([_begins(part, after) for part in parts])
            )
            return min(max(inner_ways) if apart else sum(inner_ways), _ENOUGH)
        case Chain(parts):
            ways = 1
            for part in reversed(parts):
                ways = min(ways * _ways(part, after), _ENOUGH)
                after = _begins(part, after)
            return ways


def _begins(node: Node, after: CharSet) -> CharSet:
    chars, empty = first(node)
    return chars | after if empty else chars


def _pairs(sets: Sequence[CharSet]) -> Iterator[tuple[CharSet, CharSet]]:
    for place, one in enumerate(sets):
        for other in sets[place + 1 :]:
            yield one, other


# ---- as regular expressions -------------------------------------------------------------------


def regex(node: Node) -> str:
    """A regular expression for the values."""
    match node:
        case One(chars):
            return chars.regex()
        case Repeat(part, least, most):
            inner = regex(part)
            inner = inner if isinstance(part, One) else f"(?:{inner})"
            return f"{inner}{{{least},{most}}}"
        case Chain(parts):
            return "".join(map(regex, parts)) if parts else "(?:)"
        case Choice(parts):
            return f"(?:{'|'.join(map(regex, parts))})"


def prefix_regex(node: Node) -> str:
    """A regular expression for everything that a value can begin with: nothing to all of it."""
    match node:
        case One(chars):
            return f"{chars.regex()}?"
        case Repeat(part, _, most):
            if isinstance(part, One):
                return f"{part.chars.regex()}{{0,{most}}}"
            return f"(?:{regex(part)}){{0,{most - 1}}}(?:{prefix_regex(part)})"
        case Choice(parts):
            return f"(?:{'|'.join(map(prefix_regex, parts))})"
        case Chain(parts):
            return _chain_prefix(parts)


def _chain_prefix(parts: Sequence[Node]) -> str:
    """Halves instead of one part after the other: the depth stays logarithmic."""
    if not parts:
        return "(?:)"
    if len(parts) == 1:
        return prefix_regex(parts[0])
    half = len(parts) // 2
    head, tail = parts[:half], parts[half:]
    return f"(?:{regex(Chain(tuple(head)))}{_chain_prefix(tail)}|{_chain_prefix(head)})"


# ---- what a prefilter looks for ---------------------------------------------------------------

_BEHIND, _AHEAD = 8, 8
_MOST_BRANCHES = 24
_BEYOND_ASCII = CharSet(((0x80, LAST),))
Pairs = tuple[tuple[str, str], ...]


def anchors(node: Node, *, until: CharSet) -> Pairs:
    """Pairs (class of one character, regex behind it): every value contains a match of one.

    Only characters before the first one of `until` are used, and that one itself: in a stream
    the rest may stand in another segment. Of all the choices the rarest in ordinary text.
    """
    choices = list(_choices(node, until))
    return min(choices)[1] if choices else ((first(node)[0].inside_class(), ""),)


def _choices(node: Node, until: CharSet) -> Iterator[tuple[float, Pairs]]:
    """What every value of `node` contains, with the share of ordinary text that has it, too."""
    run: list[CharSet] = []
    for part in node.parts if isinstance(node, Chain) else (node,):
        fixed, goes_on = _fixed(part)
        cut = next((place for place, chars in enumerate(fixed) if chars.meets(until)), None)
        run += fixed if cut is None else fixed[: cut + 1]
        if cut is not None:
            break
        if not goes_on:
            yield from _windows(run)
            run = []
            yield from _inner(part, until)
            if alphabet(part).meets(until):
                return
    yield from _windows(run)


def _inner(part: Node, until: CharSet) -> Iterator[tuple[float, Pairs]]:
    """The choices inside a group that no value lacks."""
    if isinstance(part, Repeat) and part.least and not isinstance(part.part, One):
        yield from _choices(part.part, until)
    elif isinstance(part, Choice) and len(part.parts) <= _MOST_BRANCHES:
        best = [min(_choices(branch, until), default=None) for branch in part.parts]
        found = [one for one in best if one is not None]
        if len(found) == len(part.parts):
            yield sum(share for share, _ in found), tuple(p for _, pairs in found for p in pairs)


def _fixed(part: Node) -> tuple[list[CharSet], bool]:
    """The characters that `part` begins with in any case, and whether that is all of it."""
    match part:
        case One(chars):
            return [chars], True
        case Repeat(One(chars), least, most):
            return [chars] * min(least, 16), least == most and least <= 16
        case _:
            return [], False


def _windows(run: Sequence[CharSet]) -> Iterator[tuple[float, Pairs]]:
    for place, chars in enumerate(run):
        behind, ahead = run[max(0, place - _BEHIND) : place], run[place + 1 : place + _AHEAD]
        shares = [_share(part) for part in (*behind, chars, *ahead)]
        # The search stops at every character of the first class, so that one weighs in itself;
        # it is fastest where that class is all ASCII.
        share = reduce(float.__mul__, shares, 1.0) + 0.02 * _share(chars)
        share += 1.0 if chars.meets(_BEYOND_ASCII) else 0.0
        look = "".join(part.regex() for part in (*behind, chars)) if behind else ""
        rest = "".join(part.regex() for part in ahead)
        yield share, ((chars.inside_class(), (f"(?<={look})" if look else "") + rest),)


def _share(chars: CharSet) -> float:
    """About how many of the characters of ordinary text belong to a set."""
    return min(1.0, sum(share for char, share in _SHARES if char in chars) + 0.0001)


# Letters from frequent to rare; one in twenty is a capital.
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_SHARES = (
    *((letter, 0.096 * 0.87**rank) for rank, letter in enumerate(_LETTERS)),
    *((letter.upper(), 0.005 * 0.87**rank) for rank, letter in enumerate(_LETTERS)),
    *((sign, 0.002) for sign in "0123456789"),
    *((sign, 0.0013) for sign in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    *((sign, 0.06) for sign in " \n\t"),
)


# ---- texts to try a pattern with --------------------------------------------------------------


def sample(node: Node, turn: int) -> str:
    """A value; other turns give other lengths, branches and characters. Pure and repeatable."""
    match node:
        case One(chars):
            return chars.sample((turn * 2_654_435_761 >> 9) & 0xFFFF)
        case Repeat(part, least, most):
            count = (least, most, (least + most) // 2)[turn % 3]
            return "".join(sample(part, turn * 7 + number) for number in range(count))
        case Choice(parts):
            return sample(parts[turn % len(parts)], turn // len(parts))
        case Chain(parts):
            return "".join(sample(part, turn + 3 * place) for place, part in enumerate(parts))


__all__ = [
    "EDGE",
    "MOST_STEPS",
    "alphabet",
    "anchors",
    "first",
    "prefix_regex",
    "regex",
    "sample",
    "steps",
    "widths",
]
