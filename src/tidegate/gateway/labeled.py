"""Where is the number for these labels?

prometheus-client looks it up anew at each call, which costs more than counting. Lives here: the
memory of what was looked up. Does not live here: how many values a label may have (metrics).
"""

from typing import Generic, TypeVar

from prometheus_client import Counter, Histogram

T = TypeVar("T", Counter, Histogram)


class Labeled(Generic[T]):
    """A metric with labels. Whoever calls bounds the values; nothing is forgotten."""

    __slots__ = ("_made", "_metric")

    def __init__(self, metric: T) -> None:
        self._metric: T = metric
        self._made: dict[tuple[str, ...], T] = {}

    def labels(self, *values: str) -> T:
        """The number for these values, in the order of the labels' names."""
        made = self._made.get(values)
        if made is None:
            made = self._made[values] = self._metric.labels(*values)
        return made


__all__ = ["Labeled"]
