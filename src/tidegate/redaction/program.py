"""How does a policy look once it is compiled for the walk over a text?

Lives here: the prefilter (one regex over all anchors), the detectors and modes of one policy.
Does not live here: presets and names (policy), the walk (stream).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate

from tidegate.redaction import modes
from tidegate.redaction.detectors import Cards, Email, Keys, SocialSecurity, WebTokens
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Detector, Hit, winners
from tidegate.redaction.spans import Action

_SEGMENT_DETECTORS: tuple[Callable[[], Detector], ...] = (
    WebTokens,
    Keys,
    Email,
    Cards,
    SocialSecurity,
)


class Program:
    """A policy compiled to one prefilter, its detectors and its modes."""

    def __init__(
        self, on: Mapping[str, Action], *, allow: Sequence[str] = (), strict_keywords: bool = False
    ) -> None:
        fold("\u00a0")  # builds the table now, not in the first request with an odd character
        self.actions = dict(on)
        self._detectors = [made for make in _SEGMENT_DETECTORS if (made := make()).family in on]
        self._anchor = _compile_anchors(self._detectors, on)
        self._allow = (
            re.compile("|".join(translate(fold(value)) for value in allow)) if allow else None
        )
        keyword = "keyword" in on
        self.openings = modes.Openings(
            url=modes.UrlCredentials() if "url_credentials" in on else None,
            strong=modes.KeywordValue("keyword", True, strict_keywords, self.find)
            if keyword
            else None,
            weak=modes.KeywordValue("keyword", False, strict_keywords, self.find)
            if keyword
            else None,
            auth=modes.KeywordValue("authorization", False, strict_keywords, self.find)
            if "authorization" in on
            else None,
            iban=modes.IbanNumber() if "iban" in on else None,
            pem=modes.PrivateKey() if "private_key" in on else None,
        )

    def anchor(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """The first place in `text[start:end]` without which nothing there can be a value."""
        return self._anchor.search(text, start, end)

    def clean(self, text: str) -> bool:
        """Nothing in this whole text can be a value. Cheap, and False only means "perhaps"."""
        return text.isascii() and self._anchor.search(text) is None

    def secret_key(self, key: str) -> bool:
        """A field of this name usually holds a secret."""
        if key[-2:].lower() not in _KEYWORD_TAILS:
            return False
        return self.openings.before(f"{key}:", len(key) + 1) is not None

    def find(self, text: str, start: int, end: int) -> list[Hit]:
        """The values in one segment, without overlaps, by start."""
        if self._anchor.search(text, start, end) is None:
            return []
        hits = [
            hit
            for detector in self._detectors
            for hit in detector.find(text, start, end)
            if not self.allowed(text, hit)
        ]
        return winners(hits) if len(hits) > 1 else hits

    def allowed(self, text: str, hit: Hit) -> bool:
        """The operator said that this value is never masked."""
        return self._allow is not None and bool(self._allow.match(text[hit.start : hit.end]))


_KEYWORD_TAILS = frozenset({"rd", "wd", "se", "de", "et", "en", "ey", "on"})
# The characters that open a mode. A keyword ends in one of these pairs before `:` or `=`.
_KEYWORD_END = r"(?i:rd|wd|se|de|et|en|ey|on)"
_OPENING_ANCHORS = {
    "url_credentials": ("/", r"(?<=[A-Za-z0-9]://)"),
    "keyword": (
        ":=",
        rf"(?:(?<={_KEYWORD_END}.)|(?<={_KEYWORD_END}[\"' \t\\].)"
        rf"|(?<={_KEYWORD_END}[\"' \t\\]{{2}}.)|(?<={_KEYWORD_END}[\"' \t\\]{{3}}.)"
        rf"|(?<={_KEYWORD_END}[\"' \t\\]{{4}}.))",
    ),
    "iban": ("0-9", r"[0-9](?<=[A-Za-z]{2}[0-9]{2})"),
    "private_key": (r"\-", "BEGIN "),
}
_OPENING_ANCHORS["authorization"] = _OPENING_ANCHORS["keyword"]


def _compile_anchors(detectors: list[Detector], on: Mapping[str, Action]) -> re.Pattern[str]:
    """One regex that begins with a character class, which `re` searches at C speed."""
    pairs = [pair for detector in detectors for pair in detector.anchors]
    pairs += [pair for family, pair in _OPENING_ANCHORS.items() if family in on]
    if not pairs:
        return re.compile(r"(?!)")
    by_first: dict[str, list[str]] = {}
    for chars, after in dict.fromkeys(pairs):
        by_first.setdefault(chars, []).append(after)
    first = "".join(by_first)
    rest = "|".join(f"(?<=[{chars}])(?:{'|'.join(after)})" for chars, after in by_first.items())
    return re.compile(f"[{first}](?:{rest})", re.DOTALL)
