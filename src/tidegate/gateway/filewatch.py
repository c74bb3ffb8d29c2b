"""Did the configuration file change, or go away, or a list or a folder that it names?

Lives here: comparing one look at the file with those before. Does not live here: when to look,
and what follows (supervise).
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidegate.config import Config
from tidegate.config.denylists import files_state
from tidegate.config.rulefiles import RulesDir, State, folder_state

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def take(self) -> None:
        """The file is about to be read as it is: only what it becomes after that is a change."""
        self._taken = _signature(self.path) or self._taken

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


class ListWatch:
    """Whether the deny lists of a configuration are other ones than it has read."""

    def __init__(self, config: Config | None) -> None:
        files = config.deny_files.values() if config is not None else ()
        self._taken = {each.path: each.state for each in files}
        self._last: dict[Path, tuple[object, ...]] = {}

    async def changed(self) -> bool:
        """True once for each change, after two looks that saw the same.

        Costs a `stat` for each file, beside the loop: there may be thousands of them.
        """
        if not self._taken:
            return False
        seen = await asyncio.to_thread(lambda: {path: files_state(path) for path in self._taken})
        rests, self._last = seen == self._last, seen
        if not rests or seen == self._taken:
            return False
        self._taken = seen
        return True


class RulesWatch:
    """Whether the files of `mcp.rules_dir` are other ones than were read.

    Each rests for itself: a control plane may write some file at any time.
    """

    def __init__(self, taken: RulesDir) -> None:
        self._folder = taken.folder
        self._taken: Mapping[str, State] = taken.state
        self._last: Mapping[str, State] = taken.state

    async def changed(self) -> bool:
        """True once for each change of a file, after two looks that saw the same of it.

        A folder that cannot be read is one without files. Costs a `stat` for each, beside the
        loop.
        """
        if self._folder is None:
            return False
        seen = await asyncio.to_thread(_listed, self._folder)
        names = {*seen, *self._last, *self._taken}
        resting = {name for name in names if seen.get(name) == self._last.get(name)}
        self._last = seen
        changed = {name for name in resting if seen.get(name) != self._taken.get(name)}
        if changed:
            kept = {name: state for name, state in self._taken.items() if name not in changed}
            self._taken = kept | {name: seen[name] for name in changed if name in seen}
        return bool(changed)


def _listed(folder: Path) -> dict[str, State]:
    try:
        return folder_state(folder)
    except OSError:
        return {}
