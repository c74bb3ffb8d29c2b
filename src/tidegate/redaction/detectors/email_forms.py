"""Is this an e-mail address in a form that few people use?

Lives here: quoted local parts, and letters of any script on either side of the `@`. Does not live
here: the usual form (email), addresses in words (email_words).
"""

import re

from tidegate.redaction.barriers import LATIN
from tidegate.redaction.detectors.email import DOMAIN, DOMAIN_RUN
from tidegate.redaction.hits import Anchors, DottedRun, Hit, Verdict
from tidegate.redaction.spans import EMAIL

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\[^\n]){1,64}"@')
_OPEN_QUOTE = re.compile(r'"(?:[^"\\\n]|\\[^\n]){0,64}(?:\\|"?)')
_DOMAIN_CHARS = re.compile(rf"[A-Za-z0-9{LATIN}.\-]{{0,256}}")
# What closes a quotation; an opening quote stands behind none of it.
_NOT_BEFORE_QUOTE = frozenset('.!?"\\')


class QuotedEmail:
    """`"jane doe"@example.com`, from the opening quote on."""

    family = "email_quoted"
    rank = 42
    anchors: Anchors = (('"', ""),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        place = stop - 1
        before = text[place - 1] if place > 0 else " "
        if text[place] != '"' or before.isalnum() or before in _NOT_BEFORE_QUOTE:
            return None
        return place if place >= start else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        local = _QUOTED.match(text, start, end)
        if local is None:
            undecided = _OPEN_QUOTE.match(text, start, end)
            going_on = undecided is not None and undecided.end() == end and not ended
            return Verdict.WAIT if going_on else Verdict.TEXT
        run = _DOMAIN_CHARS.match(text, local.end(), end)
        if run is not None and run.end() == end and not ended:
            return Verdict.WAIT
        domain = DOMAIN.match(text, local.end(), end)
        if domain is None:
            return Verdict.TEXT
        return Hit(start, domain.end(), self.family, "email_quoted", EMAIL, DOMAIN_RUN)


# Letters, digits and marks of every script but Latin. Planes beyond the first hold letters up to
# 1EFFF and ideographs from 20000 on; pictures stand between.
_OTHER = (
    "\u0370-\u1cff\u1f00-\u1fff\u2c00-\u2c5f\u2c80-\u2dff\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3040-\ua71f\ua800-\uab2f\uab70-\ud7ff\uf900-\ufaff\ufb13-\ufdff\ufe70-\ufefc"
    "\U00010000-\U0001d3ff\U0001e000-\U0001efff\U00020000-\U0003ffff"
)
_ANY_LOCAL = re.compile(
    rf"(?P<other>[{_OTHER}0-9._+\-]{{1,65}})|(?P<latin>[A-Za-z{LATIN}0-9._%+'~\-]{{1,65}})"
)
_ANY_DOMAIN = re.compile(rf"[A-Za-z0-9{LATIN}{_OTHER}.\-]{{0,256}}")
_LABEL = rf"[A-Za-z0-9{LATIN}{_OTHER}\-]++"
_SPELLED_DOMAIN = re.compile(
    rf"(?:{_LABEL}\.)+(?:[{_OTHER}]{{2,}}+|[A-Za-z{LATIN}]{{2,}}+|xn--[A-Za-z0-9\-]+)"
)
_HAS_OTHER = re.compile(rf"[{_OTHER}]")
_BEFORE = re.compile(rf"[A-Za-z{LATIN}0-9._%+'~\-]{{0,64}}@?[{_OTHER}]\Z")
_ANY_RUN = DottedRun(re.compile(rf"(?:[{_OTHER}\-]|\.(?=[{_OTHER}\-]))*"))


class InternationalEmail:
    """Addresses of RFC 6531. A local part is Latin or not, so that a sentence stays outside it.

    Where words are not separated (Chinese, Thai) the words right before the address, up to 64
    characters, are taken for a part of it.
    """

    family = "email_international"
    rank = 41
    anchors: Anchors = ((_OTHER, ""),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`: the segment ends in the first letter of another script."""
        found = _BEFORE.search(text, max(start, stop - 66), stop)
        if found is None:
            return None
        return found.start() if "@" in found[0] else stop - 1

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        local = _ANY_LOCAL.match(text, start, end)
        if local is None or local.end() - start > 64:
            return Verdict.TEXT
        at = local.end()
        if at == end:
            return Verdict.TEXT if ended else Verdict.WAIT
        if text[at] != "@":
            return Verdict.TEXT
        run = _ANY_DOMAIN.match(text, at + 1, end)
        if run is not None and run.end() == end and not ended:
            return Verdict.WAIT
        domain = _SPELLED_DOMAIN.match(text, at + 1, end)
        if domain is None or not _HAS_OTHER.search(text, start, domain.end()):
            return Verdict.TEXT
        rest = _ANY_RUN if _HAS_OTHER.match(text, domain.end() - 1) else DOMAIN_RUN
        return Hit(start, domain.end(), self.family, "email_international", EMAIL, rest)
