"""What of a tool is pinned, and what in its texts would its reader not see?

Lives here: the canonical form of a tool's definition, its digest, and the flags of what is
written to be overlooked. Does not live here: what a difference means (pins), where it is kept
(pin_store).

Pinned are the six members by which a model or a person decides to call a tool and how: its name,
title, description, both schemas and the annotations, and whatever a reader that folds letters
would take for one of them. Not pinned are `_meta`, which servers change with every answer,
`icons`, which no model reads, `execution`, which only says how to wait, and members that no
revision of MCP defines.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from tidegate.mcp.folding import fold, is_invisible

MEMBERS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MOST_TEXT_CHARS: Final = 16_000
MOST_NAME_CHARS: Final = 256
_FOLDED: Final = MappingProxyType({fold(member): member for member in MEMBERS})
_LONGEST_SPELLING: Final = 64
_MOST_KNOWN_BYTES: Final = 4_194_304

CONTROL: Final = "control"
ANSI: Final = "ansi"
INVISIBLE: Final = "invisible"
BIDI: Final = "bidi"
DISGUISED: Final = "disguised"
DUPLICATE: Final = "duplicate"
LOOKALIKE: Final = "lookalike"

_ANSI_STARTS: Final = "\x1b\x9b"
_LINES: Final = "\t\n\r"
_SEPARATORS: Final = "\u2028\u2029"
_BIDI: Final = frozenset("\u061c\u200e\u200f") | frozenset(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_JOINERS: Final = frozenset("\u200c\u200d")
_STYLES: Final = frozenset("\ufe0e\ufe0f")
# Variation selectors that Unicode counts among the marks: whole texts have been hidden in them.
_SELECTORS: Final = frozenset(map(chr, (*range(0x180B, 0x180E), 0x180F, *range(0xE0100, 0xE01F0))))
_BLANKS: Final = frozenset("\u00a0\u1680\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
_PLAIN: Final = re.compile(r"[\t\n\r -~]*")
_PLAIN_NAME: Final = re.compile(r"[!-~]*")

# What is drawn alike. Letters after folding, so one row serves both cases; `i`, `l` and `1` are
# one shape because a capital I is. Source of the idea: UTS #39, section 4.
_SHAPES: Final = str.maketrans(
    {
        **dict(zip("01i|", "olll", strict=True)),
        **dict(zip("авекмнорстухіјѕһԁԛԝ", "abekmhopctyxljshdqw", strict=True)),
        **dict(zip("αβεηικνορτυχωγ", "abenlkvoptuxwy", strict=True)),
        **dict(zip("օսհոցզ", "ouhngq", strict=True)),  # noqa: RUF001
        **dict(zip("ıɑɡɩ", "lagl", strict=True)),  # noqa: RUF001
    }
)


class Member(Struct, frozen=True, array_like=True):
    """One member of a definition: its digest, and as much of its text as is shown to a person."""

    name: str
    digest: str
    text: str


class Flag(Struct, frozen=True, array_like=True, order=True):
    """Something written to be overlooked: its kind, and the member it stands in."""

    kind: str
    member: str


class Snapshot(Struct, frozen=True):
    """One definition as it was seen; two are the same definition if their digests are."""

    digest: str
    members: tuple[Member, ...]
    flags: tuple[Flag, ...] = ()


def canonical(value: object) -> bytes:
    """The one spelling of a JSON value: sorted members, no blanks, ASCII, whole numbers whole.

    1.0 becomes 1: for a schema they are the same number, and servers in different languages
    write it differently. The order of a list is kept.
    """
    return _COMPACT(_plain(value)).encode("ascii")


def digest_of(tool: Mapping[str, object]) -> str:
    """SHA-256, in hex, of the canonical form of what is pinned of `tool`."""
    return hashlib.sha256(canonical(_pinned_part(tool))).hexdigest()


class Survey:
    """What the lists of one server say; what it said before is not looked at once more.

    Holds some megabytes at most. Not for several threads at once.
    """

    __slots__ = ("_bytes", "_known", "_last")

    def __init__(self) -> None:
        self._known: dict[bytes, Snapshot] = {}
        self._bytes = 0
        self._last: tuple[bytes, dict[str, Snapshot]] = (b"", {})

    def recall(self, tools: Sequence[object]) -> dict[str, Snapshot] | None:
        """What `of` said of the same list the last time; None if that was another one.

        The same object, which nobody changes. Cost: some us for each kB.
        """
        text, found = self._last
        return found if text and _quick(tools) == text else None

    def of(self, tools: Sequence[object]) -> dict[str, Snapshot]:
        """What a list says about each tool, by name.

        A name that stands twice in the list is one tool with both definitions, flagged unless
        they are the same. An element without a name that can be kept is left out: nobody may
        call it. Cost: linear; some 200 us for a tool of 2 kB, 4 us if it is known.
        """
        by_name: defaultdict[str, list[Snapshot]] = defaultdict(list)
        for tool in tools:
            if (name := name_of(tool)) is not None and isinstance(tool, dict):
                by_name[name].append(self._snapshot(tool))
        found = {name: _together(same) for name, same in by_name.items()}
        text = _quick(tools)
        self._last = (text, found) if len(text) <= _MOST_KNOWN_BYTES else (b"", {})
        return found

    def knows(self, tools: Iterable[object]) -> bool:
        """Whether all of `tools` are known as they are."""
        return all(_quick(tool) in self._known for tool in tools)

    def _snapshot(self, tool: Mapping[str, object]) -> Snapshot:
        text = _quick(tool)
        found = self._known.get(text)
        if found is None:
            found = snapshot(tool)
            self._bytes += len(text)
            if self._bytes > _MOST_KNOWN_BYTES:
                self._known, self._bytes = {}, len(text)
            if text:
                self._known[text] = found
        return found


def survey(tools: Iterable[object]) -> dict[str, Snapshot]:
    """What a list says about each tool, without one before."""
    return Survey().of(list(tools))


def _quick(value: object) -> bytes:
    """A spelling of a value that no other one has; empty if it has none that is quickly made."""
    try:
        return _QUICK(value)
    except (ValueError, OverflowError, RecursionError):
        return b""


def name_of(tool: object) -> str | None:
    """The name under which a tool is pinned; None if it has none."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARS:
        return None
    return name if _is_unicode(name) else None


def snapshot(tool: Mapping[str, object]) -> Snapshot:
    """The definition of one tool."""
    part = _pinned_part(tool)
    forms = {member: canonical(value) for member, value in part.items()}
    flags = {flag for member, value in part.items() for flag in _flags(member, value)}
    return Snapshot(
        digest=hashlib.sha256(_object_of(forms)).hexdigest(),
        members=tuple(_member(name, part[name], forms[name]) for name in sorted(part, key=_rank)),
        flags=tuple(sorted(flags)),
    )


def skeleton(name: str) -> str:
    """What `name` looks like at a glance: equal for names that are easily taken for each other."""
    shape = fold(name).translate(_SHAPES)
    return shape.replace("rn", "m").replace("vv", "w")


def differing(old: Snapshot, new: Snapshot) -> tuple[str, ...]:
    """The members that are not the same in both, in the order of MEMBERS; empty if all are."""
    before = {member.name: member.digest for member in old.members}
    after = {member.name: member.digest for member in new.members}
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if not names and old.digest != new.digest:
        return ("definition",)
    return tuple(sorted(names, key=_rank))


def _pinned_part(tool: Mapping[str, object]) -> dict[str, object]:
    """A member that is null is one that is absent: some servers write every optional one."""
    return {
        member: value
        for member, value in tool.items()
        if value is not None and _taken_for(member) is not None
    }


def _taken_for(member: str) -> str | None:
    """Which of MEMBERS some reader may take a member for."""
    if member in MEMBERS:
        return member
    return _FOLDED.get(fold(member)) if len(member) <= _LONGEST_SPELLING else None


def _rank(name: str) -> tuple[int, str]:
    return (MEMBERS.index(name) if name in MEMBERS else len(MEMBERS), name)


def _object_of(forms: Mapping[str, bytes]) -> bytes:
    """The canonical form of an object from those of its members."""
    return b"{%b}" % b",".join(b"%b:%b" % (canonical(name), forms[name]) for name in sorted(forms))


def _member(name: str, value: object, form: bytes) -> Member:
    digest = hashlib.sha256(form).hexdigest()
    text = value if isinstance(value, str) else _READABLE(_plain(value))
    shown = text[:MOST_TEXT_CHARS].encode("utf-8", "backslashreplace").decode()
    label = name if name in MEMBERS else f"a disguised {_taken_for(name)}"
    return Member(label, digest[:32], shown)


def _together(same: Sequence[Snapshot]) -> Snapshot:
    if len({one.digest for one in same}) == 1:
        return same[0]
    digests = sorted(one.digest for one in same)
    both = hashlib.sha256(" ".join(digests).encode("ascii")).hexdigest()
    told = tuple(Member(DUPLICATE, one.digest[:32], "") for one in same[1:])
    flags = {flag for one in same for flag in one.flags} | {Flag(DUPLICATE, "name")}
    return Snapshot(both, (*same[0].members, *told[:1]), tuple(sorted(flags)))


def _flags(member: str, value: object) -> Iterator[Flag]:
    known = _taken_for(member) or member
    if member not in MEMBERS:
        yield Flag(DISGUISED, known)
    one_line = member in ("name", "title")
    for text in _strings(value):
        kinds = _kinds_in(text, one_line=one_line, is_name=member == "name")
        yield from (Flag(kind, known) for kind in kinds)


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, the names of members as well."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(members):
                yield from members
                waiting.extend(members.values())
            case list(items):
                waiting.extend(items)
            case _:
                pass


def _kinds_in(text: str, *, one_line: bool, is_name: bool) -> set[str]:
    allowed = _PLAIN_NAME if is_name else _PLAIN
    if allowed.fullmatch(text) and not (one_line and any(c in _LINES for c in text)):
        return set()
    kinds = set()
    padded = ("", *text, "")
    for (before, character), after in zip(pairwise(padded), padded[2:], strict=False):
        kind = _kind_of(character, one_line=one_line, is_name=is_name)
        if kind == INVISIBLE and not is_name and _is_orthography(before, character, after):
            continue
        kinds.add(kind)
    return kinds - {""}


def _kind_of(character: str, *, one_line: bool, is_name: bool) -> str:
    if "!" <= character <= "~":
        return ""
    if character in _LINES:
        return CONTROL if one_line else ""
    if character in _ANSI_STARTS:
        return ANSI
    if character in _BIDI:
        return BIDI
    if character < " " or "\x7f" <= character < "\xa0" or character in _SEPARATORS:
        return CONTROL
    if character == " " or character in _BLANKS:
        return INVISIBLE if is_name else ""
    return INVISIBLE if character in _SELECTORS or is_invisible(character) else ""


def _is_orthography(before: str, character: str, after: str) -> bool:
    """Joiners inside of a script or an emoji, and one choice of style behind a sign."""
    if character in _STYLES:
        return bool(before) and not before.isalpha() and not is_invisible(before)
    inside = bool(before and after) and not before.isascii() and not after.isascii()
    return character in _JOINERS and inside and not is_invisible(after)


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: object) -> object:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict(members):
            return {name: _plain(inner) for name, inner in members.items()}
        case list(items):
            return [_plain(item) for item in items]
        case _:
            return value


_COMPACT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_QUICK = msgspec.json.Encoder().encode
_READABLE = json.JSONEncoder(sort_keys=True, indent=1, ensure_ascii=False).encode

__all__ = [
    "ANSI",
    "BIDI",
    "CONTROL",
    "DISGUISED",
    "DUPLICATE",
    "INVISIBLE",
    "LOOKALIKE",
    "MEMBERS",
    "MOST_TEXT_CHARS",
    "Flag",
    "Member",
    "Snapshot",
    "Survey",
    "canonical",
    "differing",
    "digest_of",
    "name_of",
    "skeleton",
    "snapshot",
    "survey",
]
