"""What does the schema say that a client reads?

The one that pydantic makes of a model, but with every rule that is enforced in the words of JSON
Schema 2020-12: the spelling of a text as a pattern, since a `format` alone is no rule; the bounds
of a decimal as numbers under their names. Lives here: that. Does not live here: the enforcement
(spelling), what a strict tool is (strict).
"""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from tidegate.tools.spelling import DECIMAL, TEXTS

VALUES: Final = frozenset({"default", "examples", "const", "enum"})
"""Members of a schema that hold values, not schemas."""
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs"})
"""Members whose own members have names of an author's."""
_BOUNDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gt": "exclusiveMinimum",
        "ge": "minimum",
        "lt": "exclusiveMaximum",
        "le": "maximum",
        "multiple_of": "multipleOf",
    }
)


class Published(GenerateJsonSchema):
    """Pydantic's schema, with patterns where it has formats. Raises TypeError for bytes."""

    def generate(
        self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation"
    ) -> JsonSchemaValue:
        """The whole schema of a model."""
        made: JsonSchemaValue = _every_level(super().generate(schema, mode))
        return made

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON; pydantic writes a Decimal as text."""
        return _plain(dft) if isinstance(dft, Decimal) else super().encode_default(dft)

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        """A full-date of RFC 3339."""
        return self._spelled("date", super().date_schema(schema))

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """A date-time of RFC 3339."""
        return self._spelled("datetime", super().datetime_schema(schema))

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        """A full-time of RFC 3339."""
        return self._spelled("time", super().time_schema(schema))

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """A duration of ISO 8601."""
        return self._spelled("timedelta", super().timedelta_schema(schema))

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        """A UUID with its dashes (RFC 9562)."""
        return self._spelled("uuid", super().uuid_schema(schema))

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A number, or a text of one spelling."""
        made = super().decimal_schema(schema)
        for branch in made.get("anyOf", []):
            if branch.get("type") == "string":
                branch["pattern"] = f"^{DECIMAL.pattern}$"
        return made

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """JSON has no bytes."""
        raise TypeError("JSON has no bytes: take a str, and say in its description how it is coded")

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        """JSON has no complex numbers."""
        raise TypeError("JSON has no complex numbers: take two floats")

    def _spelled(self, kind: str, made: JsonSchemaValue) -> JsonSchemaValue:
        if self.mode == "validation" and made.get("type") == "string":
            pattern: Any = f"^{TEXTS[kind].pattern}$"
            return made | {"pattern": pattern}
        return made


def _every_level(node: Any) -> Any:
    if isinstance(node, list):
        return [_every_level(item) for item in node]
    if not isinstance(node, dict):
        return node
    told: dict[str, Any] = {}
    for key, item in node.items():
        if key in _MAPS and isinstance(item, dict):
            told[key] = {name: _every_level(schema) for name, schema in item.items()}
        else:
            told[key] = item if key in VALUES else _every_level(item)
    if "patternProperties" in told:
        told.setdefault("additionalProperties", False)  # other keys are refused
    return in_words_of_json(told)


def in_words_of_json(number: dict[str, Any]) -> dict[str, Any]:
    """A schema with the bounds of numbers under their names and as numbers."""
    bounds = _BOUNDS.keys() | _BOUNDS.values()
    return {
        _BOUNDS.get(key, key): _plain(item) if key in bounds else item
        for key, item in number.items()
    }


def _plain(bound: Any) -> Any:
    """A bound as JSON writes it; a Decimal is published as text by pydantic."""
    if not isinstance(bound, str | Decimal):
        return bound
    number = Decimal(bound)
    return int(number) if number == number.to_integral_value() else float(number)


__all__ = ["VALUES", "Published", "in_words_of_json"]
