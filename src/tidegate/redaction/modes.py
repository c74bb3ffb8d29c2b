"""Does the text after an opening such as `password:` or `https://` turn out to be a secret?

Lives here: the openings and, for each, the decision about the text that follows. A decision needs
a bounded view and is final: more text never changes it. Does not live here: the walk that finds
openings and carries decisions out (stream).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from tidegate.redaction.hits import CharRun, Hit
from tidegate.redaction.spans import IBAN, SECRET


class Verdict(Enum):
    """What a mode says when it has no hit."""

    WAIT = "the text so far decides nothing"
    TEXT = "this is ordinary text"


class Mode(Protocol):
    """An opening has been seen; `decide` judges what follows."""

    @property
    def family(self) -> str:
        """The name in the configuration."""

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """Judge `text[start:end]`; never WAIT if `ended`, which means no more will be visible."""


Find = Callable[[str, int, int], list[Hit]]


# ---- scheme://user:password@host --------------------------------------------------------------

_NOT_AUTHORITY = r"\s/?#\"'<>\\`"
_AUTHORITY = re.compile(rf"[^{_NOT_AUTHORITY}]*")
_AUTHORITY_MAX = 336
_USERINFO_RUN = CharRun(re.compile(rf"[^{_NOT_AUTHORITY}@]*"))
_TEMPLATE = re.compile(r"\$?\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\*+|%s")


@dataclass(frozen=True, slots=True)
class UrlCredentials:
    """`user:password@` at the head of a URL's authority."""

    family: str = "url_credentials"

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `Mode`."""
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
        return Hit(start, at, self.family, "url_credentials", SECRET)


# ---- password: value, Authorization: Scheme value ---------------------------------------------

_STRONG = r"passw(?:or)?d|passphrase|passcode|pwd"
# A page token is a place in a list, not a secret.
_NO_PLACE = "".join(rf"(?<!{word})(?<!{word}[_\- ])" for word in ("page", "next", "sync"))
_WEAK = (
    rf"secret|{_NO_PLACE}token"
    r"|(?:api|access|secret|private|account|encryption|signing|master|auth)[_\- ]?key"
)
_AUTHORIZATION = r"authorization"
_KEYWORD = re.compile(
    rf"(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK})|(?P<auth>{_AUTHORIZATION}))"
    r"\\?[\"']?[ \t]{0,2}[:=]$",
    re.IGNORECASE | re.ASCII,
)
KEYWORD_REACH = 48
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


@dataclass(frozen=True, slots=True)
class KeywordValue:
    """The value after a keyword; typed detectors win where they explain all of it."""

    family: str
    strong: bool
    anything: bool
    find: Find

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `Mode`."""
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
            return self._quoted(text, head, edge, whole=whole)
        word = _WORD.match(text, head, edge)
        stop = word.end() if word else head
        if stop == edge and not whole:
            return Verdict.WAIT
        if stop == edge and stop - head >= _VALUE_MAX // 2:
            hit = self._judge(text, head, stop, quoted=False)
            return replace(hit, run=_WORD_RUN) if isinstance(hit, Hit) else hit
        return self._word(text, head, stop, schemed=scheme is not None)

    def _quoted(self, text: str, head: int, edge: int, *, whole: bool) -> Hit | Verdict:
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
        return self._judge(text, head, close, quoted=True)

    def _after_scheme(self, text: str, head: int, stop: int) -> Hit | Verdict:
        if head == stop or _UNLIKELY.match(text, head, stop):
            return Verdict.TEXT
        return Hit(head, stop, self.family, "authorization", SECRET)

    def _word(self, text: str, head: int, stop: int, *, schemed: bool) -> Hit | Verdict:
        value = text[head:stop]
        following = _NEXT_FIELD.search(value)
        if following:
            value = value[: following.start()]
        value = value.rstrip(_TRAILING)
        stop = head + len(value)
        if schemed:
            return self._after_scheme(text, head, stop)
        return self._judge(text, head, stop, quoted=False)

    def _judge(self, text: str, head: int, stop: int, *, quoted: bool) -> Hit | Verdict:
        value = text[head:stop]
        if not looks_secret(value, strong=self.strong, quoted=quoted, anything=self.anything):
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


def opens_iban(text: str, start: int, end: int) -> bool:
    """A country code and two check digits stand at `start`, and nothing touches them before."""
    found = _IBAN_HEAD.match(text, start, end)
    return found is not None and found[1].upper() in _IBAN_SIZES


def iban_checks(compact: str) -> bool:
    """The remainder of ISO 13616 is right. `compact` is upper case without spaces."""
    number = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
    return int(number) % 97 == 1


@dataclass(frozen=True, slots=True)
class IbanNumber:
    """Length of the country and remainder; spaces or hyphens only after every fourth character."""

    family: str = "iban"

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `Mode`."""
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

PEM_OPENING = "-----BEGIN "
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

    family: str = "private_key"

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `Mode`."""
        found = _PEM_LABEL.match(text, start, end)
        header = found[0] if found else ""
        stop = start + len(header)
        if not header.endswith("-----") or len(header) <= len(PEM_OPENING):
            return Verdict.WAIT if stop == end and not ended else Verdict.TEXT
        label = header[len(PEM_OPENING) : -5]
        if label.endswith(("PRIVATE KEY", "PRIVATE KEY BLOCK")):
            return Hit(start, stop, self.family, "private_key", SECRET, PemBody())
        return Verdict.TEXT


@dataclass(frozen=True, slots=True)
class Openings:
    """The modes of one policy; None where the policy has switched one off."""

    url: UrlCredentials | None
    strong: KeywordValue | None
    weak: KeywordValue | None
    auth: KeywordValue | None
    iban: IbanNumber | None
    pem: PrivateKey | None

    def before(self, text: str, stop: int) -> Mode | None:
        """The mode that the character before `stop` opens, if any."""
        last = text[stop - 1]
        if last == "/":
            scheme = text[stop - 4 : stop] if stop >= 4 else ""
            return self.url if scheme[1:] == "://" and scheme[0] in _WORD_CHARS else None
        if last not in ":=":
            return None
        found = _KEYWORD.search(text, max(0, stop - KEYWORD_REACH), stop)
        if found is None:
            return None
        if found["strong"]:
            return self.strong
        return self.weak if found["weak"] else self.auth
