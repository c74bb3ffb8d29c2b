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
_PADDING_NAME = b'"obfuscation"'
_PADDING = re.compile(rb'"obfuscation"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"[ \t\r\n]*')
_SPACES = b" \t\r\n"
_NUMBER = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(-?[0-9]{1,18})(?![0-9.eE])")
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
    place = data.rfind(_PADDING_NAME)
    while place >= 0:
        member = _PADDING.match(data, place)
        before = data[:place].rstrip(_SPACES)
        if member and before.endswith(b",") and data[member.end() : member.end() + 1] in b",}":
            data = before[:-1] + data[member.end() :]
        elif member and before.endswith(b"{") and data[member.end() : member.end() + 1] == b",":
            data = before + data[member.end() + 1 :]
        place = data.rfind(_PADDING_NAME, 0, place)
    return data


def renumbered(data: bytes, field: str, number: int, more: int) -> bytes:
    """An object whose member `field` is `number`, with `more` added to it."""
    if not more:
        return data
    name = b'"%b"' % field.encode()
    place = data.find(name)
    found = _NUMBER.match(data, place + len(name)) if place >= 0 else None
    alone = data.find(name, place + 1) < 0 and data[place - 1 : place] != b"\\"
    if found and alone and int(found[1]) == number:
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
