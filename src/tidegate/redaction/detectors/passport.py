"""Is this the number of a passport?

Lives here: numbers that follow a word for a passport. Does not live here: other documents
(national). No passport number carries a check digit outside its machine-readable zone.
"""

import re
from collections.abc import Iterator

from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import PASSPORT

_CUE = re.compile(
    r"(?i:\b(?:passport|passeport|reisepass|pasaporte|passaporto|passaporte|paspoort|paszport)"
    r"(?![ \-](?:control|photos?|offices?)\b))"
    r"[^0-9\n]{0,32}\n?\Z"
)
_CUE_REACH = 56
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][_.\-])[A-Z0-9]{6,9}(?![A-Za-z0-9]|[_.\-][A-Za-z0-9])",
    re.ASCII,
)


class Passports:
    """Six to nine capitals and digits, at least four of them digits, behind such a word."""

    family = "passport"
    rank = 72
    shortest = 6
    anchors = (("0-9", "[A-Za-z0-9]{3}"),)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in _NUMBER.finditer(text, start, end):
            head = found.start()
            digits = sum(char.isdigit() for char in found[0])
            if digits >= 4 and _CUE.search(text, max(0, head - _CUE_REACH), head):
                yield Hit(head, found.end(), self.family, "passport", PASSPORT)
