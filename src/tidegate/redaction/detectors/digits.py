"""How are groups of digits read as one number?

Lives here: chains of groups joined by one space, hyphen, dot or line end, and what may touch them.
Does not live here: what the digits mean (cards, ssn, national).
"""

import re
from collections.abc import Iterator, Sequence

NINE_DIGITS = ("0-9", r"(?:[ .\n\-]?[0-9]){8}")
"""The anchor of nine digits with at most one joiner between two of them."""
DIGITS = frozenset("0123456789")
WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
JOINERS = frozenset(" .-\n")

_CHAIN = re.compile(r"[0-9]+(?:[ .\n\-][0-9]+)*")
_GROUP = re.compile(r"[0-9]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_UUID_SIZE = 36

Groups = Sequence[tuple[int, int]]


def chains(text: str, start: int, end: int, *, least: int = 9) -> Iterator[list[tuple[int, int]]]:
    """The places of the groups of each chain that has at least `least` characters."""
    for chain in _CHAIN.finditer(text, start, end):
        if chain.end() - chain.start() >= least:
            yield [found.span() for found in _GROUP.finditer(text, *chain.span())]


def starts_free(text: str, start: int) -> bool:
    """No letter or digit touches the number on its left, and it is no decimal fraction."""
    before = text[max(0, start - 2) : start]
    if before[-1:] == ".":
        return before[:-1] not in DIGITS
    return before[-1:] not in WORD


def ends_free(text: str, stop: int, end: int) -> bool:
    """No letter touches the number on its right, and no fraction follows."""
    after = text[stop : min(stop + 2, end)]
    if after[:1] == ".":
        return after[1:] not in DIGITS
    return after[:1] not in WORD


def joined_before(text: str, start: int) -> bool:
    """One joiner before the number leads to another digit."""
    before = text[max(0, start - 2) : start]
    return before[:1] in DIGITS and before[1:] in JOINERS


def joined_after(text: str, stop: int, end: int) -> bool:
    """One joiner behind the number leads to another digit."""
    after = text[stop : min(stop + 2, end)]
    return after[:1] in JOINERS and after[1:] in DIGITS


def in_uuid(text: str, head: int, stop: int, end: int) -> bool:
    """The number overlaps a UUID, whose groups may all be digits."""
    around = max(0, head - _UUID_SIZE), min(stop + _UUID_SIZE, end)
    return "-" in text[slice(*around)] and any(
        found.start() < stop and head < found.end() for found in _UUID.finditer(text, *around)
    )
