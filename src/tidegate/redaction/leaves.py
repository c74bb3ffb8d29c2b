"""What happens to a string that stands somewhere in a JSON tree and is whole by itself?

Lives here: the walk over a tree that copies only what changes, and the judgement of one leaf
(base64 passes where base64 belongs, every other string is redacted; a value that is cut over the
parts of a content list, a number and a key are judged by their own modules). Does not live here:
which fields of a dialect are structure (fields), messages of MCP
(trees), texts that go on in later events (channels).
"""

import re
from types import MappingProxyType
from typing import Protocol

from tidegate.redaction.judgement import LEAST_DIGITS, judge_key, judge_value
from tidegate.redaction.parts import CONTENT_LISTS, across_parts, part_texts
from tidegate.redaction.spans import Numbers
from tidegate.redaction.treatment import Treatment

MAX_DEPTH = 128
BASE64_LEAST = 64
"""Shorter data is read like text: no image or sound is so short, but a card or a key is."""
_KNOWN_MAX = 1024
LEAST = 10 ** (LEAST_DIGITS - 1)
"""A number of smaller size has too few digits to be a value, whatever its digits are."""
Path = tuple[str | int, ...]
Holder = dict[str, object] | list[object]

BASE64 = re.compile(r"[A-Za-z0-9+/=\r\n]*")
_DATA_URL = re.compile(
    r"(data:[A-Za-z0-9.+/\-]{0,80}(?:;[A-Za-z0-9=._+\-]{1,80}){0,4};base64,)([A-Za-z0-9+/=\r\n]*)"
)
_BASE64_KEYS = frozenset({"data", "blob", "b64_json", "file_data", "result"})
_BASE64_OWNERS = MappingProxyType({"data": "redacted_thinking", "result": "image_generation_call"})
_URL_KEYS = _BASE64_KEYS | {
    "audio",
    "audio_url",
    "file",
    "file_url",
    "href",
    "image",
    "image_url",
    "images",
    "src",
    "uri",
    "url",
    "video",
    "video_url",
}
_BASE64_SIBLINGS = frozenset(
    {"mimeType", "mime_type", "media_type", "format", "transcript", "expires_at"}
)


class Visitor(Protocol):
    """What a walk asks about each thing that it meets."""

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """What stands in place of a string. Raises BlockedContent, like all of these."""

    def number(self, number: int | float, path: Path) -> object:
        """What stands in place of a number."""

    def key(self, key: str) -> None:
        """An object has this key; it stays."""

    def members(self, items: list[object], path: Path) -> None:
        """A list comes next."""


def rewrite(
    value: object, visitor: Visitor, path: Path = (), holder: Holder | None = None
) -> object:
    """`value` as `visitor` wants its leaves; the same object if none changed.

    `path` and `holder` say where `value` stands. Keys stay. ValueError if the tree is deeper than
    MAX_DEPTH.
    """
    if isinstance(value, str):
        new = visitor.text(value, path, [] if holder is None else holder)
        return value if new == value else new
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return visitor.number(value, path)
    if len(path) > MAX_DEPTH:
        raise ValueError("a JSON tree is nested too deeply")
    if isinstance(value, dict):
        return _rewrite_dict(value, visitor, path)
    return _rewrite_list(value, visitor, path) if isinstance(value, list) else value


def _rewrite_dict(value: dict[str, object], visitor: Visitor, path: Path) -> object:
    changed: dict[str, object] | None = None
    for key, inner in value.items():
        visitor.key(key)
        new = rewrite(inner, visitor, (*path, key), value)
        if new is not inner:
            changed = dict(value) if changed is None else changed
            changed[key] = new
    return value if changed is None else changed


def _rewrite_list(value: list[object], visitor: Visitor, path: Path) -> object:
    visitor.members(value, path)
    changed: list[object] | None = None
    for place, inner in enumerate(value):
        new = rewrite(inner, visitor, (*path, place), value)
        if new is not inner:
            changed = list(value) if changed is None else changed
            changed[place] = new
    return value if changed is None else changed


class LeafRedactor:
    """Treats the leaves of a tree in which every string is complete.

    `numbers` replaces the rule of the policy for numbers. One object walks one document.
    """

    def __init__(self, treatment: Treatment, *, numbers: Numbers | None = None) -> None:
        self.treatment = treatment
        self._numbers = numbers
        self._known: set[str] = set()  # keys in which nothing is found
        self._decided: dict[Path, str] = {}  # parts that a value cut over several of them changed
        self._inside: Path | None = None  # the content list whose parts have been joined

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        if self._decided and path in self._decided:
            return self._decided.pop(path)
        place = _place(path)
        if len(text) >= BASE64_LEAST and (
            (text.startswith("data:") and place in _URL_KEYS and self._is_data_url(text))
            or (
                place in _BASE64_KEYS and path[-1] == place and self._is_base64(text, place, holder)
            )
        ):
            self.treatment.counts.passes("base64")
            return text
        return self.treatment.whole(text, place)

    def number(self, number: int | float, path: Path) -> object:
        """See `Visitor`."""
        key = _place(path)
        if -LEAST < number < LEAST and not self.treatment.policy.program.secret_key(key):
            return number
        return judge_value(number, key, self.treatment, self._numbers)

    def key(self, key: str) -> None:
        """See `Visitor`."""
        if key in self._known:
            return
        if not judge_key(key, self.treatment) and len(self._known) < _KNOWN_MAX:
            self._known.add(key)

    def members(self, items: list[object], path: Path) -> None:
        """See `Visitor`."""
        if not path or path[-1] not in CONTENT_LISTS:
            return
        inside = self._inside
        if inside is not None and len(path) > len(inside) and path[: len(inside)] == inside:
            return  # its texts have been joined with those around it
        self._inside = path
        self._decided = dict(across_parts(list(part_texts(items, path)), self.treatment))

    def _is_data_url(self, text: str) -> bool:
        found = _DATA_URL.fullmatch(text)
        if found is None or len(found[2]) < BASE64_LEAST:
            return False
        policy = self.treatment.policy
        return policy.program.clean(found[1]) or not policy.scan(found[1])

    @staticmethod
    def _is_base64(text: str, key: str, holder: Holder) -> bool:
        if not BASE64.fullmatch(text):
            return False
        if key in {"blob", "b64_json"}:
            return True
        if not isinstance(holder, dict) or holder.get("type") == "text":
            return False
        owner = _BASE64_OWNERS.get(key)
        if owner is not None and holder.get("type") == owner:
            return True
        return key != "result" and not _BASE64_SIBLINGS.isdisjoint(holder)


def _place(path: Path) -> str:
    """The name of the field at `path`, also for the members of a list in it."""
    if path and isinstance(path[-1], str):
        return path[-1]
    return next((step for step in reversed(path) if isinstance(step, str)), "")
