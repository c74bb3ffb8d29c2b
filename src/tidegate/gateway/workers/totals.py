"""What do the numbers of all workers come to?

Counters and histograms are summed, also over workers that have ended: what was counted once
never goes down. Of a worker that was killed, what it counted after its last report is missing.
Gauges are summed over the workers that live, or one of them counts. Pure. Does not live here:
what is counted (metrics), who asks the workers (parent).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum

from tidegate.gateway.workers.words import Family, Sample

FARTHEST = frozenset(
    {
        "tidegate_store_degraded",
        "tidegate_records_degraded",
        "tidegate_breaker_state",
        "tidegate_target_state",
        "tidegate_target_cooling_seconds",
        "tidegate_wall_clock_ahead_seconds",
        "tidegate_tenant_rules_broken",
        "tidegate_tool_pins_differing",
    }
)
"""Gauges of which the one farthest from 0 counts: yes and no, states, and what is the same thing
seen by each worker. All others are summed."""

PARENT = 0
"""The run number of the parent's own numbers."""

_OTHER = "other"
_MOST_VALUES = 200
_UNBOUNDED = frozenset({"le", "worker"})
_GROWING = frozenset({"counter", "histogram"})

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Kept:
    """One family: the numbers of each living process, and what ended ones left behind."""

    text: str
    kind: str
    of: dict[int, dict[Key, float]] = field(default_factory=dict)
    left: dict[Key, list[float]] = field(default_factory=dict)


class Totals:
    """The numbers of all processes of one gateway."""

    def __init__(self) -> None:
        self._families: dict[str, _Kept] = {}
        self._known: dict[str, set[str]] = {}

    def note(self, run: int, process: str, families: Iterable[Family]) -> None:
        """What one process reports now, in place of what it reported before.

        `process` names it in the families that concern a process as such, "process_*".
        """
        for family in families:
            kept = self._families.setdefault(family.name, _Kept(family.text, family.kind))
            numbers: dict[Key, float] = {}
            for sample in family.samples:
                labels = tuple((name, self._bounded(name, value)) for name, value in sample.labels)
                if family.name.startswith("process_"):
                    labels = (*labels, ("worker", process))
                key = (sample.name, labels)
                numbers[key] = numbers.get(key, 0.0) + sample.value
            kept.of[run] = numbers

    def retire(self, run: int) -> None:
        """The process has ended; what it counted stays."""
        for kept in self._families.values():
            numbers = kept.of.pop(run, {})
            if kept.kind in _GROWING:
                for key, value in numbers.items():
                    kept.left[key] = _exact_sum(kept.left.get(key, []), value)

    def families(self) -> list[Family]:
        """The numbers of the whole, families and samples in the order they came up."""
        return [
            Family(
                name,
                kept.text,
                kept.kind,
                tuple(Sample(*key, value) for key, value in _sum(name, kept).items()),
            )
            for name, kept in self._families.items()
        ]

    def _bounded(self, label: str, value: str) -> str:
        """`value`, or "other" once this label has as many values as a scrape should carry."""
        if label in _UNBOUNDED:
            return value
        known = self._known.setdefault(label, set())
        if value not in known:
            if len(known) >= _MOST_VALUES:
                return _OTHER
            known.add(value)
        return value


def _sum(name: str, kept: _Kept) -> dict[Key, float]:
    if kept.kind not in (*_GROWING, "gauge"):
        return kept.of.get(PARENT, {})  # words, of which the parent has the last
    terms = {key: [*left] for key, left in kept.left.items()}
    for numbers in kept.of.values():
        for key, value in numbers.items():
            terms.setdefault(key, []).append(value)
    # Rounded once: a sum that depends on the order of its terms goes down by its last digit now
    # and then, and whoever scrapes it takes that for a restart from zero.
    total = _farthest if name in FARTHEST else fsum
    return {key: total(values) for key, values in terms.items()}


def _farthest(values: list[float]) -> float:
    return max(values, key=abs)


def _exact_sum(terms: list[float], value: float) -> list[float]:
    """Few numbers whose sum is exactly that of `terms` and `value`.

    Source: Shewchuk, Adaptive Precision Floating-Point Arithmetic (1997), Grow-Expansion.
    """
    exact = []
    for term in terms:
        total = value + term
        virtual = total - value
        error = (value - (total - virtual)) + (term - virtual)
        if error:
            exact.append(error)
        value = total
    return [*exact, value]


__all__ = ["FARTHEST", "PARENT", "Totals"]
