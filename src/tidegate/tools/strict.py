"""Is this call valid, and what is its schema?

Lives here: the input model that is published and enforced in one, and the decorator that makes a
tool of an async function. Does not live here: MCP (server.py), what a particular tool does.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isinf
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from tidegate.tools.written import exact

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import ErrorDetails

_NOT_FINITE = "Input should be a finite number"
_MOST_FAULTS, _MOST_POINTER_CHARS = 20, 200
_BOUNDS = MappingProxyType(
    {
        "gt": "exclusiveMinimum",
        "ge": "minimum",
        "lt": "exclusiveMaximum",
        "le": "maximum",
        "multiple_of": "multipleOf",
    }
)


class StrictInput(BaseModel):
    """Arguments of a tool: no coercion, no unknown field, no change after the check.

    Write patterns with explicit classes (`[0-9]`): `\\d` also matches digits of other scripts.
    Write ExactNumber for money: a `float` was rounded before your bounds are asked.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


class _Exactly:
    """Makes a Decimal of any JSON number, by its literal, and publishes a number."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: "GetCoreSchemaHandler"
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(_exactly, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        # A Decimal is published as a number or text, its bounds beside that under Python's names.
        made = handler(schema)
        del made["anyOf"]
        return {"type": "number", **{_BOUNDS.get(key, key): made[key] for key in made}}


def _exactly(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number_type", "Input should be a number")
    try:
        number = exact(value)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise PydanticCustomError("finite_number", _NOT_FINITE)
    return number


ExactNumber = Annotated[Decimal, _Exactly()]
"""A number as the caller wrote it: a Decimal that was never rounded."""


InputT = TypeVar("InputT", bound=StrictInput)
Answer = str | dict[str, Any]


class ToolFailure(Exception):
    """The call was fine and the world said no; `str(failure)` is for the model to read."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one argument: a JSON pointer, the rule, and a sentence; never the value.

    The pointer is cut where names of the caller's make it long.

    The sentence of a rule that a tool's author wrote is the text of the author's ValueError.
    """

    pointer: str
    rule: str
    sentence: str


class InvalidArguments(ValueError):
    """The call was not a valid thing to ask; `faults` has one entry for each wrong argument."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("invalid arguments")
        self.faults = faults


@dataclass(frozen=True, slots=True)
class StrictTool(Generic[InputT]):
    """A tool whose published schema is the model that checks its calls."""

    name: str
    description: str
    model: type[InputT]
    run: Callable[[InputT], Awaitable[Answer]]

    def schema(self) -> dict[str, Any]:
        """JSON Schema 2020-12 of the arguments; `additionalProperties` is false."""
        return self.model.model_json_schema()

    def check(self, arguments: Mapping[str, object]) -> InputT:
        """The checked arguments; raises InvalidArguments with the first faults."""
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)[:_MOST_FAULTS]
            raise InvalidArguments(tuple(_fault(item) for item in found)) from None
        if (place := _infinite(arguments, ())) is not None:
            # A field that takes anything took it; no tool expects one.
            raise InvalidArguments((Fault(_pointer(place), "finite_number", _NOT_FINITE),))
        return checked

    async def __call__(self, arguments: Mapping[str, object]) -> Answer:
        """Checks, then runs. Raises InvalidArguments and ToolFailure."""
        return await self.run(self.check(arguments))


def strict_tool(run: Callable[[InputT], Awaitable[Answer]]) -> StrictTool[InputT]:
    """A tool named like the function `run`, described by its docstring.

    The one parameter is annotated with a StrictInput; raises TypeError when it is not.
    """
    name = getattr(run, "__name__", "")
    parameters = list(inspect.signature(run).parameters)
    hints = get_type_hints(run)
    model = hints.get(parameters[0]) if len(parameters) == 1 else None
    if not (isinstance(model, type) and issubclass(model, StrictInput)):
        raise TypeError(f"{name}: a strict tool takes one argument, annotated with a StrictInput")
    return StrictTool(name, inspect.getdoc(run) or "", cast("type[InputT]", model), run)


def _fault(item: "ErrorDetails") -> Fault:
    pointer, rule = _pointer(item["loc"]), item["type"]
    if item["input"] is None and rule.endswith("_type"):
        # "Should be a valid string" helps nobody who sent a null and thinks it counts as missing.
        return Fault(pointer, "null", "null is not allowed")
    return Fault(pointer, rule, item["msg"])


def _infinite(node: object, place: tuple[int | str, ...]) -> tuple[int | str, ...] | None:
    """Where in the arguments the first infinite number stands."""
    if isinstance(node, float):
        return place if isinf(node) else None
    items = node.items() if isinstance(node, Mapping) else ()
    for step, item in enumerate(node) if isinstance(node, list) else items:
        if (found := _infinite(item, (*place, step))) is not None:
            return found
    return None


def _pointer(location: tuple[int | str, ...]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in location)
    return "".join(f"/{step}" for step in steps)[:_MOST_POINTER_CHARS]


__all__ = [
    "Answer",
    "ExactNumber",
    "Fault",
    "InvalidArguments",
    "StrictInput",
    "StrictTool",
    "ToolFailure",
    "strict_tool",
]
