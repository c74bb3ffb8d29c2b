"""Can a file be made in the directory that the configuration names for it?

Lives here: one look at that directory, for the check and for the words of a start that failed.
Does not live here: opening the file (limits, records).
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FolderFault:
    """What is wrong with `folder`, as the rest of a sentence, and what would be right."""

    folder: str
    wrong: str
    right: str


def store_file(url: str) -> str | None:
    """The file that a `store.url` names; None for a store without one."""
    prefix = "sqlite:///"
    return url.removeprefix(prefix) if url.startswith(prefix) else None


def on_redis(url: str) -> bool:
    """Whether a `store.url` names a Redis."""
    return url.startswith(("redis://", "rediss://"))


def folder_fault(file: str) -> FolderFault | None:
    """Why `file` cannot be made where it shall be; None when it can. Costs two system calls."""
    folder = str(Path(file).parent)
    if not os.path.lexists(folder):
        return FolderFault(folder, "does not exist", "create it, or name another file")
    if not os.path.isdir(folder):
        return FolderFault(folder, "is not a directory", "name another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        right = "make it writable for the user who runs tidegate, or name another file"
        return FolderFault(folder, "cannot be written", right)
    return None


__all__ = ["FolderFault", "folder_fault", "on_redis", "store_file"]
