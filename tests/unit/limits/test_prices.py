"""Usage becomes money in whole numbers, rounded up once, at the price of whoever served."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.limits.ledger import MAX_AMOUNT
from tidegate.limits.prices import PER, Price, PriceTable

pytestmark = pytest.mark.full

MINI = Price(150_000, 600_000, 75_000)
LARGE = Price(2_500_000, 10_000_000, 1_250_000)
FREE = Price(0, 0, 0)

tokens = st.integers(0, 10**9)
amounts = st.integers(0, 10**12)


@given(amounts, amounts, amounts, tokens, tokens, tokens)
def test_a_cost_is_the_exact_sum_rounded_up_once(
    dear: int, answer: int, cheap: int, prompt: int, output: int, cached: int
) -> None:
    price = Price(dear, answer, cheap)
    part = min(cached, prompt)
    exact = Fraction((prompt - part) * dear + part * cheap + output * answer, PER)
    assert price.cost(prompt, output, cached) == min(ceil(exact), MAX_AMOUNT)


@given(st.integers(1, 10**12), tokens.filter(bool))
def test_no_token_with_a_price_is_free(price: int, count: int) -> None:
    assert Price(price, 0, price).cost(count, 0) >= 1
    assert Price(0, price, 0).cost(0, count) >= 1
    assert Price(price, 0, price).cost(count, 0, count) >= 1


@given(amounts, amounts, amounts, tokens, tokens, tokens)
def test_what_is_reserved_covers_any_share_of_cached_tokens(
    dear: int, answer: int, cheap: int, prompt: int, output: int, cached: int
) -> None:
    price = Price(dear, answer, cheap)
    assert price.cost(prompt, output, cached) <= price.most(prompt, output)


@pytest.mark.parametrize(
    ("prompt", "output", "cached", "micros"),
    [
        (1_000_000, 0, 0, 150_000),
        (0, 1_000_000, 0, 600_000),
        (1_000_000, 0, 1_000_000, 75_000),
        (1_000, 500, 400, 420),  # 600 * .15 + 400 * .075 + 500 * .6
        (1, 0, 0, 1),
        (0, 0, 0, 0),
        (-5, -5, -5, 0),
        (10, 0, 10**9, 1),  # no more is cached than was sent
        (10**18, 10**18, 0, MAX_AMOUNT),
    ],
)
def test_costs_of_usual_and_of_odd_usage(
    prompt: int, output: int, cached: int, micros: int
) -> None:
    assert MINI.cost(prompt, output, cached) == micros


TABLE = PriceTable(
    {
        "primary": {"*": FREE, "gpt-*": MINI, "gpt-4*": LARGE, "gpt-4o": FREE, "gpt-4?": MINI},
        "backup": {"gpt-4*": LARGE},
        "empty": {},
    }
)


@pytest.mark.parametrize(
    ("provider", "model", "price"),
    [
        ("primary", "gpt-4o", FREE),  # the exact name, wherever it stands
        ("primary", "gpt-4.1", MINI),  # the first pattern of the file
        ("primary", "GPT-4.1", FREE),  # names have case; "*" is last, wherever it stands
        ("primary", "x\ny", FREE),
        ("primary", None, FREE),
        ("backup", "gpt-4o", LARGE),
        ("backup", "gpt-3", None),
        ("backup", None, None),
        ("empty", "gpt-4o", None),
        ("nobody", "gpt-4o", None),
        ("nobody", None, None),
    ],
)
def test_which_price_is_that_of_a_model(provider: str, model: str | None, price: object) -> None:
    assert TABLE.of(provider, model) == price
