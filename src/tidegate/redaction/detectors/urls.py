"""Does this URL carry a user name and a password?

Lives here: what stands between `://` and `@`. Does not live here: secrets in a query (keywords),
addresses of people (email).
"""

import re
from dataclasses import dataclass

from tidegate.redaction.detectors.digits import WORD
from tidegate.redaction.hits import RANKS, CharRun, Hit, Verdict
from tidegate.redaction.spans import PLACEHOLDER, SECRET

_NOT_AUTHORITY = r"\s/?#\"'<>\\`"
_AUTHORITY = re.compile(rf"[^{_NOT_AUTHORITY}]*")
_AUTHORITY_MAX = 336
_USERINFO_RUN = CharRun(re.compile(rf"[^{_NOT_AUTHORITY}@]*"))
# What documentation writes in place of a name and a password.
_EXAMPLE = re.compile(
    r"(?:user|username|usr|login|name)?:(?:pass|password|passwd|passphrase|pwd|pw)"
    r"|(?=.*\[)[\[\]A-Za-z_\-]*:[\[\]A-Za-z_\-]*",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(rf"\$?\{{[^}}]*\}}|\$[A-Za-z_][A-Za-z0-9_]*|\*+|%s|{PLACEHOLDER.pattern}")


def stands_for_credentials(text: str, start: int, at: int) -> bool:
    """What a URL has there, in front of its `@`, is a template or what documentation writes."""
    colon = text.find(":", start, at)
    if colon < 0:
        return False
    return bool(_TEMPLATE.fullmatch(text, colon + 1, at) or _EXAMPLE.fullmatch(text, start, at))


@dataclass(frozen=True, slots=True)
class UrlCredentials:
    """`user:password@` at the head of a URL's authority."""

    family = "url_credentials"
    rank = RANKS["url_credentials"]
    anchors = (("/", r"(?<=[A-Za-z0-9]://)"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        scheme = text[stop - 4 : stop] if stop >= 4 and stop > start else ""
        return stop if scheme[1:] == "://" and scheme[0] in WORD else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        edge = min(end, start + _AUTHORITY_MAX)
        found = _AUTHORITY.match(text, start, edge)
        stop = found.end() if found else start
        if stop == end and not ended and stop < start + _AUTHORITY_MAX:
            return Verdict.WAIT
        at = text.rfind("@", start, stop)
        if at < 0:
            # No end of the authority in sight, yet already longer than any host and port.
            if stop == start + _AUTHORITY_MAX and 0 <= text.find(":", start, stop) < stop - 16:
                return Hit(start, stop, self.family, "url_credentials", SECRET, _USERINFO_RUN)
            return Verdict.TEXT
        colon = text.find(":", start, at)
        if colon < 0 or colon + 1 == at or stands_for_credentials(text, start, at):
            return Verdict.TEXT
        return Hit(start, at, self.family, "url_credentials", SECRET, sealed=True)
