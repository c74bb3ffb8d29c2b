"""Is this chain of digit groups the number of a payment card?

Lives here: the ranges of the networks, and how card numbers are grouped. Does not live here: the
check digit (checksums), account numbers (iban). A group is never taken apart, so nothing is found
inside a longer run of digits.
"""

import re
from collections.abc import Iterator

from tidegate.redaction.checksums import luhn
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
        for groups in chains(text, start, end):
            passed = 0
            for place, (head, stop) in enumerate(groups):
                if place < passed:
                    continue
                # Short groups are one number only if they are all there is (`_grouped`).
                spelled = stop - head < _FEWEST_IN_GROUP
                if (spelled and joined_before(text, head)) or not starts_free(text, head):
                    continue
                reach = place + (MOST_DIGITS if spelled else _MOST_GROUPS)
                size = self._longest(text, groups[place:reach], end)
                last = groups[place + size - 1][1]
                if size and not in_uuid(text, head, last, end):
                    passed = place + size
                    yield Hit(head, last, self.family, "card", CARD)

    def _longest(self, text: str, groups: Groups, end: int) -> int:
        """How many of `groups`, from the first on, are a card; 0 if none."""
        best, digits = 0, ""
        spelled = groups[0][1] - groups[0][0] < _FEWEST_IN_GROUP
        for size, (head, stop) in enumerate(groups, 1):
            digits += text[head:stop]
            if len(digits) > MOST_DIGITS:
                break
            if (
                len(digits) >= _FEWEST_CUED
                and luhn(digits)
                and ends_free(text, stop, end)
                and self._grouped(text, groups[:size], end)
                and (
                    (len(digits) >= FEWEST_DIGITS and in_network(digits))
                    or cued(text, groups[0][0])
                )
            ):
                best = size
            if not spelled and stop - head < _FEWEST_IN_GROUP:
                break  # only the last group may be this short
        return best

    def _grouped(self, text: str, groups: Groups, end: int) -> bool:
        """The groups look like one number, not like a row of a table."""
        sizes = [stop - head for head, stop in groups]
        first, last = groups[0][0], groups[-1][1]
        if "\n" in text[first:last]:
            return sizes[:-1] == [4] * (len(sizes) - 1)
        if min(sizes[:-1], default=4) >= _FEWEST_IN_GROUP:
            return len(sizes) <= _MOST_GROUPS
        if set(sizes) not in ({1}, {2}, {1, 2}) or sizes[-1] > sizes[0]:
            return False
        # Spelled digit by digit or in pairs: only if no further group follows or precedes.
        return not joined_before(text, first) and not joined_after(text, last, end)
