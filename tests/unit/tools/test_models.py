"""May arguments and results be anything that JSON can spell, and nothing else?"""

import asyncio
import datetime
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema
import pytest
from pydantic import BaseModel, Field

from tests.unit.tools.some_tools import TOOLS, serving
from tests.unit.tools.web import ask_modern, play
from tidegate.tools import (
    ExactNumber,
    StrictInput,
    StrictOutput,
    ToolContext,
    ToolResult,
    strict_tool,
)
from tidegate.tools.messages import read_message
from tidegate.tools.strict import InvalidArguments


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Line(StrictInput):
    """One line of an order."""

    item: Annotated[str, Field(pattern=r"^[a-z]{1,8}$")]
    price: Annotated[ExactNumber, Field(gt=0, le=100)]


class Lax(BaseModel):
    """A model of somebody else, closed but not strict."""

    model_config = {"extra": "forbid"}

    count: int


class Order(StrictInput):
    """Everything that a model may hold."""

    color: Color
    level: Level = Level.LOW
    kind: Literal["a", "b", 3] = "a"
    lines: Annotated[list[Line], Field(max_length=3, default_factory=list)]
    by_name: Annotated[dict[str, Line], Field(default_factory=dict)]
    pair: tuple[int, str] | None = None
    tags: Annotated[set[str], Field(default_factory=set)]
    day: datetime.date | None = None
    at: datetime.datetime | None = None
    key: UUID | None = None
    price: Annotated[Decimal, Field(ge=0, decimal_places=2)] | None = None
    choice: Color | int | None = None
    lax: Lax | None = None


@strict_tool
async def order(call: Order) -> str:
    """Takes it."""
    return call.model_dump_json()


def judged(literal: str) -> list[tuple[str, str]] | Order:
    """The model, or pointer and rule of each fault, of arguments as they stand in a message."""
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":'
    message: Any = read_message(head + literal.encode() + b"}}")
    try:
        return order.check(message.params["arguments"])
    except InvalidArguments as error:
        return [(fault.pointer, fault.rule) for fault in error.faults]


def with_red(member: str) -> str:
    return '{"color":"red",' + member + "}"


GOOD = [
    ('"level":2', "level", Level.HIGH),
    ('"kind":3', "kind", 3),
    ('"lines":[{"item":"tea","price":1.10}]', "lines", [Line(item="tea", price=Decimal("1.10"))]),
    ('"by_name":{"x":{"item":"tea","price":1}}', "by_name", {"x": Line(item="tea", price=1)}),
    ('"pair":[1,"a"]', "pair", (1, "a")),
    ('"tags":["a","b"]', "tags", {"a", "b"}),
    ('"day":"2026-12-01"', "day", datetime.date(2026, 12, 1)),
    (
        '"key":"12345678-1234-5678-1234-567812345678"',
        "key",
        UUID(int=0x12345678123456781234567812345678),
    ),
    ('"price":1.10', "price", Decimal("1.10")),
    ('"price":"1.10"', "price", Decimal("1.10")),
    ('"price":3', "price", Decimal(3)),
    ('"choice":"blue"', "choice", Color.BLUE),
    ('"choice":7', "choice", 7),
    ('"lax":{"count":7}', "lax", Lax(count=7)),
]
BAD = [
    ('"level":"2"', "/level"),
    ('"level":2.0', "/level"),
    ('"level":true', "/level"),
    ('"level":3', "/level"),
    ('"kind":"c"', "/kind"),
    ('"kind":true', "/kind"),
    ('"lines":{}', "/lines"),
    ('"lines":"[]"', "/lines"),
    ('"lines":[{"item":"tea","price":1,"more":1}]', "/lines/0/more"),
    ('"lines":[{"item":"tea","price":100.00000000000000001}]', "/lines/0/price"),
    ('"lines":[{"item":"tea","price":"1"}]', "/lines/0/price"),
    ('"by_name":{"a/b":{"item":"TEA","price":1}}', "/by_name/a~1b/item"),
    ('"by_name":[]', "/by_name"),
    ('"pair":[1,"a",2]', "/pair"),
    ('"pair":["1","a"]', "/pair/0"),
    ('"pair":"1a"', "/pair"),
    ('"tags":"ab"', "/tags"),
    ('"tags":["a","b","a"]', "/tags"),
    ('"tags":[["a"]]', "/tags/0"),
    ('"tags":{"a":1}', "/tags"),
    ('"day":20261201', "/day"),
    ('"day":"tomorrow"', "/day"),
    ('"at":1764547200', "/at"),
    ('"key":"1234"', "/key"),
    ('"key":5', "/key"),
    ('"price":1.101', "/price"),
    ('"price":-0.01', "/price"),
    ('"price":"abc"', "/price"),
    ('"price":true', "/price"),
    ('"price":"Infinity"', "/price"),
    ('"price":"NaN"', "/price"),
    ('"color":"RED"', "/color"),
    ('"color":"Color.RED"', "/color"),
    ('"color":null', "/color"),
    ('"color":["red"]', "/color"),
    ('"lax":{"count":"7"}', "/lax/count"),
    ('"lax":{"count":7,"more":1}', "/lax/more"),
]


@pytest.mark.parametrize(("member", "name", "value"), GOOD)
def test_what_json_can_spell_becomes_what_the_model_holds(
    member: str, name: str, value: object
) -> None:
    found = judged(with_red(member))
    assert isinstance(found, Order), found
    assert getattr(found, name) == value
    assert type(getattr(found, name)) is type(value)


@pytest.mark.parametrize(("member", "pointer"), BAD)
def test_nothing_is_coerced_and_the_place_is_named(member: str, pointer: str) -> None:
    literal = with_red(member) if not member.startswith('"color"') else f"{{{member}}}"
    found = judged(literal)
    assert isinstance(found, list)
    assert {place for place, _ in found} == {pointer} or all(
        place.startswith(pointer) for place, _ in found
    )


def test_the_fault_of_an_enumeration_names_its_members_and_not_the_value() -> None:
    with pytest.raises(InvalidArguments) as caught:
        order.check({"color": "canary"})
    (fault,) = caught.value.faults
    assert fault.sentence == "Input should be one of 'red', 'blue'"


def levels(schema: Any) -> list[dict[str, Any]]:
    """Every level of a schema that has properties."""
    if isinstance(schema, list):
        return [found for item in schema for found in levels(item)]
    if not isinstance(schema, dict):
        return []
    below = [found for item in schema.values() for found in levels(item)]
    return [*([schema] if isinstance(schema.get("properties"), dict) else []), *below]


@pytest.mark.parametrize("tool", [order, *TOOLS], ids=lambda tool: str(tool.name))
def test_the_schema_is_closed_at_every_level_and_is_one_of_2020_12(tool: Any) -> None:
    for schema in filter(None, (tool.schema(), tool.output_schema())):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "$schema" not in schema or "2020-12" in schema["$schema"]
        assert levels(schema)
        assert all(level["additionalProperties"] is False for level in levels(schema))


@pytest.mark.parametrize("member", [member for member, *_ in GOOD if "1.10" not in member])
def test_the_schema_takes_what_the_model_takes(member: str) -> None:
    assert jsonschema.Draft202012Validator(order.schema()).is_valid(json.loads(with_red(member)))


class Promise(StrictOutput):
    color: Color
    price: ExactNumber
    day: datetime.date


class Bounds(StrictInput):
    either: Annotated[int | float, Field(ge=1)] = 1
    keyed: dict[Annotated[str, Field(pattern="^a$")], int] = Field(default_factory=dict)
    asked_to_be_lax: Annotated[int, Field(strict=False)] = 1
    pairs: set[tuple[int, int]] = Field(default_factory=set)
    ge: int = 1
    wide: Sequence[int] = ()
    mapped: Mapping[str, int] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"either": 1}, True),
        ({"either": 0}, False),
        ({"keyed": {"a": 1}}, True),
        ({"keyed": {"b": 1}}, False),
        ({"asked_to_be_lax": "1"}, False),
        ({"asked_to_be_lax": True}, False),
        ({"pairs": [[1, 2], [2, 1]]}, True),
        ({"pairs": [[1, 2], [1, 2]]}, False),
        ({"ge": 0}, True),
        ({"wide": [1, 2]}, True),
        ({"wide": ["1"]}, False),
        ({"wide": "12"}, False),
        ({"mapped": {"a": 1}}, True),
        ({"mapped": {"a": "1"}}, False),
    ],
)
def test_what_is_published_is_what_is_enforced_in_odd_corners_too(
    arguments: dict[str, Any],
    *,
    valid: bool,
) -> None:
    @strict_tool
    async def bounded(call: Bounds) -> str:
        """Has corners."""
        return str(call)

    schema = bounded.schema()
    assert set(schema["properties"]["either"]) >= {"minimum", "anyOf"}
    assert jsonschema.Draft202012Validator(schema).is_valid(arguments) == valid
    if valid:
        bounded.check(arguments)
    else:
        with pytest.raises(InvalidArguments):
            bounded.check(arguments)


def test_every_text_that_is_enforced_is_published_as_a_pattern() -> None:
    schema = order.schema()["properties"]
    texts = {name: schema[name]["anyOf"] for name in ("day", "at", "key", "price")}
    patterns = {
        name: [branch["pattern"] for branch in branches if branch.get("type") == "string"]
        for name, branches in texts.items()
    }
    assert all(len(found) == 1 and found[0].startswith("^") for found in patterns.values())
    validator = jsonschema.Draft202012Validator(order.schema())
    for member in ('"day":"0"', '"at":"2026-12-01"', '"key":"1234"', '"price":"1_0"'):
        assert not validator.is_valid(json.loads(with_red(member)))
        assert isinstance(judged(with_red(member)), list)


@strict_tool(output=Promise)
async def spelled(_: Order) -> Any:
    """Promises in JSON's own words."""
    return {"color": "red", "price": 1, "day": "2026-12-01"}


def test_a_promise_may_be_kept_in_the_words_of_json() -> None:
    made = {"color": "red", "price": "1", "day": "2026-12-01"}
    assert asyncio.run(spelled({"color": "red"})) == made


@strict_tool
async def promise(call: Order, context: ToolContext) -> Promise:
    """Gives what it promised."""
    await context.progress(1)
    return Promise(color=call.color, price=Decimal("1.10"), day=datetime.date(2026, 12, 1))


def test_a_tool_can_be_called_without_a_server() -> None:
    made = {"color": "red", "price": "1.10", "day": "2026-12-01"}
    assert asyncio.run(promise({"color": "red"})) == made
    schema = promise.output_schema()
    assert schema is not None
    assert jsonschema.Draft202012Validator(schema).is_valid(made)
    told = asyncio.run(next(tool for tool in TOOLS if tool.name == "noted")({}))
    assert told == ToolResult({"a": 1}, meta={"tidegate/replayed": True})


def test_what_was_promised_hinted_and_noted_is_published_and_sent() -> None:
    served = serving("brief", promise).http_app()

    async def body() -> Any:
        listed = (await ask_modern(served, "tools/list")).json["result"]["tools"]
        noted = await ask_modern(served, "tools/call", {"name": "noted"})
        kept = {"name": "promise", "arguments": {"color": "blue"}}
        return listed, noted.json["result"], (await ask_modern(served, "tools/call", kept)).json

    listed, noted, kept = play(served, body)
    tools = {tool["name"]: tool for tool in listed}
    assert list(tools) == [*(tool.name for tool in TOOLS), "promise"]
    assert tools["promise"]["outputSchema"] == promise.output_schema()
    assert "outputSchema" not in tools["echo"]
    assert tools["double"]["annotations"] == {
        "title": "Twice",
        "readOnlyHint": True,
        "idempotentHint": True,
    }
    assert noted["_meta"]["tidegate/replayed"] is True
    assert noted["structuredContent"] == {"a": 1}
    assert json.loads(noted["content"][0]["text"]) == {"a": 1}
    assert kept["result"]["structuredContent"]["color"] == "blue"
