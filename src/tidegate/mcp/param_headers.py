"""Which arguments of a tool go into headers as well?

Lives here: `x-mcp-header` in the schemas of a list of tools, and the Mcp-Param-* headers of a
call. Does not live here: how a value is written (mcp.header_values).

Source: MCP 2026-07-28, basic/transports, custom headers from tool parameters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tidegate.jsonrpc import Tree
from tidegate.mcp.header_values import decode_value, encode_value, number_in, text_of

_KEY: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_TYPES: Final = ("string", "integer", "boolean")
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_MOST_TOOLS: Final = 10_000

Path = tuple[str, ...]


class ParamHeaders:
    """What the last list of tools said."""

    def __init__(self) -> None:
        self._of_tool: dict[str, dict[Path, str]] = {}

    def learn(self, result: object, *, first_page: bool) -> tuple[object, int]:
        """The result of tools/list without tools that break the rules, and how many those are.

        The same object if there are none: a client has to reject such a tool. A first page
        forgets what earlier lists said.
        """
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            return result, 0
        if first_page:
            self._of_tool.clear()
        kept = [tool for tool in tools if self._take(tool)]
        if len(kept) == len(tools):
            return result, 0
        return {**result, "tools": kept}, len(tools) - len(kept)

    def knows(self, params: Tree | None) -> bool:
        """Whether the tool that a call names was in a list."""
        return (params or {}).get("name") in self._of_tool

    def of(self, params: Tree | None) -> list[tuple[str, str]]:
        """The headers of a call with these params."""
        name, arguments = (params or {}).get("name"), (params or {}).get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return []
        headers = []
        for path, token in self._of_tool.get(name, {}).items():
            text = text_of(_value_at(arguments, path))
            if text is not None:
                headers.append((f"Mcp-Param-{token}", encode_value(text)))
        return headers

    def contradiction(self, params: Tree | None, headers: Iterable[tuple[str, str]]) -> str | None:
        """The first header of a call that does not say what its arguments do; None if all agree.

        Headers that no argument of this tool asks for are nobody's. Numbers are compared by value.
        """
        tokens = self._of_tool.get(str((params or {}).get("name")), {}).values()
        wanted = {name.lower(): value for name, value in self.of(params)}
        given = {name.lower(): value for name, value in headers}
        for name in (f"mcp-param-{token.lower()}" for token in tokens):
            if not _agree(wanted.get(name), given.get(name)):
                return name
        return None

    def _take(self, tool: object) -> bool:
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            return True
        paths: dict[Path, str] = {}
        for path, schema in _annotated(tool.get("inputSchema"), ()):
            token = schema[_KEY]
            taken = {known.lower() for known in paths.values()}
            if not path or not isinstance(token, str) or token.lower() in taken:
                return False
            if _TOKEN.fullmatch(token) is None or schema.get("type") not in _TYPES:
                return False
            paths[path] = token
        if len(self._of_tool) < _MOST_TOOLS:
            self._of_tool[name] = paths
        return True


def _annotated(node: object, path: Path | None) -> Iterator[tuple[Path | None, Tree]]:
    """Every schema with the annotation; its path is None off the chain of `properties`."""
    if isinstance(node, list):
        for element in node:
            yield from _annotated(element, None)
    if not isinstance(node, dict):
        return
    if _KEY in node:
        yield path, node
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            for name, child in value.items():
                yield from _annotated(child, None if path is None else (*path, name))
        elif key not in _DATA:
            yield from _annotated(value, None)


def _value_at(arguments: Mapping[str, object], path: Path) -> object:
    node: object = arguments
    for step in path:
        node = node.get(step) if isinstance(node, Mapping) else None
    return node


def _agree(wanted: str | None, given: str | None) -> bool:
    if wanted is None or given is None or wanted == given:
        return wanted == given
    texts = decode_value(wanted), decode_value(given)
    if texts[0] == texts[1]:
        return True
    number = number_in(texts[0])
    return number is not None and number == number_in(texts[1])


__all__ = ["ParamHeaders"]
