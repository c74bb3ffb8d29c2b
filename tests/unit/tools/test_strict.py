"""Does a strict tool take exactly what its schema publishes?"""

import asyncio
from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

from tidegate.tools import ExactNumber, StrictInput, ToolFailure, strict_tool
from tidegate.tools.strict import Fault, InvalidArguments
from tidegate.tools.written import Written


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("an even number")
    return value


class Inner(StrictInput):
    flag: bool


class Order(StrictInput):
    """What to do how often."""

    word: Annotated[str, Field(pattern=r"^[a-z]{1,4}$")]
    times: Annotated[int, Field(ge=0, le=10), AfterValidator(_even)] = 2
    inner: Inner | None = None


@strict_tool
async def repeat(order: Order) -> str:
    """Says a word again."""
    if order.word == "no":
        raise ToolFailure("not that word")
    return order.word * order.times


def faults(arguments: dict[str, Any]) -> tuple[Fault, ...]:
    with pytest.raises(InvalidArguments) as caught:
        repeat.check(arguments)
    return caught.value.faults


def test_name_and_description_come_from_the_function() -> None:
    assert (repeat.name, repeat.description) == ("repeat", "Says a word again.")


def test_a_valid_call_runs_on_the_checked_model() -> None:
    assert asyncio.run(repeat({"word": "ab", "times": 4})) == "abababab"
    assert asyncio.run(repeat({"word": "ab"})) == "abab"


def test_a_tool_may_refuse_a_valid_call() -> None:
    with pytest.raises(ToolFailure, match="not that word"):
        asyncio.run(repeat({"word": "no"}))


@pytest.mark.parametrize(
    ("arguments", "pointer", "rule"),
    [
        ({}, "/word", "missing"),
        ({"word": None}, "/word", "null"),
        ({"word": 5}, "/word", "string_type"),
        ({"word": "ABC"}, "/word", "string_pattern_mismatch"),
        ({"word": "ab\n"}, "/word", "string_pattern_mismatch"),
        ({"word": "ab", "times": "2"}, "/times", "int_type"),
        ({"word": "ab", "times": True}, "/times", "int_type"),
        ({"word": "ab", "times": 2.0}, "/times", "int_type"),
        ({"word": "ab", "times": 12}, "/times", "less_than_equal"),
        ({"word": "ab", "times": 3}, "/times", "value_error"),
        ({"word": "ab", "tims": 2}, "/tims", "extra_forbidden"),
        ({"word": "ab", "a/b~c": 2}, "/a~1b~0c", "extra_forbidden"),
        ({"word": "ab", "inner": {"flag": 1}}, "/inner/flag", "bool_type"),
    ],
)
def test_each_fault_names_the_argument_and_the_rule(
    arguments: dict[str, Any], pointer: str, rule: str
) -> None:
    assert [(f.pointer, f.rule) for f in faults(arguments)] == [(pointer, rule)]


def test_all_faults_come_at_once_and_none_quotes_a_value() -> None:
    canary = "canary-value"
    found = faults({"word": canary, "times": canary, "extra": canary})
    assert {f.pointer for f in found} == {"/word", "/times", "/extra"}
    assert canary not in repr(found)


class Transfer(StrictInput):
    """How much."""

    amount: Annotated[ExactNumber, Field(gt=0, le=10_000)]
    rate: float = 1.0
    anything: Any = None


@strict_tool
async def transfer(order: Transfer) -> str:
    """Moves money."""
    return str(order.amount)


@pytest.mark.parametrize(
    "literal", ["1.10", "0.01", "10000", "10000.00", "1e2", "9999.9999999999999"]
)
def test_an_exact_number_is_what_was_written(literal: str) -> None:
    number = int(literal) if literal.isdigit() else Written(literal)
    assert asyncio.run(transfer({"amount": number})) == str(Decimal(literal))


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (Written("10000.0000000000001"), "less_than_equal"),
        (Written("1e400"), "less_than_equal"),
        (Written("1e9999999999999999999"), "finite_number"),
        (Written("-0.0"), "greater_than"),
        (10**400, "less_than_equal"),
        (float("nan"), "finite_number"),
        (float("inf"), "finite_number"),
        ("50", "number_type"),
        (True, "number_type"),
        (None, "null"),
        ([1], "number_type"),
    ],
)
def test_an_exact_number_is_judged_by_what_was_written(value: object, rule: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        transfer.check({"amount": value})
    assert [(f.pointer, f.rule) for f in caught.value.faults] == [("/amount", rule)]


def test_the_schema_of_an_exact_number_is_that_of_a_number() -> None:
    schema = transfer.schema()["properties"]["amount"]
    assert schema == {
        "exclusiveMinimum": 0,
        "maximum": 10000,
        "title": "Amount",
        "type": "number",
    }


@pytest.mark.parametrize("name", ["rate", "anything", "deep"])
def test_no_tool_ever_sees_an_infinite_number(name: str) -> None:
    infinite = Written("-1e400")
    value: Any = {"rate": infinite, "anything": infinite, "deep": [1, {"a/b": infinite}]}[name]
    place = {"rate": "/rate", "anything": "/anything", "deep": "/anything/1/a~1b"}[name]
    with pytest.raises(InvalidArguments) as caught:
        transfer.check({"amount": 1, place.split("/")[1]: value})
    assert [(f.pointer, f.rule) for f in caught.value.faults] == [(place, "finite_number")]


@pytest.mark.full
def test_an_answer_is_no_larger_than_the_mistake() -> None:
    found = faults({f"k{number}": 1 for number in range(100_000)})
    assert len(found) == 20
    (fault,) = faults({"word": "ab", "k" * 1_000_000: 1})
    assert fault.pointer == "/" + "k" * 199


def test_a_function_that_is_no_strict_tool_is_refused_when_it_is_written() -> None:
    async def untyped(order: dict[str, Any]) -> str:
        return str(order)

    async def two(first: Order, second: Order) -> str:
        return first.word + second.word

    for function in (untyped, two):
        with pytest.raises(TypeError, match="strict tool"):
            strict_tool(function)  # type: ignore[arg-type, type-var]


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 13), st.floats(allow_nan=False), st.text(max_size=5)
)
_ORDERS = st.dictionaries(
    st.sampled_from(["word", "times", "inner", "other"]),
    st.one_of(_VALUES, st.fixed_dictionaries({"flag": _VALUES}), st.sampled_from(["a", "abcd"])),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(_ORDERS)
@pytest.mark.full
def test_schema_and_check_agree_wherever_the_schema_can_say_it(order: dict[str, Any]) -> None:
    schema_says = jsonschema.Draft202012Validator(repeat.schema()).is_valid(order)
    try:
        repeat.check(order)
        found: tuple[Fault, ...] = ()
    except InvalidArguments as error:
        found = error.faults
    assert schema_says == all(_beyond_schema(fault, order) for fault in found)


def _beyond_schema(fault: Fault, order: dict[str, Any]) -> bool:
    """JSON Schema has no word for "even", and counts 2.0 as an integer."""
    times = order.get("times")
    return fault.rule == "value_error" or (
        fault.rule == "int_type" and isinstance(times, float) and times in range(11)
    )
