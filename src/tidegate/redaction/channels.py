"""Which texts of one response are open, and in what shape does each go on?

Lives here: the redactor or lexer of every open text, the identity of tool calls as providers
really send them (index missing, repeated, from 1), the bound on their number, and the delta that
carries held text out. Does not live here: reading events (chat_stream).
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.redaction.leaves import Path
from tidegate.redaction.spans import TooManyChannels, UpstreamAtFault

if TYPE_CHECKING:
    from tidegate.redaction.treatment import Text, Treatment

MAX_CHANNELS = 64
_MAX_CALLS = 4096
_MAX_CHOICES = 4096
_IDENTITY = ("index", "type")
# Short enough to be no secret: what carries held text out is not redacted again.
_WORD = re.compile(r"[a-z][a-z_.]{0,19}")

Shape = list[tuple[str, dict[str, object] | None]]
Delta = dict[str, object]


@dataclass(slots=True)
class Channel:
    """One open text of one choice."""

    choice: int
    text: "Text | ArgumentsRedactor"
    shape: Shape

    def tail(self) -> Delta:
        """The members of a choice that carry what was held; empty if nothing was."""
        rest: object = self.text.flush()
        if not rest:
            return {}
        for key, identity in reversed(self.shape):
            inner = rest
            if identity is not None and isinstance(inner, dict):
                inner = [{**identity, **inner}]
            rest = {key: inner}
        return rest if isinstance(rest, dict) else {}


def shape_of(choice: Delta, path: Path) -> Shape:
    """How to build a choice that holds nothing but the text at `path`."""
    shape: Shape = []
    node: Any = choice
    for step in path:
        node = node[step]
        if isinstance(step, str):
            shape.append((step, None))
            continue
        key, _ = shape[-1]
        # The type of a tool call is sent once; clients that add up deltas would double it.
        names = ("index",) if key == "tool_calls" else _IDENTITY
        known = node if isinstance(node, dict) else {}
        shape[-1] = (key, {name: known[name] for name in names if is_plain(known.get(name))})
    return shape


def is_plain(value: object) -> bool:
    """What tells a part from others, and is no text: an index, or the word for its type."""
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def name_of(choice: Delta, path: Path) -> tuple[Hashable, ...]:
    """What the text at `path` of `choice` is called in every event that carries a piece of it.

    The parts of a list are pieces of one text, unless each has an index: whoever adds deltas up
    appends them. A content that comes as a text and as parts is one text too.
    """
    name: list[Hashable] = []
    node: Any = choice
    for step in path:
        node = node[step]
        if isinstance(step, str):
            name.append(step)
        elif isinstance(node, dict) and isinstance(node.get("index"), int):
            name.append(("index", node["index"]))
    if name[-1] == "text" and isinstance(path[-2:-1] and path[-2], int) and len(name) > 1:
        name.pop()
    return tuple(name)


class Channels:
    """The open texts of one response; at most MAX_CHANNELS, beyond that TooManyChannels."""

    def __init__(self, treatment: "Treatment") -> None:
        self._treatment = treatment
        self._open: dict[tuple[Hashable, ...], Channel] = {}
        self._call_ids: dict[tuple[Hashable, Hashable], str] = {}
        self._last_call: dict[Hashable, Hashable] = {}
        self._ended: set[int] = set()
        self.changes = 0  # grows when a later event may belong to another channel than before

    @property
    def pending(self) -> int:
        """Characters held over all texts."""
        return sum(channel.text.pending for channel in self._open.values())

    def text(self, choice: int, path: Path, holder: Delta) -> "Text":
        """The way of the text at `path` of `holder`, which is the choice as it came."""
        key = (choice, *name_of(holder, path))
        channel = self._open.get(key)
        if channel is None or isinstance(channel.text, ArgumentsRedactor):
            name = path[-1] if isinstance(path[-1], str) else ""
            text = self._treatment.text(lead=self._treatment.lead_of(name))
            self._add(key, Channel(choice, text, shape_of(holder, path)))
            return text
        return channel.text

    def arguments(
        self, choice: int, slot: Hashable, path: Path, holder: Delta
    ) -> ArgumentsRedactor | None:
        """The lexer of the call in `slot`; None if arguments pass unread."""
        treatment = self._treatment.for_arguments
        if treatment is None:
            return None
        key = (choice, path[0], "arguments", slot)
        channel = self._open.get(key)
        if channel is None or not isinstance(channel.text, ArgumentsRedactor):
            text = ArgumentsRedactor(treatment)
            self._add(key, Channel(choice, text, shape_of(holder, path)))
            return text
        return channel.text

    def _add(self, key: tuple[Hashable, ...], channel: Channel) -> None:
        self._make_room()
        self._open[key] = channel

    def _make_room(self) -> None:
        if len(self._open) < MAX_CHANNELS:
            return
        for key, channel in list(self._open.items()):
            text = channel.text
            if isinstance(text, ArgumentsRedactor) and text.complete and not text.pending:
                del self._open[key]
                self.changes += 1
        if len(self._open) >= MAX_CHANNELS:
            raise TooManyChannels(f"more than {MAX_CHANNELS} open texts in one response")

    def call_slot(
        self, choice: int, root: str, position: int, item: dict[str, object]
    ) -> tuple[Hashable, Delta]:
        """Where the state of this tool-call fragment lives, and the tail of a call it replaces.

        `root` is the member of the choice that the calls stand in.

        The index alone does not name a call: it may be missing, or the same for every call. A
        new id in the same place begins a new call; a fragment without index and id goes on with
        the last one.
        """
        index, ident = item.get("index"), item.get("id")
        named = isinstance(ident, str) and bool(ident)
        slot: Hashable = ("index", index) if isinstance(index, int) else ("position", position)
        list_key = (choice, root)
        if not named and not isinstance(index, int) and position == 0:
            slot = self._last_call.get(list_key, slot)
        if self._last_call.get(list_key, slot) != slot:
            self.changes += 1
        self._last_call[list_key] = slot
        tail: Delta = {}
        if named:
            if self._call_ids.get((list_key, slot), ident) != ident:
                self.changes += 1
                replaced = self._open.pop((*list_key, "arguments", slot), None)
                tail = replaced.tail() if replaced else {}
            if len(self._call_ids) >= _MAX_CALLS:
                raise TooManyChannels(f"more than {_MAX_CALLS} tool calls in one response")
            self._call_ids[list_key, slot] = str(ident)
        return slot, tail

    def tails(self, choice: int | None = None) -> list[tuple[int, Delta]]:
        """What one choice (or every choice) still holds, by choice; closes those texts."""
        found: dict[int, Delta] = {}
        for key, channel in list(self._open.items()):
            if choice is not None and channel.choice != choice:
                continue
            del self._open[key]
            self.changes += 1
            tail = channel.tail()
            if tail:
                found[channel.choice] = merged(found.get(channel.choice, {}), tail)
        return list(found.items())

    def end(self, choice: int) -> None:
        """The choice has finished: no text may come for it any more."""
        if len(self._ended) >= _MAX_CHOICES:
            raise UpstreamAtFault(f"more than {_MAX_CHOICES} choices in one response")
        self._ended.add(choice)

    def ended(self, choice: int) -> bool:
        """The choice has finished."""
        return choice in self._ended

    def clear(self) -> None:
        """Forget every text."""
        self._open.clear()


def merged(one: Delta, other: Delta) -> Delta:
    """Both deltas in one: lists are joined, objects are merged."""
    result = dict(one)
    for key, value in other.items():
        mine = result.get(key)
        if isinstance(mine, list) and isinstance(value, list):
            result[key] = mine + value
        elif isinstance(mine, dict) and isinstance(value, dict):
            result[key] = merged(mine, value)
        else:
            result[key] = value
    return result
