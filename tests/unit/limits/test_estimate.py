"""Estimates count all of the prompt, all of the answers, and survive any body."""

import base64
import json
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.limits.estimate import (
    DEFAULT_OUTPUT_TOKENS,
    MEDIA_TOKENS,
    MESSAGE_TOKENS,
    SAFETY,
    TextMeter,
    estimate_request,
    estimate_text,
)
from tidegate.limits.ledger import MAX_AMOUNT, Need

PROSE = "The river was calm that morning, and nobody on the quay expected rain. " * 40
HI = {"messages": [{"role": "user", "content": "hi"}]}


def sample(characters: str, length: int) -> str:
    return "".join(random.Random(7).choices(characters, k=length))  # noqa: S311


@pytest.mark.parametrize(
    ("text", "true_tokens", "low", "high"),
    [
        # True counts by an o200k vocabulary, from the average bytes a token takes in the class.
        (PROSE, len(PROSE) / 4.55, 1.0, 1.4),
        (json.dumps([{"id": n, "ok": True, "at": [n, 0.5]} for n in range(99)]), None, 1.0, 1.6),
        (sample(string.digits, 20) + " " + sample(string.digits, 20), 41 / 2.24, 0.9, 1.7),
        (base64.b64encode(random.Random(7).randbytes(3000)).decode(), 4000 / 1.58, 1.0, 1.4),  # noqa: S311
        ("川は静かで誰も雨を予想していなかった。" * 50, 19 * 50 * 3 / 3.88, 0.9, 1.4),
    ],
    ids=["prose", "json", "digits", "base64", "japanese"],
)
def test_each_class_of_text_is_estimated_on_the_safe_side(
    text: str, true_tokens: float | None, low: float, high: float
) -> None:
    true_tokens = true_tokens or len(text) / 2.84
    assert low <= estimate_text(text) / true_tokens <= high


def test_only_nothing_costs_nothing() -> None:
    assert estimate_text("") == 0
    assert all(estimate_text(one) >= 1 for one in ("a", " ", "7", "{", "é", "🙂"))


def test_a_request_is_its_prompt_and_the_answer_it_allows() -> None:
    need = estimate_request({**HI, "max_tokens": 4000})
    assert need == Need(1 + MESSAGE_TOKENS, 4000)
    assert need.total_tokens == 4005


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"max_tokens": 1, "max_completion_tokens": 10_000}, 10_000),
        ({"max_tokens": 10_000, "max_completion_tokens": 1}, 10_000),
        ({"max_completion_tokens": 10_000}, 10_000),
        ({"max_tokens": 100, "n": 20}, 2_000),
        ({"max_tokens": 100, "n": 2, "best_of": 20}, 2_000),
        ({"max_tokens": "10000"}, 10_000),
        ({"max_tokens": 10_000, "max_output_tokens": 1}, 10_000),
        ({"max_tokens": " 10000 "}, 10_000),
        ({"max_tokens": "0" * 30 + "10000"}, 10_000),
        ({"max_tokens": "1e4"}, 10_000),
        ({"max_tokens": float("inf")}, MAX_AMOUNT),
        ({"max_tokens": 1e4, "n": 2.0}, 20_000),
        ({"max_tokens": 100, "n": 0}, 100),
        ({"max_tokens": 100, "n": -3}, 100),
        ({"max_tokens": 100, "n": None}, 100),
        ({"max_tokens": 100, "n": True}, 100),
        ({"max_tokens": 10**400}, MAX_AMOUNT),
        ({"max_tokens": 10**9, "n": 10**9}, MAX_AMOUNT),
        ({"max_tokens": "9" * 5_000}, MAX_AMOUNT),
        ({"max_tokens": 1e300}, MAX_AMOUNT),
    ],
)
def test_the_answer_is_the_largest_the_caller_allows(
    fields: dict[str, object], output: int
) -> None:
    """P4-02 and P4-04: the cheap-looking field does not buy a full answer, nor n of them."""
    need = estimate_request({**HI, **fields})
    assert (need.output_tokens, need.output_is_default) == (output, False)


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1,
        0.0,
        -5.5,
        True,
        False,
        "",
        "many",
        "-5",
        [],
        {},
        float("nan"),
        float("-inf"),
    ],
)
def test_an_answer_without_a_usable_maximum_is_a_marked_guess(value: object) -> None:
    """P4-06: -1 and 0 mean "no maximum" to some providers."""
    need = estimate_request({**HI, "max_tokens": value})
    assert (need.output_tokens, need.output_is_default) == (DEFAULT_OUTPUT_TOKENS, True)


def test_the_guess_is_multiplied_and_can_be_configured() -> None:
    assert estimate_request({**HI, "n": 3}).output_tokens == 3 * DEFAULT_OUTPUT_TOKENS
    assert estimate_request(HI, default_output_tokens=50) == Need(5, 50, output_is_default=True)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": PROSE}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": PROSE}]}]},
        {"messages": [{"role": "system", "content": PROSE}, {"role": "user", "content": "hi"}]},
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": PROSE}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": PROSE}}]}]},
        {**HI, "system": PROSE},
        {**HI, "tools": [{"type": "function", "function": {"name": "f", "description": PROSE}}]},
        {**HI, "functions": [{"name": "f", "description": PROSE}]},
        {**HI, "response_format": {"json_schema": {"description": PROSE}}},
        {**HI, "a_field_of_tomorrow": [PROSE]},
        {"prompt": PROSE},
        {"input": PROSE},
    ],
    ids="-".join,
)
def test_all_that_a_model_reads_counts_as_prompt(body: dict[str, object]) -> None:
    """P4-05: tools and system text are prompt as well."""
    assert estimate_request(body).input_tokens >= estimate_text(PROSE)


def test_the_names_in_a_tool_definition_count() -> None:
    """P4-05: a definition can be all names."""
    properties = {f"property_number_{n}": {"type": "string"} for n in range(500)}
    tools = [{"type": "function", "function": {"parameters": {"properties": properties}}}]
    assert estimate_request({**HI, "tools": tools}).input_tokens > 2_500


def test_what_no_model_reads_costs_nothing() -> None:
    labels = {"model": PROSE, "user": PROSE, "metadata": {"a": PROSE}, "logit_bias": {"50256": 1}}
    assert estimate_request({**HI, **labels}) == estimate_request(HI)


def test_an_image_costs_about_an_image_not_its_base64_text() -> None:
    url = "data:image/png;base64," + "A" * 400_000
    for part in (
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "input_image", "image_url": url},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": "A" * 400_000}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ):
        body = {"messages": [{"role": "user", "content": [part]}]}
        assert MEDIA_TOKENS <= estimate_request(body).input_tokens < 1_300


def test_text_does_not_become_cheap_by_calling_itself_an_image() -> None:
    text = "data:image/png;base64," + PROSE
    body = {"messages": [{"role": "user", "content": text}]}
    assert estimate_request(body).input_tokens > estimate_text(PROSE)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
fields = st.sampled_from(
    ["messages", "max_tokens", "n", "tools", "system", "max_completion_tokens", "x"]
)


@settings(deadline=None, max_examples=120, database=None)
@given(st.dictionaries(fields, anything))
@pytest.mark.full
def test_no_body_is_too_odd_to_estimate(body: dict[str, object]) -> None:
    """BerriAI/litellm#31952: and no estimate is the whole of everything."""
    need = estimate_request(body)
    assert 0 <= need.input_tokens <= MAX_AMOUNT
    assert 0 < need.output_tokens <= MAX_AMOUNT


def test_depth_is_no_problem() -> None:
    deep: object = PROSE
    for _ in range(20_000):
        deep = [deep]
    assert estimate_request({"messages": deep}).input_tokens >= estimate_text(PROSE)


def test_a_lone_surrogate_is_counted_like_any_character() -> None:
    assert estimate_text("\ud800" * 100) == estimate_text("中" * 100)


def test_alphabets_ideographs_and_emoji_weigh_differently() -> None:
    weights = [estimate_text(one * 1000) / 1000 / SAFETY for one in ("é", "я", "中", "한", "🙂")]
    assert weights == pytest.approx([0.4, 0.4, 0.8, 0.8, 1.2], abs=0.01)
    assert estimate_text("aé" * 100) == estimate_text("a" * 100 + "é" * 100)


@pytest.mark.parametrize("size", [1, 3, 7, 500, 5_000])
def test_a_meter_counts_a_cut_text_like_a_whole_one(size: int) -> None:
    meter, whole = TextMeter(), TextMeter()
    text = PROSE + "0123456789" * 30 + "{}[]" * 200
    for start in range(0, len(text), size):
        meter.add(text[start : start + size])
    whole.add(text)
    assert abs(meter.tokens - whole.tokens) <= 2
    assert meter.tokens == meter.tokens


def test_a_meter_reads_at_least_one_once_any_text_came() -> None:
    """P4-08: a stream without usage is neither free nor charged its maximum."""
    meter = TextMeter()
    assert meter.tokens == 0
    meter.add("a")
    assert meter.tokens == 1
    for _ in range(39):
        meter.add(" word")
    assert 20 <= meter.tokens <= 80


@pytest.mark.parametrize("value", [-1, 0, None, "many", {}])
def test_a_maximum_that_is_none_does_not_buy_a_small_estimate(value: object) -> None:
    for field in ("max_tokens", "max_completion_tokens"):
        need = estimate_request({**HI, field: value, "max_output_tokens": 1})
        assert (need.output_tokens, need.output_is_default) == (1024, True)
