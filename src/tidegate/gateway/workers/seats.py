"""How many connections does each worker hold?

A page of memory that all processes of one gateway share: one number for each place, written by
the worker in it and read by the others. Does not live here: what follows from it (acceptor).
"""

import mmap
import os
import tempfile
from collections.abc import Callable

_ABSENT = -1
_BYTES = 8


def nameless_file() -> int:
    """A descriptor of an empty file without a name, in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tidegate-seats")
    return file_on_disk()


def file_on_disk() -> int:
    """The same on a disk, for systems that have it only there."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def make_table(places: int, *, make_file: Callable[[], int] = nameless_file) -> int:
    """A descriptor of the memory for so many places, all of them empty. To be closed."""
    fd = make_file()
    os.ftruncate(fd, places * _BYTES)
    table = Table(fd)
    for slot in range(1, places + 1):
        table.vacate(slot)
    table.close()
    return fd


class Table:
    """The memory behind `fd`, which may be closed afterwards."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        self._held = memoryview(self._map).cast("q")

    def close(self) -> None:
        """Let go of it."""
        self._held.release()
        self._map.close()

    def vacate(self, slot: int) -> None:
        """Nobody accepts in this place."""
        self._held[slot - 1] = _ABSENT

    def hold(self, slot: int, connections: int) -> None:
        """The worker in this place accepts, and holds so many."""
        self._held[slot - 1] = connections

    def least_beside(self, slot: int) -> int | None:
        """The fewest that the worker of another place holds; None if nobody else accepts."""
        held = self._held.tolist()
        del held[slot - 1]
        return min((each for each in held if each != _ABSENT), default=None)


class Seat:
    """One place of a table, for the worker in it. See acceptor.Seats."""

    def __init__(self, table: Table, slot: int) -> None:
        self._table, self._slot = table, slot

    def hold(self, connections: int) -> None:
        """We hold so many."""
        self._table.hold(self._slot, connections)

    def least_of_others(self) -> int | None:
        """The fewest that another accepting process holds; None if there is none."""
        return self._table.least_beside(self._slot)

    def leave(self) -> None:
        """We accept no more."""
        self._table.vacate(self._slot)


__all__ = ["Seat", "Table", "file_on_disk", "make_table", "nameless_file"]
