"""The window never holds more than the cap, and says exactly when there is room again."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.limits.ledger import Granted, Limit, NeverFits, Refused
from tidegate.limits.window import BUCKETS, Ask, Bucket, Window, admit, bucket_end_us, horizon_us

S = 1_000_000
CAP = 100
LIMIT = Limit("tokens", "tokens", CAP, 60.0)
WIDTH_US = LIMIT.window_us // BUCKETS


class Kept(dict[str, Window]):
    """Windows by the names of their counters."""

    def live(self, key: str, horizon: int) -> Iterable[Bucket]:
        return self[key].live(horizon)

    def newest_end_us(self, key: str, horizon: int) -> int:
        return self[key].newest_end_us(horizon)


def ask(window: Window, amount: int, now_us: int, limit: Limit = LIMIT) -> Ask:
    horizon = horizon_us(now_us, limit.window_us)
    used, end_us = window.used(horizon), bucket_end_us(now_us, limit.window_us)
    return Ask(limit, amount, used, end_us, "key", Kept({"key": window}))


def take(
    window: Window, amount: int, now_us: int, limit: Limit = LIMIT
) -> Granted | Refused | NeverFits:
    verdict = admit("id", [ask(window, amount, now_us, limit)], now_us=now_us)
    if isinstance(verdict, Granted):
        window.evict(horizon_us(now_us, limit.window_us))
        window.add(bucket_end_us(now_us, limit.window_us), amount)
    return verdict


def test_sixty_seconds_are_cut_into_quarters_of_a_second() -> None:
    assert bucket_end_us(0, 60 * S) == 250_000
    assert bucket_end_us(249_999, 60 * S) == 250_000
    assert bucket_end_us(250_000, 60 * S) == 500_000


def test_a_day_is_cut_into_six_minutes() -> None:
    assert bucket_end_us(0, 86_400 * S) == 360 * S


def test_a_window_that_does_not_divide_evenly_is_rounded_to_the_safe_side() -> None:
    assert bucket_end_us(0, 1_000) == 5
    assert BUCKETS * bucket_end_us(0, 1_000) >= 1_000


def test_what_fits_exactly_is_granted_and_one_more_is_not() -> None:
    window = Window()
    assert take(window, CAP, 0) == Granted("id")
    assert take(window, 1, 0) == Refused(LIMIT, CAP, 1, 60.25)


def test_a_charge_counts_until_the_end_of_its_bucket_has_left_the_window() -> None:
    window = Window()
    take(window, CAP, 100_000)
    last = 250_000 + 60 * S
    assert isinstance(take(window, 1, last - 1), Refused)
    assert take(window, CAP, last) == Granted("id")


def test_more_than_the_whole_limit_never_fits_even_when_the_window_is_full() -> None:
    window = Window()
    take(window, CAP, 0)
    assert take(window, CAP + 1, 0) == NeverFits(LIMIT, CAP + 1)


def test_a_larger_charge_waits_longer_than_a_smaller_one() -> None:
    """alisaifee/limits#112: the wait is that of this weight, not of the first row that ends."""
    window = Window()
    for second in range(10):
        take(window, 10, second * S)
    now_us = 10 * S
    waits = [
        verdict.retry_after_s
        for amount in (1, 10, 11, 55, 100)
        if isinstance(verdict := take(window, amount, now_us), Refused)
    ]
    assert waits == [50.25, 50.25, 51.25, 55.25, 59.25]


def test_among_full_limits_the_longest_wait_is_named() -> None:
    short, long = Window(), Window()
    hour = Limit("per-hour", "tokens", CAP, 3600.0)
    take(short, CAP, 0)
    take(long, CAP, 0, hour)
    verdict = admit("id", [ask(short, 1, 0), ask(long, 1, 0, hour)], now_us=0)
    assert verdict == Refused(hour, CAP, 1, 3615.0)


def test_never_fits_wins_over_a_limit_that_is_only_full() -> None:
    full, tiny = Window(), Limit("tiny", "tokens", 5)
    take(full, CAP, 0)
    verdict = admit("id", [ask(full, 6, 0), ask(Window(), 6, 0, tiny)], now_us=0)
    assert verdict == NeverFits(tiny, 6)


def test_without_limits_everything_is_granted() -> None:
    assert admit("id", [], now_us=0) == Granted("id")


def test_a_full_concurrency_limit_gives_advice_and_says_so() -> None:
    limit = Limit("parallel", "concurrent", 2)
    verdict = admit("id", [Ask(limit, 1, 2, 0, "key", Kept())], now_us=0)
    assert verdict == Refused(limit, 2, 1, 1.0, exact=False)


def test_an_overrun_blocks_even_a_charge_of_nothing_until_it_leaves() -> None:
    window = Window()
    take(window, 10, 0)
    window.correct(250_000, amount=200, reserved=-10, overrun=200)
    assert take(window, 0, S) == Refused(LIMIT, 210, 0, 59.25)
    assert take(window, 0, 60 * S + 250_000) == Granted("id")


def test_a_wait_is_never_zero_even_if_the_store_contradicts_itself() -> None:
    verdict = admit("id", [Ask(LIMIT, 1, CAP, 0, "key", Kept({"key": Window()}))], now_us=5)
    assert isinstance(verdict, Refused)
    assert verdict.retry_after_s > 0


def test_a_correction_of_a_bucket_that_is_gone_changes_nothing() -> None:
    window = Window()
    window.add(250_000, 10)
    window.evict(250_000)
    window.correct(250_000, amount=-5, reserved=-10, overrun=0)
    assert (window.total, len(window)) == (0, 0)


def test_buckets_of_another_width_keep_their_place_in_time() -> None:
    """A reload may shorten a window: what was counted in coarse buckets stays true."""
    window = Window()
    window.add(15 * S, 1)
    window.add(2 * S, 2)
    window.add(9 * S, 4)
    assert [bucket.end_us for bucket in window.live(0)] == [2 * S, 9 * S, 15 * S]
    window.evict(2 * S)
    assert (window.total, window.used(9 * S)) == (5, 1)


def test_a_window_holds_at_most_241_buckets() -> None:
    window = Window()
    for step in range(5_000):
        take(window, 0, step * WIDTH_US)
    assert len(window) == BUCKETS + 1


class Exact:
    """The naive log: one entry a grant, summed anew each time."""

    def __init__(self) -> None:
        self.grants: list[tuple[int, int]] = []

    def inside(self, now_us: int, length_us: int) -> int:
        return sum(amount for at_us, amount in self.grants if now_us - length_us <= at_us <= now_us)


windows_s = st.sampled_from([0.001, 1.0, 7.0, 60.0, 3600.0])
steps = st.lists(st.tuples(st.floats(0.0, 0.6), st.integers(0, 70)), min_size=1, max_size=60)


@settings(deadline=None, max_examples=150, database=None)
@given(window_s=windows_s, history=steps)
def test_no_true_window_ever_holds_more_than_the_cap(
    window_s: float, history: list[tuple[float, int]]
) -> None:
    """And what a window one bucket longer has room for is never refused."""
    limit = Limit("tokens", "tokens", CAP, window_s)
    width_us = -(-limit.window_us // BUCKETS)
    window, exact, now_us = Window(), Exact(), 1_700_000_000 * S
    for fraction, amount in history:
        now_us += int(fraction * limit.window_us)
        longest = exact.inside(now_us, BUCKETS * width_us + width_us)
        verdict = take(window, amount, now_us, limit)
        if isinstance(verdict, Granted):
            exact.grants.append((now_us, amount))
            assert exact.inside(now_us, limit.window_us) <= CAP
        else:
            assert longest + amount > CAP


@settings(deadline=None, max_examples=150, database=None)
@given(window_s=windows_s, history=steps, wanted=st.integers(1, CAP))
def test_the_wait_is_exact(window_s: float, history: list[tuple[float, int]], wanted: int) -> None:
    """BerriAI/litellm#27823: obeyed it admits, a moment or a tenth earlier it does not."""
    limit = Limit("tokens", "tokens", CAP, window_s)
    window, now_us = Window(), 1_700_000_000 * S
    for fraction, amount in history:
        now_us += int(fraction * limit.window_us)
        take(window, amount, now_us, limit)
    verdict = admit("id", [ask(window, wanted, now_us, limit)], now_us=now_us)
    if isinstance(verdict, Refused):
        wait_us = round(verdict.retry_after_s * S)
        assert wait_us > 0
        for early_us in (wait_us - 1, wait_us * 9 // 10):
            at_us = now_us + early_us
            early = admit("id", [ask(window, wanted, at_us, limit)], now_us=at_us)
            assert isinstance(early, Refused)
        at_us = now_us + wait_us
        assert admit("id", [ask(window, wanted, at_us, limit)], now_us=at_us) == Granted("id")


@settings(deadline=None, max_examples=100, database=None)
@given(history=steps)
def test_the_running_total_is_the_sum_of_the_buckets(history: list[tuple[float, int]]) -> None:
    window, now_us = Window(), 0
    for fraction, amount in history:
        now_us += int(fraction * LIMIT.window_us)
        take(window, amount, now_us)
        assert window.total == sum(bucket.amount for bucket in window.live(-1))
