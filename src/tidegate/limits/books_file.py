"""Is this still the file that the books were opened in?

Lives here: making the file, the lock by which its writers take turns, and noticing that somebody
removed or replaced it under a running process, which would go on in a file without a name while
others begin new books. Does not live here: what follows from it (group_commit, and
mcp.pin_store_sqlite for the pins that lie in the same file), the tables (sqlite_rows).
"""

import os
from pathlib import Path

Mark = tuple[int, int]


class FileReplaced(OSError):
    """Where the books lay there is no file, or another one."""

    meaning = "it was removed or replaced"


def make_file(path: Path) -> None:
    """Make it, empty, unless it is there; raises OSError.

    Nobody else on the machine needs to read who used what, so only we may.
    """
    try:
        # EXCL: a file that is there is not even opened, as closing it would drop its locks.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


def open_lock(path: Path) -> int:
    """A descriptor to lock with flock before writing to the file; raises OSError.

    One beside the database: see group_commit.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path.with_name(path.name + ".lock"), flags, 0o600)


class BooksFile:
    """The database `path` and the log beside it, as one process found them.

    The first file is the one until the process ends: new books would hand every tenant a fresh
    quota, so taking them up is a decision for a restart. A file that was moved away and comes
    back is the same file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # SQLite keeps it beside the file itself, not beside a link to it.
        own = path.resolve()
        self._log = own.with_name(own.name + "-wal")
        self._mark: Mark | None = None
        self._log_mark: Mark | None = None

    def make(self) -> None:
        """Make the file if there never was one; raises OSError, FileReplaced among them."""
        if self._mark is not None:
            self._same(self._path, self._mark)
        else:
            make_file(self._path)

    def opened(self) -> None:
        """A first transaction has been committed: this is the file. Raises OSError."""
        self._mark = mark_of(self._path)
        self._log_mark = mark_of(self._log)

    def closed(self) -> None:
        """The log may go and come back with the next connection."""
        self._log_mark = None

    def check(self) -> None:
        """Raises FileReplaced unless both are where they were. Costs two looks at the folder."""
        if self._log_mark is not None and self._mark is not None:
            self._same(self._path, self._mark)
            self._same(self._log, self._log_mark)

    @staticmethod
    def _same(path: Path, mark: Mark) -> None:
        try:
            found = mark_of(path)
        except FileNotFoundError:
            raise FileReplaced from None
        if found != mark:
            raise FileReplaced


def mark_of(path: Path) -> Mark:
    """What tells the file from every other; raises OSError."""
    seen = path.stat()
    return (seen.st_dev, seen.st_ino)


__all__ = ["BooksFile", "FileReplaced", "Mark", "make_file", "mark_of", "open_lock"]
