"""How does a person see what differs between two definitions of a tool?

Lives here: which members differ, and every stretch of text that goes or comes, in bounded lines in
which nothing can hide. Pure. Does not live here: which tools there are (pins_table), what a
difference means (mcp.pins).
"""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tidegate.mcp.folding import is_invisible
from tidegate.mcp.pin_forms import MOST_TEXT_CHARS, Member
from tidegate.mcp.pins import Pin

_MOST_LINES = 40
_MOST_CHARS = 160
_AROUND_CHARS = 40
_MOST_COMPARED = 500
_MOST_NAME_CHARS = 80
_SELECTORS = (0x180B, 0x1810, 0xE0100, 0xE01F0)


@dataclass(frozen=True, slots=True)
class Change:
    """One member that differs, as the pin has it and as the server shows it; None: has none.

    Not `is_whole`: more of it was pinned or seen than is kept as text.
    """

    member: str
    before: str | None
    after: str | None
    is_whole: bool


def changes(pin: Pin) -> list[Change]:
    """All that an approval would accept; without a pin, every member of the definition."""
    if pin.seen is None:
        return []
    old = _by_name(() if pin.pinned is None else pin.pinned.members)
    new = _by_name(pin.seen.members)
    found = []
    for name in dict.fromkeys((*new, *old)):
        before, after = old.get(name, []), new.get(name, [])
        if [each.digest for each in before] != [each.digest for each in after]:
            is_whole = all(len(each.text) < MOST_TEXT_CHARS for each in (*before, *after))
            found.append(Change(name, _text(before), _text(after), is_whole))
    return found


def compared(change: Change) -> Iterator[str]:
    """The lines that go and come; of long ones each stretch that differs, wrapped."""
    shows = _ascii if change.member == "name" else _seen
    before = [] if change.before is None else change.before.split("\n")
    after = [] if change.after is None else change.after.split("\n")
    shown = Counter[str]()
    for sign, row in _rows(before, after, shows):
        shown[sign] += 1
        if shown[sign] <= _MOST_LINES:
            yield row
    if (more := sum(max(0, count - _MOST_LINES) for count in shown.values())) > 0:
        yield f"    ... and {more} lines more, which `tidegate mcp pins --json` has"
    if not change.is_whole:
        may = "may differ" if shown else "differs"
        yield f"    {may} beyond the first {MOST_TEXT_CHARS} characters: no more of it is kept"
    elif not shown:
        yield "    differs in what is not kept as text"


def shown_name(name: str) -> str:
    """A name of a tool in ASCII, bounded: letters that only look like others show what they are."""
    text = "".join(map(_ascii, name[: _MOST_NAME_CHARS + 1]))
    return text if len(name) <= _MOST_NAME_CHARS else f"{text[:_MOST_NAME_CHARS]}..."


def _by_name(members: Iterable[Member]) -> dict[str, list[Member]]:
    """Several spellings of one member bear the same name."""
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(member.name, []).append(member)
    return found


def _text(members: list[Member]) -> str | None:
    return "\n".join(member.text for member in members) if members else None


def _rows(
    before: list[str], after: list[str], shows: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    for gone, came in _moved(before, after):
        pairs = [pair for pair in zip_longest(gone, came) if pair[0] != pair[1]]
        for sign, side in (("-", 0), ("+", 1)):
            for pair in pairs:
                if (line := pair[side]) is not None:
                    for row in _wrapped(sign, _stretch(line, pair[1 - side] or "", shows)):
                        yield sign, row


def _moved(before: list[str], after: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(before), len(after)) > _MOST_COMPARED:
        # Of more lines, the time to compare them would be noticed.
        yield before, after
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, low, high, other_low, other_high in matcher.get_opcodes():
        if kind != "equal":
            yield before[low:high], after[other_low:other_high]


def _alike(one: "list[str] | str", other: "list[str] | str") -> int:
    """How much of two texts is alike from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (c, d) in pairs if c != d), min(len(one), len(other)))


def _stretch(line: str, other: str, shows: Callable[[str], str]) -> list[str]:
    """The characters of a line from the first to the last that differs, and some around them."""
    if len(line) <= _MOST_CHARS:
        return list(map(shows, line))
    start = _alike(line, other)
    end = _alike(line[start:][::-1], other[start:][::-1])
    low, high = max(0, start - _AROUND_CHARS), len(line) - max(0, end - _AROUND_CHARS)
    left, right = ["..."] if low else [], ["..."] if high < len(line) else []
    return [*left, *map(shows, line[low:high]), *right]


def _wrapped(sign: str, characters: list[str]) -> Iterator[str]:
    """Rows that are not too wide; the second and all after it have a mark that no text can have."""
    row, width, lead = "", 0, f"  {sign} "
    for shown in characters:
        if width and width + len(shown) > _MOST_CHARS:
            yield lead + row
            row, width, lead = "", 0, f"  {sign}: "
        row, width = row + shown, width + len(shown)
    yield lead + row


def _ascii(character: str) -> str:
    return character if "!" <= character <= "~" and character != "\\" else _escaped(character)


def _seen(character: str) -> str:
    """The character if it can be seen; else, and for a backslash, its escape."""
    if character == " ":
        return character
    is_plain = character != "\\" and _is_visible(character)
    return character if is_plain else _escaped(character)


def _is_visible(character: str) -> bool:
    low, high, more, most = _SELECTORS
    is_selector = low <= ord(character) < high or more <= ord(character) < most
    return character.isprintable() and not is_invisible(character) and not is_selector


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


__all__ = ["Change", "changes", "compared", "shown_name"]
