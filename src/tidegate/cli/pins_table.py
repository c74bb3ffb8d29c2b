"""How do pins and what differs from them look on a terminal?

Lives here: rows, the table and its JSON, and the difference between two definitions, in bounded
text in which nothing can hide. Pure. Does not live here: where they come from (mcp_pins), what a
difference means (mcp.pins).
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest

from tidegate.mcp.patterns import is_invisible
from tidegate.mcp.pin_forms import MOST_TEXT_CHARS, Flag, Snapshot
from tidegate.mcp.pins import Book, Pin

HEADINGS = ("server", "tool", "state", "since", "what")
MOST_SHOWN = 1_000
_MOST_LINES = 40
_MOST_CHARS = 160
_BEFORE_CHARS = 40
_MOST_COMPARED = 500
_MOST_NAME_CHARS = 80
_SELECTORS = (0x180B, 0x1810, 0xE0100, 0xE01F0)


@dataclass(frozen=True, slots=True)
class Row:
    """One tool of one server."""

    server: str
    tool: str
    pin: Pin

    @property
    def differs(self) -> bool:
        """Whether it is anything but what was approved."""
        return self.pin.state != "pinned"

    @property
    def needs_a_look(self) -> bool:
        """Whether its definition is written to be overlooked and was not approved."""
        return self.differs and self.pin.seen is not None and bool(self.pin.seen.flags)


def rows_of(books: Mapping[str, Book]) -> list[Row]:
    """Every tool: by server in the order given, differences first, then by name."""
    rows = [
        Row(server, tool, pin) for server, book in books.items() for tool, pin in book.pins.items()
    ]
    order = {server: number for number, server in enumerate(books)}
    return sorted(rows, key=lambda row: (order[row.server], not row.differs, row.tool))


def table(rows: Sequence[Row]) -> list[str]:
    """The headings and a line for each tool."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def document(rows: Iterable[Row]) -> list[dict[str, object]]:
    """The same for programs; names are whole and as the server wrote them."""
    return [
        {
            "server": row.server,
            "tool": row.tool,
            "state": row.pin.state,
            "since": _moment(row.pin.since_s).isoformat(),
            "changed": list(row.pin.changed_members),
            "flags": [{"kind": flag.kind, "member": flag.member} for flag in row.pin.flags],
            "pinned": _digest(row.pin.pinned),
            "shown": None if row.pin.state == "gone" else _digest(row.pin.seen or row.pin.pinned),
        }
        for row in rows
    ]


def difference(row: Row) -> Iterator[str]:
    """What an approval of this tool would accept, in some lines."""
    pin = row.pin
    yield f"{row.server}/{shown_name(row.tool)}: {pin.state}{_why(pin)}"
    if pin.state == "gone":
        yield "  It is not listed any more. Approving drops its pin; if it comes back it is new."
        return
    if pin.seen is None:
        return
    old = {} if pin.pinned is None else {each.name: each.text for each in pin.pinned.members}
    new = {each.name: each.text for each in pin.seen.members}
    for member in pin.changed_members if pin.pinned is not None else tuple(new):
        yield f"  {member}"
        shows = shown_name if member == "name" else _visible
        yield from _compared(old.get(member), new.get(member), shows)
    before = "none" if pin.pinned is None else f"sha256 {pin.pinned.digest[:16]}"
    yield f"  pin: {before} -> sha256 {pin.seen.digest[:16]}"


def shown_name(name: str) -> str:
    """A name of a tool in ASCII, bounded: letters that only look like others show what they are."""
    text = "".join(c if "!" <= c <= "~" else _escaped(c) for c in name[: _MOST_NAME_CHARS + 1])
    return text if len(name) <= _MOST_NAME_CHARS else f"{text[:_MOST_NAME_CHARS]}..."


def _cells(row: Row) -> tuple[str, ...]:
    since = f"{_moment(row.pin.since_s):%Y-%m-%d %H:%M} UTC"
    return row.server, shown_name(row.tool), row.pin.state, since, _what(row.pin)


def _what(pin: Pin) -> str:
    return "; ".join((*filter(None, [", ".join(pin.changed_members)]), *_told(pin.flags)))


def _why(pin: Pin) -> str:
    changed = f" in {', '.join(pin.changed_members)}" if pin.changed_members else ""
    flags = f" ({'; '.join(_told(pin.flags))})" if pin.flags else ""
    return changed + flags


def _told(flags: Iterable[Flag]) -> Iterator[str]:
    return (f"{flag.kind} in {flag.member}" for flag in flags)


def _compared(old: str | None, new: str | None, shows: Callable[[str], str]) -> Iterator[str]:
    """The lines that go and come, each around the place where it begins to differ."""
    before = [] if old is None else old.split("\n")
    after = [] if new is None else new.split("\n")
    moved = _moved(before, after)
    lines = [f"  {sign} {shows(line)}" for go, come in moved for sign, line in _around(go, come)]
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"    ... and {len(lines) - _MOST_LINES} lines more"
    elif not lines:
        yield f"    differs beyond the first {MOST_TEXT_CHARS} characters"


def _moved(before: list[str], after: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    # Of more lines, the time to compare them would be noticed.
    matcher = difflib.SequenceMatcher(
        None, before[:_MOST_COMPARED], after[:_MOST_COMPARED], autojunk=False
    )
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind != "equal":
            yield before[start:end], after[other_start:other_end]


def _around(gone: list[str], came: list[str]) -> Iterator[tuple[str, str]]:
    pairs = list(zip_longest(gone, came, fillvalue=""))
    starts = [_alike(*pair) for pair in pairs]
    for sign, lines in (("-", gone), ("+", came)):
        for line, start in zip(lines, starts, strict=False):
            yield sign, _window(line, start)


def _alike(one: str, other: str) -> int:
    """How many characters two lines begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (c, d) in pairs if c != d), min(len(one), len(other)))


def _window(line: str, at: int) -> str:
    """The part of a line around a place in it."""
    start = max(0, at - _BEFORE_CHARS) if len(line) > _MOST_CHARS else 0
    part = line[start : start + _MOST_CHARS]
    left = "..." if start else ""
    right = "..." if start + _MOST_CHARS < len(line) else ""
    return f"{left}{part}{right}"


def _visible(text: str) -> str:
    return "".join(c if c == " " or _is_visible(c) else _escaped(c) for c in text)


def _is_visible(character: str) -> bool:
    low, high, more, most = _SELECTORS
    is_selector = low <= ord(character) < high or more <= ord(character) < most
    return character.isprintable() and not is_invisible(character) and not is_selector


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _digest(found: Snapshot | None) -> str | None:
    return None if found is None else found.digest


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), tz=UTC)


__all__ = [
    "HEADINGS",
    "MOST_SHOWN",
    "Row",
    "difference",
    "document",
    "rows_of",
    "shown_name",
    "table",
]
