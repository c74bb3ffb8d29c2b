"""Is this call valid, and what is its schema?

Lives here: the input model that is published and enforced in one, and the decorator that makes a
tool of an async function. Does not live here: MCP (server.py), what a particular tool does.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class StrictInput(BaseModel):
    """Arguments of a tool: no coercion, no unknown field, no change after the check.

    Write patterns with explicit classes (`[0-9]`): `\\d` also matches digits of other scripts.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


InputT = TypeVar("InputT", bound=StrictInput)
Answer = str | dict[str, Any]


class ToolFailure(Exception):
    """The call was fine and the world said no; `str(failure)` is for the model to read."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one argument: a JSON pointer, the rule, and a sentence; never the value.

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
        """The checked arguments; raises InvalidArguments."""
        try:
            return self.model.model_validate(dict(arguments))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            raise InvalidArguments(tuple(_fault(item) for item in found)) from None

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


def _pointer(location: tuple[int | str, ...]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in location)
    return "".join(f"/{step}" for step in steps)


__all__ = [
    "Answer",
    "Fault",
    "InvalidArguments",
    "StrictInput",
    "StrictTool",
    "ToolFailure",
    "strict_tool",
]
