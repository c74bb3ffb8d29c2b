"""The order of targets: the strategies, and what moves a target back."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from math import sqrt

import pytest

from tidegate.routing import BreakerSettings, Route, Strategy, Target, Targets, Verdict, ordered
from tidegate.routing.order import without_fallback

A, B, C = Target("a"), Target("b"), Target("c")


def route(strategy: Strategy, *targets: Target) -> Route:
    return Route("r", targets, strategy=strategy)


def row(*numbers: float) -> Callable[[], float]:
    """Draws these numbers; more than these is an error."""
    return iter(numbers).__next__


def names(order: tuple[Target, ...]) -> str:
    return "".join(target.provider for target in order)


def firsts(
    of: Route, targets: Targets, picks: int, *, seed: int = 1, now_s: float = 0.0
) -> Counter[str]:
    draw = random.Random(seed).random  # noqa: S311
    return Counter(ordered(of, targets, draw, now_s)[0].provider for _ in range(picks))


def within_three_sigma(seen: int, picks: int, share: float) -> bool:
    return abs(seen - picks * share) <= 3 * sqrt(picks * share * (1 - share))


def in_ramp(target: Target, now_s: float) -> Targets:
    """Targets of which this one has just closed its breaker again."""
    targets = Targets()
    breaker = targets.state(target, BreakerSettings(open_s=1.0)).breaker
    for at_s in (now_s - 1.0, now_s):
        permit = breaker.permit(at_s)
        assert permit is not None
        if at_s < now_s:
            breaker.trip(permit, at_s)
        else:
            breaker.record(permit, Verdict.SUCCESS, at_s)
    return targets


@pytest.mark.parametrize("strategy", ["priority", "weighted", "least_latency"])
def test_a_single_target_needs_no_draw(strategy: Strategy) -> None:
    assert ordered(route(strategy, A), Targets(), row(), 0.0) == (A,)
    assert ordered(route(strategy), Targets(), row(), 0.0) == ()


def test_priority_is_the_order_of_the_file_and_draws_nothing() -> None:
    for targets in itertools.permutations((A, B, C)):
        assert ordered(route("priority", *targets), Targets(), row(), 0.0) == targets


def test_ten_thousand_weighted_picks_lie_within_three_sigma() -> None:
    weighted = [Target(name, weight=weight) for name, weight in (("a", 5), ("b", 3), ("c", 2))]
    seen = firsts(route("weighted", *weighted), Targets(), 10_000)
    for target in weighted:
        assert within_three_sigma(seen[target.provider], 10_000, target.weight / 10)


def test_the_second_place_goes_by_weight_among_those_that_are_left() -> None:
    weighted = [Target(name, weight=weight) for name, weight in (("a", 5), ("b", 3), ("c", 2))]
    draw = random.Random(2).random  # noqa: S311
    orders = [
        names(ordered(route("weighted", *weighted), Targets(), draw, 0.0)) for _ in range(4_000)
    ]
    after_a = [order for order in orders if order[0] == "a"]
    assert within_three_sigma(sum(o[1] == "b" for o in after_a), len(after_a), 3 / 5)


def test_the_largest_and_the_smallest_draw_are_no_trouble() -> None:
    for numbers in itertools.product((0.0, 1.0 - 2.0**-53), repeat=2):
        order = ordered(route("weighted", A, B), Targets(), row(*numbers), 0.0)
        assert set(order) == {A, B}


def test_a_fractional_weight_is_a_share_like_any_other() -> None:
    two_keys = [Target("a", key, weight=0.5, credential_id=f"k{key}") for key in (0, 1)]
    seen = firsts(route("weighted", *two_keys, Target("b", weight=1)), Targets(), 4_000)
    assert within_three_sigma(seen["a"], 4_000, 1 / 2)


class Fleet:
    """Targets that answer in a time of their own; a request each tenth of a second."""

    def __init__(self, **latency_s: float) -> None:
        self.latency_s = latency_s
        self.of = route("least_latency", *(Target(name) for name in latency_s))
        self.targets = Targets()
        self.now_s = 0.0
        self.draw = random.Random(3).random  # noqa: S311

    def serve(self, requests: int, *, every_s: float = 0.1) -> Counter[str]:
        seen: Counter[str] = Counter()
        for _ in range(requests):
            self.now_s += every_s
            first = ordered(self.of, self.targets, self.draw, self.now_s)[0]
            state = self.targets.state(first, self.of.breaker)
            state.latency.saw(self.latency_s[first.provider], self.now_s)
            seen[first.provider] += 1
        return seen


def test_least_latency_asks_everybody_once_and_then_the_fastest() -> None:
    fleet = Fleet(a=0.9, b=0.1, c=0.5)
    assert fleet.serve(3) == Counter("abc")
    seen = fleet.serve(2_000)
    assert seen["b"] >= 0.92 * 2_000
    assert seen["a"] > 0
    assert seen["c"] > 0


def test_least_latency_follows_a_target_that_slows_down_and_one_that_recovers() -> None:
    fleet = Fleet(a=0.1, b=0.3)
    assert fleet.serve(300)["a"] >= 270
    fleet.latency_s["a"] = 2.0
    assert fleet.serve(20)["a"] <= 4
    assert fleet.serve(300)["b"] >= 270
    fleet.latency_s["a"] = 0.1
    fleet.serve(600)
    assert fleet.serve(300)["a"] >= 270


def test_a_slow_target_is_not_forgotten_and_its_recovery_is_seen_within_a_minute() -> None:
    fleet = Fleet(a=2.0, b=0.3)
    fleet.draw = lambda: 0.99
    fleet.serve(20)
    assert fleet.serve(500)["a"] == 0
    fleet.latency_s["a"] = 0.1
    fleet.serve(200)
    assert fleet.serve(100) == Counter(a=100)


def test_with_too_little_traffic_to_measure_the_last_that_was_heard_counts() -> None:
    fleet = Fleet(a=2.0, b=0.3)
    fleet.draw = lambda: 0.99
    fleet.serve(2)
    assert fleet.serve(10, every_s=600.0) == Counter(b=10)


def test_one_request_at_a_time_measures_an_unknown_target() -> None:
    of, targets = route("least_latency", A, B), Targets()
    targets.state(B, of.breaker).latency.saw(0.2, 0.0)
    orders = [names(ordered(of, targets, lambda: 0.99, 1.0 + n)) for n in range(12)]
    assert orders == ["ab"] + ["ba"] * 9 + ["ab", "ba"]


def test_a_resting_target_is_not_measured() -> None:
    of, targets = route("least_latency", A, B), Targets()
    targets.state(B, of.breaker).latency.saw(0.2, 0.0)
    targets.state(A, of.breaker).cool(0.0, 30.0)
    assert names(ordered(of, targets, row(0.99), 1.0)) == "ba"
    assert names(ordered(of, targets, row(), 30.0)) == "ab"


def test_one_pick_in_twenty_explores_the_others_evenly() -> None:
    of, targets = route("least_latency", A, B, C), Targets()
    for target, latency_s in ((A, 0.1), (B, 0.2), (C, 0.3)):
        targets.state(target, of.breaker).latency.saw(latency_s, 0.0)
    seen = firsts(of, targets, 8_000)
    assert within_three_sigma(seen["b"], 8_000, 0.025)
    assert within_three_sigma(seen["c"], 8_000, 0.025)


SMALL, LARGE = Target("s", context_tokens=8_000), Target("l", context_tokens=200_000)


@pytest.mark.parametrize(
    ("prompt_tokens", "order"),
    [(None, "sal"), (1, "sal"), (8_000, "sal"), (8_001, "als"), (200_000, "als"), (200_001, "asl")],
)
def test_a_window_that_is_too_short_for_the_prompt_comes_last_and_is_kept(
    prompt_tokens: int | None, order: str
) -> None:
    of = route("priority", SMALL, A, LARGE)
    assert names(ordered(of, Targets(), row(), 0.0, prompt_tokens=prompt_tokens)) == order


@pytest.mark.parametrize(("after_s", "share"), [(0.0, 0.25), (6.0, 0.5)])
@pytest.mark.parametrize("strategy", ["priority", "weighted", "least_latency"])
def test_a_target_in_its_ramp_is_first_in_its_share_of_its_picks(
    strategy: Strategy, after_s: float, share: float
) -> None:
    targets, of = in_ramp(A, 100.0), route(strategy, A, B)
    for target, latency_s in ((A, 0.1), (B, 0.9)):
        targets.state(target, of.breaker).latency.saw(latency_s, 100.0)
    usual = {"priority": 1.0, "weighted": 0.5, "least_latency": 0.95}[strategy]
    seen = firsts(of, targets, 4_000, now_s=100.0 + after_s)
    assert within_three_sigma(seen["a"], 4_000, usual * share)


def test_a_ramp_outweighs_the_hint_of_a_limit_but_not_the_window() -> None:
    targets, of = in_ramp(LARGE, 100.0), route("priority", LARGE, SMALL)
    assert names(ordered(of, targets, row(0.9), 100.0)) == "sl"
    assert names(ordered(of, targets, row(0.9), 100.0, prompt_tokens=9_000)) == "ls"


def test_a_target_on_probation_keeps_its_place_so_that_somebody_brings_the_probe() -> None:
    of, targets = route("priority", A, B), Targets()
    breaker = targets.state(A, of.breaker).breaker
    permit = breaker.permit(0.0)
    assert permit is not None
    breaker.trip(permit, 0.0)
    for now_s in (0.0, 5.0):
        assert names(ordered(of, targets, row(), now_s)) == "ab"


def scarce(of: Route, target: Target, until_s: float) -> Targets:
    targets = Targets()
    targets.state(target, of.breaker).note_room(0.0, until_s)
    return targets


def test_a_key_without_room_goes_behind_the_other_keys_of_its_provider_only() -> None:
    keys = [Target("a", key, credential_id=f"k{key}") for key in (0, 1, 2)]
    of = route("priority", *keys, B, Target("a", upstream_model="m"))
    targets = scarce(of, keys[0], 6.0)
    order = ordered(of, targets, row(), 5.9)
    assert [target.credential for target in order[:3]] == [1, 2, 0]
    assert order[3:] == of.targets[3:]
    assert ordered(of, targets, row(), 6.0) == of.targets


@pytest.mark.parametrize("strategy", ["weighted", "least_latency"])
def test_where_all_are_equals_a_target_without_room_comes_last_until_its_reset(
    strategy: Strategy,
) -> None:
    of = route(strategy, Target("a", weight=1000), B, C)
    targets = scarce(of, of.targets[0], 6.0)
    for target, latency_s in zip(of.targets, (0.1, 0.2, 0.3), strict=True):
        targets.state(target, of.breaker).latency.saw(latency_s, 0.0)
    draw: Iterator[float] = itertools.cycle((0.5, 0.6, 0.7))
    assert names(ordered(of, targets, draw.__next__, 5.9))[-1] == "a"
    assert names(ordered(of, targets, draw.__next__, 6.0))[0] == "a"


def test_room_that_came_back_is_believed_at_once() -> None:
    of = route("weighted", Target("a", weight=1000), B)
    targets = scarce(of, of.targets[0], 60.0)
    targets.state(of.targets[0], of.breaker).note_room(1.0, 0.0)
    assert names(ordered(of, targets, row(0.5, 0.5), 1.0)) == "ab"


@pytest.mark.parametrize("seed", range(20))
def test_an_order_holds_every_target_once_whatever_the_state(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    pool = [
        Target(f"t{n}", context_tokens=rng.choice((None, 10, 99)), weight=rng.randint(1, 9))
        for n in range(6)
    ]
    targets, now_s = Targets(), 0.0
    for _ in range(100):
        now_s += rng.random()
        of = route(rng.choice(("priority", "weighted", "least_latency")), *pool)
        state = targets.state(rng.choice(pool), of.breaker)
        permit = state.breaker.permit(now_s)
        if permit is not None:
            state.breaker.record(permit, rng.choice(list(Verdict)), now_s)
        if rng.random() < 0.5:
            state.latency.saw(rng.random(), now_s)
        state.note_room(now_s, rng.choice((0.0, 5.0)))
        order = ordered(of, targets, rng.random, now_s, prompt_tokens=rng.choice((None, 50)))
        assert sorted(order, key=pool.index) == pool


def test_without_fallback_priority_means_the_first_candidate_by_any_of_its_keys() -> None:
    keys = [Target("a", key, credential_id=f"k{key}") for key in (0, 1)]
    same_name = Target("a", upstream_model="m")
    of = route("priority", *keys, B, same_name)
    order = (B, keys[1], same_name, keys[0])
    assert without_fallback(of, order) == (keys[1], keys[0])


@pytest.mark.parametrize("strategy", ["weighted", "least_latency"])
def test_without_fallback_the_other_strategies_have_no_first_one(strategy: Strategy) -> None:
    assert without_fallback(route(strategy, A, B), (B, A)) == (B, A)
