"""Where in the original does each character of a folded view stand?

Lives here: the translation of offsets between the two, as a list of the stretches that folding
lengthened or shortened; everywhere else one character stands for one. Does not live here: what
folds to what (folding).
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

_MANY = 64


class Unit(NamedTuple):
    """`raw_size` characters of the original from `raw` on are `size` in the view, from `at` on."""

    at: int
    raw: int
    size: int
    raw_size: int


class Places:
    """Offsets on both sides count from the beginning of the stream and only grow."""

    __slots__ = ("_ats", "_raws", "_units")

    def __init__(self, at: int, raw: int) -> None:
        self._units = [Unit(at, raw, 0, 0)]
        self._ats = [at]
        self._raws = [raw]

    def add(self, unit: Unit) -> None:
        """The next stretch that folded to another size."""
        self._units.append(unit)
        self._ats.append(unit.at)
        self._raws.append(unit.raw)

    def start(self, at: int) -> int:
        """Where the original of the character at `at` starts."""
        unit = self._units[bisect_right(self._ats, at) - 1]
        inside = at < unit.at + unit.size
        return unit.raw if inside else unit.raw + unit.raw_size + at - unit.at - unit.size

    def end(self, at: int) -> int:
        """Where the original of the character before `at` ends."""
        unit = self._units[bisect_left(self._ats, at) - 1]
        if at <= unit.at + unit.size:
            return unit.raw + unit.raw_size
        return unit.raw + unit.raw_size + at - unit.at - unit.size

    def after(self, raw: int) -> int:
        """The first character whose original starts at `raw` or later."""
        unit = self._units[bisect_left(self._raws, raw) - 1]
        beyond = raw - unit.raw - unit.raw_size
        return unit.at + unit.size + max(0, beyond)

    def forget(self, at: int) -> None:
        """Nothing before `at` will be asked about."""
        keep = bisect_right(self._ats, at) - 1
        if keep > _MANY:
            del self._units[:keep], self._ats[:keep], self._raws[:keep]
