"""Does a pointer lead to what the client sent, whatever the checker calls the way there?"""

from typing import Any

import pytest
from pydantic import Field

from tidegate.tools import StrictInput, strict_tool
from tidegate.tools.pointers import pointer, steps_in
from tidegate.tools.strict import InvalidArguments

ARGUMENTS: Any = {"a": {"b": [1, {"c": 2}], "int": 3}, "x/y~z": [5], "0": 1}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), ""),
        (("a",), "/a"),
        (("a", "Inner", "b"), "/a/b"),
        (("a", "b", 1, "c"), "/a/b/1/c"),
        (("a", "b", "list[int]", 0, "int"), "/a/b/0"),
        (("a", "b", 7), "/a/b"),
        (("x/y~z", 0), "/x~1y~0z/0"),
        (("x/y~z", "[key]"), "/x~1y~0z"),
        ((0,), ""),
        (("0",), "/0"),
        (("function-after[check(), int]",), ""),
    ],
)
def test_only_what_is_there_is_a_step(path: tuple[int | str, ...], expected: str) -> None:
    assert pointer(steps_in(path, ARGUMENTS)) == expected


def test_what_is_missing_has_a_place_although_it_is_not_there() -> None:
    assert pointer(steps_in(("a", "Inner", "d"), ARGUMENTS, missing=True)) == "/a/d"
    assert pointer(steps_in(("d",), ARGUMENTS, missing=True)) == "/d"


class Left(StrictInput):
    size: int


class Right(StrictInput):
    name: str


class Choice(StrictInput):
    either: int | str | None = None
    models: Left | Right | None = None
    many: list[int | Left] = Field(default_factory=list)
    named: dict[str, int] | list[str] = Field(default_factory=dict)


@strict_tool
async def choose(call: Choice) -> str:
    """Takes one of several."""
    return str(call)


@pytest.mark.parametrize(
    ("arguments", "pointers"),
    [
        ({"either": 1.5}, {"/either"}),
        ({"models": {"size": "1"}}, {"/models/size", "/models/name"}),
        ({"models": 5}, {"/models"}),
        ({"many": [1, "x"]}, {"/many/1"}),
        ({"many": [1, {"size": "x"}]}, {"/many/1", "/many/1/size"}),
        ({"named": {"a/b": "x"}}, {"/named/a~1b", "/named"}),
        ({"named": [1]}, {"/named/0", "/named"}),
        ({"str": 1}, {"/str"}),
    ],
)
def test_every_pointer_of_a_union_is_a_place_of_the_arguments(
    arguments: dict[str, Any], pointers: set[str]
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        choose.check(arguments)
    assert {fault.pointer for fault in caught.value.faults} == pointers
    said = [(fault.pointer, fault.rule, fault.sentence) for fault in caught.value.faults]
    assert len(said) == len(set(said))
