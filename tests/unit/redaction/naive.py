"""What do the detectors of a policy find in a whole text if nothing is done to be fast?

Written apart from the walk of the product: no stream, no buffer, no anchors, no prefilter, no
strides. Every detector is asked about every segment. It knows policies whose every action is
"mask", and texts whose segments are short enough to be judged whole.
"""

from itertools import pairwise

from tests.unit.redaction.plain_view import Seen, view
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.detectors import built_in
from tidegate.redaction.hits import HOLD, AnyDetector, Detector, Hit, SpanningDetector

_VALUE_SIGNS = "._%+'@~-"


def _in_value(char: str) -> bool:
    latin = "\u00c0" <= char < "\u0250" and char not in "\u00d7\u00f7"
    return (
        (char.isascii() and char.isalnum())
        or char in _VALUE_SIGNS
        or latin
        or "\u0300" <= char < "\u0370"
        or "\u1e00" <= char < "\u1f00"
    )


def cuts(text: str) -> list[int]:
    """Where a text may be cut: behind signs, and behind white space that joins no digits."""
    found = []
    for place, char in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        if char in " \t\n\r":
            joins = before in "0123456789" and before and (after in "0123456789" or not after)
            if not joins:
                found.append(place + 1)
        elif not _in_value(char):
            found.append(place + 1)
    return found


class Naive:
    """One policy, read slowly."""

    def __init__(self, policy: RedactionPolicy) -> None:
        assert set(policy.actions.values()) <= {"mask"}
        self._program = policy.program
        made = built_in(
            frozenset(policy.actions),
            strict_keywords=policy.strict_keywords,
            find=policy.program.find,
            regions=policy.regions,
        )
        self._detectors: list[AnyDetector] = [*made, *policy.extra]
        self._ranks = {each.family: each.rank for each in self._detectors}

    def mask(self, original: str) -> str:
        """The text as it may be shown."""
        seen = view(original)
        out, place = [], 0
        for start, end, word in self._values(seen):
            out += [original[place : seen[start].start], f"[REDACTED_{word}]"]
            place = seen[end - 1].end
        return "".join([*out, original[place:]])

    def _values(self, seen: list[Seen]) -> list[tuple[int, int, str]]:
        text = "".join(each.char for each in seen)
        values: list[tuple[int, int, str]] = []
        place = 0
        while place < len(text):
            # A cut that a value took along is none; the rest of its segment is looked at alone.
            stop = next(cut for cut in [*cuts(text), len(text)] if cut > place)
            place = self._segment(text, seen, place, stop, values)
        return values

    def _segment(
        self,
        text: str,
        seen: list[Seen],
        start: int,
        stop: int,
        values: list[tuple[int, int, str]],
    ) -> int:
        """Add the values that begin in the segment; returns where to look next."""
        resume, sealed = stop, -1
        for hit, far in self._found(text, seen, start, stop):
            if hit.start < sealed:
                continue
            end = hit.end
            if far and hit.run is not None:
                end = hit.run.eat(text, hit.end, final=True)[0]
            last = values[-1] if values else (0, 0, "")
            if hit.start < last[1]:
                values[-1] = (last[0], max(last[1], end), last[2])
            else:
                values.append((hit.start, end, hit.kind.word))
            if far and hit.run is not None and end > last[1]:
                return end
            sealed = hit.end if hit.sealed else sealed
            if hit.sealed or hit.start > stop:
                resume = max(resume, hit.end)
        return resume

    def _found(self, text: str, seen: list[Seen], start: int, stop: int) -> list[tuple[Hit, bool]]:
        found: list[tuple[Hit, bool]] = []
        for detector in self._detectors:
            if isinstance(detector, Detector):
                found += [(hit, False) for hit in detector.find(text, start, stop)]
            if isinstance(detector, SpanningDetector):
                found += [(hit, True) for hit in self._decided(detector, text, seen, start, stop)]
        kept = [each for each in found if self._program.accepts(text, each[0])]
        kept.sort(key=lambda each: (each[0].start, self._ranks[each[0].family], -each[0].end))
        return kept

    @staticmethod
    def _decided(
        detector: SpanningDetector, text: str, seen: list[Seen], start: int, stop: int
    ) -> list[Hit]:
        hits = []
        place = detector.opens(text, start, stop)
        while place is not None:
            edge = seen[place].start + HOLD if place < len(seen) else len(text)
            end = next((i for i, each in enumerate(seen) if each.start >= edge), len(text))
            verdict = detector.decide(text, place, end, ended=True)
            after = place + 1
            if isinstance(verdict, Hit):
                hits.append(verdict)
                after = max(after, verdict.end)
            place = detector.opens(text, after, stop) if after <= stop else None
        return hits


def longest_segment(text: str) -> int:
    """How long the longest segment of a text is, in characters of the original."""
    seen = view(text)
    plain = "".join(each.char for each in seen)
    edges = [0, *cuts(plain), len(plain)]
    return max(
        (seen[stop - 1].end - seen[start].start for start, stop in pairwise(edges) if stop > start),
        default=0,
    )
