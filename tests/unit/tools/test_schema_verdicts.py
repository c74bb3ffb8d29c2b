"""Is the schema that a tool publishes what its model enforces?

Random arguments are judged twice: by `jsonschema` (draft 2020-12) on the published schema, and by
the model. What the schema refuses is never taken. What the schema takes is refused only for one
of the reasons that JSON Schema cannot give, which are all listed here and in `verdicts`:

- which characters can be seen: the pattern that is published counts what is blank in every
  dialect of regular expressions, the model asks Unicode;
- at most two decimal places: `multipleOf: 0.01` is not published, because common validators
  divide by the float nearest to 0.01 and so refuse 0.29 and 4.35;
- 30 February, and the bounds of a number that is a text: its pattern is published, no more;
- that 1.0 is no integer, that a number is too large for a float;
- the end of a text, for validators whose `$` also stands before a last newline.
"""

import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field, create_model

from tests.unit.tools.verdicts import (
    NUMBERS,
    TEXTS,
    Excuse,
    Judge,
    Number,
    junk,
    keys,
    leaves,
    spell,
    spelled,
    texts,
)
from tidegate.demo.support import CustomerQuery, RefundOrder
from tidegate.tools import ExactNumber, StrictInput
from tidegate.tools.strict import Fault

pytestmark = pytest.mark.full

GOOD: dict[str, Any] = {
    "customer_id": "CUST-10001",
    "amount": Number("12.50"),
    "reason": "parcel never arrived",
    "refund_id": "order-7",
}


def two_places(fault: Fault, _: Any) -> bool:
    return (fault.pointer, fault.rule) == ("/amount", "value_error")


def ten_seen(fault: Fault, _: Any) -> bool:
    return (fault.pointer, fault.rule) == ("/reason", "value_error")


DEMO: tuple[Excuse, ...] = (two_places, ten_seen)
order, query = Judge(RefundOrder), Judge(CustomerQuery)


def agree(judge: Judge, arguments: Any, excuses: tuple[Excuse, ...] = ()) -> bool:
    """Whether both took it; fails if they differ without an excuse."""
    text = spell(arguments)
    verdicts = judge(text)
    assert not verdicts.unexcused(excuses), (
        text[:300],
        "schema takes" if verdicts.schema else "schema refuses",
        verdicts.faults,
        judge.schema,
    )
    return verdicts.schema and verdicts.model


def test_near_misses_of_every_rule_get_the_same_verdict_twice() -> None:
    taken = 0
    for name in GOOD:
        for value in (*NUMBERS, *TEXTS, None, True, False, [], {}, [GOOD], {"a": None}):
            taken += agree(order, GOOD | {name: value}, DEMO)
            agree(query, {"customer_id": GOOD["customer_id"], name: value})
        agree(order, {key: GOOD[key] for key in GOOD if key != name}, DEMO)
        agree(order, GOOD | {name.upper(): 1}, DEMO)
        agree(order, GOOD | {f"{name}\u200b": 1}, DEMO)
    assert taken > 40


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"amount": Number("10.005")}, "value_error"),
        ({"amount": Number("5e-324")}, "value_error"),
        ({"reason": "\u0301" * 12}, "value_error"),
        ({"refund_id": "k\n"}, "string_pattern_mismatch"),
    ],
)
def test_what_the_schema_cannot_say_is_refused_by_the_model(
    arguments: dict[str, Any], rule: str
) -> None:
    verdicts = order(spell(GOOD | arguments))
    assert verdicts.schema
    assert [fault.rule for fault in verdicts.faults] == [rule]


def test_a_multiple_of_a_cent_would_be_refused_by_common_validators() -> None:
    published = Draft202012Validator({"multipleOf": 0.01})
    assert not published.is_valid(0.29)
    assert not published.is_valid(4.35)
    assert "multipleOf" not in order.schema["properties"]["amount"]


field_values = leaves | junk
arguments = st.fixed_dictionaries(
    {},
    optional={
        "customer_id": st.just("CUST-10001") | field_values,
        "amount": spelled | field_values,
        "reason": st.just(GOOD["reason"]) | texts | field_values,
        "refund_id": texts | field_values,
    },
)
whole = st.one_of(
    arguments,
    arguments.map(lambda some: GOOD | some),
    st.tuples(keys, junk).map(lambda more: GOOD | {more[0]: more[1]}),
)


def judged_alike(example: Any) -> None:
    agree(order, example, DEMO)
    agree(query, example)


@settings(max_examples=40)
@given(whole)
def test_random_arguments_get_the_same_verdict_twice(example: Any) -> None:
    judged_alike(example)


@pytest.mark.full
@settings(max_examples=4_000)
@given(whole)
def test_many_random_arguments_get_the_same_verdict_twice(example: Any) -> None:
    judged_alike(example)


class Color(Enum):
    RED = "red"
    ONE = 1
    NO = False


class Half(Enum):
    HALF = 0.5
    TWO = 2


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        (Literal[0, "a"], '0 "a"', "false 0.0 true null"),
        (Literal[True], "true", '1 1.0 "true"'),
        (Literal[Color.RED], '"red"', '"RED" 1'),
        (Half, "0.5 0.50 5e-1 2", "2.0 0.51 true"),
        (date, '"2024-02-29"', '"0" "1700000000" "20240229" "2024-02-29T00:00:00Z" "2024-02-30"'),
        (datetime, '"2024-02-29T10:00:00Z"', '"1700000000" "2024-02-29" "2024-02-29T10:00:00"'),
        (timedelta, '"PT1S" "P1DT2H"', '"3600" "00:01:00" "P"'),
        (
            uuid.UUID,
            f'"{uuid.UUID(int=7)}"',
            f'"{uuid.UUID(int=7).hex}" "urn:uuid:{uuid.UUID(int=7)}"',
        ),
        (Decimal, '"1.5" "1e5" 0.5', '"1_000" "\u0661" "1\\n" "NaN" true'),
        (set[int], "[1,2]", "[1,1]"),
        (Annotated[ExactNumber, Field(multiple_of=Decimal("0.1"))], "0.3 1e308", "0.35"),
        (Annotated[ExactNumber | None, Field(ge=Decimal("0.01"))], "0.01 null", "0.009"),
    ],
)
def test_what_json_spells_is_taken_and_nothing_else(kind: Any, taken: str, refused: str) -> None:
    made = create_model("Made", __base__=StrictInput, x=(kind, ...))
    judge = Judge(made)
    for text in taken.split():
        verdicts = judge(f'{{"x":{text}}}')
        assert (text, verdicts.schema, verdicts.faults) == (text, True, ())
    for text in refused.split():
        assert judge(f'{{"x":{text}}}').faults, text


def test_a_number_that_is_too_large_to_divide_is_wrong_and_no_crash() -> None:
    halves = Annotated[ExactNumber, Field(multiple_of=Decimal("0.5"))]
    made = create_model("Made", __base__=StrictInput, x=(halves, ...))
    assert [fault.rule for fault in Judge(made).faults('{"x":1e99999999}')] == ["multiple_of"]


def test_bounds_and_defaults_of_exact_numbers_are_published_as_numbers() -> None:
    class Priced(StrictInput):
        price: Annotated[ExactNumber, Field(gt=Decimal("0.1"), multiple_of=Decimal("0.5"))]
        fee: Annotated[ExactNumber | None, Field(le=9)] = None
        tax: ExactNumber = Decimal("0.19")

    assert Judge(Priced).schema["properties"] == {
        "price": {"exclusiveMinimum": 0.1, "multipleOf": 0.5, "title": "Price", "type": "number"},
        "fee": {
            "anyOf": [{"maximum": 9, "type": "number"}, {"type": "null"}],
            "default": None,
            "title": "Fee",
        },
        "tax": {"default": 0.19, "title": "Tax", "type": "number"},
    }


Kind = tuple[Any, st.SearchStrategy[Any]]
"""A type of a field, and values that it often takes."""

words = st.sampled_from(["red", "x", "a", "k-1", ""])
SIMPLE: tuple[Kind, ...] = (
    (int, spelled),
    (Annotated[int, Field(ge=1, lt=5)], spelled),
    (Annotated[int, Field(multiple_of=3)], spelled),
    (bool, st.booleans()),
    (str, texts),
    (Annotated[str, Field(min_length=1, max_length=3)], texts),
    (Annotated[str, Field(pattern="^[a-z0-9-]+$")], texts),
    (Literal["red", "x", 1], words | spelled),
    (Literal[True, 0, "a"], words | st.booleans() | spelled),
    (Literal["a"], words),
    (None, st.none()),
    (Color, words | spelled | st.booleans()),
    (date, texts),
    (uuid.UUID, texts),
)
EXACT: tuple[Kind, ...] = (
    (ExactNumber, spelled),
    (Annotated[ExactNumber, Field(gt=0, le=10_000)], spelled),
    (Annotated[ExactNumber, Field(ge=Decimal("0.01"), lt=Decimal("4.35"))], spelled),
    (Annotated[ExactNumber, Field(multiple_of=Decimal("0.5"))], spelled),
    (Decimal, spelled | texts),
    (Annotated[Decimal, Field(gt=0)], spelled | texts),
)
FLOAT: tuple[Kind, ...] = (
    (float, spelled),
    (Annotated[float, Field(ge=0.1, lt=10_000)], spelled),
    (Half, spelled),
)
# Floats are rounded before they are judged: by a model, and by the schema's judge beside it.
NUMBER_KINDS = {"exact": EXACT, "floats": FLOAT}


def _wider(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    def many(wrap: Callable[[Any], Any], kind: Kind) -> Kind:
        return wrap(kind[0]), st.lists(kind[1], max_size=4)

    return st.one_of(
        kinds.map(lambda kind: many(lambda t: list[t], kind)),
        kinds.map(lambda kind: many(lambda t: Annotated[list[t], Field(min_length=1)], kind)),
        kinds.map(lambda kind: many(lambda t: tuple[t, t], kind)),
        kinds.map(
            lambda kind: (dict[str, kind[0]], st.dictionaries(keys, kind[1], max_size=3))  # type: ignore[name-defined]
        ),
        kinds.map(lambda kind: (Union[kind[0], None], st.none() | kind[1])),  # noqa: UP007
        st.tuples(kinds, kinds).map(
            lambda two: (Union[two[0][0], two[1][0]], two[0][1] | two[1][1])  # noqa: UP007
        ),
        st.lists(kinds, min_size=1, max_size=3).map(_nested),
    )


def _nested(kinds: list[Kind]) -> Kind:
    model, values = _model(kinds, st.just({}))
    return model, values


def _model(
    kinds: list[Kind], more: st.SearchStrategy[dict[str, Any]]
) -> tuple[type[StrictInput], st.SearchStrategy[Any]]:
    """A model of these fields, every third with a default, and arguments for it."""
    fields: dict[str, Any] = {}
    likely: dict[str, st.SearchStrategy[Any]] = {}
    for at, (kind, values) in enumerate(kinds):
        fields[f"f{at}"] = (kind, None) if at % 3 == 2 else (kind, ...)
        likely[f"f{at}"] = values
    made: type[StrictInput] = create_model("Made", __base__=StrictInput, **fields)
    first = {name: likely[name] for name in list(likely)[:2]}
    rest = {name: likely[name] for name in list(likely)[2:]}
    plain = st.fixed_dictionaries(first, optional=rest)
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys(likely, junk) | {"f9": junk})
    return made, plain | st.tuples(plain, odd | more).map(lambda two: two[0] | two[1])


def models(numbers: tuple[Kind, ...]) -> st.SearchStrategy[Any]:
    simple = st.sampled_from(SIMPLE + numbers)
    kinds = st.recursive(simple, _wider, max_leaves=4)
    return st.lists(kinds, min_size=1, max_size=5).map(lambda some: _model(some, st.just({})))


def text_of_a_kind(fault: Fault, value: Any) -> bool:
    """No pattern knows 30 February; the text of a Decimal has no bounds in a schema."""
    kinds = ("date_", "greater_than", "less_than")
    return isinstance(value, str) and fault.rule.startswith(kinds)


def some_agree(data: st.DataObject, numbers: str, calls: int) -> None:
    model, values = data.draw(models(NUMBER_KINDS[numbers]))
    judge = Judge(model, exact=numbers == "exact")
    for _ in range(calls):
        agree(judge, data.draw(values), (text_of_a_kind,))


@pytest.mark.parametrize("numbers", NUMBER_KINDS)
@settings(max_examples=4)
@given(data=st.data())
def test_random_models_publish_what_they_enforce(numbers: str, data: st.DataObject) -> None:
    some_agree(data, numbers, 6)


@pytest.mark.full
@pytest.mark.parametrize("numbers", NUMBER_KINDS)
@settings(max_examples=200)
@given(data=st.data())
def test_many_random_models_publish_what_they_enforce(numbers: str, data: st.DataObject) -> None:
    some_agree(data, numbers, 12)
