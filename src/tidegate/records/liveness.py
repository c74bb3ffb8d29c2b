"""Is the process that wrote this still running?

Each recorder holds a kernel lock on a small file of its own beside the records. The kernel
drops it when the process ends, whatever ended it, so a lock that can be taken means that its
owner is dead; process ids would be reused and mean nothing across containers.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path


def lock_path(records: Path, boot: str) -> Path:
    """Where the process `boot` holds its lock."""
    return records.with_name(f"{records.stem}.{boot}.db.lock")


class LifeLock:
    """Says that we run, from construction to `release`. Raises OSError if that cannot be said."""

    def __init__(self, records: Path, boot: str) -> None:
        self._path = lock_path(records, boot)
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Say that we are gone."""
        with suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._file)


def is_running(records: Path, boot: str) -> bool:
    """Whether the process `boot` still runs."""
    try:
        file = os.open(lock_path(records, boot), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # cannot be told, and taking the living for dead would be a false record
    try:
        # Shared, so that two who ask at once do not take each other for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def forget(records: Path, boot: str) -> None:
    """Remove what a dead process left behind."""
    with suppress(FileNotFoundError):
        lock_path(records, boot).unlink()


__all__ = ["LifeLock", "forget", "is_running", "lock_path"]
