"""Did the configuration file change, or go away?

Lives here: comparing one look at the file with those before. Does not live here: when to look,
and what follows (supervise).
"""

from pathlib import Path
from typing import Literal

Seen = Literal["changed", "missing"]


class FileWatch:
    """Says `changed` once a new file rests, and `missing` once for each time it is gone.

    Both only after two looks in a row that saw the same: whoever writes the file in several
    steps, or puts another in its place, has finished then.
    """

    __slots__ = ("_last", "_missing", "_taken", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._taken = self._last = _signature(path)
        self._missing = False

    def look(self) -> Seen | None:
        """One look at the file; costs one `stat`."""
        now = _signature(self.path)
        rests, self._last = now == self._last, now
        if not rests:
            return None
        if now is None:
            known, self._missing = self._missing, True
            return None if known else "missing"
        self._missing = False
        if now == self._taken:
            return None
        self._taken = now
        return "changed"


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
