"""Is this a telephone number?

Lives here: the search for numbers that begin with `+` or `00`, that are written the way a country
writes them, or that stand beside a word such as "phone". Does not live here: the ways of writing
(phone_table).
"""

import re
from collections.abc import Sequence

from tidegate.redaction.detectors.digits import DIGITS, WORD
from tidegate.redaction.detectors.phone_table import CODES, PLANS
from tidegate.redaction.hits import Hit, Verdict
from tidegate.redaction.spans import PHONE

_LONGEST = 48
_TAIL = 20
_BINARY = frozenset("01")
_MOST_DIGITS = 15
# The first digits of a number, or a parenthesis that may open one.
_START = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9][ :])"
    r"(?:\+(?:[0-9]|\Z)|(?<!\+)(?<![A-Za-z0-9][_.%@~\-])(?:[0-9]|(?<![_\])])\(\Z))"
)
_GROUP = r"(?:\(\+?[0-9]{1,5}\)|[0-9]{1,15})"
_NUMBER = re.compile(rf"\+?{_GROUP}(?: ?/ ?[0-9]{{1,15}}|[ .\-]?{_GROUP}){{0,9}}")
# The beginning of a number, and what may stand between two of its groups.
_BEGINS = re.compile(r"\+?(?:\(\+?[0-9]{0,5})?")
_GOES_ON = re.compile(r" ?/? ?|[ .\-]?\([0-9]{0,5}|[ .\-]")
_EXTENSION = re.compile(
    r",? ?(?:ext\.?|extension|x) ?:? ?[0-9]{1,6}(?![0-9])| ?#[0-9]{1,6}(?![0-9])", re.IGNORECASE
)
_AFTER = re.compile(r"[ \-]{1,2}\(?(?:office|fax|mobile|cell|desk|direct)\b", re.IGNORECASE)
# `300-400-5000 units` is a count of things.
_COUNT_OF = re.compile(
    r" (?:units?|pieces?|pcs|items?|rows?|records?|lines?|bytes|tokens?|users?|points?|miles"
    r"|km|kg|lbs?|usd|eur|euros?|dollars?)\b",
    re.IGNORECASE,
)
# What may still become an extension or such a word.
_UNDECIDED = re.compile(r"[ ,\-.]{0,3}\(?[A-Za-z#]{0,10}\.?[ :]{0,2}[0-9]{0,6}")
_CUE = re.compile(
    r"(?i:\b(?:tele(?:phone|fon|fono|fax)|phones?|tel|fon|mobile|mobil|handy|cell(?:phone)?|fax"
    r"|desk|landline|hotline|helpline|whatsapp|sms|rufnummer|t.l.phone|portable|m.vil|celular)\b"
    r"(?:[^0-9\n]{0,24}|[^0-9\n]{0,8}:[ \t]*\n[ \t]*)"
    r"|\b(?:call|dial|ring|reach|text|answer|contact)(?:s|ed|ing)?"
    r"(?:(?: [a-z']{1,12}){0,3} (?:at|on|under|via))?[ :]{0,2}"
    r"|\b(?:messages?|texts?) (?:to|from|at) |\bregistered (?:number |phone |mobile )?)\Z"
)
_CUE_REACH = 64
# Dates, ZIP+4, social security numbers, addresses in a network, decimals, years of a volume.
_SOMETHING_ELSE = re.compile(
    r"(?:[0-3]?[0-9][.\-/ ][0-3]?[0-9][.\-/ ](?:19|20)[0-9]{2}"
    r"|(?:19|20)[0-9]{2}[.\-/ ][01]?[0-9][.\-/ ][0-3]?[0-9])(?![0-9])"
    r"|[0-9]{5}[ \-][0-9]{4}$|[0-9]{3}[ \-][0-9]{2}[ \-][0-9]{4}$|[0-9]{1,3}(?:\.[0-9]{1,3}){3}$"
    r"|\+?[0-9]+\.[0-9]{1,2}$|\([0-9]+\) ?(?:19|20)[0-9]{2}-(?:19|20)[0-9]{2}$"
)
_INTERNATIONAL = re.compile(rf"\(?\+\(?(?:{CODES})|\(?00[ .\-]?(?:{CODES})")


class PhoneNumbers:
    """International numbers, national ones of `regions` (all if empty), and any beside a cue.

    A country that is named is also searched for in writings that are not telling by themselves.
    """

    family = "phone"
    rank = 80
    anchors = (
        ("(", r"(?<![A-Za-z0-9_\])]\()"),
        (r"\+", "[0-9(]"),
        ("0-9", r"(?:[ .\-]?[0-9]){5}"),
        ("/", r"(?<=0[0-9]{2}/)|(?<=0[0-9]{3}/)|(?<=0[0-9]{4}/)"),
    )

    def __init__(self, regions: Sequence[str] = ()) -> None:
        plans = [plan for plan in PLANS if not regions or plan.country in regions]
        writings = [plan.grouped for plan in plans]
        if regions:
            writings += [plan.plain for plan in plans]
        self._national = [re.compile(writing) for writing in dict.fromkeys(writings)]

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        found = _START.search(text, start, stop)
        return found.start() if found else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        edge = min(end, start + _LONGEST)
        found = _NUMBER.match(text, start, edge)
        stop = found.end() if found else start
        if not ended and self._goes_on(text, start, stop, end):
            return Verdict.WAIT
        digits = sum(char in DIGITS for char in text[start:stop])
        if not 6 <= digits <= _MOST_DIGITS + 2 or stop == start + _LONGEST:
            return Verdict.TEXT
        tail = text[stop : min(end, stop + _TAIL)]
        if not ended and len(tail) < _TAIL and _UNDECIDED.fullmatch(tail):
            return Verdict.WAIT
        rule = self._rule(text, start, stop, tail)
        if rule is None:
            return Verdict.TEXT
        extension = _EXTENSION.match(tail)
        return Hit(start, stop + (extension.end() if extension else 0), self.family, rule, PHONE)

    def _goes_on(self, text: str, start: int, stop: int, end: int) -> bool:
        """More text may lengthen the number that `text[start:stop]` is so far."""
        if stop == start:
            return _BEGINS.fullmatch(text, start, end) is not None
        return stop == end or _GOES_ON.fullmatch(text, stop, end) is not None

    def _rule(self, text: str, start: int, stop: int, tail: str) -> str | None:
        written = text[start:stop]
        cued = _CUE.search(text, max(0, start - _CUE_REACH), start) or _AFTER.match(tail)
        beside = cued or _EXTENSION.match(tail)
        touched = tail[:1] in WORD or (tail[:1] in "-." and tail[1:2] in WORD)
        if not beside and (touched or _COUNT_OF.match(tail)):
            return None
        if written.count("(") != written.count(")"):
            return None
        if _SOMETHING_ELSE.match(written):
            return None
        digits = sum(char in DIGITS for char in written)
        if set(written) & DIGITS <= _BINARY:
            return None
        grouped = digits < len(written)
        if digits >= 8:
            if _INTERNATIONAL.match(written) and (written[0] in "+(" or cued or grouped):
                return "phone_international"
            if any(each.fullmatch(written) for each in self._national):
                return "phone_national"
        if (cued and digits >= 7) or (beside and grouped):
            return "phone_context"
        return None
