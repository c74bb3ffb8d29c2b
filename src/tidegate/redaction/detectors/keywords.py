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
# Nor is the greatest number of tokens, or the one that ends a text for a model.
_NO_PLACE += "".join(rf"(?<!{word}[_\- ])" for word in ("max", "min", "eos", "bos", "pad", "unk"))
_WEAK = (
    rf"secret|{_NO_PLACE}token"
    r"|(?:api|access|secret|private|account|encryption|signing|master|auth)[_\- ]?key"
)
# What may stand between the word and its sign: quotes (of JSON in JSON, too), emphasis, the end of
# a subscript, the `[None]` of a prompt, spaces that align columns.
_VALUE_FOLLOWS = r"\\{0,3}[\"'*`]{0,3}(?:(?<=[\"'])\])?(?: \[[^\]\n]{0,24}\])?[ \t]{0,32}[:=]$"
# From the end backwards, because the word stands close before it; its first letter decides most.
_KEYWORD = re.compile(
    rf"(?s:.*)(?=[pstaem])(?P<word>(?P<strong>{_STRONG})|{_WEAK}){_VALUE_FOLLOWS}",
    re.IGNORECASE | re.ASCII,
)
_AUTHORIZATION = re.compile(
    rf"(?s:.*)(?=a)(?P<word>authorization){_VALUE_FOLLOWS}", re.IGNORECASE | re.ASCII
)
KEYWORD_REACH = 80
_BETWEEN = r"[\"' \t\\*`\]]"


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
        + r"|(?<=[ \t]{3}.)))",
    ),
)
# `Set("Authorization", "Bearer ...")`: no sign but a comma, which is too frequent for an anchor.
_CALL_ANCHORS = (("zZ", r"(?<=(?i:uthoriz))(?i:ation)[\"'`]"),)
_ARGUMENT = re.compile(r"authorization[\"'`],?$", re.IGNORECASE | re.ASCII)
_ARGUMENT_REACH = 16
_COMMA = re.compile(r"(?:(?<=,)|[ \t]{0,2},)[ \t\n]{0,16}")
_COMMA_OPEN = re.compile(r"[ \t]{0,2}(?:(?<=,),?|,)?[ \t\n]{0,16}[fFbBrRuU]{0,2}")
_GAP = re.compile(
    r"(?:\*{1,3}|[=>]{0,2})[ \t]{0,40}(?:!{1,2}(?:str|binary|unsafe)[ \t]{1,4})?"
    r"(?:\*{2,3}(?=[^*\s]))?"
)
# The value stands alone on the line below, behind the sign of a block in YAML or without one.
_NEXT_LINE = re.compile(r"(?:[|>][+\-]?[ \t]{0,4})?\r?\n[ \t]{0,24}(?=[^ \t\r\n])")
_NEXT_LINE_OPEN = re.compile(r"(?:[|>][+\-]?[ \t]{0,4})?\r?(?:\n[ \t]{0,24})?")
_REST_OF_LINE = re.compile(r"[ \t]{0,4}")
_QUOTE = re.compile(r"(?:[fFbBrRuU]{1,2}(?=[\"']))?(\\{0,3})([\"'`])")
_OWN_NAME = re.compile(r"(?<![A-Za-z0-9_])(?:self|this|cls)\.[A-Za-z0-9_]{0,24}\Z")
_OWN_REACH = 32
_QUOTE_OPEN = re.compile(r"[fFbBrRuU]{0,2}\\{0,3}")
_AFTER_QUOTE = frozenset("),;]}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
_CLOSES = {")": "(", "]": "[", "}": "{"}
# Templates, paths, stand-ins. A hash of a password (`$2b$...`) is none of them, nor is a secret in
# base64 that begins with a slash.
_UNLIKELY = re.compile(
    r"\$(?![0-9a-z]{1,12}\$)|[%{<\[*(]|\.\.|https?:|[.~]|/(?!(?:[A-Za-z0-9+/]{39}|[A-Za-z0-9+/]{20,}={1,2})$)|x{3}|your|example$|none$|null$|true$|false$|undefined$"
    # Tags of YAML that name a value or say how it is written.
    r"|!{1,2}(?:vault|secret|ref|sub|getatt|importvalue|env|env_var|reference|join|select|base64"
    r"|include|encrypted|str|binary|unsafe)$",
    re.IGNORECASE,
)
# `private_key: Ed25519PrivateKey` names a type. Passwords have no types.
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(?:Key|Token|Secret|Types?|Str|Bytes|Dict|Config)")
_DOTTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
# What a program calls is none, with at most one name between its parentheses.
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\((?:[A-Za-z_][A-Za-z0-9_.]*)?[,)]*")
# "Authorization: Basic authentication is used" is a sentence.
_ABOUT_SCHEMES = re.compile(
    r"(?:auth(?:entication|ori[sz]ation)?|access|tokens?|credentials?|schemes?|headers?"
    r"|is|are|or|and|for|with|in)[.,;:)]*",
    re.IGNORECASE,
)
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
    if not quoted and _CALL.fullmatch(value):
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
    bare = value.rstrip(_TRAILING)
    for sign in value[len(bare) :]:
        # A parenthesis that opens inside the value closes inside it.
        if bare.count(_CLOSES.get(sign, "")) <= bare.count(sign) or sign not in _CLOSES:
            break
        bare += sign
    return bare


def _closing(text: str, head: int, edge: int, *, quote: str, depth: int) -> int:
    """Where a value in quotes ends that begins at `head`, or -1.

    `depth` is the number of backslashes before the quote that opened it. More of them before a
    quote escape it, unless they are escaped themselves.
    """
    place = text.find(quote, head, edge)
    while place >= 0:
        bare = place
        while bare > head and text[bare - 1] == "\\":
            bare -= 1
        slashes = place - bare
        if slashes < depth or (slashes - depth) % (2 * depth + 2) == 0:
            return place - min(slashes, depth)
        place = text.find(quote, place + 1, edge)
    return -1


@dataclass(slots=True)
class _Look:
    """What one decision looks at: `text` up to `end`, a value up to `edge`.

    `whole`: no more text can lie between the two. `word`: where the word before the sign begins.
    """

    text: str
    end: int
    edge: int
    whole: bool
    strong: bool = False
    scheme: bool = False
    word: int = 0

    def of_a_member(self) -> bool:
        """The word names a member of an object, so that this is code."""
        place = self.word
        return _OWN_NAME.search(self.text, max(0, place - _OWN_REACH), place) is not None


def _going_on(verdict: Hit | Verdict) -> Hit | Verdict:
    """The value has no end in sight."""
    return replace(verdict, run=_WORD_RUN) if isinstance(verdict, Hit) else verdict


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
        if stop == start:
            return None
        if text[stop - 1] in ":=":
            return stop if self._keyword(text, stop) is not None else None
        if text[stop - 1] in "\"'`," and self.family == "authorization":
            return stop if _ARGUMENT.search(text, max(0, stop - _ARGUMENT_REACH), stop) else None
        return None

    def _keyword(self, text: str, stop: int) -> re.Match[str] | None:
        return self.keyword.match(text, max(0, stop - KEYWORD_REACH), stop)

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        look = _Look(text, end, min(end, start + _VALUE_MAX), ended or end >= start + _VALUE_MAX)
        if text[start - 1] not in ":=":
            verdict = self._argument(look, start, ended=ended)
        else:
            found = self._keyword(text, start)
            look.strong = found is not None and bool(found.groupdict().get("strong"))
            if found is not None:
                look.word = found.start("word")
            verdict = self._value(look, start, ended=ended)
        return verdict if isinstance(verdict, Verdict) else replace(verdict, sealed=True)

    def _argument(self, look: "_Look", start: int, *, ended: bool) -> Hit | Verdict:
        """The value is the next argument, if that is a string."""
        if not ended and _COMMA_OPEN.fullmatch(look.text, start, look.end):
            return Verdict.WAIT
        comma = _COMMA.match(look.text, start, look.edge)
        quote = _QUOTE.match(look.text, comma.end(), look.edge) if comma else None
        return self._quoted(look, quote) if quote else Verdict.TEXT

    def _value(self, look: "_Look", start: int, *, ended: bool) -> Hit | Verdict:
        text, end = look.text, look.end
        gap = _GAP.match(text, start, end)
        head = gap.end() if gap else start
        if head == end:
            return Verdict.TEXT if ended else Verdict.WAIT
        if self.family == "authorization":
            part = _SCHEME_PART.match(text, head, end)
            if not ended and part and part.end() == end:
                return Verdict.WAIT
            scheme = _SCHEME.match(text, head, end)
            head = scheme.end() if scheme else head
            if head == end:
                return Verdict.TEXT
            look.scheme = scheme is not None
        elif text[head] in "|>\r\n":
            if not ended and _NEXT_LINE_OPEN.fullmatch(text, head, end):
                return Verdict.WAIT
            line = _NEXT_LINE.match(text, head, end)
            return self._below(look, line.end(), ended=ended) if line else Verdict.TEXT
        if not look.whole and _QUOTE_OPEN.fullmatch(text, head, end):
            return Verdict.WAIT
        quote = _QUOTE.match(text, head, look.edge)
        if quote is not None:
            return self._quoted(look, quote)
        return self._bare(look, head, emphasis="*" in text[start:head])

    def _below(self, look: "_Look", head: int, *, ended: bool) -> Hit | Verdict:
        """The value is the only word of a line of its own."""
        quote = _QUOTE.match(look.text, head, look.edge)
        if quote is not None:
            return self._quoted(look, quote)
        word = _WORD.match(look.text, head, look.edge)
        stop = word.end() if word else head
        if stop == look.edge:
            if not look.whole:
                return Verdict.WAIT
            return self._judge(look, head, stop) if stop == look.end and ended else Verdict.TEXT
        rest = _REST_OF_LINE.match(look.text, stop, look.end)
        after = rest.end() if rest else stop
        if after == look.end and not ended:
            return Verdict.WAIT
        if look.text[stop - 1] == ":" or look.text[after : look.end][:1] not in {"", "\r", "\n"}:
            return Verdict.TEXT
        return self._judge(look, head, stop)

    def _bare(self, look: "_Look", head: int, *, emphasis: bool) -> Hit | Verdict:
        """The value is the next word."""
        text, edge = look.text, look.edge
        word = _WORD.match(text, head, edge)
        stop = word.end() if word else head
        if stop == edge and not look.whole:
            return Verdict.WAIT
        if stop == edge and stop - head >= _VALUE_MAX // 2:
            return _going_on(self._judge(look, head, stop))
        value = _one_field(text[head:stop])
        if emphasis:  # around the value or around the whole line
            value = value.rstrip(f"*{_TRAILING}")
        stop = head + len(value)
        if look.scheme:
            return self._after_scheme(text, head, stop)
        return self._judge(look, head, stop)

    def _quoted(self, look: "_Look", quote: re.Match[str]) -> Hit | Verdict:
        """The value ends at the quote that closes it, or else at the end of its first word."""
        text, head = look.text, quote.end()
        line = text.find("\n", head, look.edge)
        edge = look.edge if line < 0 else line
        stop = _closing(text, head, edge, quote=quote[2], depth=len(quote[1]))
        if stop < 0 and line < 0 and not look.whole:
            return Verdict.WAIT
        closed = stop >= 0
        if self.family == "authorization":
            scheme = _SCHEME.match(text, head, stop if closed else edge)
            look.scheme = scheme is not None
            head = scheme.end() if scheme else head
        if not closed:
            word = _WORD.match(text, head, edge)
            stop = word.end() if word else head
            if text[head : head + 1] in _AFTER_QUOTE:
                return Verdict.TEXT  # this quote closes what began before the word
        if look.scheme:
            return self._after_scheme(text, head, stop)
        hit = self._judge(look, head, stop, quoted=True)
        if not closed and stop == look.edge and stop - head >= _VALUE_MAX // 2:
            return _going_on(hit)
        return hit

    def _after_scheme(self, text: str, head: int, stop: int) -> Hit | Verdict:
        if head == stop or _UNLIKELY.match(text, head, stop):
            return Verdict.TEXT
        if _ABOUT_SCHEMES.fullmatch(text, head, stop):
            return Verdict.TEXT
        return Hit(head, stop, self.family, "authorization", SECRET)

    def _judge(self, look: "_Look", head: int, stop: int, *, quoted: bool = False) -> Hit | Verdict:
        value = look.text[head:stop]
        if not looks_secret(value, strong=look.strong, quoted=quoted, anything=self.anything):
            return Verdict.TEXT
        if not quoted and _IDENTIFIER.fullmatch(value) and look.of_a_member():
            return Verdict.TEXT
        typed = self.find(look.text, head, stop)
        if typed and (typed[0].start, typed[0].end) == (head, stop):
            return Verdict.TEXT
        return Hit(head, stop, self.family, f"{self.family}_value", SECRET)


def keyword_values(*, anything: bool, find: Find) -> KeywordValue:
    """`password: value` and the like; `anything` is the strict reading."""
    return KeywordValue("keyword", _KEYWORD, anything, find)


def authorization_values(*, anything: bool, find: Find) -> KeywordValue:
    """`Authorization: Scheme value`."""
    return KeywordValue(
        "authorization", _AUTHORIZATION, anything, find, _KEYWORD_ANCHORS + _CALL_ANCHORS
    )
