"""Tools for the tests of how tools are served."""

import asyncio
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import Field

from tidegate.tools import (
    ExactNumber,
    StrictInput,
    StrictOutput,
    ToolContext,
    ToolFailure,
    ToolResult,
    ToolServer,
    strict_tool,
)

CANARY = "canary-hunter2"


class Nothing(StrictInput):
    """No arguments."""


class Order(StrictInput):
    """What, and how much."""

    word: Annotated[str, Field(max_length=20)] = "x"
    amount: ExactNumber = Decimal(1)


class Sum(StrictOutput):
    """What came of it."""

    total: str


@strict_tool
async def echo(order: Order) -> str:
    """Says a word."""
    return order.word


@strict_tool(annotations={"title": "Twice", "readOnly": True, "idempotent": True})
async def double(order: Order) -> Sum:
    """Twice an amount."""
    return Sum(total=str(order.amount * 2))


@strict_tool
async def refuse(_: Nothing) -> str:
    """Never does it."""
    raise ToolFailure("not today")


class Panic(BaseException):
    """As libraries in other languages raise it."""


async def cancelled_task() -> None:
    """What a task raises that its own tool has cancelled."""
    own = asyncio.ensure_future(asyncio.Event().wait())
    own.cancel()
    await own


@strict_tool
async def crash(order: Order) -> str:
    """Fails, and its words must not get out."""
    if order.word == "exit":
        raise SystemExit(3)
    if order.word == "interrupt":
        raise KeyboardInterrupt(CANARY)
    if order.word == "panic":
        raise Panic(CANARY)
    if order.word == "cancelled":
        await cancelled_task()
    if order.word == "group":
        raise ExceptionGroup(CANARY, [ValueError(CANARY)])
    if order.word == "validation":
        Order.model_validate({"word": 5, CANARY: 1})
    raise RuntimeError(CANARY)


@strict_tool(output=Sum)
async def liar(order: Order) -> Any:
    """Breaks what it promised."""
    return {
        "kind": {"total": 5},
        "more": {"total": "1", CANARY: CANARY},
        "instance": Sum.model_construct(total=CANARY.encode()),
        "text": CANARY,
        "none": None,
    }[order.word]


@strict_tool
async def unwritable(order: Order) -> Any:
    """Answers with what JSON cannot hold."""
    return {
        "nan": {"a": float("nan")},
        "bytes": {"a": CANARY.encode()},
        "surrogate": "\ud800" + CANARY,
        "deep": {"a": "\ud800" + CANARY},
        "set": {CANARY},
    }[order.word]


@strict_tool
async def noted(_: Nothing) -> ToolResult:
    """Says more than its value."""
    return ToolResult({"a": 1}, meta={"tidegate/replayed": True})


@strict_tool
async def steps(_: Nothing, context: ToolContext) -> str:
    """Reports two steps."""
    await context.progress(1, 2, "half")
    await context.progress(2, 2)
    return "done"


class Gate:
    """A tool that waits; `left` tells that it was cancelled."""

    def __init__(self) -> None:
        self.inside, self.open, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def tool(self) -> Any:
        @strict_tool(name="wait")
        async def wait(_: Nothing, context: ToolContext) -> str:
            """Waits."""
            self.inside.set()
            try:
                await context.progress(1)
                await self.open.wait()
            except asyncio.CancelledError:
                self.left.set()
                raise
            return "open"

        return wait


TOOLS = [echo, double, refuse, crash, liar, unwritable, noted, steps]


def serving(errors: Literal["brief", "spec"] = "brief", *more: Any, **options: Any) -> ToolServer:
    return ToolServer([*TOOLS, *more], name="some", errors=errors, **options)


class Color(Enum):
    RED = "red"
    TWO = 2
