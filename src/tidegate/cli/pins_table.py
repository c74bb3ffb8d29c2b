"""How do pins and what differs from them look on a terminal?

Lives here: rows, the table and its JSON, and what an approval of a row would accept. Pure. Does
not live here: where they come from (mcp_pins), how two texts are compared (pins_difference), what
a difference means (mcp.pins).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from tidegate.cli.pins_difference import changes, compared, shown_name
from tidegate.mcp.pin_forms import Flag, Snapshot
from tidegate.mcp.pins import Book, Pin

HEADINGS = ("server", "tool", "state", "since", "what")
MOST_SHOWN = 1_000


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
    """The same for programs; names and texts are whole, as the server wrote them."""
    return [
        {
            "server": row.server,
            "tool": row.tool,
            "state": row.pin.state,
            "since": _moment(row.pin.since_s).isoformat(),
            "changed": list(row.pin.changed_members),
            "flags": [{"kind": flag.kind, "member": flag.member} for flag in row.pin.flags],
            "pinned": _digest(row.pin.pinned),
            "differences": [asdict(change) for change in changes(row.pin)],
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
    for change in changes(pin):
        yield f"  {change.member}"
        yield from compared(change)
    before = "none" if pin.pinned is None else f"sha256 {pin.pinned.digest[:16]}"
    yield f"  pin: {before} -> sha256 {pin.seen.digest[:16]}"


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
