"""Is this the tool that was approved, and what follows if it is not?

Lives here: the pins of one server, what a list makes of them, what an approval does, and the
verdict in each mode. Pure. Does not live here: what of a definition counts (pin_forms), where
pins are kept (pin_store), when a list is looked at (gateway.pins.checked).

What a server lists first is trusted, unless it is written to be overlooked: those definitions
are its pins. From then on only an approval changes a pin: a definition that differs from its pin
is changed, a name without a pin is new, however often it is listed. A tool that leaves keeps its
pin and is compared with it when it comes back; one that is renamed is a new tool.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tidegate.mcp.pin_forms import LOOKALIKE, Flag, Snapshot, differing, name_of, skeleton
from tidegate.policy import Deny

if TYPE_CHECKING:
    from tidegate.records.entries import Trail

Mode = Literal["off", "warn", "block"]
State = Literal["pinned", "changed", "new", "flagged", "gone"]
"""`flagged` is a tool without a pin, as `new` is, that is written to be overlooked."""

MOST_PINS: Final = 4_096
"""More tools of one server than this are not pinned, and in mode block not served."""

UNPINNED: Final = "unpinned"
UNCHECKED: Final = "unchecked"
_REFUSED: Final = frozenset({"changed", "new", "flagged", UNPINNED})


class Pin(Struct, frozen=True, omit_defaults=True):
    """One tool of one server. At least one of `pinned` and `seen` is there.

    `pinned` is what was approved, by a person or by being there first; `seen` what the server
    says, if that is something else. `is_listed` is False while the server does not list it.
    `since_s` is the wall time since when all of this is so.
    """

    since_s: float
    pinned: Snapshot | None = None
    seen: Snapshot | None = None
    is_listed: bool = True

    @property
    def state(self) -> State:
        """How it stands against its pin."""
        if not self.is_listed:
            return "gone"
        if self.seen is None:
            return "pinned"
        if self.pinned is not None:
            return "changed"
        return "flagged" if self.seen.flags else "new"

    @property
    def changed_members(self) -> tuple[str, ...]:
        """Which members of its definition differ from the pin; empty unless it is changed."""
        if self.pinned is None or self.seen is None:
            return ()
        return differing(self.pinned, self.seen)

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is flagged in the definition that the server shows."""
        shown = self.seen or self.pinned
        return shown.flags if shown is not None else ()


class Book(Struct, frozen=True, omit_defaults=True):
    """The pins of one server by the names of its tools.

    `is_settled`: it has listed all of its tools once, so that whatever else comes up is new.
    `turn` grows with every change. `left_out`: how many tools there was no room for. `heard`
    counts how often the server was heard to say that its tools change, which is for all who share
    the book.
    """

    pins: dict[str, Pin] = {}
    is_settled: bool = False
    turn: int = 0
    left_out: int = 0
    heard: int = 0

    @property
    def differing(self) -> int:
        """How many of its tools are not what was approved; those that are gone do not count."""
        return sum(pin.state in _REFUSED for pin in self.pins.values())


EMPTY: Final = Book()


@dataclass(frozen=True, slots=True)
class Event:
    """A tool came into another state, or shows another definition in the same."""

    tool: str
    state: State
    members: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The book after a list, the same object if nothing in it changed, and what did."""

    book: Book
    events: tuple[Event, ...] = ()


def observe(
    book: Book,
    tools: Mapping[str, Snapshot],
    *,
    now_s: float,
    others: Callable[[], Mapping[str, str]] = dict,
    is_whole: bool = True,
    is_last: bool = True,
) -> Observed:
    """What the list `tools` of a server makes of its book.

    `others`: names of the tools of other servers by their skeletons, asked for once at most.
    `is_whole`: the list is all of it, so that what is missing is gone; of a page that is not
    known. `is_last`: with it every page has been seen, so that more would be new. Cost: linear
    in both.
    """
    pins, events, left_out = dict(book.pins), list[Event](), 0
    shapes: dict[str, str] | None = None
    for name, listed in tools.items():
        before = pins.get(name)
        if before is None and len(pins) >= MOST_PINS:
            left_out += 1
            continue
        found = listed
        if before is None or before.pinned is None:
            shapes = {**others(), **skeletons(book)} if shapes is None else shapes
            found = _with_lookalike(name, listed, shapes)
        after = _met(before, found, now_s=now_s, trusts=not book.is_settled)
        if after != before:
            pins[name] = after
            events.append(Event(name, after.state, after.changed_members, after.flags))
    for name in [name for name in pins if is_whole and name not in tools]:
        events += _missed(pins, name, now_s)
    is_settled = book.is_settled or (is_last and bool(pins))
    left_out = left_out if is_whole else max(left_out, book.left_out)
    if not events and (is_settled, left_out) == (book.is_settled, book.left_out):
        return Observed(book)
    observed = Book(pins, is_settled, book.turn + 1, left_out, book.heard)
    return Observed(observed, tuple(events))


def approve(book: Book, tools: Iterable[str], *, now_s: float) -> Book:
    """The book in which what the server shows of `tools` is right.

    A changed, new or flagged definition becomes the pin, the pin of a tool that is gone is
    dropped, a pinned one stays. Raises KeyError for a name without an entry.
    """
    pins = dict(book.pins)
    for name in tools:
        pin = pins[name]
        if not pin.is_listed:
            del pins[name]
        elif pin.seen is not None:
            pins[name] = Pin(now_s, pinned=pin.seen)
    return book if pins == book.pins else replace(book, pins=pins, turn=book.turn + 1)


class Verdicts:
    """What may be seen and called of one server, by its book, in `mode`.

    `unchecked`: nobody knows whether the book is right; only mode warn goes on then.
    """

    __slots__ = ("_book", "_mode", "_server", "_unchecked")

    def __init__(self, server: str, mode: Mode, book: Book, *, unchecked: bool = False) -> None:
        self._server = server
        self._mode = mode
        self._book = book
        self._unchecked = unchecked

    @classmethod
    def of_nothing(cls, server: str, mode: Mode) -> "Verdicts":
        """Those of a server of which nothing is known to be approved."""
        return cls(server, mode, EMPTY, unchecked=True)

    @property
    def blocks(self) -> bool:
        """Whether anything may be kept back."""
        return self._mode == "block"

    def word(self, tool: str) -> str:
        """Empty for a tool that is what was approved, else its state, or why there is none."""
        pin = self._book.pins.get(tool)
        if pin is not None and pin.state != "pinned":
            return pin.state
        if self._unchecked:
            return UNCHECKED
        return UNPINNED if pin is None else ""

    def refuses(self, tool: str) -> bool:
        """Whether a call of `tool`, by the server's own name, must not reach the server.

        One that is gone passes: its pin stands, and a server may list a tool to some of its
        sessions only.
        """
        return self._mode == "block" and (self._unchecked or self.word(tool) in _REFUSED)

    def shows(self, item: object) -> bool:
        """Whether an element of a list of tools may be seen."""
        if self._mode != "block":
            return True
        name = name_of(item)
        return name is not None and not self.refuses(name)

    def deny(self, tool: str) -> Deny | None:
        """The decision against a call of `tool`; None if its pin has nothing against it."""
        if not self.refuses(tool):
            return None
        return Deny(self._rule, f"pin_{self.word(tool)}")

    def note(self, trail: "Trail", tool: str) -> None:
        """The step of the record about a call of `tool`: allow, warn or deny, and why."""
        word = self.word(tool)
        verdict = "deny" if self.refuses(tool) else "warn" if word else "allow"
        reason = f"pin_{word}" if word else None
        trail.step("pin", verdict, rule=self._rule, server=self._server, tool=tool, reason=reason)

    @property
    def _rule(self) -> str:
        return f"mcp.servers.{self._server}.pin"


def skeletons(book: Book) -> dict[str, str]:
    """The tools of a server that have a pin, by what their names look like."""
    return {skeleton(name): name for name, pin in book.pins.items() if pin.pinned is not None}


def _met(before: Pin | None, found: Snapshot, *, now_s: float, trusts: bool) -> Pin:
    """What an entry is after its tool was listed as `found`."""
    if before is None:
        is_trusted = trusts and not found.flags
        return Pin(now_s, pinned=found) if is_trusted else Pin(now_s, seen=found)
    pinned = before.pinned
    is_same = pinned is not None and pinned.digest == found.digest
    seen = None if is_same else found
    if before.is_listed and _digest(before.seen) == _digest(seen):
        return before
    return Pin(now_s, pinned=pinned, seen=seen)


def _missed(pins: dict[str, Pin], name: str, now_s: float) -> list[Event]:
    """Note that a tool is not listed any more; one that was never approved is forgotten."""
    pin = pins[name]
    if pin.pinned is None:
        del pins[name]
    elif pin.is_listed:
        pins[name] = Pin(now_s, pinned=pin.pinned, is_listed=False)
    else:
        return []
    return [Event(name, "gone")]


def _digest(found: Snapshot | None) -> str | None:
    return None if found is None else found.digest


def _with_lookalike(name: str, found: Snapshot, shapes: dict[str, str]) -> Snapshot:
    """Flag a name that is easily taken for another one; the first of two keeps the shape."""
    shape = skeleton(name)
    if shapes.setdefault(shape, name) == name:
        return found
    flags = tuple(sorted({*found.flags, Flag(LOOKALIKE, "name")}))
    return replace(found, flags=flags)


__all__ = [
    "EMPTY",
    "MOST_PINS",
    "UNCHECKED",
    "UNPINNED",
    "Book",
    "Event",
    "Mode",
    "Observed",
    "Pin",
    "State",
    "Verdicts",
    "approve",
    "observe",
    "skeletons",
]
