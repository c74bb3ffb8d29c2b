"""Which output item of a streamed response is an event about, and which part of it?

Lives here: the names by which clients tell items and parts apart, and what becomes of names that
servers send wrong. Does not live here: the texts (open_texts), what an event means
(responses_stream).
"""

import re
from types import MappingProxyType

from tidegate.redaction.spans import UpstreamAtFault

_MAX_NAMES = 8192
_ID = re.compile(r"[A-Za-z0-9_\-]{1,128}")
_PART_NAMES = ("content_index", "summary_index", "command_index")
_PARTS = MappingProxyType(
    {
        "response.content": "content_index",
        "response.output_text": "content_index",
        "response.reasoning_summary": "summary_index",
        "response.reasoning_summary_text": "summary_index",
        "response.reasoning_text": "content_index",
        "response.refusal": "content_index",
        "response.shell_call_command": "command_index",
        "response.shell_call_output_content": "command_index",
    }
)
"""Kinds of events (without their last word) whose texts are parts, and what numbers them."""
_UNDIVIDED = frozenset(
    {
        "response.code_interpreter_call_code",
        "response.custom_tool_call_input",
        "response.function_call_arguments",
        "response.mcp_call.arguments",
        "response.mcp_call_arguments",
    }
)

_Name = tuple[str, int | str]


def part_of(base: str, event: dict[str, object]) -> tuple[str, int] | None:
    """Which part of its item an event of the kind `base` is about; None if the item has none.

    Raises UpstreamAtFault for a number that clients read in different ways.
    """
    if base in _UNDIVIDED:
        return None
    known = _PARTS.get(base)
    for name in _PART_NAMES if known is None else (known,):
        index = _index(event.get(name))
        if index is not None:
            return name, index
    return None


def is_name(value: object) -> bool:
    """An index, or an id that can be repeated as it came."""
    return isinstance(value, int) or (isinstance(value, str) and bool(_ID.fullmatch(value)))


class Items:
    """Which output item an event belongs to.

    Clients go by the index of an item or by its id, and servers send one of them wrong: some
    give every event a new id, some every item the index 0. Two events belong to one item if
    either is the same, until an item begins that shares neither.
    """

    def __init__(self) -> None:
        self._by: dict[_Name, int] = {}
        self._count = 0

    def slot(self, event: dict[str, object]) -> int:
        """The number of the item that `event` names; 0 if it names none."""
        index, ident = _index(event.get("output_index")), _id(event.get("item_id"))
        if ident is None:
            ident = _id_of(event.get("item"))
        names = _names(index, ident)
        known = next((self._by[name] for name in names if name in self._by), None)
        if known is None:
            return self._new(names) if names else 0
        if index is not None and ("index", index) not in self._by:
            self._remember(("index", index), known)
        return known

    def begin(self, event: dict[str, object]) -> list[int]:
        """An item begins; the numbers of those whose index or id it takes over."""
        names = _names(_index(event.get("output_index")), _id_of(event.get("item")))
        known = {self._by[name] for name in names if name in self._by}
        if len(known) == 1 and all(name in self._by for name in names):
            return []  # the same item once more
        if names:
            self._new(names)
        return sorted(known)

    def _new(self, names: list[_Name]) -> int:
        self._count += 1
        for name in names:
            self._remember(name, self._count)
        return self._count

    def _remember(self, name: _Name, number: int) -> None:
        if len(self._by) >= _MAX_NAMES:
            raise UpstreamAtFault(f"more than {_MAX_NAMES} names of output items in one response")
        self._by[name] = number


def _names(index: int | None, ident: str | None) -> list[_Name]:
    names: list[_Name] = []
    if index is not None:
        names.append(("index", index))
    if ident is not None:
        names.append(("id", ident))
    return names


def _index(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UpstreamAtFault("the index of an item or a part is not a number from 0")
    return value


def _id(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UpstreamAtFault("the id of an item is no text")
    return value


def _id_of(item: object) -> str | None:
    return _id(item.get("id")) if isinstance(item, dict) else None
