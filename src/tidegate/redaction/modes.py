"""Does the text after an opening such as `password:` or `https://` turn out to be a secret?

Lives here: the openings and, for each, the decision about the text that follows (see
`SpanningDetector`). Does not live here: the walk that finds openings and carries decisions out
(stream).
"""

import re
from dataclasses import dataclass, replace

from tidegate.redaction.hits import RANKS, Anchors, CharRun, Find, Hit, Verdict
from tidegate.redaction.spans import IBAN, PLACEHOLDER, SECRET

# ---- scheme://user:password@host --------------------------------------------------------------

_NOT_AUTHORITY = r"\s/?#\"'<>\\`"
_AUTHORITY = re.compile(rf"[^{_NOT_AUTHORITY}]*")
_AUTHORITY_MAX = 336
_USERINFO_RUN = CharRun(re.compile(rf"[^{_NOT_AUTHORITY}@]*"))
_TEMPLATE = re.compile(rf"\$?\{{[^}}]*\}}|\$[A-Za-z_][A-Za-z0-9_]*|\*+|%s|{PLACEHOLDER.pattern}")


@dataclass(frozen=True, slots=True)
class UrlCredentials:
    """`user:password@` at the head of a URL's authority."""

    family = "url_credentials"
    rank = RANKS["url_credentials"]
    anchors = (("/", r"(?<=[A-Za-z0-9]://)"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        scheme = text[stop - 4 : stop] if stop >= 4 and stop > start else ""
        return stop if scheme[1:] == "://" and scheme[0] in _WORD_CHARS else None

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
        if colon < 0 or colon + 1 == at or _TEMPLATE.fullmatch(text, colon + 1, at):
            return Verdict.TEXT
        return Hit(start, at, self.family, "url_credentials", SECRET, sealed=True)


# ---- password: value, Authorization: Scheme value ---------------------------------------------

_STRONG = r"passw(?:or)?d|passphrase|passcode|pwd"
# A page token is a place in a list, not a secret.
_NO_PLACE = "".join(rf"(?<!{word})(?<!{word}[_\- ])" for word in ("page", "next", "sync"))
_WEAK = (
    rf"secret|{_NO_PLACE}token"
    r"|(?:api|access|secret|private|account|encryption|signing|master|auth)[_\- ]?key"
)
_VALUE_FOLLOWS = r"\\?[\"']?[ \t]{0,2}[:=]$"
_KEYWORD = re.compile(
    rf"(?:(?P<strong>{_STRONG})|{_WEAK}){_VALUE_FOLLOWS}", re.IGNORECASE | re.ASCII
)
_AUTHORIZATION = re.compile(rf"authorization{_VALUE_FOLLOWS}", re.IGNORECASE | re.ASCII)
KEYWORD_REACH = 48
# A keyword ends in one of these pairs before `:` or `=`.
_KEYWORD_END = r"(?i:rd|wd|se|de|et|en|ey|on)"
_KEYWORD_ANCHORS = (
    (
        ":=",
        rf"(?:(?<={_KEYWORD_END}.)|(?<={_KEYWORD_END}[\"' \t\\].)"
        rf"|(?<={_KEYWORD_END}[\"' \t\\]{{2}}.)|(?<={_KEYWORD_END}[\"' \t\\]{{3}}.)"
        rf"|(?<={_KEYWORD_END}[\"' \t\\]{{4}}.))",
    ),
)
_GAP = re.compile(r"[=>]{0,2}[ \t]{0,8}")
_SCHEME = re.compile(
    r"(?:bearer|basic|token|digest|apikey|api-key|negotiate|aws4-hmac-sha256)[ \t]{1,4}",
    re.IGNORECASE | re.ASCII,
)
_SCHEME_PART = re.compile(r"[A-Za-z0-9\-]{1,16}[ \t]{0,4}")
_WORD = re.compile(r"[^\s\"'`<>]*")
_WORD_RUN = CharRun(_WORD)
_VALUE_MAX = 256
# `&next=` in a query, `,next:` in an inline mapping: the value ended before it.
_NEXT_FIELD = re.compile(r"[,;&][A-Za-z_][A-Za-z0-9_.\-]{0,31}[=:]")
_TRAILING = ".,;:)]}"
_UNLIKELY = re.compile(
    r"[$%{<\[*(]|\.\.|https?:|[./~]|x{3}|your|example$|none$|null$|true$|false$|undefined$",
    re.IGNORECASE,
)
_DOTTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_SYMBOL = re.compile(r"[!@#$%^&*?~+=|]")


def looks_secret(value: str, *, strong: bool, quoted: bool, anything: bool) -> bool:
    """The word after a keyword is more likely a secret than a word, a name or a template.

    `strong` keywords ("password") need six characters, others eight; `anything` is the strict
    reading, in which four characters of any sort are enough.
    """
    if _UNLIKELY.match(value) or len(set(value)) < 3:
        return False
    if anything:
        return len(value) >= 4
    if len(value) < (6 if strong else 8) or any(char in value for char in "([{"):
        return False
    if not quoted and _DOTTED_NAME.fullmatch(value):
        return False
    digit, letter = _DIGIT.search(value) is not None, _LETTER.search(value) is not None
    if digit and (letter or strong):
        return True
    return _SYMBOL.search(value) is not None and (digit or letter)


def _one_field(value: str) -> str:
    """`value` up to the next field of a query or a mapping, less the signs at its end."""
    following = _NEXT_FIELD.search(value)
    if following:
        value = value[: following.start()]
    return value.rstrip(_TRAILING)


@dataclass(frozen=True, slots=True)
class KeywordValue:
    """The value after a keyword; typed detectors win where they explain all of it."""

    family: str
    keyword: re.Pattern[str]
    anything: bool
    find: Find
    anchors: Anchors = _KEYWORD_ANCHORS

    @property
    def rank(self) -> int:
        """See `SpanningDetector`."""
        return RANKS[self.family]

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        if stop == start or text[stop - 1] not in ":=" or self._keyword(text, stop) is None:
            return None
        return stop

    def _keyword(self, text: str, stop: int) -> re.Match[str] | None:
        return self.keyword.search(text, max(0, stop - KEYWORD_REACH), stop)

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        found = self._keyword(text, start)
        strong = found is not None and bool(found.groupdict().get("strong"))
        verdict = self._value(text, start, end, ended=ended, strong=strong)
        return verdict if isinstance(verdict, Verdict) else replace(verdict, sealed=True)

    def _value(
        self, text: str, start: int, end: int, *, ended: bool, strong: bool
    ) -> Hit | Verdict:
        gap = _GAP.match(text, start, end)
        head = gap.end() if gap else start
        if head == end:
            return Verdict.TEXT if ended else Verdict.WAIT
        scheme = None
        if self.family == "authorization":
            scheme = _SCHEME.match(text, head, end)
            part = _SCHEME_PART.match(text, head, end)
            if not ended and part and part.end() == end:
                return Verdict.WAIT
            head = scheme.end() if scheme else head
            if head == end:
                return Verdict.TEXT
        edge = min(end, start + _VALUE_MAX)
        whole = ended or end >= start + _VALUE_MAX
        if text[head] in "\"'`":
            return self._quoted(text, head, edge, whole=whole, strong=strong)
        word = _WORD.match(text, head, edge)
        stop = word.end() if word else head
        if stop == edge and not whole:
            return Verdict.WAIT
        if stop == edge and stop - head >= _VALUE_MAX // 2:
            hit = self._judge(text, head, stop, strong=strong)
            return replace(hit, run=_WORD_RUN) if isinstance(hit, Hit) else hit
        value = _one_field(text[head:stop])
        stop = head + len(value)
        if scheme is not None:
            return self._after_scheme(text, head, stop)
        return self._judge(text, head, stop, strong=strong)

    def _quoted(
        self, text: str, head: int, edge: int, *, whole: bool, strong: bool
    ) -> Hit | Verdict:
        close = text.find(text[head], head + 1, edge)
        line = text.find("\n", head + 1, edge)
        if close < 0 and line < 0 and not whole:
            return Verdict.WAIT
        if close < 0 or 0 <= line < close:
            return Verdict.TEXT
        head += 1
        scheme = _SCHEME.match(text, head, close) if self.family == "authorization" else None
        if scheme is not None:
            return self._after_scheme(text, scheme.end(), close)
        return self._judge(text, head, close, strong=strong, quoted=True)

    def _after_scheme(self, text: str, head: int, stop: int) -> Hit | Verdict:
        if head == stop or _UNLIKELY.match(text, head, stop):
            return Verdict.TEXT
        return Hit(head, stop, self.family, "authorization", SECRET)

    def _judge(
        self, text: str, head: int, stop: int, *, strong: bool, quoted: bool = False
    ) -> Hit | Verdict:
        value = text[head:stop]
        if not looks_secret(value, strong=strong, quoted=quoted, anything=self.anything):
            return Verdict.TEXT
        typed = self.find(text, head, stop)
        if typed and (typed[0].start, typed[0].end) == (head, stop):
            return Verdict.TEXT
        return Hit(head, stop, self.family, f"{self.family}_value", SECRET)


# ---- IBAN -------------------------------------------------------------------------------------

_IBAN_SIZES = {
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
_IBAN_HEAD = re.compile(r"(?<![A-Za-z0-9._%+'@~\-])([A-Za-z]{2})[0-9]{2}")
_WORD_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def iban_checks(compact: str) -> bool:
    """The remainder of ISO 13616 is right. `compact` is upper case without spaces."""
    number = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
    return int(number) % 97 == 1


@dataclass(frozen=True, slots=True)
class IbanNumber:
    """Length of the country and remainder; spaces or hyphens only after every fourth character."""

    family = "iban"
    rank = RANKS["iban"]
    anchors = (("0-9", r"[0-9](?<=[A-Za-z]{2}[0-9]{2})"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`: a country code and two digits, with nothing before them."""
        found = _IBAN_HEAD.match(text, start, stop)
        return start if found is not None and found[1].upper() in _IBAN_SIZES else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        size = _IBAN_SIZES[text[start : start + 2].upper()]
        compact, place = "", start
        while place < end and len(compact) < size:
            char = text[place]
            joiner = char in " -" and len(compact) % 4 == 0 and text[place - 1] in _WORD_CHARS
            if char in _WORD_CHARS:
                compact += char.upper()
            elif not joiner:
                return Verdict.TEXT
            place += 1
        if len(compact) < size or (place == end and not ended):
            return Verdict.TEXT if ended else Verdict.WAIT
        if text[place : min(place + 1, end)] in _WORD_CHARS or not iban_checks(compact):
            return Verdict.TEXT
        return Hit(start, place, self.family, "iban", IBAN)


# ---- PEM --------------------------------------------------------------------------------------

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


def keyword_values(*, anything: bool, find: Find) -> KeywordValue:
    """`password: value` and the like; `anything` is the strict reading."""
    return KeywordValue("keyword", _KEYWORD, anything, find)


def authorization_values(*, anything: bool, find: Find) -> KeywordValue:
    """`Authorization: Scheme value`."""
    return KeywordValue("authorization", _AUTHORIZATION, anything, find)
