"""How do changed strings get back into a JSON text without touching the rest of it?

Lives here: reading an upstream's JSON text (strictly enough that no second reading of it can
differ from ours) and writing it back with some strings replaced. Does not live here: which
strings change. Everything that did not change keeps its bytes: numbers, order, spacing.
"""

import json
import re

from tidegate.redaction.arguments import quoted

# Random letters with which a provider hides the length of an event. Inside a string the quotes
# would be escaped, so this finds members only.
_SPACE = rb"[ \t\r\n]*"
_MEMBER = _SPACE + rb'"obfuscation"' + _SPACE + rb":" + _SPACE + rb'"[^"\\]*"' + _SPACE
_PADDING = re.compile(rb"," + _MEMBER + rb"(?=[,}])|(?<=\{)" + _MEMBER + rb",")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a key twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError("a number is not finite")


_DECODE = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant).decode
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def load(data: bytes) -> object:
    """The value of a JSON text in UTF-8.

    ValueError if it is none, or if a key appears twice: a client might read the other one.
    """
    return _DECODE(data.decode())


def without_padding(data: bytes) -> bytes:
    """A JSON text without the padding in it, which says nothing once texts change their length."""
    return _PADDING.sub(b"", data) if b'"obfuscation"' in data else data


def renumbered(data: bytes, field: str, number: int, more: int) -> bytes:
    """An object whose member `field` is `number`, with `more` added to it."""
    if not more:
        return data
    name = field.encode()
    member = rb'(?<!\\)"%b"%b:%b(%d)(?![0-9.eE])' % (name, _SPACE, _SPACE, number)
    found = re.search(member, data)
    if found and data.count(name) == 1:
        return data[: found.start(1)] + b"%d" % (number + more) + data[found.end(1) :]
    value = load(data)
    return dump({**value, field: number + more}) if isinstance(value, dict) else data


def dump(value: object) -> bytes:
    """`value` as compact JSON text."""
    return _ENCODE(value).encode()


def rewritten(data: bytes, old: object, new: object) -> bytes:
    """`data`, which reads as `old`, changed so that it reads as `new`.

    Where only strings differ, only their bytes change; otherwise the text is written anew.
    """
    changes: list[tuple[int, str]] = []
    try:
        count = _compare(old, new, 0, changes)
    except _NotOnlyStrings:
        return dump(new)
    tokens = list(_STRING.finditer(data))
    if len(tokens) != count:
        return dump(new)
    parts: list[bytes] = []
    place = 0
    for number, text in changes:
        token = tokens[number]
        parts += (data[place : token.start()], quoted(text).encode())
        place = token.end()
    parts.append(data[place:])
    return b"".join(parts)


class _NotOnlyStrings(Exception):
    """Two values differ in more than strings."""


def _compare(old: object, new: object, count: int, changes: list[tuple[int, str]]) -> int:
    """How many strings there are up to the end of `old` in document order, keys included."""
    if isinstance(old, str) and isinstance(new, str):
        if new != old:
            changes.append((count, new))
        return count + 1
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key, value in old.items():
            count = _compare(value, new[key], count + 1, changes)
        return count
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            count = _compare(one, other, count, changes)
        return count
    if old is not new and (type(old) is not type(new) or old != new):
        raise _NotOnlyStrings
    return count
