"""Which parts of a model could no call ever fill, or would be other than published?

Lives here: the kinds of a core schema for which JSON has no value, that change a value after it was
checked, or that say they check and do not; and patterns that a client's reader of JSON Schema does
not know. Pure. Does not live here: what JSON does spell (spelling).
"""

import re
from types import MappingProxyType
from typing import Any, Final

_LIST: Final = "take a list"
_NONE: Final = "JSON has no value for it: take a str, and say in its description how it is coded"
_KINDS: Final = MappingProxyType(
    {
        "generator": _LIST,
        "deque": _LIST,
        "named-tuple": "take a model or a tuple",
        "call": "take a model",
        "arguments": "take a model",
        "is-subclass": _NONE,
        "callable": _NONE,
        "fraction": _NONE,
        "complex": _NONE,
        "bytes": _NONE,
    }
)
_VALUES: Final[tuple[object, ...]] = ({}, [], "", 0, 0.5, True, None)
_KEYS: Final = frozenset({"int", "float", "bool", "decimal", "tuple", "none"})
_CHANGES: Final = ("strip_whitespace", "to_lower", "to_upper")
# Rust's and Python's own: ends of a text, classes in brackets, code points in braces, flags.
_FOREIGN: Final = re.compile(r"\\[AzZ]|\[\[:|&&|\\x\{|\(\?[a-zA-Z]|\(\?P")


def why_not(node: dict[str, Any], model: dict[str, Any]) -> str | None:
    """Why this part of a core schema may not be in the arguments; `model` is the config there."""
    kind = node.get("type")
    if kind in _KINDS:
        return f"{kind}: {_KINDS[str(kind)]}"
    if kind == "is-instance" and not any(isinstance(value, node["cls"]) for value in _VALUES):
        return f"{node['cls'].__name__}: {_NONE}"
    if kind == "any" and "pydantic_js_annotation_functions" in node.get("metadata", {}):
        return "it is published and not checked"
    if kind == "dict" and node.get("keys_schema", {}).get("type") in _KEYS:
        return "the keys of an object are text in JSON"
    if kind == "str":
        if any(node.get(name) or model.get(f"str_{name}") for name in _CHANGES):
            return "a text would be changed before its bounds are asked"
        pattern = node.get("pattern")
        if isinstance(pattern, str) and _FOREIGN.search(pattern.replace("\\\\", "")):
            return "its pattern is none that readers of JSON Schema know (ECMA-262)"
    return None


__all__ = ["why_not"]
