"""What does the file say about one request, and does its chain hold?

Opens the file read only, so it works beside a running gateway and after one that was killed.
Lives here: finding and checking. Does not live here: writing (database), wording (explain).
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tidegate.records.chain import Entry, Head, first_break
from tidegate.records.database import UnknownSchema, require_our_schema
from tidegate.records.journal import of_request
from tidegate.records.liveness import is_running
from tidegate.sqlite_words import meaning_of

_COLUMNS = "node, boot, seq, kind, request_id, at_ms, body, prev_hash, hash"


class RecordsUnreadable(Exception):
    """There is no file, or it is no record that this release can read; says which."""


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """One entry of a request; `intact` if it is as written and follows its predecessor."""

    entry: Entry
    intact: bool

    @property
    def body(self) -> dict[str, object]:
        """What the entry says."""
        body: dict[str, object] = json.loads(self.entry.body)
        return body


@dataclass(frozen=True, slots=True)
class FoundOpen:
    """A request that has begun and not ended; `running` if its process is still there."""

    at_ms: int
    state: Literal["begun", "intent"]
    body: dict[str, object]
    running: bool


@dataclass(frozen=True, slots=True)
class Record:
    """All that is known of one request; at least one of the two is not empty."""

    request_id: str
    entries: tuple[FoundEntry, ...]
    open: FoundOpen | None


def find(path: Path, request_id: str) -> Record | None:
    """What the file at `path` holds on `request_id`. Raises RecordsUnreadable."""
    # First, or what goes from the one into the other meanwhile would be in neither.
    journaled = _journaled(path, request_id)
    with _reading(path) as connection:
        connection.execute("BEGIN")  # entries and open requests of one moment
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE request_id = ? ORDER BY id",  # noqa: S608
            (request_id,),
        ).fetchall()
        entries = tuple(_found_entry(connection, Entry(*row[:-1]), row[-1]) for row in rows)
        open_row = connection.execute(
            "SELECT at_ms, state, body, boot FROM open_requests WHERE request_id = ?",
            (request_id,),
        ).fetchone()
    still_open = None
    if open_row is not None:
        at_ms, state, body, boot = open_row
        still_open = FoundOpen(at_ms, state, json.loads(body), is_running(path, boot))
    if not any(found.entry.kind in ("intent", "end", "lost") for found in entries):
        still_open = journaled or still_open
    if not entries and still_open is None:
        return None
    return Record(request_id, entries, still_open)


def _journaled(path: Path, request_id: str) -> FoundOpen | None:
    """What is on disk and not in the database: of this moment, or of a process that was killed."""
    try:
        found = of_request(path, request_id)
    except FileNotFoundError:
        return None  # there is no such folder
    except OSError:
        raise RecordsUnreadable("the files beside it cannot be read") from None
    if found is None:
        return None
    boot, intent = found
    return FoundOpen(intent.at_ms, "intent", json.loads(intent.body), is_running(path, boot))


def broken_chains(path: Path) -> dict[str, int]:
    """For each chain that does not hold: its boot and the `seq` of the first wrong entry.

    A chain that lost its end still holds; only somebody who kept a later head can tell. Reads
    the whole file. Raises RecordsUnreadable.
    """
    broken: dict[str, int] = {}
    with _reading(path) as connection:
        connection.execute("BEGIN")
        heads = {
            boot: Head(seq, digest)
            for boot, seq, digest in connection.execute(
                "SELECT boot, pruned_seq, pruned_hash FROM boots"
            )
        }
        boots = connection.execute("SELECT DISTINCT boot FROM entries ORDER BY boot").fetchall()
        for (boot,) in boots:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM entries WHERE boot = ? ORDER BY seq",  # noqa: S608
                (boot,),
            )
            entries = ((Entry(*row[:-1]), row[-1]) for row in rows)
            seq = first_break(heads.get(boot, Head()), entries)
            if seq is not None:
                broken[boot] = seq
    return broken


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise RecordsUnreadable("there is no such file")
    try:
        # as_uri escapes what would be an option of the URI in the name of the file
        uri = path.absolute().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            require_our_schema(connection)
            yield connection
    except UnknownSchema as error:
        raise RecordsUnreadable(f"this release cannot read it ({error})") from None
    except sqlite3.Error as error:
        raise RecordsUnreadable(f"it cannot be read ({meaning_of(error)})") from None


def _found_entry(connection: sqlite3.Connection, entry: Entry, stored: str) -> FoundEntry:
    before = connection.execute(
        "SELECT hash FROM entries WHERE boot = ? AND seq = ?", (entry.boot, entry.seq - 1)
    ).fetchone()
    if before is None:
        before = connection.execute(
            "SELECT pruned_hash FROM boots WHERE boot = ? AND pruned_seq = ?",
            (entry.boot, entry.seq - 1),
        ).fetchone()
    follows = before is not None and before[0] == entry.prev_hash
    return FoundEntry(entry, intact=follows and entry.digest == stored)


__all__ = [
    "FoundEntry",
    "FoundOpen",
    "Record",
    "RecordsUnreadable",
    "broken_chains",
    "find",
]
