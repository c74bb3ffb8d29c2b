"""Whose turn is it to write to the file?

Lives here: the order among the processes that share it. Does not live here: the threads of one
process (writer), what is written (database).
"""

import fcntl
import os
from pathlib import Path


class Turn:
    """The order in which processes write to one file.

    SQLite itself makes those who find it locked look again after up to 100 ms, by chance; the
    kernel's lock is a queue. A process that dies leaves it.
    """

    def __init__(self, path: Path) -> None:
        lock = path.with_name(path.name + ".lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(lock, flags, 0o600)

    def close(self) -> None:
        """No more turns."""
        os.close(self._file)

    def take(self) -> bool:
        """Begin our turn if it is nobody's; True is followed by `give_back`."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def give_back(self) -> None:
        """Our turn is over."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.give_back()


__all__ = ["Turn"]
