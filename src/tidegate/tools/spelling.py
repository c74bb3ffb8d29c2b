"""How does a value that JSON can only spell become what the model holds?

JSON has no enumerations, dates, ids or sets: it has texts and lists. Checked as Python values,
strictly, they would be refused; checked as JSON text, exact numbers would be rounded first. So
the schema of a model is changed in these places: what JSON spells is taken, and nothing else.

Lives here: that change. Does not live here: what a strict tool is (strict).
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic_core import PydanticCustomError, core_schema

from tidegate.tools.written import exact

_TEXTS: Final = frozenset(
    {"date", "datetime", "time", "timedelta", "uuid", "url", "multi-host-url"}
)
_LISTS: Final = frozenset({"tuple", "set", "frozenset"})
_NESTED: Final = frozenset({"model", "dataclass", "typed-dict"})


def as_json_spells(schema: Any) -> Any:
    """`schema`, a core schema, with every place that JSON cannot hold taking its spelling.

    Models inside are left alone: they say for themselves how they are read.
    """
    return _walk(schema, outermost=True)


def _walk(node: Any, *, outermost: bool = False) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_walk(item) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not outermost and kind in _NESTED:
        return node
    if kind == "enum":
        return core_schema.no_info_before_validator_function(_member_of(node), node)
    changed = {key: value if key in _DATA else _walk(value) for key, value in node.items()}
    if kind in _LISTS:
        return core_schema.no_info_before_validator_function(_a_list, changed | {"strict": False})
    if kind in _TEXTS:
        return core_schema.no_info_before_validator_function(_a_text, changed | {"strict": False})
    if kind == "decimal":
        return core_schema.no_info_before_validator_function(_a_decimal, changed)
    return changed


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


def _a_list(value: object) -> object:
    if not isinstance(value, list | tuple | set | frozenset):
        raise PydanticCustomError("list_type", "Input should be a list")
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


__all__ = ["as_json_spells"]
