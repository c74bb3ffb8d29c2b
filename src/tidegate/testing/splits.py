"""In which pieces may the same data arrive?

Lives here: the cuttings that every streaming part of the product must be indifferent to. Does not
live here: what is fed or compared. Works on text and on bytes.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

Data = TypeVar("Data", str, bytes)

THREE_WAY_MAX = 60
"""Above this length three-way splits are left out of `every_split`: there are n * n / 2."""


def every_split(data: Data, *, three_way_max: int = THREE_WAY_MAX) -> Iterator[list[Data]]:
    """Whole, one element at a time, every two-way split, and every three-way split if short.

    About n cuttings, or n * n / 2 up to `three_way_max` elements.
    """
    size = len(data)
    yield [data]
    yield [data[i : i + 1] for i in range(size)]
    for i in range(1, size):
        yield [data[:i], data[i:]]
    if size <= three_way_max:
        for i in range(1, size):
            for j in range(i + 1, size):
                yield [data[:i], data[i:j], data[j:]]


def split_at(data: Data, places: Sequence[int]) -> list[Data]:
    """`data` cut at each of `places`, in any order; places outside are ignored."""
    cuts = [0, *sorted({place for place in places if 0 < place < len(data)}), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(cuts)]


__all__ = ["THREE_WAY_MAX", "every_split", "split_at"]
