"""Which names does a pattern mean, and does one pattern cover another?

Lives here: `*` (any characters) and `?` (one character), the only two signs that patterns of the
file know. Does not live here: the matching of requests (routing, limits, mcp).
"""

from collections.abc import Iterable, Sequence


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` means `text`, whole and with case."""
    return _consume(pattern, text, star_eats_star=False)


def covers(wide: str, narrow: str) -> bool:
    """Whether every text that `narrow` means is meant by `wide` too.

    Never true wrongly; false for a few odd pairs such as "?*" and "*?".
    """
    return _consume(wide, narrow, star_eats_star=True)


def all_covered(wide: Iterable[str], narrow: Sequence[str]) -> bool:
    """Whether every pattern of `narrow` is covered by one of `wide`."""
    patterns = tuple(wide)
    return all(any(covers(pattern, inner) for pattern in patterns) for inner in narrow)


def _consume(pattern: str, text: str, *, star_eats_star: bool) -> bool:
    """Greedy walk with one way back: linear for one star, quadratic at worst."""
    at, star, position, mark = 0, -1, 0, 0
    while position < len(text):
        sign = pattern[at] if at < len(pattern) else ""
        letter = text[position]
        if sign == "*":
            star, mark, at = at, position, at + 1
        elif _takes(sign, letter, star_eats_star=star_eats_star):
            at, position = at + 1, position + 1
        elif star >= 0:
            mark += 1
            at, position = star + 1, mark
        else:
            return False
    return all(sign == "*" for sign in pattern[at:])


def _takes(sign: str, letter: str, *, star_eats_star: bool) -> bool:
    if star_eats_star and letter == "*":
        return False
    return sign in ("?", letter) if letter != "?" or not star_eats_star else sign == "?"
