"""Is this a social security number of the United States?

Lives here: `123-45-6789`, the same with spaces, with dots or bare behind a cue, and the ranges that
were never issued. Does not live here: the taxpayer numbers that look alike (national).

The numbers that were published as specimens (078-05-1120, 219-09-9999) are masked: they were
issued, and whoever reads them in an answer cannot tell them from others. `allow` lets them pass.
"""

import re
from collections.abc import Iterator

from tidegate.redaction.detectors.digits import (
    DIGITS,
    NINE_DIGITS,
    Groups,
    chains,
    ends_free,
    starts_free,
)
from tidegate.redaction.hits import RANKS, Hit
from tidegate.redaction.spans import SSN

_CUE = re.compile(r"(?i:\bssn\b|social[ \-]security)[^0-9\n]{0,32}\n?\Z")
_CUE_REACH = 56


def issued_ssn(area: str, group: str, serial: str) -> bool:
    """The Social Security Administration may have issued this number."""
    return (
        area not in {"000", "666"} and not area.startswith("9") and group != "00"
    ) and serial != "0000"


class SocialSecurity:
    """Three, two and four digits, or nine after a cue such as "SSN"."""

    family = "ssn"
    rank = RANKS["ssn"]
    shortest = 9
    reach = 16
    anchors = (NINE_DIGITS,)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for groups in chains(text, start, end):
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
        if joiners.strip(" -") and not (joiners == ".." and _cued(text, first)):
            return False
        # A hyphen that goes on to more digits makes it part of a longer number.
        before, after = text[max(0, first - 2) : first], text[stop : min(stop + 2, end)]
        if before[1:] == "-" and before[:1] in DIGITS:
            return False
        if after[:1] == "-" and after[1:] in DIGITS:
            return False
        return (
            starts_free(text, first)
            and ends_free(text, stop, end)
            and issued_ssn(text[first:first_stop], text[second:second_stop], text[third:stop])
        )

    def _cued(self, text: str, head: int, stop: int, end: int) -> bool:
        number = text[head:stop]
        return (
            starts_free(text, head)
            and ends_free(text, stop, end)
            and issued_ssn(number[:3], number[3:5], number[5:])
            and _cued(text, head)
        )


def _cued(text: str, head: int) -> bool:
    return _CUE.search(text, max(0, head - _CUE_REACH), head) is not None
