"""Is a value cut over two parts of one content list, and what does each part show then?

Lives here: the texts of a content list in their order, the search in the joined text, and the
way back into the parts. No part is added, removed or moved: the placeholder stands in the part
in which the value begins, the others lose their share of it. Does not live here: values that
lie in one part (treatment), texts that go on in later events (channels).

Whoever shows the parts joins them, so a value that only the joined text has is masked. What a
part shows by itself comes first, for the joined text can hide it: `id 1` and `536-90-4399`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tidegate.redaction.spans import EMAIL

if TYPE_CHECKING:
    from tidegate.redaction.spans import Span
    from tidegate.redaction.treatment import Treatment

Path = tuple[str | int, ...]

CONTENT_LISTS = frozenset(
    {"content", "contents", "output", "parts", "summary", "system", "thinking"}
)
"""Names of fields whose members are parts of one text."""

_NESTED = ("content", "output")
_RESOURCE = "resource"
_MORE = frozenset({*_NESTED, _RESOURCE})
"""Members of a part in which more texts stand than its own."""
_MAX_DEPTH = 4


def part_texts(items: list[object], path: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """The texts in a content list and where they stand, tool results and resources included."""
    for place, item in enumerate(items):
        here = (*path, place)
        if isinstance(item, str):
            yield here, item
        elif isinstance(item, dict):
            yield from _member_texts(item, here, depth)


def _member_texts(item: dict[str, object], here: Path, depth: int) -> Iterator[tuple[Path, str]]:
    resource = item.get(_RESOURCE)
    holders = ((item, here), (resource, (*here, _RESOURCE)))
    for holder, where in holders:
        text = holder.get("text") if isinstance(holder, dict) else None
        if isinstance(text, str):
            yield (*where, "text"), text
    for name in _NESTED:
        inner = item.get(name)
        if isinstance(inner, str):
            yield (*here, name), inner
        elif isinstance(inner, list) and depth < _MAX_DEPTH:
            yield from part_texts(inner, (*here, name), depth + 1)


def may_be_cut(items: list[object], clean: Callable[[str], bool]) -> bool:
    """A value may be cut over the parts of a content list: as joined they are not `clean`."""
    first = items[0] if items else None
    if len(items) < 2 and not (isinstance(first, dict) and not _MORE.isdisjoint(first)):
        return False
    texts = [text for _, text in part_texts(items, ())]
    return len(texts) > 1 and not clean("".join(texts))


@dataclass(slots=True)
class _Region:
    """A stretch of the joined text that must not be shown, and what stands in its place."""

    start: int
    end: int
    instead: str


def across_parts(texts: list[tuple[Path, str]], treatment: "Treatment") -> list[tuple[Path, str]]:
    """The parts that a value which is cut over several of them changes, as they may be seen.

    The whole text of such a part is redacted; the other parts are not in the answer. Cost: the
    joined text is read once more, if anything in it can be a value. Raises BlockedContent.
    """
    joined = "".join(text for _, text in texts)
    if len(texts) < 2 or treatment.policy.program.clean(joined):
        return []
    starts = [0, *accumulate(len(text) for _, text in texts)]
    regions = _regions(joined, texts, starts, treatment)
    return [
        (path, _shown(text, starts[place], regions, treatment))
        for place, (path, text) in enumerate(texts)
        if any(
            region.start < starts[place + 1] and region.end > starts[place] for region in regions
        )
    ]


def _regions(
    joined: str, texts: list[tuple[Path, str]], starts: list[int], treatment: "Treatment"
) -> list[_Region]:
    found = treatment.policy.redact(joined)
    crossing = [
        span
        for span in found.spans
        if bisect_right(starts, span.start_in) != bisect_right(starts, span.end_in - 1)
    ]
    if not crossing:
        return []
    own = [
        (start + span.start_in, start + span.end_in, span.kind)
        for start, (_, text) in zip(starts, texts, strict=False)
        for span in treatment.policy.redact(text).spans
    ]
    regions: list[_Region] = []
    for span in crossing:
        instead = found.text[span.start_out : span.end_out]
        if instead == joined[span.start_in : span.end_in] or _is_glued(span, own):
            continue
        _count(span, treatment)
        region = _Region(span.start_in, span.end_in, instead)
        for start, end, _ in own:
            if start < region.end and end > region.start:
                region.start, region.end = min(start, region.start), max(end, region.end)
        regions.append(region)
    return regions


def _is_glued(span: "Span", own: list[tuple[int, int, str]]) -> bool:
    """An address that is whole in its part, with the last word of the part before glued to it."""
    return span.kind == EMAIL.word and any(
        kind == span.kind and start < span.end_in and end > span.start_in
        for start, end, kind in own
    )


def _count(span: "Span", treatment: "Treatment") -> None:
    counts = treatment.counts
    counts[span.label] = counts.get(span.label, 0) + 1


def _shown(text: str, start: int, regions: list[_Region], treatment: "Treatment") -> str:
    """The part `text`, which begins at `start` of the joined text."""
    out: list[str] = []
    place, stop = 0, len(text)
    for region in regions:
        begin, end = region.start - start, region.end - start
        if end <= 0 or begin >= stop:
            continue
        if begin >= place:
            out += (treatment.whole(text[place:begin]), region.instead)
        place = max(place, min(end, stop))
    return "".join([*out, treatment.whole(text[place:])])
