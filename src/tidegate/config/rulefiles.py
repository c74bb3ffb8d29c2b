"""Which rules of their own do tenants have, and which files hold them?

Lives here: the folder that `mcp.rules_dir` names, with bounds: which names are tenants, what a
file holds as bytes, what changes when one is replaced. Does not live here: whether the rules in
a file are right (checks.rules_dir), what they mean (mcp.rules).

A file is called as its tenant with `.yaml` behind it; every character of the tenant but letters,
digits and `_ . @ + -` is written as in a URL (`%2F` for a slash). Tenants are found by listing
the folder: no path is ever made of the name of a tenant.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from urllib.parse import quote, unquote

from tidegate.config.errors import Problem
from tidegate.config.places import quoted
from tidegate.config.sections.mcp import Rule
from tidegate.config.shapes import is_who

ENDING = ".yaml"
# The first call of a tenant compiles all that stands in it.
MOST_BYTES = 65_536
MOST_FILES = 10_000
_SAFE = "_.@+-"
_MOST_SHOWN = 20
# What a writer leaves beside the files: hidden ones, and those that are not finished.
_UNFINISHED = (".tmp", "~")

State = tuple[object, ...]
"""What a file is told by: times, size and number; an error number for one that cannot be seen."""


@dataclass(frozen=True, slots=True)
class TenantFile:
    """The rules of one tenant. `file` is the name for messages, `lines` where each rule begins."""

    tenant: str
    file: str
    state: State
    digest: str
    rules: tuple[Rule, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RulesDir:
    """What the folder came to when it was read.

    `files` by tenant are in force. `faults` are files that are not: of their tenants the last
    good rules stay. `servers` are the MCP servers that the rules were judged with.
    """

    folder: FilePath | None = None
    state: Mapping[str, State] = field(default_factory=dict)
    files: Mapping[str, TenantFile] = field(default_factory=dict)
    faults: tuple[Problem, ...] = ()
    servers: tuple[str, ...] = ()

    @property
    def broken(self) -> list[str]:
        """The names of files that are not right, the first twenty."""
        return [fault.file for fault in self.faults[:_MOST_SHOWN]]


def folder_state(folder: FilePath) -> dict[str, State]:
    """Every file that counts, by name. Costs one `stat` for each; raises OSError."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    return {name: _state(folder / name) for name in names if not _is_aside(name)}


def _is_aside(name: str) -> bool:
    return name.startswith(".") or name.endswith(_UNFINISHED)


def _state(path: FilePath) -> State:
    try:
        seen = path.stat()
    except OSError as error:
        return (error.errno,)
    return seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino, seen.st_dev


def tenant_of(name: str) -> str | None:
    """The tenant whose file has this name; None if no tenant's file can have it."""
    stem = name.removesuffix(ENDING)
    tenant = unquote(stem)
    if stem == name or not is_who(tenant) or quote(tenant, safe=_SAFE) != stem:
        return None
    return tenant


def file_name(tenant: str) -> str:
    """The name of the file that would hold the rules of `tenant`."""
    return quote(tenant, safe=_SAFE) + ENDING


def misnamed(shown: str, name: str) -> Problem:
    """What is said about a file that is no tenant's."""
    right = "call it as the tenant, such as acme.yaml, or move it away"
    if tenant_of(stem := name.rpartition(".")[0] + ENDING) is not None and stem != name:
        right = f"call it {quoted(stem, limit=80, mark='')}, or move it away"
    return Problem(shown, 0, 0, "", "no tenant can have a file of this name", right)


class Unreadable(Exception):
    """A file is not what it should be; `wrong` and `right` say how, without its content."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(wrong)
        self.wrong, self.right = wrong, right


def read_file(folder: FilePath, name: str) -> bytes:
    """The bytes of one file of `folder`. Raises Unreadable.

    A link is followed only to a file that lies in the folder, too.
    """
    right = "make it a text file that the user who runs tidegate may read"
    try:
        real = os.path.realpath(folder / name, strict=True)
        if os.path.commonpath((real, os.path.realpath(folder))) != os.path.realpath(folder):
            raise Unreadable("this is a link to a file outside of the folder", "copy it there")
        # Not blocking: to open a pipe would wait for its writer.
        opened = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise Unreadable("this is not a file", right)
            with open(opened, "rb", closefd=False) as file:
                data = file.read(MOST_BYTES + 1)
        finally:
            os.close(opened)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise Unreadable(f"the file cannot be read ({reason})", right) from None
    if len(data) > MOST_BYTES:
        raise Unreadable(f"the file has more than {MOST_BYTES} bytes", "keep it below that")
    return data


__all__ = [
    "MOST_BYTES",
    "MOST_FILES",
    "RulesDir",
    "TenantFile",
    "Unreadable",
    "file_name",
    "folder_state",
    "misnamed",
    "read_file",
    "tenant_of",
]
