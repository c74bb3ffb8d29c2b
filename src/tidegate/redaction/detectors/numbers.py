"""Is this chain of digit groups a payment card or a social security number?

Lives here: groups of digits joined by one space, hyphen, dot or line end, with their checks
(network ranges, Luhn, ranges that were never issued). Does not live here: IBAN (modes), phone
numbers. A group is never taken apart, so nothing is found inside a longer run of digits.
"""

import re
from collections.abc import Iterator, Sequence

from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import CARD, SSN

# Nine digits with at most one joiner between two of them: less is neither card nor SSN.
_NINE_DIGITS = ("0-9", r"(?:[ .\n\-]?[0-9]){8}")
_CHAIN = re.compile(r"[0-9]+(?:[ .\n\-][0-9]+)*")
_GROUP = re.compile(r"[0-9]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_UUID_SIZE = 36
_MOST_DIGITS, _MOST_GROUPS = 19, 6
_SSN_CUE = re.compile(r"(?i:\bssn\b|social[ \-]security)[^0-9\n]{0,32}$")
_SSN_CUE_REACH = 56

_DIGITS = frozenset("0123456789")
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_JOINERS = frozenset(" .-\n")

_DOUBLED = str.maketrans("0123456789", "0246813579")  # twice the digit, its two digits added

Groups = Sequence[tuple[int, int]]


def luhn(digits: str) -> bool:
    """The check digit of ISO/IEC 7812 is right."""
    plain, doubled = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, plain)) + sum(map(int, doubled.translate(_DOUBLED)))) % 10 == 0


# By first digit: first and last prefix, shortest and longest number. Source: the networks'
# published issuer ranges.
_NETWORKS: dict[str, tuple[tuple[str, str, int, int], ...]] = {
    "2": (("2221", "2720", 16, 16), ("2200", "2204", 16, 19)),
    "3": (
        ("34", "34", 15, 15),
        ("37", "37", 15, 15),
        ("3528", "3589", 16, 19),
        ("300", "305", 14, 19),
        ("309", "309", 14, 19),
        ("36", "36", 14, 19),
        ("38", "39", 14, 19),
    ),
    "4": (("4", "4", 13, 19),),
    "5": (("51", "55", 16, 16), ("50", "50", 13, 19), ("56", "58", 13, 19)),
    "6": (
        ("6011", "6011", 16, 19),
        ("644", "659", 16, 19),
        ("62", "62", 16, 19),
        ("60", "60", 16, 16),
        ("63", "63", 13, 19),
        ("67", "67", 13, 19),
    ),
    "8": (("81", "82", 16, 16),),
}


def in_network(digits: str) -> bool:
    """A payment network issues numbers with this prefix and length."""
    size = len(digits)
    for low, high, shortest, longest in _NETWORKS.get(digits[0], ()):
        if shortest <= size <= longest and low <= digits[: len(low)] <= high:
            return True
    return False


def issued_ssn(area: str, group: str, serial: str) -> bool:
    """The Social Security Administration may have issued this number."""
    return (
        area not in {"000", "666"} and not area.startswith("9") and group != "00"
    ) and serial != "0000"


def _chains(text: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    for chain in _CHAIN.finditer(text, start, end):
        if chain.end() - chain.start() >= 9:
            yield [found.span() for found in _GROUP.finditer(text, *chain.span())]


def _starts_free(text: str, start: int) -> bool:
    """No letter or digit touches the number on its left, and it is no decimal fraction."""
    before = text[max(0, start - 2) : start]
    if before[-1:] == ".":
        return before[:-1] not in _DIGITS
    return before[-1:] not in _WORD


def _joined_before(text: str, start: int) -> bool:
    """One joiner before the number leads to another digit."""
    before = text[max(0, start - 2) : start]
    return before[:1] in _DIGITS and before[1:] in _JOINERS


def _ends_free(text: str, stop: int, end: int) -> bool:
    """No letter touches the number on its right, and no fraction follows."""
    after = text[stop : min(stop + 2, end)]
    if after[:1] == ".":
        return after[1:] not in _DIGITS
    return after[:1] not in _WORD


def _in_uuid(text: str, head: int, stop: int, end: int) -> bool:
    """The number overlaps a UUID, whose groups may all be digits."""
    around = max(0, head - _UUID_SIZE), min(stop + _UUID_SIZE, end)
    return "-" in text[slice(*around)] and any(
        found.start() < stop and head < found.end() for found in _UUID.finditer(text, *around)
    )


class SocialSecurity:
    """`123-45-6789`, `123 45 6789`, and nine bare digits after a cue such as "SSN"."""

    family = "ssn"
    anchors = (_NINE_DIGITS,)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for groups in _chains(text, start, end):
            for place, (head, stop) in enumerate(groups):
                if stop - head == 9 and self._cued(text, head, stop, end):
                    yield Hit(head, stop, self.family, "ssn_context", SSN)
                elif stop - head == 3 and self._fits(text, groups[place : place + 3], end):
                    yield Hit(head, groups[place + 2][1], self.family, "ssn", SSN)

    def _fits(self, text: str, groups: Groups, end: int) -> bool:
        if [stop - head for head, stop in groups] != [3, 2, 4]:
            return False
        (first, first_stop), (second, second_stop), (third, stop) = groups
        joiners = text[first_stop] + text[second_stop]
        if joiners.strip(" -"):
            return False
        # A hyphen that goes on to more digits makes it part of a longer number.
        before, after = text[max(0, first - 2) : first], text[stop : min(stop + 2, end)]
        if before[1:] == "-" and before[:1] in _DIGITS:
            return False
        if after[:1] == "-" and after[1:] in _DIGITS:
            return False
        return (
            _starts_free(text, first)
            and _ends_free(text, stop, end)
            and issued_ssn(text[first:first_stop], text[second:second_stop], text[third:stop])
        )

    def _cued(self, text: str, head: int, stop: int, end: int) -> bool:
        number = text[head:stop]
        return (
            _starts_free(text, head)
            and _ends_free(text, stop, end)
            and issued_ssn(number[:3], number[3:5], number[5:])
            and _SSN_CUE.search(text, max(0, head - _SSN_CUE_REACH), head) is not None
        )


class Cards:
    """13 to 19 digits of a known network with a right check digit."""

    family = "card"
    anchors = (_NINE_DIGITS,)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for groups in _chains(text, start, end):
            passed = 0
            for place, (head, stop) in enumerate(groups):
                if place < passed or text[head] not in _NETWORKS:
                    continue
                # Short groups are one number only if they are all there is (`_grouped`).
                spelled = stop - head < 3
                if (spelled and _joined_before(text, head)) or not _starts_free(text, head):
                    continue
                reach = place + (_MOST_DIGITS if spelled else _MOST_GROUPS)
                size = self._longest(text, groups[place:reach], end)
                last = groups[place + size - 1][1]
                if size and not _in_uuid(text, head, last, end):
                    passed = place + size
                    yield Hit(head, last, self.family, "card", CARD)

    def _longest(self, text: str, groups: Groups, end: int) -> int:
        """How many of `groups`, from the first on, are a card; 0 if none."""
        best, digits = 0, ""
        for size, (head, stop) in enumerate(groups, 1):
            digits += text[head:stop]
            if len(digits) > _MOST_DIGITS:
                break
            if (
                len(digits) >= 13
                and in_network(digits)
                and _ends_free(text, stop, end)
                and self._grouped(text, groups[:size], end)
                and luhn(digits)
            ):
                best = size
        return best

    def _grouped(self, text: str, groups: Groups, end: int) -> bool:
        """The groups look like one number, not like a row of a table."""
        sizes = [stop - head for head, stop in groups]
        first, last = groups[0][0], groups[-1][1]
        if "\n" in text[first:last]:
            return sizes[:-1] == [4] * (len(sizes) - 1)
        if min(sizes[:-1], default=4) >= 3:
            return len(sizes) <= _MOST_GROUPS
        if set(sizes) not in ({1}, {2}, {1, 2}) or sizes[-1] > sizes[0]:
            return False
        # Spelled digit by digit or in pairs: only if no further group follows or precedes.
        after = text[last : min(last + 2, end)]
        return not _joined_before(text, first) and not (
            after[:1] in _JOINERS and after[1:] in _DIGITS
        )
