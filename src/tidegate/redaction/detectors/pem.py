"""Does a private key in armor begin here, and where does it end?

Lives here: PEM and PGP blocks of private keys. Does not live here: keys of one line (keys).
"""

import re
from dataclasses import dataclass

from tidegate.redaction.hits import RANKS, Hit, Verdict
from tidegate.redaction.spans import SECRET

_PEM_OPENING = "-----BEGIN "
_PEM_LABEL = re.compile(r"-----BEGIN [A-Z0-9 ]{0,48}-{0,5}")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,48}-----")
_PEM_END_MAX = 64


@dataclass(frozen=True, slots=True)
class PemBody:
    """A private key goes on to its END line, or to the end of the text if that never comes."""

    exact: bool = True

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """See `Run`."""
        found = _PEM_END.search(text, start)
        if found:
            return found.end(), True
        return (len(text), True) if final else (max(start, len(text) - _PEM_END_MAX), False)


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """`-----BEGIN ... PRIVATE KEY-----`, whatever follows."""

    family = "private_key"
    rank = RANKS["private_key"]
    anchors = ((r"\-", "BEGIN "),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        place = stop - len(_PEM_OPENING)
        return place if place >= start and text.startswith(_PEM_OPENING, place) else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        found = _PEM_LABEL.match(text, start, end)
        header = found[0] if found else ""
        stop = start + len(header)
        if not header.endswith("-----") or len(header) <= len(_PEM_OPENING):
            return Verdict.WAIT if stop == end and not ended else Verdict.TEXT
        label = header[len(_PEM_OPENING) : -5]
        if label.endswith(("PRIVATE KEY", "PRIVATE KEY BLOCK")):
            return Hit(start, stop, self.family, "private_key", SECRET, PemBody())
        return Verdict.TEXT
