"""Does a header say an argument, the whole of it and nothing else?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.header_values import all_repeat, decode_value, encode_value, moved, text_of


@given(st.text())
def test_every_text_survives_a_header(text: str) -> None:
    encoded = encode_value(text)
    assert encoded.isascii()
    assert "\n" not in encoded
    assert decode_value(encoded) == text


HUGE = 9_007_199_254_740_993
SPELLED = [
    ("eu", "eu", True),
    ("eu", "EU", False),
    ("eu", encode_value("eu"), True),
    ("eu", "=?base64?ZXU=?=", True),
    ("eu", "=?base64?ZXU?=", False),
    ("caf\u00e9", "=?base64?Y2Fmw6k=?=", True),
    ("", "=?base64??=", True),
    ("=?base64?ZXU=?=", "=?base64?ZXU=?=", False),
    ("5", "5", True),
    ("5", "5.0", False),
    ("05", "5", False),
    (5, "5", True),
    (5, "5.0", True),
    (5, "5.000", True),
    (5, "=?base64?NQ==?=", True),
    (5, "5.01", False),
    (5, "5e0", False),
    (5, "+5", False),
    (5, "0x5", False),
    (5, "\u0665", False),
    (5, "-5", False),
    (0, "-0", True),
    (5.0, "5", True),
    (0.1, "0.10", True),
    (0.1, "0.1000000000000000055", False),
    (1e21, "1e+21", True),
    (1e21, "1" + "0" * 21, True),
    (HUGE, str(HUGE), True),
    (HUGE, str(HUGE - 1), False),
    (float(HUGE), str(HUGE), False),
    (10**399, "1" + "0" * 399, True),
    (True, "true", True),
    (True, "True", False),
    (True, "1", False),
    (1, "true", False),
    (False, "false", True),
    (False, "0", False),
    (None, "null", False),
    (None, "None", False),
    (["eu"], "eu", False),
    ([{"a": "eu"}], "eu", False),
    ({"a": {"b": "eu"}}, "eu", True),
    ({"eu": "x"}, "eu", False),
    ({}, "{}", False),
]


@pytest.mark.parametrize(("argument", "value", "is_said"), SPELLED)
def test_a_header_says_what_an_argument_says(
    argument: object, value: str, *, is_said: bool
) -> None:
    assert all_repeat([value], {"other": "x", "it": argument}) is is_said
    assert all_repeat(["x", value, value], {"other": "x", "it": argument}) is is_said
    assert all_repeat([value], argument) is (is_said and isinstance(argument, dict))


def test_a_call_with_more_arguments_than_anybody_has_keeps_nobody_waiting() -> None:
    many: dict[str, object] = {f"k{number}": number for number in range(9_000)}
    assert all_repeat(["eu"], {"deep": {"many": many}, "region": "eu", "where": {"in": "it"}})
    assert all_repeat(["it"], {"deep": {"many": many}, "where": {"in": "it"}})
    more = {"a": many, "b": dict(many), "c": {"in": "it"}}
    assert all_repeat(["8999"], more)
    assert not all_repeat(["it"], more)
    assert not all_repeat(["it"], {"a": [{}] * 20_000, "b": {f"k{n}": {} for n in range(20_000)}})
    assert moved(["it"], more, {**more, "c": {"in": "[X]"}}) == ["[X]"]


def test_no_header_says_nothing_wrong() -> None:
    assert all_repeat([], None)
    assert all_repeat([], {"a": 1})


CARD = 4_111_111_111_111_111
MOVED = [
    ({"a": "x"}, {"a": "y"}, ["x", encode_value("x")], ["y", "y"]),
    ({"a": "x"}, {"a": "\u00fc"}, ["x", "x"], [encode_value("\u00fc")] * 2),
    (
        {"a": {"b": {"c": "x"}}, "d": "z"},
        {"a": {"b": {"c": "y"}}, "d": "z"},
        ["x", "z"],
        ["y", "z"],
    ),
    ({"a": CARD}, {"a": "[CARD]"}, [str(CARD), f"{CARD}.0"], ["[CARD]", "[CARD]"]),
    ({"a": float(CARD)}, {"a": "[CARD]"}, [str(CARD), f"{CARD}.0"], ["[CARD]", "[CARD]"]),
    ({"a": "x", "b": "x"}, {"a": "x", "b": "y"}, ["x"], ["y"]),
    ({"a": "x", "b": "x"}, {"a": "y", "b": "x"}, ["x"], ["y"]),
    ({"a": "5", "b": 5}, {"a": "[N]", "b": 5}, ["5"], ["[N]"]),
    ({"a": True, "b": "z"}, {"a": True, "b": "y"}, ["true", "z"], ["true", "y"]),
    ({"a": "x"}, {}, ["x"], [None]),
    ({"a": "x"}, {"a": None}, ["x"], [None]),
    ({"a": {"b": "x"}}, {"a": "gone"}, ["x"], [None]),
    ({"l": ["x"], "a": "x"}, {"l": ["y"], "a": "x"}, ["x"], ["x"]),
]


@pytest.mark.parametrize(("old", "new", "values", "told"), MOVED)
def test_a_header_goes_with_its_argument(old: Any, new: Any, values: Any, told: Any) -> None:
    assert all_repeat(values, old)
    assert moved(values, old, new) == told
    assert all_repeat([value for value in told if value is not None], new)


TEXTS = st.sampled_from(["a", "b", "5", "true", "\u00fc", " ", "=?base64?YQ==?="])
LEAVES = TEXTS | st.sampled_from([5, 5.0, 5.5, True, None, CARD])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def masked(value: object, hidden: set[str]) -> object:
    if isinstance(value, dict):
        return {key: masked(inner, hidden) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, hidden) for inner in value]
    return "[X]" if text_of(value) in hidden else value


@given(st.dictionaries(TEXTS, TREES, max_size=4), st.lists(LEAVES), st.sets(TEXTS))
def test_whatever_is_masked_no_header_says_what_no_argument_does(
    arguments: dict[str, object], said: list[object], hidden: set[str]
) -> None:
    values = [encode_value(text) for leaf in said if (text := text_of(leaf)) is not None]
    sent = [value for value in values if all_repeat([value], arguments)]
    assert all_repeat(sent, arguments)
    after = masked(arguments, hidden)
    told = moved(sent, arguments, after)
    assert None not in told
    assert all_repeat([value for value in told if value is not None], after)
