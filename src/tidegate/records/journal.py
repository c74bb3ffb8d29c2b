"""Which intents are on disk that the database does not hold yet?

A commit costs ten times as much as a line at the end of a file, and may have to wait for other
writers. So an intent is on disk as soon as its line is, and follows into the database with what
else waits there. Lives here: that file, one for each process, and what a dead one left in it. Does
not live here: when the database has an intent (writer), what becomes of one that it never got
(recovery).
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

MOST_BYTES = 8_388_608
"""Beyond this an intent waits for the database, and the file for its end."""
_SUFFIX = ".intents"


@dataclass(frozen=True, slots=True)
class Journaled:
    """One intent: when (ms since the epoch), of which request, and its entry's canonical JSON."""

    at_ms: int
    request_id: str
    body: str


def journal_path(records: Path, boot: str) -> Path:
    """Where the process `boot` keeps its intents."""
    return records.with_name(f"{records.stem}.{boot}{_SUFFIX}")


class Journal:
    """The file of one process, from construction to `close`. The first and `append` may raise
    OSError.

    To be used from any thread. What was appended survives the death of the process; a loss of
    power may take the last moments, as it may those of the database.
    """

    def __init__(self, records: Path, boot: str, *, most_bytes: int = MOST_BYTES) -> None:
        self._path = journal_path(records, boot)
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, 0o600)
        self._most = most_bytes
        self._lock = Lock()
        self._bytes = 0
        self._waiting = 0
        self._torn = self._closed = False

    def append(self, intent: Journaled) -> bool:
        """Put it on disk, all of it or nothing; False, and nothing done, if there is no room.

        Costs about 5 us, and no wait but for the system's own memory, and for a thread that empties
        the file at that moment.
        """
        line = f"{intent.at_ms} {intent.request_id} {intent.body}\n".encode()
        with self._lock:
            if self._closed or self._bytes + len(line) > self._most:
                return False
            wrote = 0
            try:
                wrote = os.write(self._file, b"\n" + line if self._torn else line)
            finally:
                is_whole = wrote == len(line) + self._torn
                if is_whole:
                    self._bytes += wrote
                    self._waiting += 1
                self._torn = not (is_whole or self._is_cut())
        return is_whole

    def _is_cut(self) -> bool:
        """Whether the file could be cut behind the last whole line."""
        with suppress(OSError):
            os.ftruncate(self._file, self._bytes)
            return True
        return False

    def written(self, count: int) -> None:
        """So many of them are in the database now; with the last one the file is empty again.

        If it cannot be emptied it is tried again with the next ones: what stands in it twice is
        found out (recovery).
        """
        with self._lock, suppress(OSError):
            self._waiting -= count
            if self._waiting == 0 and self._bytes and not self._closed:
                os.ftruncate(self._file, 0)
                self._bytes = 0

    def close(self) -> bool:
        """The process ends; whether the database has everything. Else the next one finds it here.

        From now on nothing is appended.
        """
        with self._lock, suppress(OSError):
            self._closed = True
            os.close(self._file)
            if self._waiting == 0:
                self._path.unlink()
        return self._waiting == 0


def left_behind(records: Path, boot: str) -> list[Journaled]:
    """What the process `boot` put on disk and may not have in the database, in its order.

    A line may be torn, by a death in the middle of it or a loss of power: then it is left out.
    """
    try:
        text = journal_path(records, boot).read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in text.split(b"\n")[:-1]:
        at_ms, _, rest = line.decode("utf-8", "replace").partition(" ")
        request_id, _, body = rest.partition(" ")
        if at_ms.isdecimal() and request_id and _is_object(body):
            found.append(Journaled(int(at_ms), request_id, body))
    return found


def _is_object(body: str) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def boots_with_any(records: Path) -> list[str]:
    """The processes that left a file, running or not."""
    stem = f"{records.stem}."
    return [
        path.name.removeprefix(stem).removesuffix(_SUFFIX)
        for path in records.parent.iterdir()
        if path.name.startswith(stem) and path.name.endswith(_SUFFIX)
    ]


def of_request(records: Path, request_id: str) -> tuple[str, Journaled] | None:
    """The intent of one request in the files beside the records, with the process it is of."""
    for boot in boots_with_any(records):
        for intent in left_behind(records, boot):
            if intent.request_id == request_id:
                return boot, intent
    return None


def discard(records: Path, boot: str) -> None:
    """The database holds all that this dead process left."""
    with suppress(FileNotFoundError):
        journal_path(records, boot).unlink()


__all__ = [
    "MOST_BYTES",
    "Journal",
    "Journaled",
    "boots_with_any",
    "discard",
    "journal_path",
    "left_behind",
    "of_request",
]
