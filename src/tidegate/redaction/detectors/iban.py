"""Is this an international bank account number?

Lives here: how long the number of each country is, and how it is grouped. Does not live here: the
check digits (checksums).
"""

import re
from dataclasses import dataclass

from tidegate.redaction.checksums import iban
from tidegate.redaction.detectors.digits import WORD
from tidegate.redaction.hits import RANKS, Hit, Verdict
from tidegate.redaction.spans import IBAN

SIZES = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE", "BI"), 16),
    **dict.fromkeys(("DK", "FK", "FO", "FI", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "XK", "LT", "LU", "MN"), 20),
    **dict.fromkeys(("HR", "LV", "LI", "CH"), 21),
    **dict.fromkeys(("BH", "BG", "CR", "GE", "DE", "IE", "ME", "RS", "GB", "VA"), 22),
    **dict.fromkeys(("TL", "GI", "IQ", "IL", "OM", "SO", "AE"), 23),
    **dict.fromkeys(("AD", "CZ", "MD", "PK", "RO", "SA", "SK", "ES", "SE", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("DJ", "FR", "GR", "IT", "MC", "MR", "SM", "BF", "CI", "CM", "CG"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BJ", "MG", "ML", "SN", "TG"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA", "YE"), 29),
    **dict.fromkeys(("JO", "KW", "MU"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
"""How many characters the number of each country has."""
_FREE = "(?<![A-Za-z0-9])"
_IBAN_HEAD = re.compile(rf"{_FREE}([A-Za-z]{{2}})[0-9]{{2}}")
_GROUP = "[A-Za-z0-9]{4}"
# A number may go on in the next line.
_JOINT = r"(?:[ -]| ?\r?\n {0,4})?"
_OPEN = re.compile(rf"(?:{_GROUP}[ \r\n\-]{{0,7}})*+[A-Za-z0-9]{{0,3}}")
_LONGEST = 128
_NUMBERS = {
    size: re.compile(
        rf"(?:{_GROUP}{_JOINT}){{{(size - 1) // 4}}}[A-Za-z0-9]{{{(size - 1) % 4 + 1}}}"
    )
    for size in set(SIZES.values())
}


@dataclass(frozen=True, slots=True)
class IbanNumber:
    """Length of the country and remainder; joints only after every fourth character."""

    family = "iban"
    rank = RANKS["iban"]
    anchors = (("0-9", rf"[0-9](?<={_FREE}[A-Za-z]{{2}}[0-9]{{2}})"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`: a country code and two digits, touched by nothing before them."""
        found = _IBAN_HEAD.search(text, start, stop)
        while found is not None and found[1].upper() not in SIZES:
            found = _IBAN_HEAD.search(text, found.end(), stop)
        return found.start() if found else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        found = _NUMBERS[SIZES[text[start : start + 2].upper()]].match(text, start, end)
        if found is None or (found.end() == end and not ended):
            if ended or (found is None and end - start > _LONGEST):
                return Verdict.TEXT
            open_ = found is not None or _OPEN.fullmatch(text, start, end) is not None
            return Verdict.WAIT if open_ else Verdict.TEXT
        place = found.end()
        compact = "".join(filter(WORD.__contains__, found[0])).upper()
        if text[place : min(place + 1, end)] in WORD or not iban(compact):
            return Verdict.TEXT
        return Hit(start, place, self.family, "iban", IBAN)
