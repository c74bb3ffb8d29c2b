"""Is what follows a word such as `password:` or `Authorization:` a secret?

Lives here: the words, and the judgement of the value behind them. Does not live here: values that
show by themselves what they are (keys, email and the others).
"""

import re
from dataclasses import dataclass, replace

from tidegate.redaction.hits import RANKS, Anchors, CharRun, Find, Hit, Verdict
from tidegate.redaction.spans import SECRET

_STRONG = r"passw(?:or)?d|passphrase|passcode|pwd"
# A page token is a place in a list, not a secret.
_NO_PLACE = "".join(rf"(?<!{word})(?<!{word}[_\- ])" for word in ("page", "next", "sync"))
_WEAK = (
    rf"secret|{_NO_PLACE}token"
    r"|(?:api|access|secret|private|account|encryption|signing|master|auth)[_\- ]?key"
)
# What may stand between the word and its sign: quotes, emphasis, the `[None]` of a prompt.
_VALUE_FOLLOWS = r"\\?[\"'*`]{0,3}(?: \[[^\]\n]{0,24}\])?[ \t]{0,2}[:=]$"
# From the end backwards, because the word stands close before it.
_KEYWORD = re.compile(
    rf"(?s:.*)(?:(?P<strong>{_STRONG})|{_WEAK}){_VALUE_FOLLOWS}", re.IGNORECASE | re.ASCII
)
_AUTHORIZATION = re.compile(rf"(?s:.*)authorization{_VALUE_FOLLOWS}", re.IGNORECASE | re.ASCII)
KEYWORD_REACH = 48
_BETWEEN = r"[\"' \t\\*`]"


def _ends_before(between: str) -> str:
    """A keyword ends before `between` and the sign: its last letter first, which is cheap."""
    return (
        rf"(?<=[dDeEtTnNyY]{between}.)(?:(?<=(?i:pwd|key){between}.)"
        rf"|(?<=(?i:word|sswd|rase|code|cret|oken|tion){between}.))"
    )


_KEYWORD_ANCHORS = (
    (
        ":=",
        rf"(?:{_ends_before('')}|(?<=[\"' \t\\*`\]].)(?:(?<=\].)|{_ends_before(_BETWEEN)}"
        + "".join(f"|{_ends_before(f'{_BETWEEN}{{{size}}}')}" for size in (2, 3, 4))
        + "))",
    ),
)
_GAP = re.compile(r"(?:\*{1,3}|[=>]{0,2})[ \t]{0,8}(?:\*{2,3}(?=[^*\s]))?")
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
# Templates, paths, stand-ins. A hash of a password (`$2b$...`) is none of them, nor is a secret in
# base64 that begins with a slash.
_UNLIKELY = re.compile(
    r"\$(?![0-9a-z]{1,12}\$)|[%{<\[*(]|\.\.|https?:|[.~]|/(?!(?:[A-Za-z0-9+/]{39}|[A-Za-z0-9+/]{20,}={1,2})$)|x{3}|your|example$|none$|null$|true$|false$|undefined$",
    re.IGNORECASE,
)
# `private_key: Ed25519PrivateKey` names a type. Passwords have no types.
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(?:Key|Token|Secret|Types?|Str|Bytes|Dict|Config)")
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
    if not quoted and (
        _DOTTED_NAME.fullmatch(value) or (not strong and _TYPE_NAME.fullmatch(value))
    ):
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
        return self.keyword.match(text, max(0, stop - KEYWORD_REACH), stop)

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
        if "*" in text[start:head]:  # emphasis around the value or around the whole line
            value = value.rstrip(f"*{_TRAILING}")
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


def keyword_values(*, anything: bool, find: Find) -> KeywordValue:
    """`password: value` and the like; `anything` is the strict reading."""
    return KeywordValue("keyword", _KEYWORD, anything, find)


def authorization_values(*, anything: bool, find: Find) -> KeywordValue:
    """`Authorization: Scheme value`."""
    return KeywordValue("authorization", _AUTHORIZATION, anything, find)
