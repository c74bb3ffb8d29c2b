"""Is what could never work refused when it is written, in words that name it?"""

from collections import deque
from collections.abc import Callable, Iterable
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, SkipValidation, StringConstraints, create_model

from tidegate.tools import (
    StrictInput,
    StrictOutput,
    ToolContext,
    ToolServer,
    strict_tool,
)


class Order(StrictInput):
    """What to take."""

    word: str = "x"


class Open(BaseModel):
    anything: int = 0


class HoldsOpen(StrictInput):
    inner: tuple[Open, ...] = ()


class OpenPromise(StrictOutput):
    inner: Open


def test_a_model_that_would_take_unknown_fields_is_refused_when_the_tool_is_written() -> None:
    async def takes(call: HoldsOpen) -> str:
        return str(call)

    async def gives(call: Order) -> OpenPromise:
        return OpenPromise(inner=Open())

    for function in (takes, gives):
        with pytest.raises(TypeError, match="Open takes unknown fields"):
            strict_tool(function)


class Pair(NamedTuple):
    left: int


NEVER: list[Any] = [
    bytes,
    complex,
    Callable[[], int],
    Iterable[int],
    deque[int],
    Pair,
    Fraction,
    Path,
    IPv4Address,
    type[int],
    dict[int, str],
    list[dict[bool, str]],
    Annotated[int, SkipValidation],
    Annotated[str, StringConstraints(strip_whitespace=True)],
    Annotated[str, StringConstraints(to_lower=True)],
    Annotated[str, Field(pattern=r"^a\z")],
    Annotated[str, Field(pattern=r"(?x) a")],
    Annotated[str, Field(pattern=r"[[:alpha:]]")],
]


@pytest.mark.parametrize("kind", NEVER, ids=repr)
def test_what_no_call_could_fill_is_refused_when_the_tool_is_written(kind: Any) -> None:
    async def takes(call: Any) -> str:
        return str(call)

    takes.__annotations__["call"] = create_model("Odd", __base__=StrictInput, field=(kind, ...))
    with pytest.raises(TypeError, match=r"^takes: "):
        strict_tool(takes)


class RawPromise(StrictOutput):
    data: bytes


def test_bytes_are_no_promise_either() -> None:
    async def gives(call: Order) -> RawPromise:
        return RawPromise(data=call.model_dump_json().encode())

    with pytest.raises(TypeError, match=r"gives: .*JSON has no bytes"):
        strict_tool(gives)


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "ümlaut", "a\n", "a" * 129, "a:b", "\u0430dmin", "a,b"]
)
def test_a_name_that_clients_could_not_use_is_refused_when_the_tool_is_written(name: str) -> None:
    async def fine(call: Order) -> str:
        return str(call)

    if name:
        with pytest.raises(TypeError, match="1 to 128"):
            strict_tool(name=name)(fine)
    fine.__name__ = name
    with pytest.raises(TypeError, match="1 to 128"):
        strict_tool(fine)
    assert strict_tool(name="A-z_0.9" + "x" * 121)(fine).name.startswith("A-z_0.9")


@strict_tool
async def order(call: Order) -> str:
    """Takes it."""
    return call.word


def test_two_tools_of_one_name_are_refused_when_the_server_is_made() -> None:
    with pytest.raises(ValueError, match="two tools are called 'order'"):
        ToolServer([order, order])


def test_what_is_no_tool_is_refused_when_the_server_is_made() -> None:
    async def plain(call: Order) -> str:
        return str(call)

    with pytest.raises(TypeError, match="strict_tool makes one"):
        ToolServer([plain])  # type: ignore[list-item]


def test_a_function_that_is_not_async_is_refused_when_the_tool_is_written() -> None:
    def waits(call: Order) -> str:
        return str(call)

    with pytest.raises(TypeError, match="async function"):
        strict_tool(waits)  # type: ignore[call-overload]


def test_a_header_that_clients_could_not_send_is_refused_when_the_server_is_made() -> None:
    class Odd(StrictInput):
        amount: Annotated[float, Field(json_schema_extra={"x-mcp-header": "Amount"})]

    @strict_tool
    async def odd(call: Odd) -> str:
        """Has a number in a header."""
        return str(call)

    with pytest.raises(ValueError, match="odd: property 'amount'"):
        ToolServer([odd])


@pytest.mark.parametrize(
    "annotations", [{"readonly": True}, {"readOnlyHint": True}, {"readOnly": "yes"}, {"title": 5}]
)
def test_an_annotation_that_nobody_knows_is_refused(annotations: dict[str, object]) -> None:
    async def fine(call: Order) -> str:
        return str(call)

    with pytest.raises(TypeError, match="annotation") as caught:
        strict_tool(annotations=annotations)(fine)
    if "title" not in annotations and "readOnly" not in annotations:
        assert "title, readOnly, destructive, idempotent, openWorld" in str(caught.value)


def test_the_arguments_of_a_tool_are_one_model_and_perhaps_the_context() -> None:
    async def none() -> str:
        return ""

    async def swapped(context: ToolContext, call: Order) -> str:
        return str((context, call))

    async def three(call: Order, context: ToolContext, more: int) -> str:
        return str((call, context, more))

    for function in (none, swapped, three):
        with pytest.raises(TypeError, match="takes one argument"):
            strict_tool(function)
