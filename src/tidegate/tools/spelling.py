"""How does a value that JSON can only spell become what the model holds?

JSON has no enumerations, dates, ids or sets: it has texts and lists. Checked as Python values,
strictly, they would be refused; checked as JSON text, exact numbers would be rounded first. So
the schema that reads is changed in these places: what JSON spells is taken, and nothing else.

Lives here: that change. Does not live here: what a strict tool is (strict).
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from tidegate.tools.unspellable import why_not
from tidegate.tools.written import exact

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})"
TEXTS: Final = MappingProxyType(
    {
        "date": re.compile(_DAY),
        "datetime": re.compile(f"{_DAY}[Tt]{_TIME}"),
        "time": re.compile(_TIME),
        "timedelta": re.compile(r"-?P(?:[0-9]+[YMWD])*(?:T(?:[0-9]+(?:\.[0-9]+)?[HMS])+)?"),
        "uuid": re.compile("-".join(f"[0-9A-Fa-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))),
    }
)
"""How a text of each kind looks (RFC 3339, ISO 8601, RFC 9562), whole.

A library takes more: seconds since 1970, ids without dashes, blanks around.
"""
DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
"""How a decimal number that is a text looks, whole."""
_ANY_TEXTS: Final = frozenset({"url", "multi-host-url"})
_NESTED: Final = frozenset({"model", "dataclass", "typed-dict"})
# Where the members stand, and the rule that is broken by what is none.
_CHOICES: Final = MappingProxyType(
    {"enum": ("members", "enum"), "literal": ("expected", "literal_error")}
)
_LISTS: Final = frozenset({"tuple", "set", "frozenset"})


def reader(model: type[BaseModel], *, arguments: bool = True) -> SchemaValidator:
    """A validator for `model` that takes the values that JSON has for it, and nothing else.

    For `arguments` of a call it raises TypeError for what no call could fill.
    """
    model.model_rebuild()
    schema = model.__pydantic_core_schema__
    if arguments:
        _refuse(cast("dict[str, Any]", schema), {}, model.__name__)
    # Ready-made validators of the models inside would bring the unchanged schema back.
    return SchemaValidator(_walk(schema), _use_prebuilt=False)


def _refuse(node: dict[str, Any], config: dict[str, Any], place: str) -> None:
    """Raises TypeError for the first part that could not be filled, and says where it is."""
    config = node.get("config") or config
    if node.get("type") == "model":
        place = node["cls"].__name__
    if (why := why_not(node, config)) is not None:
        raise TypeError(f"{place}: {why}")
    for below, child in _parts(node, place):
        _refuse(child, config, below)


def _parts(node: object, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas right below, and how to call their places."""
    if isinstance(node, list | tuple):
        for item in node:
            yield from [(place, item)] if isinstance(item, dict) else _parts(item, place)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key == "fields" and isinstance(value, dict):
            yield from ((f"{place}.{name}", field) for name, field in value.items())
        elif key not in _DATA:
            yield from [(place, value)] if isinstance(value, dict) else _parts(value, place)


def _walk(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_walk(item) for item in node)
    if not isinstance(node, dict):
        return node
    kind = str(node.get("type"))
    changed = {key: value if key in _DATA else _walk(value) for key, value in node.items()}
    if changed.get("strict") is False:
        del changed["strict"]  # what is published is not coerced, whoever asked for it
    if kind in _NESTED:
        # A model inside that is no StrictInput coerces nothing either.
        changed["config"] = dict(changed.get("config") or {}) | {"strict": True}
        return changed | ({"strict": False} if kind == "dataclass" else {})
    return _spelled(kind, node, changed)


def _spelled(kind: str, node: dict[str, Any], changed: dict[str, Any]) -> Any:
    if kind in _CHOICES:
        members, rule = _CHOICES[kind]
        return _before(_member_of(node[members], rule), changed)
    if kind in _LISTS:
        return _before(_a_list if kind == "tuple" else _a_set, changed | {"strict": False})
    if kind in TEXTS or kind in _ANY_TEXTS:
        return _before(_a_text(kind), changed | {"strict": False})
    if kind == "decimal":
        return _before(_a_decimal, changed)
    return changed


def _before(read: Callable[[object], object], node: dict[str, Any]) -> Any:
    """`node` behind `read`; what refers to it finds both."""
    name = node.pop("ref", None)
    made: Any = core_schema.no_info_before_validator_function(read, node)
    return made if name is None else made | {"ref": name}


# What an author wrote as values, not as schemas.
_DATA: Final = frozenset({"default", "expected", "members", "metadata", "serialization", "cls"})


def _member_of(members: Sequence[Any], rule: str) -> Callable[[object], object]:
    """What one of `members` is made of: equal, and of the same type, for 1 is not true."""
    spelled = [(one.value if isinstance(one, Enum) else one, one) for one in members]
    words = ", ".join(repr(value) for value, _ in spelled)

    def member(value: object) -> object:
        if isinstance(value, Enum) and value in members:
            return value
        for known, one in spelled:
            if _json_type(known) is _json_type(value) and known == value:
                return one
        raise PydanticCustomError(rule, "Input should be one of {words}", {"words": words})

    return member


def _json_type(value: object) -> type:
    # A float that knows its literal is a float.
    return float if isinstance(value, float) else type(value)


def _a_list(value: object) -> Collection[object]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise PydanticCustomError("list_type", "Input should be a list")
    return value


def _a_set(value: object) -> object:
    items = [_frozen(item) for item in _a_list(value)]
    if len(set(items)) != len(items):
        raise PydanticCustomError("unique_items", "Input should not hold an item twice")
    return value


def _frozen(value: object) -> Hashable:
    """What of JSON can be compared in a set; 1 and true are two things."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return isinstance(value, bool), value


def _a_text(kind: str) -> Callable[[object], object]:
    looks = TEXTS.get(kind)

    def text(value: object) -> object:
        if isinstance(value, int | float):
            raise PydanticCustomError("string_type", "Input should be a string")
        if looks is not None and isinstance(value, str) and looks.fullmatch(value) is None:
            words = {"kind": kind}
            raise PydanticCustomError(f"{kind}_parsing", "Input should be a valid {kind}", words)
        return value

    return text


def _a_decimal(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value  # a Decimal, or what the strict check refuses
    try:
        if not isinstance(value, str):
            return exact(value)
        if DECIMAL.fullmatch(value):
            return Decimal(value)
    except InvalidOperation:
        pass
    raise PydanticCustomError("decimal_parsing", "Input should be a decimal number")


__all__ = ["DECIMAL", "TEXTS", "reader"]
