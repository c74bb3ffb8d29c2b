"""Is this the number by which a country knows a person?

Lives here: the search for the numbers of the table inside one segment, and the words before them.
Does not live here: the table (national_table), the rules of each country (national_checks).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from tidegate.redaction.detectors.digits import WORD, joined_after, joined_before
from tidegate.redaction.detectors.national_table import ANY_CUE, TABLE, NationalNumber
from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import NATIONAL_ID

_CUE_REACH = 64
_FEWEST, _MOST_GROUPS = 8, 8
_CHAIN = re.compile(r"[A-Za-z0-9]+(?:[ .\-+][A-Za-z0-9]+)*")
_GROUP = re.compile(r"[A-Za-z0-9]+")
_SEPARATORS = str.maketrans("", "", " .-+")
_TIGHT = frozenset(".-+")


class NationalIds:
    """Numbers of the countries in `regions`, or of all in the table if it is empty.

    A country that is named is searched for by form and check alone. Without names a number that
    has no distinct form counts only behind a word such as "BSN": one in ten or eleven numbers of
    the same length has a right check digit by chance.
    """

    family = "national_id"
    rank = 75
    shortest = 8
    anchors = (("0-9", r"[A-Za-z0-9]{0,3}[ .\-+]?[A-Za-z]?[0-9]{2}"),)

    def __init__(self, regions: Sequence[str] = ()) -> None:
        self._rows = rows(tuple(regions))

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for chain in _CHAIN.finditer(text, start, end):
            if chain.end() - chain.start() < _FEWEST:
                continue
            groups = [found.span() for found in _GROUP.finditer(text, *chain.span())]
            passed = 0
            for place, (head, _) in enumerate(groups):
                if place < passed or not _starts_free(text, head):
                    continue
                for size in range(min(_MOST_GROUPS, len(groups) - place), 0, -1):
                    stop = groups[place + size - 1][1]
                    rule = self._rule(text, head, stop, end)
                    if rule is not None:
                        passed = place + size
                        yield Hit(head, stop, self.family, rule, NATIONAL_ID)
                        break

    def _rule(self, text: str, head: int, stop: int, end: int) -> str | None:
        """The rule of the first number of the table that this is, or None."""
        if not _ends_free(text, stop, end):
            return None
        written = text[head:stop].upper()
        compact = written.translate(_SEPARATORS)
        # Groups in the middle of a row of groups are no number by themselves.
        spaced = " " in written
        among_digits = joined_before(text, head) or joined_after(text, stop, end)
        isolated = not (spaced and among_digits)
        for row in self._rows.get(len(compact), ()):
            told = row.cued(text, head) or (isolated and row.alone(written))
            if told and row.laid_out(written) and row.checks(compact):
                return row.number.rule
        return None


@cache
def rows(regions: tuple[str, ...]) -> "dict[int, list[Row]]":
    """The compiled rows of these countries, or of all, by the size of the number."""
    by_size: dict[int, list[Row]] = {}
    for number in TABLE:
        if not regions or number.country in regions:
            row = Row(number, named=bool(regions))
            for size in number.sizes:
                by_size.setdefault(size, []).append(row)
    return by_size


class Row:
    """A row of the table, compiled."""

    def __init__(self, number: NationalNumber, *, named: bool) -> None:
        self.number = number
        self._named = named and number.check is not None
        self._layouts = re.compile(number.layouts)
        self._distinct = re.compile(number.distinct)
        self._cue = re.compile(rf"(?i:\b(?:{number.cue}|{ANY_CUE}))[^0-9\n]{{0,24}}\n?\Z")

    def laid_out(self, written: str) -> bool:
        """The form is right."""
        return self._layouts.fullmatch(written) is not None

    def checks(self, compact: str) -> bool:
        """The check is right, or there is none. Only for what is laid out so."""
        return self.number.check is None or self.number.check(compact)

    def alone(self, written: str) -> bool:
        """Form and check are enough to tell."""
        return self._named or self._distinct.fullmatch(written) is not None

    def cued(self, text: str, head: int) -> bool:
        """A word for such a number stands before it."""
        return self._cue.search(text, max(0, head - _CUE_REACH), head) is not None


def _starts_free(text: str, start: int) -> bool:
    """Nothing before the number makes it the tail of a longer one."""
    before = text[max(0, start - 2) : start]
    if before[-1:] in _TIGHT:
        return before[:-1] not in WORD
    return before[-1:] not in WORD


def _ends_free(text: str, stop: int, end: int) -> bool:
    """Nothing behind the number makes it the head of a longer one."""
    after = text[stop : min(stop + 2, end)]
    return not (after[:1] in _TIGHT and after[1:] in WORD)
