"""How does a policy look once it is compiled for the walk over a text?

Lives here: the detectors of one policy and what all of them say about a segment. Does not live
here: presets and names (policy), which detectors are asked (prefilter), the walk (stream).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from types import MappingProxyType

from tidegate.redaction.detectors import built_in
from tidegate.redaction.folding import fold, is_plain, odd
from tidegate.redaction.hits import HOLD, LONGEST, AnyDetector, Detector, Hit, SpanningDetector
from tidegate.redaction.prefilter import Prefilter, Search, plain_words
from tidegate.redaction.spans import PLACEHOLDER, Action

SHORT = 20
"""Text shorter than this is looked at only if it holds a digit or an anchor of a short value."""

Opening = tuple[int, int, SpanningDetector]
"""Where a longer value may begin, and the rank and the detector that say so."""

_PLACEHOLDER_MAX = 96
# A digit may belong to a group that goes on behind a space.
_ALWAYS = "0-9"

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
        self._every = every
        self._asked: dict[int, tuple[list[Detector], list[SpanningDetector]]] = {}
        self._keys: dict[str, bool] = {}
        self._plain_keys: set[str] = set()
        self._prefilter = Prefilter(every)
        self.anchor: Search = self._prefilter.search
        """The first place in `text[start:end]` without which nothing there can be a value."""
        short = [
            each for each in every if isinstance(each, SpanningDetector) or each.shortest < SHORT
        ]
        self.trigger: Search = Prefilter(short, always=_ALWAYS).search
        """The first place that makes text shorter than SHORT worth a look."""
        self.plain = plain_words(short, always=rf"{_ALWAYS}%&\\", less_than=SHORT)
        """Matches text in which no value can be; group 1 ends where it may be cut."""
        self._allow = (
            re.compile("|".join(translate(fold(value)) for value in allow)) if allow else None
        )

    def clean(self, text: str) -> bool:
        """Nothing in this whole text can be a value. Cheap, and False only means "perhaps"."""
        # Most texts are as plain as that, and a call is saved.
        plain = (text.isascii() and odd(text) is None) or is_plain(text)
        return plain and self.anchor(text, 0, len(text)) is None

    def plain_keys(self, keys: Collection[str]) -> bool:
        """None of these names of fields can be a value, or says that a secret follows.

        Cheap, and False only means "perhaps". Names are remembered, so that those which come again
        and again are judged once; texts that somebody uses as a key are not, nor is what may be a
        value.
        """
        return self._plain_keys.issuperset(keys) or all(map(self._is_plain_key, keys))

    def _is_plain_key(self, key: str) -> bool:
        known = self._plain_keys
        if key in known:
            return True
        if not self.clean(key) or self.secret_key(key):
            return False
        if len(key) <= _KEY_CHARS and key.isidentifier():
            if len(known) >= _PLAIN_KEYS_MAX:
                known.clear()  # who sends many names of their own slows nobody down for long
            known.add(key)
        return True

    def secret_key(self, key: str) -> bool:
        """A field of this name usually holds a secret."""
        if key[-2:].lower() not in _KEYWORD_TAILS:
            return False
        found = self._keys.get(key)
        if found is None:
            found = bool(self.leading(f"{key}:"))
            # Names of fields are few and come again and again.
            if len(self._keys) < _KEYS_MAX and len(key) <= _KEY_CHARS:
                self._keys[key] = found
        return found

    def leading(self, lead: str) -> list[Opening]:
        """What `lead` opens at its end, for text that follows it."""
        found = []
        for _, rank, detector in self._openings(
            self._who(lead, 0, len(lead))[1], lead, 0, len(lead)
        ):
            place: int | None = 0
            while place is not None and place < len(lead):
                place = detector.opens(lead, place, len(lead))
                place = place + 1 if place is not None and place < len(lead) else place
            if place == len(lead):
                found.append((len(lead), rank, detector))
        return found

    def find(self, text: str, start: int, end: int) -> list[Hit]:
        """The values inside one segment that one segment shows, in the order in which they win."""
        return self._hits(self._who(text, start, end)[0], text, start, end)

    def judge(self, text: str, start: int, stop: int) -> tuple[list[Hit], list[Opening]]:
        """As `find` for a closed segment, and where in it longer values may begin, by index."""
        near, far = self._who(text, start, stop)
        return self._hits(near, text, start, stop), self._openings(far, text, start, stop)

    def stride(self, text: str, start: int, view: int) -> int:
        """How many characters of an over-long segment may be judged, seen up to `view`."""
        near, _ = self._who(text, start, view)
        return HOLD - max(map(_reach, near), default=0)

    def judge_part(
        self, text: str, start: int, stop: int, view: int
    ) -> tuple[list[Hit], list[Opening]]:
        """As `judge` for what begins before `stop`, in a segment that goes on beyond `view`.

        Only hits that reach beyond what could be seen of them keep their `run`.
        """
        near, far = self._who(text, start, view)
        hits = [
            hit
            for detector in near
            for hit in _seen(detector, text, start, min(view, stop + _reach(detector)))
            if hit.start < stop and self.accepts(text, hit)
        ]
        openings = [each for each in self._openings(far, text, start, stop) if each[0] < stop]
        return self._joined(sorted(hits, key=self.order)) if len(hits) > 1 else hits, openings

    def _who(
        self, text: str, start: int, stop: int
    ) -> tuple[list[Detector], list[SpanningDetector]]:
        """The detectors that have an anchor there; the second kind by rank."""
        mask = self._prefilter.asked(text, start, stop)
        asked = self._asked.get(mask)
        if asked is None:
            those = [each for place, each in enumerate(self._every) if mask >> place & 1]
            near = [each for each in those if isinstance(each, Detector)]
            far = [each for each in those if isinstance(each, SpanningDetector)]
            asked = near, sorted(far, key=lambda each: each.rank)
            if len(self._asked) < _ASKED_MAX:
                self._asked[mask] = asked
        return asked

    def _hits(self, detectors: list[Detector], text: str, start: int, end: int) -> list[Hit]:
        hits = [
            hit
            for detector in detectors
            for hit in detector.find(text, start, end)
            if self.accepts(text, hit)
        ]
        return self._joined(sorted(hits, key=self.order)) if len(hits) > 1 else hits

    @staticmethod
    def _openings(
        detectors: list[SpanningDetector], text: str, start: int, stop: int
    ) -> list[Opening]:
        found = [
            (place, detector.rank, detector)
            for detector in detectors
            if (place := detector.opens(text, start, stop)) is not None
        ]
        if len(found) > 1:
            found.sort(key=lambda opening: opening[:2])
        return found

    def order(self, hit: Hit) -> tuple[int, int, int]:
        """Of two hits that overlap the one of the lower order wins."""
        return hit.start, self.ranks[hit.family], -hit.end

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
            elif hit.end > last.end and not last.sealed:
                joined[-1] = replace(last, end=hit.end, run=hit.run)
        return joined

    def accepts(self, text: str, hit: Hit) -> bool:
        """The operator has not allowed this value, and it is no part of a placeholder of ours."""
        if self._allow is not None and self._allow.match(text[hit.start : hit.end]):
            return False
        opened = text.rfind("[", max(0, hit.start - _PLACEHOLDER_MAX), hit.end)
        if opened < 0:
            return True
        found = PLACEHOLDER.match(text, opened)
        return found is None or hit.start < opened or found.end() < hit.end


def _seen(detector: Detector, text: str, start: int, view: int) -> Iterator[Hit]:
    for hit in detector.find(text, start, view):
        goes_on = hit.run is None or text[hit.end : view] in {"", "."}
        yield hit if goes_on else replace(hit, run=None)


def _reach(detector: Detector) -> int:
    reach = getattr(detector, "reach", LONGEST)
    return reach if isinstance(reach, int) else LONGEST


_ASKED_MAX = 1024
_KEYS_MAX, _KEY_CHARS = 4096, 64
_PLAIN_KEYS_MAX = 1024
_REPLACING = frozenset({"mask", "partial", "hash"})
_KEYWORD_TAILS = frozenset({"rd", "wd", "se", "de", "et", "en", "ey", "on"})
