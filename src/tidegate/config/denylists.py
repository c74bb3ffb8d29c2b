"""Which values must never be shown, for everybody and for each tenant?

Lives here: reading the files that `redaction.deny_list` names, with bounds. Does not live here:
how a literal is found (redaction.denylist), what the findings look like (checks.redaction).

A file is UTF-8, one literal a line. Blank lines and lines that begin with `#` do not count; a
literal that begins with `#` is written `\\#`. In the last part of a path `{tenant}` stands for
the name of a tenant, in which every character but letters, digits and `_ . @ + -` is written as
in a URL (`%2F` for a slash). Tenants are found by listing the directory: no path is ever made of
the name of a tenant.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from urllib.parse import quote, unquote

from tidegate.config.places import quoted
from tidegate.config.shapes import is_who
from tidegate.redaction.denylist import UnusableLiteral, tokens

MARK = "{tenant}"
_SAFE = "_.@+-"
_MOST_FAULTS = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read before it is a mistake."""

    file_bytes: int = 16_777_216
    literals: int = 100_000
    files: int = 10_000


_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file, and what would be right; never a word of what stands in it."""

    wrong: str
    right: str
    grave: bool = True


@dataclass(slots=True)
class DenyFiles:
    """The literals of one entry of `deny_list`: those of everybody, or those of each tenant."""

    everybody: tuple[str, ...] = ()
    tenants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    path: FilePath = FilePath()
    state: tuple[object, ...] = ()

    @property
    def stale(self) -> bool:
        """The files are not any more what was read."""
        return files_state(self.path) != self.state


def read_deny_files(pattern: str, folder: FilePath, bounds: Bounds = _BOUNDS) -> DenyFiles:
    """What `pattern` stands for; a relative one begins at `folder`.

    Reads every file anew: some 10 ms for each 10,000 literals. `bounds.literals` and
    `bounds.file_bytes` are for each file.
    """
    reader = _Reader(bounds)
    faults = reader.faults
    path = folder / pattern
    # Taken first: what is written while we read counts as a change.
    state = files_state(path)
    if MARK not in pattern:
        found = tuple(reader.literals(path, pattern))
        return DenyFiles(found, {}, tuple(faults), path, state)
    tenants = {}
    files = dict(reader.of_tenants(path, str(FilePath(pattern).parent)))
    for tenant, file in files.items():
        if len(faults) < _MOST_FAULTS:
            name = str(FilePath(pattern).parent / file.name)
            tenants[tenant] = tuple(reader.literals(file, name))
    return DenyFiles((), tenants, tuple(faults), path, state)


def files_state(path: FilePath) -> tuple[object, ...]:
    """What changes when a file that `path` stands for does: sizes, times and numbers.

    Costs one `stat` for each file.
    """
    try:
        if MARK not in path.name:
            return _signature(path.stat())
        matching = _matching(path)
        return tuple(
            (entry.name, *_signature(entry.stat()))
            for entry in sorted(os.scandir(path.parent), key=lambda entry: entry.name)
            if matching.fullmatch(entry.name)
        )
    except OSError as error:
        return (error.errno,)


def _signature(stat: os.stat_result) -> tuple[object, ...]:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _matching(path: FilePath) -> re.Pattern[str]:
    before, _, after = path.name.partition(MARK)
    return re.compile(f"{re.escape(before)}(.+){re.escape(after)}")


def file_of(pattern: str, tenant: str) -> str:
    """The file in which the literals of `tenant` would stand, for a message."""
    return pattern.replace(MARK, quote(tenant, safe=_SAFE))


class _Reader:
    def __init__(self, bounds: Bounds) -> None:
        self.faults: list[Fault] = []
        self._bounds = bounds

    def of_tenants(self, path: FilePath, written: str) -> Iterator[tuple[str, FilePath]]:
        """Every tenant with a file of its own."""
        try:
            names = sorted(entry.name for entry in os.scandir(path.parent))
        except OSError as error:
            shown = quoted(written, limit=200, mark="")
            self._fault(
                f"the directory {shown} cannot be read ({error.strerror})",
                "create it; a relative path begins at the folder of this file",
            )
            return
        matching = _matching(path)
        found = [match for name in names if (match := matching.fullmatch(name))]
        if len(found) > self._bounds.files:
            self._fault(
                f"more than {self._bounds.files} files", "move those of former tenants away"
            )
            return
        if not found:
            self._fault("no file has such a name", "create one, or remove this", grave=False)
        for match in found:
            tenant = unquote(match[1])
            if is_who(tenant) and quote(tenant, safe=_SAFE) == match[1]:
                yield tenant, path.parent / match[0]
            elif not match[1].startswith("."):
                shown = quoted(match[0], limit=80, mark="")
                self._fault(f"no tenant can have the file {shown}", "rename it", grave=False)

    def literals(self, path: FilePath, written: str) -> Iterator[str]:
        """The literals of one file, of which only the first mistakes are reported."""
        shown = quoted(written, limit=200, mark="")
        text = self._text(path, shown)
        count = wrong = 0
        for number, line in enumerate(text.split("\n"), 1):
            literal = line.strip()
            if not literal or literal.startswith("#"):
                continue
            count += 1
            if count > self._bounds.literals:
                right = "split it into several files"
                self._fault(f"{shown} has more than {self._bounds.literals} literals", right)
                return
            literal = literal.removeprefix("\\") if literal.startswith("\\#") else literal
            try:
                tokens(literal)
            except UnusableLiteral as error:
                wrong += 1
                if wrong <= _MOST_FAULTS:
                    self._fault(f"{shown}, line {number}: {error.wrong}", error.right)
            else:
                yield literal

    def _text(self, path: FilePath, shown: str) -> str:
        right = "make it a text file that the user who runs tidegate may read"
        try:
            # Before it is opened: to open a pipe would wait for its writer.
            if not stat.S_ISREG(path.stat().st_mode):
                self._fault(f"{shown} is not a file", right)
                return ""
            with path.open("rb") as file:
                data = file.read(self._bounds.file_bytes + 1)
        except FileNotFoundError:
            right = "create it; a relative path begins at the folder of this file"
            self._fault(f"the file {shown} does not exist", right)
            return ""
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a path"
            self._fault(f"the file {shown} cannot be read ({reason})", right)
            return ""
        if len(data) > self._bounds.file_bytes:
            right = "split it into several files"
            self._fault(f"the file {shown} has more than {self._bounds.file_bytes} bytes", right)
            return ""
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self._fault(f"the file {shown}, line {line}, is not UTF-8 text", "save it as UTF-8")
            return ""

    def _fault(self, wrong: str, right: str, *, grave: bool = True) -> None:
        self.faults.append(Fault(wrong, right, grave))


__all__ = ["MARK", "Bounds", "DenyFiles", "Fault", "file_of", "read_deny_files"]
