"""Is this chain of digit groups the number of a payment card?

Lives here: the ranges of the networks, and how card numbers are grouped. Does not live here: the
check digit (checksums), account numbers (iban). A group is never taken apart, so nothing is found
inside a longer run of digits.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

from tidegate.redaction.checksums import luhn_sums
from tidegate.redaction.detectors.digits import (
    NINE_DIGITS,
    Groups,
    chains,
    ends_free,
    in_uuid,
    joined_after,
    joined_before,
    starts_free,
)
from tidegate.redaction.hits import RANKS, Hit
from tidegate.redaction.spans import CARD

FEWEST_DIGITS, MOST_DIGITS = 13, 19
_FEWEST_CUED = 12
_MOST_GROUPS = 6
_FEWEST_IN_GROUP = 3
# How cards are grouped. Other groups are a card only if no digits are joined to them in front.
_GROUPINGS = ([4, 4], [4, 6])

# By first digit: first and last prefix, shortest and longest number. Source: the networks'
# published issuer ranges; 2131 and 1800 are JCB's own from before 2000.
_NETWORKS: dict[str, tuple[tuple[str, str, int, int], ...]] = {
    "1": (("1800", "1800", 15, 15),),
    "2": (("2221", "2720", 16, 16), ("2200", "2204", 16, 19), ("2131", "2131", 15, 15)),
    "3": (
        ("34", "34", 15, 15),
        ("37", "37", 15, 15),
        ("3528", "3589", 16, 19),
        ("300", "305", 14, 19),
        ("309", "309", 14, 19),
        ("36", "36", 14, 19),
        ("38", "39", 14, 19),
    ),
    "4": (("4", "4", 13, 13), ("4", "4", 16, 16), ("4", "4", 19, 19)),
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
# A number that follows such a word is a card whatever its network, as long as it checks.
_CUE = re.compile(
    r"(?i:\bcards?\b|\bcc\b|\b(?:visa|maestro|mastercard|amex|jcb|discover|unionpay)\b)"
    r"[^0-9\n]{0,24}\n?\Z"
)
_CUE_REACH = 40


def in_network(digits: str) -> bool:
    """A payment network issues numbers with this prefix and length."""
    size = len(digits)
    for low, high, shortest, longest in _NETWORKS.get(digits[0], ()):
        if shortest <= size <= longest and low <= digits[: len(low)] <= high:
            return True
    return False


def cued(text: str, head: int) -> bool:
    """A word for a card stands shortly before, at most one line up and with no digit between."""
    return _CUE.search(text, max(0, head - _CUE_REACH), head) is not None


class Cards:
    """13 to 19 digits of a known network with a right check digit; 12 and any network if cued."""

    family = "card"
    rank = RANKS["card"]
    shortest = 12
    reach = 80  # the longest number and the UUID that it may be part of
    anchors = (NINE_DIGITS,)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for groups in chains(text, start, end, least=_FEWEST_CUED):
            passed = 0
            for place, last in self._checked(text, groups):
                if place < passed:
                    continue
                if self._fits(text, groups[place : last + 1], end):
                    head, stop = groups[place][0], groups[last][1]
                    if in_uuid(text, head, stop, end):
                        continue
                    passed = last + 1
                    yield Hit(head, stop, self.family, "card", CARD)

    @staticmethod
    def _checked(text: str, groups: Groups) -> Iterator[tuple[int, int]]:
        """First and last group of what has the right size and check digit, the longest first."""
        digits = "".join([text[head:stop] for head, stop in groups])
        if len(digits) < _FEWEST_CUED:
            return
        sums = luhn_sums(digits)
        ends = list(accumulate(stop - head for head, stop in groups))
        offset = reach = 0
        for place, (head, stop) in enumerate(groups):
            # Short groups are one number only if they are all there is (`_grouped`).
            if stop - head >= _FEWEST_IN_GROUP or not (place or joined_before(text, head)):
                while reach < len(ends) and ends[reach] <= offset + MOST_DIGITS:
                    reach += 1
                last = reach - 1
                while last >= place and ends[last] >= offset + _FEWEST_CUED:
                    sum_to = sums[ends[last] & 1]
                    if (sum_to[ends[last]] - sum_to[offset]) % 10 == 0:
                        yield place, last
                    last -= 1
            offset = ends[place]

    def _fits(self, text: str, groups: Groups, end: int) -> bool:
        """What stands around the groups, and how they are cut, let them be a card."""
        head, stop = groups[0][0], groups[-1][1]
        if not (starts_free(text, head) and ends_free(text, stop, end)):
            return False
        if not self._grouped(text, groups, end):
            return False
        digits = "".join([text[head:stop] for head, stop in groups])
        return (len(digits) >= FEWEST_DIGITS and in_network(digits)) or cued(text, head)

    def _grouped(self, text: str, groups: Groups, end: int) -> bool:
        """The groups look like one number, not like a row of a table."""
        sizes = [stop - head for head, stop in groups]
        first, last = groups[0][0], groups[-1][1]
        if "\n" in text[first:last]:
            return sizes[:-1] == [4] * (len(sizes) - 1)
        if len(sizes) > 1 and joined_before(text, first) and sizes[:2] not in _GROUPINGS:
            return False
        if min(sizes[:-1], default=4) >= _FEWEST_IN_GROUP:
            return len(sizes) <= _MOST_GROUPS
        if set(sizes) not in ({1}, {2}, {1, 2}) or sizes[-1] > sizes[0]:
            return False
        # Spelled digit by digit or in pairs: only if no further group follows or precedes.
        return not joined_before(text, first) and not joined_after(text, last, end)
