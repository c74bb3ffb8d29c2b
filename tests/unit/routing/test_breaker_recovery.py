"""The breaker's verdict on slowness, opening at once, its pauses, and the way back."""

import pytest

from tidegate.routing.breaker import RAMP_S, Breaker, BreakerSettings, Permit, State, Verdict

SUCCESS, FAILURE, NEUTRAL = Verdict.SUCCESS, Verdict.FAILURE, Verdict.NEUTRAL
SETTINGS = BreakerSettings(consecutive=3, open_s=5.0, max_open_s=60.0)


def taken(breaker: Breaker, now_s: float) -> Permit:
    permit = breaker.permit(now_s)
    assert permit is not None
    return permit


def record(
    breaker: Breaker,
    verdict: Verdict,
    now_s: float,
    *,
    times: int = 1,
    slow: bool = False,
    cheap: bool = False,
    jitter: float = 0.0,
) -> None:
    for _ in range(times):
        permit = taken(breaker, now_s)
        breaker.record(permit, verdict, now_s, slow=slow, cheap=cheap, jitter=jitter)


def recovered(settings: BreakerSettings = SETTINGS) -> Breaker:
    """Opened at 0, probed and closed at the end of its first pause."""
    breaker = Breaker(settings)
    breaker.trip(taken(breaker, 0.0), 0.0)
    record(breaker, SUCCESS, settings.open_s)
    assert breaker.state(settings.open_s) is State.CLOSED
    return breaker


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [
        (0, 4, State.CLOSED),  # fewer than min_results
        (0, 5, State.OPEN),
        (1, 4, State.OPEN),
        (2, 4, State.CLOSED),  # below the ratio
        (2, 8, State.OPEN),
        (100, 5, State.CLOSED),
    ],
)
def test_slow_answers_open_by_their_share(fast: int, slow: int, expected: State) -> None:
    breaker = Breaker(BreakerSettings(min_results=5, slow_ratio=0.8))
    record(breaker, SUCCESS, 0.0, times=fast)
    record(breaker, SUCCESS, 0.0, times=slow, slow=True)
    assert breaker.state(0.0) is expected
    assert breaker.opened_by == ("slow" if expected is State.OPEN else None)


def test_time_outs_are_slow_too_and_count_together_with_slow_answers() -> None:
    breaker = Breaker(BreakerSettings(consecutive=99, ratio=0.9, min_results=5, slow_ratio=0.8))
    record(breaker, FAILURE, 0.0, times=2, slow=True)
    record(breaker, SUCCESS, 0.0)
    record(breaker, SUCCESS, 0.0, slow=True)
    assert breaker.state(0.0) is State.CLOSED
    record(breaker, SUCCESS, 0.0, slow=True)
    assert breaker.opened_by == "slow"


def test_slow_answers_older_than_the_window_do_not_count() -> None:
    breaker = Breaker(BreakerSettings(window_s=30.0, min_results=5))
    record(breaker, SUCCESS, 0.0, times=4, slow=True)
    record(breaker, SUCCESS, 30.0, slow=True)
    assert breaker.state(30.0) is State.CLOSED


def test_a_refusal_that_took_long_says_nothing() -> None:
    breaker = Breaker()
    record(breaker, NEUTRAL, 0.0, times=50, slow=True)
    assert breaker.state(0.0) is State.CLOSED


def test_a_probe_that_is_slow_has_not_recovered() -> None:
    breaker = Breaker(SETTINGS)
    breaker.trip(taken(breaker, 0.0), 0.0)
    record(breaker, SUCCESS, 5.0, slow=True)
    assert breaker.opened_by == "probe"
    assert breaker.reopens_at_s == 5.0 + 10.0


def test_a_trip_opens_at_once_whatever_the_counts() -> None:
    breaker = Breaker(BreakerSettings(consecutive=10**6, ratio=1.0, min_results=10**6))
    record(breaker, SUCCESS, 0.0, times=100)
    breaker.trip(taken(breaker, 0.0), 0.0)
    assert breaker.state(4.9) is State.OPEN
    assert breaker.state(5.0) is State.HALF_OPEN
    assert breaker.opened_by == "trip"


def test_a_late_or_repeated_trip_changes_nothing() -> None:
    breaker = Breaker(SETTINGS)
    late, early = taken(breaker, 0.0), taken(breaker, 0.0)
    breaker.trip(early, 0.0)
    breaker.trip(early, 1.0)
    breaker.trip(late, 2.0)
    assert breaker.reopens_at_s == 5.0
    record(breaker, SUCCESS, 5.0)
    breaker.trip(late, 6.0)
    assert breaker.state(6.0) is State.CLOSED


def test_a_tripping_probe_goes_on_doubling() -> None:
    breaker = Breaker(SETTINGS)
    now_s, pauses = 0.0, []
    for _ in range(6):
        breaker.trip(taken(breaker, now_s), now_s)
        assert breaker.reopens_at_s is not None
        pauses.append(breaker.reopens_at_s - now_s)
        now_s = breaker.reopens_at_s
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("jitter", "pauses"),
    [
        (-1.0, [4.0, 8.0, 16.0, 32.0, 48.0]),
        (0.5, [5.5, 11.0, 22.0, 44.0, 66.0]),
        (1.0, [6.0, 12.0, 24.0, 48.0, 72.0]),
    ],
)
def test_jitter_spreads_every_pause_by_a_fifth(jitter: float, pauses: list[float]) -> None:
    breaker = Breaker(BreakerSettings(consecutive=1, open_s=5.0, max_open_s=60.0))
    now_s, seen = 0.0, []
    for _ in pauses:
        record(breaker, FAILURE, now_s, jitter=jitter)
        assert breaker.reopens_at_s is not None
        seen.append(breaker.reopens_at_s - now_s)
        now_s = breaker.reopens_at_s
    assert seen == pytest.approx(pauses)


@pytest.mark.parametrize(
    ("open_s", "pauses"), [(5.0, [5.0, 10.0, 10.0, 10.0]), (15.0, [15.0] * 4), (1.0, [1, 2, 4, 8])]
)
def test_after_failures_that_cost_nothing_it_is_looked_at_again_soon(
    open_s: float, pauses: list[float]
) -> None:
    breaker = Breaker(BreakerSettings(consecutive=1, open_s=open_s, max_open_s=60.0))
    now_s, seen = 0.0, []
    for _ in pauses:
        record(breaker, FAILURE, now_s, cheap=True)
        assert breaker.reopens_at_s is not None
        seen.append(breaker.reopens_at_s - now_s)
        now_s = breaker.reopens_at_s
    assert seen == pauses
    # One that made its caller wait is left alone as long as it would have been without the others.
    record(breaker, FAILURE, now_s)
    assert breaker.reopens_at_s == now_s + min(60.0, open_s * 2 ** len(pauses))


def test_the_longest_pause_of_the_settings_holds_for_cheap_failures_too() -> None:
    breaker = Breaker(BreakerSettings(consecutive=1, open_s=2.0, max_open_s=3.0))
    record(breaker, FAILURE, 0.0, cheap=True)
    record(breaker, FAILURE, 2.0, cheap=True)
    assert breaker.reopens_at_s == 5.0


def test_a_good_result_opens_nothing() -> None:
    breaker = Breaker(BreakerSettings(consecutive=9, ratio=0.5, min_results=5))
    for verdict in (FAILURE, FAILURE, SUCCESS, FAILURE, SUCCESS):
        record(breaker, verdict, 0.0)
    assert breaker.state(0.0) is State.CLOSED
    record(breaker, FAILURE, 0.0)
    assert breaker.opened_by == "ratio"


@pytest.mark.parametrize(
    ("after_s", "share"), [(0.0, 0.25), (4.99, 0.25), (5.0, 0.5), (9.99, 0.5), (10.0, 1.0)]
)
def test_the_share_grows_over_ten_seconds(after_s: float, share: float) -> None:
    assert recovered().share(5.0 + after_s) == share


def test_only_a_closed_breaker_asks_for_a_share() -> None:
    breaker = Breaker(SETTINGS)
    assert breaker.share(0.0) == 1.0
    breaker.trip(taken(breaker, 0.0), 0.0)
    assert [breaker.share(now_s) for now_s in (0.0, 5.0)] == [0.0, 0.0]


def test_a_ramp_refuses_nobody() -> None:
    breaker = recovered()
    assert all(breaker.permit(5.0) is not None for _ in range(1000))


@pytest.mark.parametrize(
    "settings", [SETTINGS, BreakerSettings(3, 0.5, open_s=1.0, max_open_s=2.0)]
)
@pytest.mark.parametrize("successes", [0, 1])
def test_a_bad_start_after_recovery_opens_with_the_doubled_pause(
    settings: BreakerSettings, successes: int
) -> None:
    breaker = recovered(settings)
    now_s = settings.open_s + RAMP_S - 0.01
    record(breaker, SUCCESS, now_s, times=successes)
    record(breaker, FAILURE, now_s)
    assert breaker.opened_by == "ramp"
    assert breaker.reopens_at_s == now_s + 2 * settings.open_s


def test_one_slow_answer_right_after_recovery_opens_too() -> None:
    breaker = recovered()
    record(breaker, SUCCESS, 6.0, slow=True)
    assert breaker.opened_by == "slow"


def test_one_failure_among_many_successes_does_not_end_the_ramp() -> None:
    """A busy target that fails one call in a hundred would never be let back in."""
    breaker = recovered()
    record(breaker, SUCCESS, 6.0, times=2)
    for _ in range(5):
        record(breaker, FAILURE, 6.0)
        record(breaker, SUCCESS, 6.0, times=99)
    assert breaker.state(6.0) is State.CLOSED


def test_after_the_ramp_failures_are_counted_again() -> None:
    breaker = recovered()
    record(breaker, FAILURE, 15.0, times=2)
    assert breaker.state(15.0) is State.CLOSED
    record(breaker, FAILURE, 15.0)
    assert breaker.opened_by == "consecutive"


def test_a_call_from_before_the_outage_cannot_end_the_ramp() -> None:
    breaker = Breaker(SETTINGS)
    late = taken(breaker, 0.0)
    breaker.trip(taken(breaker, 0.0), 0.0)
    record(breaker, SUCCESS, 5.0)
    breaker.record(late, FAILURE, 6.0)
    assert breaker.share(6.0) == 0.25
