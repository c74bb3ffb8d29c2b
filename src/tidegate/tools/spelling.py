"""How does a value that JSON can only spell become what the model holds?

JSON has no enumerations, dates, ids or sets: it has texts and lists. Checked as Python values,
strictly, they would be refused; checked as JSON text, exact numbers would be rounded first. So
the schema that reads is changed in these places: what JSON spells is taken, and nothing else.

Lives here: that change. Does not live here: what a strict tool is (strict).
"""

from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from tidegate.tools.written import exact

_TEXTS: Final = frozenset(
    {"date", "datetime", "time", "timedelta", "uuid", "url", "multi-host-url"}
)
_NESTED: Final = frozenset({"model", "dataclass", "typed-dict"})
_LISTS: Final = frozenset({"tuple", "set", "frozenset"})


def reader(model: type[BaseModel]) -> SchemaValidator:
    """A validator for `model` that takes the values that JSON has for it, and nothing else."""
    model.model_rebuild()
    made = _walk(model.__pydantic_core_schema__)
    # Ready-made validators of the models inside would bring the unchanged schema back.
    return SchemaValidator(made, _use_prebuilt=False)


def _walk(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_walk(item) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    changed = {key: value if key in _DATA else _walk(value) for key, value in node.items()}
    if kind in _NESTED:
        # A model inside that is no StrictInput coerces nothing either.
        changed["config"] = dict(changed.get("config") or {}) | {"strict": True}
        return changed | ({"strict": False} if kind == "dataclass" else {})
    if kind == "enum":
        return _before(_member_of(node), changed)
    if kind in _LISTS:
        return _before(_a_list if kind == "tuple" else _a_set, changed | {"strict": False})
    if kind in _TEXTS:
        return _before(_a_text, changed | {"strict": False})
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


def _member_of(node: dict[str, Any]) -> Callable[[object], object]:
    members = {(type(member.value), member.value): member for member in node["members"]}
    words = ", ".join(repr(member.value) for member in node["members"])

    def member(value: object) -> object:
        if isinstance(value, node["cls"]):
            return value
        if not isinstance(value, str | int | float) or (type(value), value) not in members:
            raise PydanticCustomError("enum", "Input should be one of {words}", {"words": words})
        return members[type(value), value]

    return member


def _a_list(value: object) -> Collection[object]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise PydanticCustomError("list_type", "Input should be a list")
    return value


def _a_set(value: object) -> object:
    items = list(_a_list(value))
    try:
        unique = len(set(items)) == len(items)
    except TypeError:
        return value  # what cannot be in a set is refused as an item
    if not unique:
        raise PydanticCustomError("unique_items", "Input should not hold an item twice")
    return value


def _a_text(value: object) -> object:
    if isinstance(value, int | float):
        raise PydanticCustomError("string_type", "Input should be a string")
    return value


def _a_decimal(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value  # a Decimal, or what the strict check refuses
    try:
        return Decimal(value) if isinstance(value, str) else exact(value)
    except InvalidOperation:
        raise PydanticCustomError("decimal_parsing", "Input should be a decimal number") from None


__all__ = ["reader"]
