"""Which intents are on disk that the database does not hold yet?

A commit costs ten times as much as a line at the end of a file, and may have to wait for other
writers. So an intent is on disk as soon as its line is, and follows into the database with what
else waits there. Lives here: that file, one for each process, and what a dead one left in it. Does
not live here: when the database has an intent (writer), what becomes of one that it never got
(recovery).
"""

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
    """The file of one process, from construction to `close`. Every method may raise OSError.

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

    def append(self, intent: Journaled) -> bool:
        """Put it on disk, all of it or nothing; False, and nothing done, if there is no room.

        Costs about 5 us, and no wait but for the system's own memory.
        """
        line = f"{intent.at_ms} {intent.request_id} {intent.body}\n".encode()
        with self._lock:
            if self._bytes + len(line) > self._most:
                return False
            wrote = 0
            try:
                wrote = os.write(self._file, line)
            finally:
                if wrote != len(line):
                    os.ftruncate(self._file, self._bytes)
            is_whole = wrote == len(line)
            self._bytes += is_whole * wrote
            self._waiting += is_whole
        return is_whole

    def written(self, count: int) -> None:
        """So many of them are in the database now; with the last one the file is empty again."""
        with self._lock:
            self._waiting -= count
            if self._waiting == 0 and self._bytes:
                os.ftruncate(self._file, 0)
                self._bytes = 0

    def close(self) -> None:
        """The process ends. What is not in the database stays on disk for the next one."""
        os.close(self._file)
        if self._waiting == 0:
            with suppress(FileNotFoundError):
                self._path.unlink()


def left_behind(records: Path, boot: str) -> list[Journaled]:
    """What the process `boot` put on disk and may not have in the database, in its order.

    The last line may be torn, by a death in the middle of it: then nobody was told it is on disk.
    """
    try:
        text = journal_path(records, boot).read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in text.split(b"\n")[:-1]:
        at_ms, _, rest = line.decode("utf-8", "replace").partition(" ")
        request_id, _, body = rest.partition(" ")
        if at_ms.isdigit() and request_id and body:
            found.append(Journaled(int(at_ms), request_id, body))
    return found


def of_request(records: Path, request_id: str) -> tuple[str, Journaled] | None:
    """The intent of one request in the files beside the records, with the process it is of."""
    stem = f"{records.stem}."
    for path in records.parent.iterdir():
        if not (path.name.startswith(stem) and path.name.endswith(_SUFFIX)):
            continue
        boot = path.name.removeprefix(stem).removesuffix(_SUFFIX)
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
    "discard",
    "journal_path",
    "left_behind",
    "of_request",
]
