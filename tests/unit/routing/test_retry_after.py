"""Every form in which an upstream says when to come back."""

import pytest

from tidegate.routing.retry_after import retry_after_s, scarce_for_s

# Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110
NOW_S = 784111777.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": " 30 "}, 30.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "9" * 20}, 600.0),
        ({"retry-after": "9" * 400}, 600.0),
        ({"retry-after": "0" * 400}, None),
        ({"retry-after": "9" * 30 + "h"}, 600.0),
        ({"retry-after": "9" * 400 + "h" + "1s"}, 600.0),
        ({"retry-after-ms": "9" * 400}, 600.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 600.0),
        ({"retry-after": "9999-12-31T23:59:59Z"}, 600.0),
        ({"ratelimit": '"default";r=0;t=' + "9" * 40}, 600.0),
        ({"retry-after": "0.001"}, 0.5),
        ({"retry-after": "100000"}, 600.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}, 30.0),
        ({"retry-after": "Sunday, 06-Nov-94 08:50:07 GMT"}, 600.0),  # read as 2094
        ({"retry-after": "Sun Nov  6 08:50:07 1994"}, 30.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, None),
        ({"retry-after": "Sun, 06 Nov 1993 08:49:37 GMT"}, None),
        ({"retry-after": "Sun, 99 Nov 1994 08:49:37 GMT"}, None),
        ({"retry-after": "Sun, 06 Foo 1994 08:49:37 GMT"}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08::9:37 GMT"}, None),
        ({"retry-after": "1994-11-06T08:50:07Z"}, 30.0),
        ({"retry-after": "1994-11-06T09:50:07+01:00"}, 30.0),
        ({"retry-after": "1994-11-06T08:50:07"}, None),
        ({"retry-after": "1994-11-06T08:50:07 what ever"}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "30"}, 1.5),
        ({"retry-after-ms": "0", "retry-after": "30"}, 30.0),
        ({"retry-after-ms": "x", "retry-after": "30"}, 30.0),
        ({"retry-after": "20", "x-ratelimit-reset-requests": "1s"}, 20.0),
        ({"retry-after": "0", "x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 600.0),
        ({"x-ratelimit-reset-requests": "1d"}, 600.0),
        ({"x-ratelimit-reset-requests": "900ms"}, 0.9),
        ({"x-ratelimit-reset-requests": "7.66s"}, 7.66),
        ({"x-ratelimit-reset-tokens": "0s"}, None),
        ({"x-ratelimit-reset-tokens": "-1"}, None),
        ({"x-ratelimit-reset-tokens": "10"}, 10.0),
        ({"x-ratelimit-reset": str(int(NOW_S) + 10**9)}, 600.0),
        ({"anthropic-ratelimit-tokens-reset": "1994-11-06T08:50:07Z"}, 30.0),
        ({"ratelimit-reset": "50"}, 50.0),
        ({"ratelimit": "limit=100, remaining=0, reset=5"}, 5.0),
        ({"ratelimit": '"default";r=0;t=50'}, 50.0),
        ({"ratelimit": '"default";r=10'}, None),
        ({"x-ratelimit-limit-requests": "100"}, None),
    ],
)
def test_forms(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers, NOW_S) == wait_s


@pytest.mark.parametrize(("stamp", "wait_s"), [("1800000030", 30.0), ("1800000030000", 30.0)])
def test_a_large_number_is_a_unix_time_in_seconds_or_milliseconds(
    stamp: str, wait_s: float
) -> None:
    assert retry_after_s({"x-ratelimit-reset": stamp}, 1_800_000_000.0) == wait_s
    assert retry_after_s({"x-ratelimit-reset": stamp}, 1_800_000_031.0) is None


def test_an_rfc_850_date_is_read_in_this_century() -> None:
    headers = {"retry-after": "Friday, 15-Jan-27 08:00:30 GMT"}
    assert retry_after_s(headers, 1_800_000_000.0) == 30.0


def test_the_exhausted_dimension_decides() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "17",
        "x-ratelimit-reset-requests": "8m",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6s",
    }
    assert retry_after_s(headers, NOW_S) == 6.0
    assert retry_after_s(headers | {"x-ratelimit-remaining-requests": "0"}, NOW_S) == 480.0
    assert retry_after_s(headers | {"x-ratelimit-remaining-tokens": "3"}, NOW_S) == 6.0


def test_the_ceiling_is_the_callers() -> None:
    assert retry_after_s({"retry-after": "500"}, NOW_S, max_s=60.0) == 60.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, 0.0),
        ({"x-ratelimit-remaining-requests": "17"}, 0.0),
        ({"x-ratelimit-remaining-requests": "1"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0"}, 5.0),
        ({"x-ratelimit-remaining-requests": " 0 "}, 5.0),
        ({"x-ratelimit-remaining-requests": "-1"}, 0.0),
        ({"x-ratelimit-remaining-requests": ""}, 0.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6h"}, 600.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "-1"}, 5.0),
        ({"x-ratelimit-remaining-tokens": "20", "x-ratelimit-limit-tokens": "1000"}, 5.0),
        ({"x-ratelimit-remaining-tokens": "21", "x-ratelimit-limit-tokens": "1000"}, 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-limit-tokens": "0"}, 5.0),
        ({"x-ratelimit-remaining-tokens": "20", "x-ratelimit-limit-tokens": "many"}, 0.0),
        ({"x-ratelimit-reset-tokens": "6s"}, 0.0),
        ({"retry-after": "30"}, 0.0),
    ],
)
def test_how_long_a_target_has_no_room(headers: dict[str, str], wait_s: float) -> None:
    assert scarce_for_s(headers, NOW_S) == wait_s


def test_the_dimension_that_is_short_for_longer_decides() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1994-11-06T08:50:07Z",
    }
    assert scarce_for_s(headers, NOW_S) == 30.0
    assert scarce_for_s(headers | {"x-ratelimit-remaining-tokens": "9"}, NOW_S) == 1.0
