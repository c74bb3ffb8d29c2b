"""How does a policy look once it is compiled for the walk over a text?

Lives here: the prefilter (one regex over all anchors) and the detectors of one policy. Does not
live here: presets and names (policy), the walk (stream).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from types import MappingProxyType

from tidegate.redaction.detectors import built_in
from tidegate.redaction.folding import fold, is_plain
from tidegate.redaction.hits import (
    Anchors,
    AnyDetector,
    Detector,
    Hit,
    Searching,
    SpanningDetector,
    in_order,
)
from tidegate.redaction.spans import PLACEHOLDER, Action

SHORT = 20
"""Text shorter than this is looked at only if it holds a digit or an anchor of a short value."""

Search = Callable[[str, int, int], re.Match[str] | None]

_PLACEHOLDER_MAX = 96
# A digit may belong to a group that goes on behind a space, an escape to any value.
_ALWAYS: Anchors = ((r"0-9%&\\", ""),)
_UNANCHORED: Anchors = (("\\x00-\\U0010ffff", ""),)

_NO_REGIONS: Mapping[str, Sequence[str]] = MappingProxyType({})


class Program:
    """A policy compiled to one prefilter and its detectors. Raises ValueError.

    `extra` are the detectors that the operator brings along.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        *,
        allow: Sequence[str] = (),
        strict_keywords: bool = False,
        extra: Sequence[AnyDetector] = (),
        hash_key: bytes = b"",
        regions: Mapping[str, Sequence[str]] = _NO_REGIONS,
    ) -> None:
        fold("\u00a0&")  # builds the tables now, not in the first request with an odd character
        if "hash" in actions.values() and not hash_key:
            raise ValueError('the action "hash" needs a key')
        self.actions = dict(actions)
        self.hash_key = hash_key
        made = built_in(
            frozenset(actions), strict_keywords=strict_keywords, find=self.find, regions=regions
        )
        every = [each for each in (*made, *extra) if each.family in actions]
        self.ranks = {each.family: each.rank for each in every}
        self.detectors = [each for each in every if isinstance(each, Detector)]
        self._searching = [each for each in self.detectors if isinstance(each, Searching)]
        self.spanning = sorted(
            (each for each in every if isinstance(each, SpanningDetector)),
            key=lambda each: each.rank,
        )
        self._plain = _search([each for each in every if not isinstance(each, Searching)])
        self.anchor: Search = _with(self._plain, every)
        """The first place in `text[start:end]` without which nothing there can be a value."""
        short = [each for each in self.detectors if each.shortest < SHORT]
        look: list[AnyDetector] = [*short, *self.spanning]
        plain = _search([each for each in look if not isinstance(each, Searching)], _ALWAYS)
        self.trigger: Search = _with(plain, look)
        """The first place that makes text shorter than SHORT worth a look."""
        self._allow = (
            re.compile("|".join(translate(fold(value)) for value in allow)) if allow else None
        )

    def clean(self, text: str) -> bool:
        """Nothing in this whole text can be a value. Cheap, and False only means "perhaps"."""
        return is_plain(text) and self.anchor(text, 0, len(text)) is None

    def secret_key(self, key: str) -> bool:
        """A field of this name usually holds a secret."""
        if key[-2:].lower() not in _KEYWORD_TAILS:
            return False
        return bool(self.openings(f"{key}:", 0, len(key) + 1, after=len(key) + 1))

    def find(self, text: str, start: int, end: int) -> list[Hit]:
        """The values inside one segment that one segment shows, in the order in which they win."""
        asked: Iterable[Detector] = self.detectors
        if self._plain(text, start, end) is None:
            asked = self._searching
        hits = [
            hit
            for detector in asked
            for hit in detector.find(text, start, end)
            if self.accepts(text, hit)
        ]
        return self._joined(in_order(hits, self.ranks)) if len(hits) > 1 else hits

    def _joined(self, hits: Iterable[Hit]) -> list[Hit]:
        """Hits of one segment, where one reaches into the next one value in place of both.

        Whoever replaces it (a vault) then gets the whole. Where the text is to stay or to be
        refused the walk decides.
        """
        joined: list[Hit] = []
        for hit in hits:
            last = joined[-1] if joined else None
            if (
                last is None
                or hit.start >= last.end
                or not _REPLACING.issuperset((self.actions[last.family], self.actions[hit.family]))
            ):
                joined.append(hit)
            elif hit.end > last.end:
                joined[-1] = replace(last, end=hit.end, run=hit.run)
        return joined

    def openings(
        self, text: str, start: int, stop: int, *, after: int = 0
    ) -> list[tuple[int, int, SpanningDetector]]:
        """Where in a closed segment longer values may begin: (index, rank, detector), by index.

        With `after`, only those from there on.
        """
        found = []
        for detector in self.spanning:
            place = detector.opens(text, start, stop)
            while place is not None and place < after:
                place = detector.opens(text, place + 1, stop)
            if place is not None:
                found.append((place, detector.rank, detector))
        if len(found) > 1:
            found.sort(key=lambda opening: opening[:2])
        return found

    def accepts(self, text: str, hit: Hit) -> bool:
        """The operator has not allowed this value, and it is no part of a placeholder of ours."""
        if self._allow is not None and self._allow.match(text[hit.start : hit.end]):
            return False
        opened = text.rfind("[", max(0, hit.start - _PLACEHOLDER_MAX), hit.end)
        if opened < 0:
            return True
        found = PLACEHOLDER.match(text, opened)
        return found is None or hit.start < opened or found.end() < hit.end


_REPLACING = frozenset({"mask", "partial", "hash"})
_KEYWORD_TAILS = frozenset({"rd", "wd", "se", "de", "et", "en", "ey", "on"})


def _with(plain: Search, detectors: Iterable[AnyDetector]) -> Search:
    """`plain`, and what detectors find that look for themselves."""
    searching = list(dict.fromkeys(each for each in detectors if isinstance(each, Searching)))
    if not searching:
        return plain

    def search(text: str, start: int, end: int) -> re.Match[str] | None:
        found = plain(text, start, end)
        for each in searching:
            found = each.search(text, start, found.start() if found else end) or found
        return found

    return search


def _search(detectors: Iterable[AnyDetector], more: Anchors = ()) -> Search:
    """One regex that begins with a character class, which `re` searches at C speed."""
    pairs = list(more)
    for detector in detectors:
        pairs += detector.anchors or _UNANCHORED
    if not pairs:
        return re.compile(r"(?!)").search
    by_first: dict[str, list[str]] = {}
    for chars, after in dict.fromkeys(pairs):
        by_first.setdefault(chars, []).append(after)
    first = "".join(by_first)
    rest = "|".join(f"(?<=[{chars}])(?:{'|'.join(after)})" for chars, after in by_first.items())
    return re.compile(f"[{first}](?:{rest})", re.DOTALL).search
