"""How soon a target answers: what was seen, what may be expected, and who looks next."""

import pytest

from tidegate.routing.latency import Latency


def test_nothing_is_known_at_first() -> None:
    latency = Latency()
    assert (latency.first_token_s, latency.expected_s) == (None, None)
    assert not latency.is_known(0.0)


def test_the_newest_counts_three_tenths_and_more_after_a_pause() -> None:
    latency = Latency()
    latency.saw(1.0, 0.0)
    assert latency.first_token_s == 1.0
    latency.saw(2.0, 0.0)
    assert latency.first_token_s == pytest.approx(1.3)
    latency.saw(2.3, 10.0)
    # 1 - 1/e of the way
    assert latency.first_token_s == pytest.approx(1.3 + 0.632, abs=0.001)
    latency.saw(0.1, 70.0)
    assert latency.first_token_s == pytest.approx(0.1, abs=0.01)


def test_what_is_known_grows_old_in_a_minute() -> None:
    latency = Latency()
    latency.saw(1.0, 5.0)
    assert latency.is_known(64.9)
    assert not latency.is_known(65.0)
    assert latency.first_token_s == 1.0


def test_a_missed_deadline_is_expected_again_but_is_no_first_token() -> None:
    latency = Latency()
    latency.missed(3.0, 0.0)
    assert (latency.first_token_s, latency.expected_s) == (None, 3.0)
    assert latency.is_known(1.0)
    latency.saw(1.0, 0.0)
    assert latency.first_token_s == 1.0
    assert latency.expected_s == pytest.approx(2.4)


def test_giving_up_early_is_no_sign_of_speed() -> None:
    latency = Latency()
    latency.saw(8.0, 0.0)
    latency.missed(3.0, 0.0)
    assert latency.expected_s == 8.0


def test_one_caller_in_ten_seconds_explores() -> None:
    latency = Latency()
    asked = [latency.explore(now_s) for now_s in (0.0, 0.0, 9.9, 10.0, 10.1, 25.0)]
    assert asked == [True, False, False, True, False, True]
