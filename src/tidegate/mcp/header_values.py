"""Which value does a header stand for, and does the body say it as well?

Lives here: how a value is written into a header and read back, and the Mcp-Param headers of a
call, which may only repeat arguments. Does not live here: which argument each one repeats, by the
schema of the tool (param_headers); all other headers (eras).

Source: MCP 2026-07-28, basic/transports, custom headers from tool parameters.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Final

VISIBLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""What the value of a header may be."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?")

_MOST_MEMBERS: Final = 10_000

_Key = str | int | Decimal


def encode_value(value: str) -> str:
    """A header value for any text: as it is, or as the base64 sentinel where it would not last."""
    if VISIBLE.fullmatch(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def decode_value(value: str) -> str | None:
    """The text a header value stands for; None for a sentinel that is not canonical base64."""
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return value
    try:
        plain = base64.b64decode(match.group(1), validate=True)
        text = plain.decode()
    except (binascii.Error, ValueError):
        return None
    return text if base64.b64encode(plain).decode("ascii") == match.group(1) else None


def text_of(value: object) -> str | None:
    """What a header says for an argument; None for one that no header repeats."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def number_in(text: str | None) -> Decimal | None:
    """The number that a text spells, exactly: 42.0 is 42. None for an exponent: 1e3 is a text."""
    return Decimal(text) if text is not None and _DECIMAL.fullmatch(text) else None


def all_repeat(values: Sequence[str], arguments: object) -> bool:
    """Whether each header value says what some argument says, at any depth of objects.

    Texts are compared exactly, numbers by value. What stands in a list is repeated by no header.
    Cost: a look at each member, outer ones first, until all values are found; some microseconds
    each for at most 10,000 of them, so that nobody's call keeps the others waiting.
    """
    owed = [_keys(value) for value in values]
    wanted: set[_Key] = set().union(*owed)
    for leaf, _ in islice(_members(arguments, arguments), _MOST_MEMBERS):
        for key in wanted.intersection(_keys_of(leaf)):
            owed = [keys for keys in owed if key not in keys]
            wanted = set().union(*owed)
        if not owed:
            break
    return not owed


def moved(values: Sequence[str], old: object, new: object) -> list[str | None]:
    """Header values that repeat arguments, as they have to be once `old` has become `new`.

    Keys and order of objects stay. None for a value that cannot be repeated any more. Where equal
    arguments became different ones, the header goes with one that has changed.
    """
    now: dict[_Key, str | None] = {}
    for leaf, successor in _members(old, new):
        keys = _keys_of(leaf)
        if keys and (type(successor) is not type(leaf) or successor != leaf):
            now.update(dict.fromkeys(keys, text_of(successor)))
    told: list[str | None] = []
    for value in values:
        changed = [now[key] for key in _keys(value) if key in now]
        text = changed[0] if changed else None
        told.append(value if not changed else None if text is None else encode_value(text))
    return told


def _keys(value: str) -> tuple[_Key, ...]:
    """What an argument may be that a header value repeats; none for one that stands for nothing."""
    text = decode_value(value)
    return tuple(key for key in (text, number_in(text)) if key is not None)


def _keys_of(leaf: object) -> tuple[_Key, ...]:
    """The same for an argument. An integer and an equal decimal are one key."""
    if isinstance(leaf, float):
        return (repr(leaf), Decimal(repr(leaf)))
    key = leaf if type(leaf) is int else text_of(leaf)
    return () if key is None else (key,)


def _members(old: object, new: object) -> Iterator[tuple[object, object]]:
    """Each member of the object `old`, of those in it and so on, with what `new` has there."""
    pairs = [(old, new)]
    for before, after in pairs:
        if isinstance(before, dict):
            others = after if isinstance(after, dict) else {}
            for name, value in before.items():
                member = (value, others.get(name))
                yield member
                if isinstance(value, dict):
                    pairs.append(member)


__all__ = ["VISIBLE", "all_repeat", "decode_value", "encode_value", "moved", "number_in", "text_of"]
