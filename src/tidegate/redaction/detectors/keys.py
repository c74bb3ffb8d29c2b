"""Is this an access key that its issuer marks with a prefix, or a web token?

Lives here: the search for marked keys, web tokens, bot tokens and signed URLs. Does not live here:
the table of prefixes (key_formats), values known by the word before them (keywords).

Tokens of GitHub and npm carry a check sum. It decides nothing: a token with a wrong one was
mistyped, cut or made up, and nothing else has the form (no hit in 60 MB of Python sources and
their documentation). Letting it pass would save nothing and could show a key.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.redaction.checksums import base62_crc32
from tidegate.redaction.detectors.key_formats import ANCHORS, FORMATS, SAFE
from tidegate.redaction.hits import RANKS, URL_SAFE, CharRun, Hit, Verdict
from tidegate.redaction.spans import SECRET

_CHECKED = {"github_token": 40, "npm_token": 40}
"""Rules with a check sum, and the length of their tokens."""


def checks(rule: str, token: str) -> bool | None:
    """The check sum of the token is right; None if such tokens have none, or not at this length."""
    return base62_crc32(token) if _CHECKED.get(rule) == len(token) else None


class Keys:
    """Prefixed keys; a key ends where its characters end, however long it is."""

    family = "key"
    rank = RANKS["key"]
    shortest = 20
    reach = 128
    anchors = ANCHORS

    def __init__(self) -> None:
        names = "|".join(f"(?P<{form.name}>{form.pattern})" for form in FORMATS)
        # At the first character of a word that a prefix may begin with.
        first = "".join(map(_first_chars, (form.prefix for form in FORMATS)))
        self._start = re.compile(f"[{first}](?<![A-Za-z0-9].)")
        self._pattern = re.compile(names)
        self._runs = {form.name: form.run for form in FORMATS}

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        begins = self._start.search(text, start, end)
        while begins is not None:
            found = self._pattern.match(text, begins.start(), end)
            if found is not None:
                rule = found.lastgroup or self.family
                yield Hit(found.start(), found.end(), self.family, rule, SECRET, self._runs[rule])
            begins = self._start.search(text, found.end() if found else begins.end(), end)


def _first_chars(prefix: str) -> str:
    """What stands in a character class of the characters that the regex `prefix` begins with."""
    plain = _LOOKS_BEHIND.sub("", prefix)
    return plain[1 : plain.index("]")] if plain[0] == "[" else re.escape(plain[0])


_LOOKS_BEHIND = re.compile(r"\A\(\?<!\[[^\]]*\]\)")


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A web token goes on over single dots, and over the empty part that a JWE may have."""

    exact: bool = False

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """See `Run`."""
        found = _TOKEN_REST.match(text, start)
        end = found.end() if found else start
        return end, final or text[end:] not in {"", ".", ".."}


_TOKEN_REST = re.compile(rf"(?:{SAFE}|\.{{1,2}}(?={SAFE}))*")
_JWT = re.compile(
    rf"(?<![A-Za-z0-9])(?:eyJ|ZXlK)"
    rf"(?:{SAFE}{{10,}}+\.{{1,2}}{SAFE}{{10,}}+|{SAFE}{{200,}}+)(?:\.{{1,2}}{SAFE}++)*"
)


class WebTokens:
    """JWT and JWE, also encoded once more; a long header without its dot counts from 200 on."""

    family = "jwt"
    rank = RANKS["jwt"]
    shortest = 24
    anchors = (("J", "(?<=eyJ)"), ("K", "(?<=ZXlK)"))

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in _JWT.finditer(text, start, end):
            yield Hit(found.start(), found.end(), self.family, "jwt", SECRET, TokenRun())


# In URLs `bot` stands right before the number.
_BOT = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=/bot))[0-9]{8,10}:\Z")
_BOT_BODY = re.compile(rf"A{SAFE}{{0,400}}")
_BOT_SIZE = 33


class BotTokens:
    """Tokens of Telegram bots: a number, a colon, `A` and 34 characters."""

    family = "key"
    rank = RANKS["key"]
    anchors = ((":", "(?<=[0-9]{8}:)"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        found = _BOT.search(text, max(start, stop - 11), stop)
        return found.start() if found else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        colon = text.index(":", start, end)
        if colon + 1 == end:
            return Verdict.TEXT if ended else Verdict.WAIT
        body = _BOT_BODY.match(text, colon + 1, end)
        stop = body.end() if body else colon
        if stop == end and not ended:
            return Verdict.WAIT
        if stop - colon <= _BOT_SIZE:
            return Verdict.TEXT
        return Hit(start, stop, self.family, "telegram_token", SECRET, URL_SAFE)


_SIGNED = re.compile(r"(?:[?&;]sig|(?i:[?&]x-(?:amz|goog)-signature))=\Z")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/_\-]{40,}={0,2}")
_SIGNATURE_OPEN = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")
_SIGNATURE_RUN = CharRun(re.compile(r"[A-Za-z0-9+/_=\-]*"))


class SignedUrls:
    """The signature that makes a URL of a store in the cloud work (`sig=`, `X-Amz-Signature=`)."""

    family = "key"
    rank = RANKS["key"]
    anchors = (("=", "(?:(?<=[?&;]sig=)|(?<=ture=))"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        return stop if stop > start and _SIGNED.search(text, max(0, stop - 18), stop) else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        seen = _SIGNATURE_OPEN.match(text, start, end)
        if seen is not None and seen.end() == end and not ended:
            return Verdict.WAIT
        found = _SIGNATURE.match(text, start, end)
        if found is None:
            return Verdict.TEXT
        return Hit(start, found.end(), self.family, "url_signature", SECRET, _SIGNATURE_RUN)
