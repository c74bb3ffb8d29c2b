"""What happens to a string that stands somewhere in a JSON tree and is whole by itself?

Lives here: the walk over a tree that copies only what changes, and the judgement of one string
leaf (base64 passes where base64 belongs, every other string is redacted, numbers are never
touched). Does not live here: fields whose text goes on
in later events (chat_stream).
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate.redaction.spans import Counts
from tidegate.redaction.treatment import Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

MAX_DEPTH = 128
Path = tuple[str | int, ...]
Holder = dict[str, object] | list[object]
Visit = Callable[[str, Path, Holder], str]

_BASE64 = re.compile(r"[A-Za-z0-9+/=\r\n]*")
_DATA_URL = re.compile(
    r"data:[A-Za-z0-9.+/\-]{0,80}(?:;[A-Za-z0-9=._+\-]{1,80}){0,4};base64,[A-Za-z0-9+/=\r\n]*"
)
_BASE64_KEYS = frozenset({"data", "blob", "b64_json", "file_data"})
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


def rewrite(value: object, visit: Visit, path: Path = (), holder: Holder | None = None) -> object:
    """`value` with every string leaf passed through `visit`; the same object if none changed.

    `path` and `holder` say where `value` stands. Keys stay. ValueError if the tree is deeper than
    MAX_DEPTH.
    """
    if isinstance(value, str):
        new = visit(value, path, [] if holder is None else holder)
        return value if new == value else new
    if len(path) > MAX_DEPTH:
        raise ValueError("a JSON tree is nested too deeply")
    if isinstance(value, dict):
        return _rewrite_dict(value, visit, path)
    if isinstance(value, list):
        return _rewrite_list(value, visit, path)
    return value


def _rewrite_dict(value: dict[str, object], visit: Visit, path: Path) -> object:
    changed: dict[str, object] | None = None
    for key, inner in value.items():
        new = rewrite(inner, visit, (*path, key), value)
        if new is not inner:
            changed = dict(value) if changed is None else changed
            changed[key] = new
    return value if changed is None else changed


def _rewrite_list(value: list[object], visit: Visit, path: Path) -> object:
    changed: list[object] | None = None
    for place, inner in enumerate(value):
        new = rewrite(inner, visit, (*path, place), value)
        if new is not inner:
            changed = list(value) if changed is None else changed
            changed[place] = new
    return value if changed is None else changed


class LeafRedactor:
    """Treats whole strings."""

    def __init__(self, treatment: Treatment) -> None:
        self._treatment = treatment

    def visit(self, text: str, path: Path, holder: Holder) -> str:
        """For `rewrite`: the redacted text of one leaf. Raises BlockedContent."""
        key = path[-1] if path and isinstance(path[-1], str) else ""
        if text.startswith("data:") and _place(path) in _URL_KEYS and _DATA_URL.fullmatch(text):
            self._treatment.counts.unscanned += 1
            return text
        if key in _BASE64_KEYS and self._is_base64(text, key, holder):
            self._treatment.counts.unscanned += 1
            return text
        return self._treatment.whole(text, key)

    @staticmethod
    def _is_base64(text: str, key: str, holder: Holder) -> bool:
        if not _BASE64.fullmatch(text):
            return False
        if key in {"blob", "b64_json"}:
            return True
        return isinstance(holder, dict) and not _BASE64_SIBLINGS.isdisjoint(holder)


def _place(path: Path) -> str:
    """The name of the field at `path`, also for the members of a list in it."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


_PLACE_NAMES = frozenset({"nextCursor", "progressToken"})


def redact_tree(value: object, policy: "RedactionPolicy | Treatment") -> tuple[object, Counts]:
    """Every string leaf of a JSON tree redacted; the same object when nothing changed.

    An `id` at the top and the place names of MCP pass, because the client sends or compares them
    as they are; so does base64 data. Raises BlockedContent, and ValueError for a tree that is
    too deep.
    """
    treatment = Treatment.of(policy)
    leaves = LeafRedactor(treatment)

    def visit(text: str, path: Path, holder: Holder) -> str:
        if path == ("id",) or (path and path[-1] in _PLACE_NAMES):
            return text
        return leaves.visit(text, path, holder)

    return rewrite(value, visit), treatment.counts
