"""Limits are shown in the form that clients of the OpenAI dialect read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.limit_headers import duration, limit_headers
from tidegate.limits.ledger import Limit, Standing, Unit
from tidegate.routing.retry_after import retry_after_s


def standing(unit: Unit, cap: int, free: int, reset_s: float = 60.0) -> Standing:
    return Standing(Limit(f"{unit}-{cap}", unit, cap), cap - free, free, reset_s)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.0000001, "1ms"),
        (0.12, "120ms"),
        (0.9991, "1s"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (59.9999, "1m0s"),
        (60.25, "1m0.25s"),
        (90.951, "1m30.951s"),
        (360.0, "6m0s"),
        (3600.0, "1h0m0s"),
        (86_400.0 + 61.5, "24h1m1.5s"),
        (-3.0, "0s"),
    ],
)
def test_a_duration_is_written_as_by_go(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0.5, 3_000_000.0))
def test_our_own_reader_of_such_durations_gets_no_less_than_was_meant(seconds: float) -> None:
    text = duration(seconds)
    assert re.fullmatch(r"([0-9]+h)?([0-9]+m)?[0-9]+(\.[0-9]{1,3})?s|[0-9]+ms", text)
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": text}
    read = retry_after_s(headers, 0.0, max_s=10_000_000.0)
    assert read is not None
    assert -0.00001 <= read - seconds <= 0.001_1


def test_without_a_limit_nothing_is_shown() -> None:
    assert limit_headers(()) == []
    assert limit_headers([standing("money_micros", 9, 9), standing("concurrent", 9, 9)]) == []


def test_the_tightest_limit_of_each_family_is_shown() -> None:
    found = limit_headers(
        [
            standing("requests", 60, 58, 60.25),
            standing("requests", 1000, 12, 3600.0),
            standing("tokens", 50_000, 40_000, 60.0),
            standing("output_tokens", 9_000, 8_000, 6.0),
            standing("input_tokens", 90_000, 8_000, 7.5),
            standing("money_micros", 5, 1),
        ]
    )
    assert found == [
        (b"x-ratelimit-limit-requests", b"1000"),
        (b"x-ratelimit-remaining-requests", b"12"),
        (b"x-ratelimit-reset-requests", b"1h0m0s"),
        (b"x-ratelimit-limit-tokens", b"90000"),
        (b"x-ratelimit-remaining-tokens", b"8000"),
        (b"x-ratelimit-reset-tokens", b"7.5s"),
    ]


def test_a_limiter_without_its_store_says_so() -> None:
    assert limit_headers((), degraded=True) == [(b"x-tidegate-limiter", b"degraded")]
