"""What is a classifier asked, and what did it answer?

Lives here: the two JSON documents of the webhook. Does not live here: the call and what happens
without an answer (classifier), which texts are asked about (redaction.holes).

    POST  {"direction": "request" | "response", "texts": ["I am Jane Doe. ", "Hi"]}
    200   {"spans": [[{"start": 5, "end": 13, "kind": "NAME"}], []]}

One list of spans for each text, in the order of the texts. `start` and `end` are places between
characters (Unicode code points), `end` behind the last one. `kind` is one to four words of capital
letters and digits, joined by `_`: it stands in the placeholder, and in lower case in metrics and
records. Members with other names are ignored. Anything else is no answer.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from tidegate import strictjson
from tidegate.redaction.holes import Found
from tidegate.redaction.spans import Kind

Direction = Literal["request", "response"]

MOST_TEXTS = 128
MOST_CHARS = 32_768
_MOST_SPANS = 64
_KIND = re.compile(r"[A-Z][A-Z0-9]{0,15}(?:_[A-Z][A-Z0-9]{0,15}){0,3}")


def batches(texts: Sequence[str]) -> list[list[str]]:
    """The texts in groups of at most MOST_TEXTS and about MOST_CHARS, one group for each call."""
    groups: list[list[str]] = []
    chars = 0
    for text in texts:
        if not groups or len(groups[-1]) == MOST_TEXTS or chars + len(text) > MOST_CHARS:
            groups.append([])
            chars = 0
        groups[-1].append(text)
        chars += len(text)
    return groups


def question(texts: Sequence[str], direction: Direction) -> bytes:
    """The body of the call, in ASCII."""
    return json.dumps({"direction": direction, "texts": texts}).encode()


def verdicts(body: bytes, texts: Sequence[str]) -> list[tuple[Found, ...]] | None:
    """What was found in each of `texts`, by start and without overlaps; None if it is no answer."""
    try:
        answer = strictjson.loads(body)
    except strictjson.StrictJSONError:
        return None
    lists = answer.get("spans") if isinstance(answer, dict) else None
    if not isinstance(lists, list) or len(lists) != len(texts):
        return None
    judged = []
    for spans, text in zip(lists, texts, strict=True):
        found = _found(spans, len(text))
        if found is None:
            return None
        judged.append(found)
    return judged


def _found(spans: object, size: int) -> tuple[Found, ...] | None:
    if not isinstance(spans, list) or len(spans) > _MOST_SPANS:
        return None
    found = [_one(span, size) for span in spans]
    known = sorted(one for one in found if one is not None)
    if len(known) < len(found):
        return None
    if any(one.end > other.start for one, other in pairwise(known)):
        return None
    return tuple(known)


def _one(span: object, size: int) -> Found | None:
    if not isinstance(span, dict):
        return None
    start, end, kind = span.get("start"), span.get("end"), span.get("kind")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= size:
        return None
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        return None
    return Found(start, end, Kind(kind, kind.lower()))


__all__ = ["MOST_CHARS", "MOST_TEXTS", "Direction", "batches", "question", "verdicts"]
