"""Which texts does an event of a response begin, so that later pieces are appended to them?

Lives here: the texts that an item or a part has when it is added, or that a response under way
already holds, and the kind of event in which each goes on. Does not live here: what becomes of
them (responses_stream).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

Path = tuple[str | int, ...]
Document = dict[str, object]

_UNDER_WAY = frozenset({"response.created", "response.in_progress", "response.queued"})
_PARTS = MappingProxyType(
    {
        "output_text": ("response.output_text", "text"),
        "reasoning_text": ("response.reasoning_text", "text"),
        "refusal": ("response.refusal", "refusal"),
        "summary_text": ("response.reasoning_summary_text", "text"),
    }
)
_ITEMS = MappingProxyType(
    {
        "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
        "custom_tool_call": ("response.custom_tool_call_input", "input"),
        "function_call": ("response.function_call_arguments", "arguments"),
        "mcp_call": ("response.mcp_call_arguments", "arguments"),
    }
)
_NAMES = ("item_id", "output_index", "content_index", "summary_index", "command_index")
_LISTS = (("content", "content_index"), ("summary", "summary_index"))


@dataclass(frozen=True, slots=True)
class Begun:
    """A text at `place` of an event; it goes on in events of the kind `base`, named by `names`."""

    base: str
    place: Path
    names: Document
    text: str


def begun_in(kind: str, event: Document) -> list[Begun]:
    """The texts that `event` begins and that are not empty."""
    if kind in {"response.content_part.added", "response.reasoning_summary_part.added"}:
        return list(_part(event.get("part"), ("part",), _named(event)))
    if kind == "response.shell_call_command.added":
        return _text(event, "command", (), _named(event), "response.shell_call_command")
    if kind == "response.output_item.added":
        return list(_item(event.get("item"), ("item",), event.get("output_index")))
    response = event.get("response") if kind in _UNDER_WAY else None
    output = response.get("output") if isinstance(response, dict) else None
    return [
        begun
        for index, item in enumerate(output if isinstance(output, list) else ())
        for begun in _item(item, ("response", "output", index), index)
    ]


def _named(event: Document) -> Document:
    return {name: event[name] for name in _NAMES if name in event}


def _item(item: object, place: Path, index: object) -> Iterator[Begun]:
    if not isinstance(item, dict):
        return
    names: Document = {"item_id": item.get("id"), "output_index": index}
    known = _ITEMS.get(str(item.get("type")))
    if known is not None:
        yield from _text(item, known[1], place, names, known[0])
    for field, number in _LISTS:
        parts = item.get(field)
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _part(part, (*place, field, position), {**names, number: position})


def _part(part: object, place: Path, names: Document) -> Iterator[Begun]:
    known = _PARTS.get(str(part.get("type"))) if isinstance(part, dict) else None
    if known is not None and isinstance(part, dict):
        yield from _text(part, known[1], place, names, known[0])


def _text(holder: Document, field: str, place: Path, names: Document, base: str) -> list[Begun]:
    text = holder.get(field)
    if not isinstance(text, str) or not text:
        return []
    return [Begun(base, (*place, field), names, text)]
