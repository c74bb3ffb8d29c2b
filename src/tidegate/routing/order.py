"""In which order does this request ask the targets of its route?

Lives here: the strategies (priority, weighted, least_latency) and what moves a target back: a
prompt longer than its window, a recovery that is still fresh, a limit that is nearly used up. Does
not live here: whether a target may be called at all (breaker.py, failover.py): no target is ever
dropped here. Random numbers come in as values.
"""

from collections.abc import Callable
from math import log

from tidegate.routing.plan import Route, Target
from tidegate.routing.targets import Targets, TargetState

Draw = Callable[[], float]
"""Gives the next of a row of independent random numbers, evenly spread over [0, 1)."""

EXPLORES = 0.05
"""The part of the picks by latency that goes to any other target, to see how it does."""


def ordered(
    route: Route,
    targets: Targets,
    draw: Draw,
    now_s: float,
    *,
    prompt_tokens: int | None = None,
) -> tuple[Target, ...]:
    """All targets of `route`, the one to ask first first.

    `now_s` is a monotonic reading, `prompt_tokens` an estimate. What moves a target back, the
    strongest first: its declared window is shorter than the prompt; it has just recovered and this
    pick is not of its share; it said that it has almost no room, which counts among its equals
    only. Cost: O(n log n) for n targets.
    """
    if len(route.targets) < 2:
        return route.targets
    states = {target: targets.state(target, route.breaker) for target in route.targets}
    picked = _PICKS[route.strategy](route.targets, states, draw, now_s)

    def place(target: Target) -> tuple[bool, bool]:
        return (
            _is_too_small(target, prompt_tokens),
            _waits_for_its_share(states[target], draw, now_s),
        )

    return tuple(sorted(picked, key=place))


def without_fallback(route: Route, order: tuple[Target, ...]) -> tuple[Target, ...]:
    """Of `order` what a request may be sent to that wants one target or none.

    With priority that is the first candidate of the file, by any of its credentials, also while it
    rests: the second one is the fallback. The other strategies have no first one, so their pick
    among those that can be called is no fallback, and all stay.
    """
    if route.strategy != "priority":
        return order
    first = _candidate(route.targets[0])
    return tuple(target for target in order if _candidate(target) == first)


_States = dict[Target, TargetState]
_Pick = Callable[[tuple[Target, ...], _States, Draw, float], list[Target]]


def _by_priority(
    targets: tuple[Target, ...], states: _States, _draw: Draw, now_s: float
) -> list[Target]:
    """As in the file. The operator's word outweighs a hint: equals are the keys of one account."""
    rank = 0
    ranked: list[tuple[int, bool, Target]] = []
    for before, target in zip((None, *targets), targets, strict=False):
        rank += before is None or _candidate(before) != _candidate(target)
        ranked.append((rank, states[target].is_scarce(now_s), target))
    return [target for *_, target in sorted(ranked, key=lambda entry: entry[:2])]


def _by_weight(
    targets: tuple[Target, ...], states: _States, draw: Draw, now_s: float
) -> list[Target]:
    """Drawn without putting back, each in proportion to its weight among those that are left.

    The order of exponential waiting times with the weights as rates is just that.
    """
    waits = {target: -log(1.0 - draw()) / target.weight for target in targets}
    return sorted(targets, key=lambda target: (states[target].is_scarce(now_s), waits[target]))


def _by_latency(
    targets: tuple[Target, ...], states: _States, draw: Draw, now_s: float
) -> list[Target]:
    """The fastest to its first token first, unless another one is to be measured."""

    def place(target: Target) -> tuple[bool, float]:
        known_s = states[target].latency.expected_s
        return states[target].is_scarce(now_s), float("inf") if known_s is None else known_s

    picked = sorted(targets, key=place)
    first = _unmeasured(picked, states, now_s)
    if first is None and draw() < EXPLORES:
        first = picked[1 + int(draw() * (len(picked) - 1))]
    if first is not None:
        picked.remove(first)
        picked.insert(0, first)
    return picked


def _unmeasured(targets: list[Target], states: _States, now_s: float) -> Target | None:
    """A target of which nothing, or nothing of late, is known.

    Where nothing of late is known of any of them, there is too little traffic to spend on
    measuring: then the last that was heard counts.
    """
    any_known = any(state.latency.is_known(now_s) for state in states.values())
    for target in targets:
        state, latency = states[target], states[target].latency
        wanted = not latency.is_known(now_s) if any_known else latency.expected_s is None
        if wanted and state.wait_s(now_s) == 0.0 and latency.explore(now_s):
            return target
    return None


def _is_too_small(target: Target, prompt_tokens: int | None) -> bool:
    if prompt_tokens is None or target.context_tokens is None:
        return False
    return target.context_tokens < prompt_tokens


def _waits_for_its_share(state: TargetState, draw: Draw, now_s: float) -> bool:
    """Whether a target in its ramp leaves this pick to others.

    One that is open keeps its place: it is passed over anyway, and once its pause ends somebody
    has to bring it the probe.
    """
    share = state.breaker.share(now_s)
    return 0.0 < share < 1.0 and draw() >= share


def _candidate(target: Target) -> tuple[str, str | None]:
    return target.provider, target.upstream_model


_PICKS: dict[str, _Pick] = {
    "priority": _by_priority,
    "weighted": _by_weight,
    "least_latency": _by_latency,
}

__all__ = ["EXPLORES", "Draw", "ordered", "without_fallback"]
