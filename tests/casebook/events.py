"""What did the client read from an event stream, event by event?

A decoder of its own, so that a fault of the product's decoder cannot hide itself: it keeps
comments, empty events and ids, and knows when each event was complete. Lives here too: the view
of chat chunks (texts, tool calls, finish reasons). Does not live here: any judgement (rules).
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_LINE = re.compile(rb"\r\n|\n|\r")
TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal", "thinking")


@dataclass(frozen=True, slots=True)
class Event:
    """One block of a stream up to its blank line. `data` is None if it has no data line."""

    data: str | None
    fields: tuple[tuple[str, str], ...]
    comments: tuple[str, ...]
    at_s: float
    whole: bool = True

    @property
    def json(self) -> Any:
        """The data as JSON; None if it is none."""
        try:
            return json.loads(self.data or "")
        except ValueError:
            return None


def decode(chunks: Iterable[tuple[float, bytes]]) -> list[Event]:
    """The blocks of a stream; `chunks` are (time, bytes) as they were read."""
    pieces = list(chunks)
    body = b"".join(data for _, data in pieces)
    ends, total = [], 0
    for at_s, data in pieces:
        total += len(data)
        ends.append((total, at_s))
    events, block, start = [], list[str](), 0
    for match in _LINE.finditer(body):
        line = body[start : match.start()].decode("utf-8", "replace")
        if start == 0:
            line = line.removeprefix("\ufeff")
        start = match.end()
        if line:
            block.append(line)
        elif block:
            events.append(_event(block, _time_of(ends, start), whole=True))
            block = []
    rest = body[start:].decode("utf-8", "replace")
    if rest:
        block.append(rest)
    if block:
        events.append(_event(block, _time_of(ends, total), whole=False))
    return events


def _time_of(ends: list[tuple[int, float]], offset: int) -> float:
    return next((at_s for end, at_s in ends if end >= offset), 0.0)


def _event(lines: list[str], at_s: float, *, whole: bool) -> Event:
    data, fields, comments = list[str](), list[tuple[str, str]](), list[str]()
    for line in lines:
        name, colon, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if colon and not name:
            comments.append(value)
        elif name == "data":
            data.append(value)
        else:
            fields.append((name, value))
    joined = "\n".join(data) if data else None
    return Event(joined, tuple(fields), tuple(comments), at_s, whole)


@dataclass
class Chat:
    """The chunks of one streamed (or whole) answer, seen as a chat client sees them."""

    chunks: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    done: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of_events(cls, events: list[Event]) -> "Chat":
        """From a stream."""
        chat = cls()
        for event in events:
            if event.data == "[DONE]":
                chat.done += 1
            value = event.json
            if isinstance(value, dict):
                if "error" in value:
                    chat.errors.append(value)
                else:
                    chat.chunks.append((event.at_s, value))
        return chat

    @classmethod
    def of_answer(cls, value: Any) -> "Chat":
        """From a JSON completion: its messages are read as if they were deltas."""
        chat = cls()
        if isinstance(value, dict) and isinstance(value.get("choices"), list):
            chat.chunks.append((0.0, value))
        if isinstance(value, dict) and "error" in value:
            chat.errors.append(value)
        return chat

    def deltas(self) -> Iterator[tuple[float, int, dict[str, Any], dict[str, Any]]]:
        """(time, choice index, delta, choice) in order."""
        for at_s, chunk in self.chunks:
            choices = chunk.get("choices")
            for choice in choices if isinstance(choices, list) else []:
                if isinstance(choice, dict):
                    delta = choice.get("delta", choice.get("message"))
                    known = delta if isinstance(delta, dict) else {}
                    yield at_s, int(choice.get("index") or 0), known, choice

    def text(self, index: int = 0, name: str = "content") -> str:
        """One text field of one choice, joined."""
        return "".join(
            delta[name]
            for _, at, delta, _ in self.deltas()
            if at == index and isinstance(delta.get(name), str)
        )

    @cached_property
    def texts(self) -> dict[tuple[int, str], str]:
        """Every text field of every choice, joined."""
        found: dict[tuple[int, str], str] = {}
        for _, index, delta, _ in self.deltas():
            for name in TEXT_FIELDS:
                if isinstance(delta.get(name), str):
                    found[index, name] = found.get((index, name), "") + delta[name]
        return found

    def arrivals(self, index: int = 0, name: str = "content") -> list[tuple[float, int]]:
        """(time, characters so far) for each delta with text."""
        total, found = 0, []
        for at_s, at, delta, _ in self.deltas():
            if at == index and isinstance(delta.get(name), str) and delta[name]:
                total += len(delta[name])
                found.append((at_s, total))
        return found

    def finishes(self, index: int = 0) -> list[str]:
        """The finish reasons of one choice."""
        return [
            choice["finish_reason"]
            for _, at, _, choice in self.deltas()
            if at == index and choice.get("finish_reason")
        ]

    def tool_deltas(self) -> list[tuple[int, object, dict[str, Any]]]:
        """(choice, position, delta) of every tool-call delta; position is `index` or None."""
        found = []
        for _, index, delta, _ in self.deltas():
            calls = delta.get("tool_calls")
            for call in calls if isinstance(calls, list) else []:
                if isinstance(call, dict):
                    found.append((index, call.get("index"), call))
        return found

    def arguments(self) -> dict[tuple[int, object], str]:
        """Argument text of every tool call, joined per choice and position."""
        joined: dict[tuple[int, object], str] = {}
        for choice, position, call in self.tool_deltas():
            function = call.get("function")
            text = function.get("arguments") if isinstance(function, dict) else None
            key = (choice, position)
            joined[key] = joined.get(key, "") + (text if isinstance(text, str) else "")
        return joined
