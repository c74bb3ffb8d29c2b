"""Is this call valid, and what is its schema?

Lives here: the input model that is published and enforced in one, and the decorator that makes a
tool of an async function. Does not live here: MCP (server.py), what a particular tool does.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation, localcontext
from math import isinf
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from tidegate.tools.context import ToolContext
from tidegate.tools.pointers import pointer, steps_in
from tidegate.tools.profiles import Fault
from tidegate.tools.published import VALUES, Published, in_words_of_json
from tidegate.tools.spelling import reader
from tidegate.tools.written import exact

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import ErrorDetails

_NOT_FINITE = "Input should be a finite number"
_TOO_LARGE = "A number is too large to be divided"
_MOST_DIGITS = 400  # of a double, to the last one
_MOST_FAULTS = 20
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ANNOTATIONS: Mapping[str, type] = MappingProxyType(
    {"title": str, "readOnly": bool, "destructive": bool, "idempotent": bool, "openWorld": bool}
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


class StrictOutput(BaseModel):
    """What a tool promises to answer: published as its outputSchema, and held to it."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        revalidate_instances="always",
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
        if "anyOf" not in made:
            return made  # of a result: an exact number is written as text
        del made["anyOf"]
        return in_words_of_json({"type": "number", **made})


def _exactly(value: object) -> Decimal:
    if isinstance(value, Decimal) and value.is_finite():
        return value  # of our own making: JSON has none
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


class InvalidArguments(ValueError):
    """The call was not a valid thing to ask; `faults` has one entry for each wrong argument."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("invalid arguments")
        self.faults = faults


@dataclass(frozen=True, slots=True)
class ToolResult:
    """An answer that says more than its value: `meta` becomes the `_meta` of the MCP result."""

    value: object
    meta: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StrictTool(Generic[InputT]):
    """A tool whose published schema is the model that checks its calls.

    `annotations` are hints for clients, by the names that MCP gives them without "Hint".
    """

    name: str
    description: str
    model: type[InputT]
    run: Callable[..., Awaitable[object]]
    output: type[StrictOutput] | None = None
    annotations: Mapping[str, object] = field(default_factory=dict)
    takes_context: bool = False
    _reader: Any = field(init=False, repr=False, compare=False)
    _promise: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Not the model's own validator, so that Python code may build it from Python's values.
        object.__setattr__(self, "_reader", reader(self.model))
        object.__setattr__(self, "_promise", self.output and reader(self.output, arguments=False))

    def schema(self) -> dict[str, Any]:
        """JSON Schema 2020-12 of the arguments; `additionalProperties` is false at every level."""
        return self.model.model_json_schema(schema_generator=Published)

    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema 2020-12 of the result, if the tool promises one."""
        return (
            None
            if self.output is None
            else self.output.model_json_schema(mode="serialization", schema_generator=Published)
        )

    def check(self, arguments: Mapping[str, object]) -> InputT:
        """The checked arguments; raises InvalidArguments with the first faults."""
        try:
            # A remainder has as many digits as the number that is divided.
            with localcontext(prec=_MOST_DIGITS):
                checked: InputT = self._reader.validate_python(dict(arguments))
        except ValidationError as error:
            raise InvalidArguments(faults_of(error, arguments)) from None
        except InvalidOperation:
            raise InvalidArguments((Fault("", "multiple_of", _TOO_LARGE),)) from None
        if (place := _infinite(arguments, ())) is not None:
            # A field that takes anything took it; no tool expects one.
            raise InvalidArguments((Fault(pointer(place), "finite_number", _NOT_FINITE),))
        return checked

    async def __call__(
        self, arguments: Mapping[str, object], context: ToolContext | None = None
    ) -> Any:
        """Checks, runs, and checks what was promised: text, a tree of JSON or a ToolResult.

        Raises InvalidArguments and ToolFailure. Everything else is a crash of the tool, also
        pydantic's error about a result that breaks the published schema.
        """
        call = self.check(arguments)
        if self.takes_context:
            return self._promised(await self.run(call, context or ToolContext()))
        return self._promised(await self.run(call))

    def _promised(self, answer: object) -> object:
        if isinstance(answer, ToolResult):
            return replace(answer, value=self._promised(answer.value))
        if self.output is None:
            return answer
        # An instance is checked as well: whoever built it may have left the checks out.
        kept: BaseModel = self._promise.validate_python(answer)
        return kept.model_dump(mode="json", by_alias=True)


@overload
def strict_tool(run: Callable[[InputT], Awaitable[object]], /) -> StrictTool[InputT]: ...
@overload
def strict_tool(
    run: Callable[[InputT, ToolContext], Awaitable[object]], /
) -> StrictTool[InputT]: ...
@overload
def strict_tool(
    *,
    name: str | None = None,
    output: type[StrictOutput] | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Callable[[Callable[..., Awaitable[object]]], StrictTool[Any]]: ...
def strict_tool(
    run: Callable[..., Awaitable[object]] | None = None,
    /,
    *,
    name: str | None = None,
    output: type[StrictOutput] | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Any:
    """A tool named like the function it decorates, described by its docstring.

    The first parameter is annotated with a StrictInput; a second one, if any, with ToolContext.
    `output`, or a return annotation that is a StrictOutput, publishes what the tool answers and
    holds it to that. `annotations` takes title, readOnly, destructive, idempotent and openWorld.
    Raises TypeError for what is no strict tool.
    """

    def decorate(function: Callable[..., Awaitable[object]]) -> StrictTool[Any]:
        return _made(function, name, output, dict(annotations or {}))

    return decorate if run is None else decorate(run)


def _made(
    function: Callable[..., Awaitable[object]],
    name: str | None,
    output: type[StrictOutput] | None,
    annotations: dict[str, object],
) -> StrictTool[Any]:
    name = name or str(getattr(function, "__name__", ""))
    if _NAME.fullmatch(name) is None:
        raise TypeError(f"{name[:140]!r}: a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -")
    if unknown := annotations.keys() - _ANNOTATIONS.keys():
        known = ", ".join(_ANNOTATIONS)
        raise TypeError(f"{name}: no annotation is called {min(unknown)!r}; there are {known}")
    for key, value in annotations.items():
        if not isinstance(value, _ANNOTATIONS[key]):
            raise TypeError(f"{name}: the annotation {key!r} is a {_ANNOTATIONS[key].__name__}")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{name}: a strict tool is an async function")
    parameters = list(inspect.signature(function).parameters)
    hints = get_type_hints(function)
    model, *rest = [hints.get(parameter) for parameter in parameters] or [None]
    if not (
        _is_a(model, StrictInput) and (not rest or (len(rest) == 1 and rest[0] is ToolContext))
    ):
        raise TypeError(
            f"{name}: a strict tool takes one argument, annotated with a StrictInput, "
            "and perhaps a second one, annotated with ToolContext"
        )
    promised = output or hints.get("return")
    try:
        tool = StrictTool(
            name,
            inspect.getdoc(function) or "",
            cast("type[StrictInput]", model),
            function,
            cast("type[StrictOutput]", promised) if _is_a(promised, StrictOutput) else None,
            annotations,
            takes_context=bool(rest),
        )
        schemas = (tool.schema(), tool.output_schema())
    except (TypeError, PydanticInvalidForJsonSchema) as error:
        raise TypeError(f"{name}: {error}") from None
    for schema in schemas:
        _refuse_open(name, schema)
    return tool


def _is_a(hint: object, base: type) -> bool:
    return isinstance(hint, type) and issubclass(hint, base)


def _refuse_open(name: str, schema: object) -> None:
    """A level that takes unknown fields would be published, and enforced, as open."""
    if isinstance(schema, list):
        for item in schema:
            _refuse_open(name, item)
    if not isinstance(schema, dict):
        return
    if (
        isinstance(schema.get("properties"), dict)
        and schema.get("additionalProperties") is not False
    ):
        title = schema.get("title", "a model")
        raise TypeError(f"{name}: {title} takes unknown fields; make it a StrictInput")
    for key, item in schema.items():
        if key not in VALUES:
            _refuse_open(name, item)


def faults_of(error: ValidationError, arguments: object = None) -> tuple[Fault, ...]:
    """The first faults that pydantic found, as they may be told; none is told twice.

    With the `arguments` that were checked a pointer leads to a place in them, also where
    pydantic's own path names the branch of a union.
    """
    found = error.errors(include_url=False, include_context=False, include_input=True)
    faults = dict.fromkeys(_fault(item, arguments) for item in found[:_MOST_FAULTS])
    return tuple(faults)


def _fault(item: "ErrorDetails", arguments: object) -> Fault:
    steps, rule = item["loc"], item["type"]
    if arguments is not None:
        steps = steps_in(steps, arguments, missing=rule == "missing")
    if item["input"] is None and rule.endswith("_type"):
        # "Should be a valid string" helps nobody who sent a null and thinks it counts as missing.
        return Fault(pointer(steps), "null", "null is not allowed")
    return Fault(pointer(steps), rule, item["msg"])


def _infinite(node: object, place: tuple[int | str, ...]) -> tuple[int | str, ...] | None:
    """Where in the arguments the first infinite number stands."""
    if isinstance(node, float):
        return place if isinf(node) else None
    items = node.items() if isinstance(node, Mapping) else ()
    for step, item in enumerate(node) if isinstance(node, list) else items:
        if (found := _infinite(item, (*place, step))) is not None:
            return found
    return None


__all__ = [
    "Answer",
    "ExactNumber",
    "Fault",
    "InvalidArguments",
    "StrictInput",
    "StrictOutput",
    "StrictTool",
    "ToolFailure",
    "ToolResult",
    "faults_of",
    "strict_tool",
]
