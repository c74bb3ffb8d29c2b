"""How do entries lie in their file?

One SQLite file: `entries` holds the hash chains, `open_requests` what has begun and not ended,
`boots` the processes that wrote, each with the head of what was pruned from its chain. Lives
here: the schema, appending and pruning, each one transaction. Does not live here: what an entry
says (entries), its row (rows), who waits for it (store), the thread that calls this (writer).
"""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tidegate.records.chain import Head
from tidegate.records.entries import canonical
from tidegate.records.recovery import IsRunning, LeftBehind, recover
from tidegate.records.rows import (
    Draft,
    OpenRequest,
    Transaction,
    insert,
    note_closed,
    note_open,
)
from tidegate.records.turn import Turn

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x7469_6467  # "tidg": what `file` and a second look can recognize

_SCHEMA = """
CREATE TABLE installation (
    node TEXT NOT NULL
);
CREATE TABLE boots (
    boot TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    pruned_seq INTEGER NOT NULL DEFAULT 0,
    pruned_hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    node TEXT NOT NULL,
    boot TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    request_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    body TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE UNIQUE INDEX entries_by_chain ON entries (boot, seq);
CREATE INDEX entries_by_request ON entries (request_id);
CREATE TABLE open_requests (
    boot TEXT NOT NULL,
    request_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (boot, request_id)
) WITHOUT ROWID;
"""


class UnknownSchema(Exception):
    """The file is not a record of ours, or one of a later release."""


class Database:
    """The writing end of one process. Every method may raise sqlite3.Error or OSError.

    To be used by one thread at a time; `at_once` by any, everything else by the one that made
    it. A failed write leaves file and chain as they were. What is committed survives the death of
    the process; a loss of power may take the last moments.
    """

    def __init__(self, path: Path, boot: str, *, busy_s: float) -> None:
        # Nobody else on the machine needs to read who called what.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self.boot = boot
        self._head = Head()
        self._turn = Turn(path)
        self._connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
        try:
            with self._turn:
                self.node = self._prepare()
            # Waits for nobody, and may therefore be used where others wait for it.
            self._impatient = sqlite3.connect(
                path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            _never_wait_for_the_disk(self._connection)
            _never_wait_for_the_disk(self._impatient)
        except BaseException:
            self._connection.close()
            self._turn.close()
            raise

    def close(self, now_ms: int, *, is_whole: bool = True) -> None:
        """End the chain properly; what is still open will be found lost by the next process.

        Unless the chain `is_whole` it has not ended: the next process has to complete it.
        """
        try:
            if is_whole:
                self._connection.execute(
                    "UPDATE boots SET ended_ms = ? WHERE boot = ?", (now_ms, self.boot)
                )
        finally:
            self._impatient.close()
            self._connection.close()
            self._turn.close()

    def begin_boot(
        self,
        now_ms: int,
        is_running: IsRunning,
        left_behind: LeftBehind,
        journals: Sequence[str] = (),
    ) -> dict[str, int]:
        """Enter this process and write `lost` for what dead ones left open.

        What those put on disk and did not bring here is added to their chains first. Returns the
        boots that were found dead, each with its number of lost requests.
        """
        with self._turn, Transaction(self._connection):
            self._connection.execute(
                "INSERT INTO boots (boot, node, began_ms, pruned_hash) VALUES (?, ?, ?, ?)",
                (self.boot, self.node, now_ms, Head().hash),
            )
            own = self.node, self.boot
            found = recover(self._connection, own, now_ms, is_running, left_behind, journals)
            head = insert(self._connection, *own, found.ends, self._head)
        self._head = head
        return found.dead

    def append(
        self,
        drafts: Sequence[Draft],
        opened: Sequence[OpenRequest],
        closed: Sequence[str],
    ) -> bool:
        """Add entries to our chain and note what is open, all or nothing; committed on return.

        With nothing to add it still writes, and so tells whether the disk works. Returns True.
        """
        with self._turn:
            self._append(self._connection, drafts, opened, closed)
        return True

    def at_once(
        self, drafts: Sequence[Draft], opened: Sequence[OpenRequest], closed: Sequence[str]
    ) -> bool:
        """`append` without waiting for anybody; False, and nothing done, if somebody writes.

        Waits for no disk either: what is committed lies with the system, as after `append`.
        Costs about 25 us.
        """
        if not self._turn.take():
            return False
        try:
            self._append(self._impatient, drafts, opened, closed)
        except sqlite3.OperationalError as error:
            # Somebody who does not know of our turns.
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise
        finally:
            self._turn.give_back()
        return True

    def _append(
        self,
        connection: sqlite3.Connection,
        drafts: Sequence[Draft],
        opened: Sequence[OpenRequest],
        closed: Sequence[str],
    ) -> None:
        with Transaction(connection):
            head = insert(connection, self.node, self.boot, drafts, self._head)
            note_open(connection, self.boot, opened)
            note_closed(connection, self.boot, closed)
            if not (drafts or opened or closed):
                self._touch(connection)
        self._head = head

    def checkpoint(self) -> None:
        """Move what the log holds into the file; this is where the disk is waited for.

        The write that follows begins the log anew, which waits for the disk once more.
        """
        with self._turn:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            with Transaction(self._connection):
                self._touch(self._connection)

    def _touch(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE boots SET ended_ms = NULL WHERE boot = ?", (self.boot,))

    def prune(self, *, older_than_ms: int, max_bytes: int, limit: int) -> bool:
        """Delete at most `limit` of the oldest entries; whether there may be more to delete.

        Oldest first in the order of the file, so that each chain loses a prefix, whose last
        hash is kept: what remains can still be verified.
        """
        with self._turn, Transaction(self._connection):
            rows = self._connection.execute(
                "SELECT id, boot, seq, hash, at_ms FROM entries ORDER BY id LIMIT ?", (limit,)
            ).fetchall()
            if self._used_bytes() <= max_bytes:
                young = next((i for i, row in enumerate(rows) if row[4] >= older_than_ms), None)
                rows = rows[:young]
            if rows:
                self._delete(rows)
        if rows:
            # Hands freed pages back to the file system, a bounded number at a time.
            self._connection.execute(f"PRAGMA incremental_vacuum({4 * limit:d})").fetchall()
        return len(rows) == limit

    def _prepare(self) -> str:
        run = self._connection.execute
        require_our_schema(self._connection, empty_is_fine=True)
        run("PRAGMA auto_vacuum = INCREMENTAL")  # only takes effect on an empty file
        run("PRAGMA journal_mode = WAL").fetchone()
        run("PRAGMA journal_size_limit = 4194304").fetchone()
        with Transaction(self._connection):
            # A second process may have created it since.
            if run("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _SCHEMA.split(";\n"):
                    run(statement)
                run("INSERT INTO installation (node) VALUES (?)", (secrets.token_hex(8),))
                run(f"PRAGMA application_id = {_APPLICATION_ID:d}")
                run(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        return str(run("SELECT node FROM installation").fetchone()[0])

    def _delete(self, rows: Sequence[tuple[int, str, int, str, int]]) -> None:
        run = self._connection.execute
        run("DELETE FROM entries WHERE id <= ?", (rows[-1][0],))
        heads = {boot: (seq, digest) for _id, boot, seq, digest, _at_ms in rows}
        for boot, (seq, digest) in heads.items():
            run(
                "UPDATE boots SET pruned_seq = ?, pruned_hash = ? WHERE boot = ?",
                (seq, digest, boot),
            )
        # A process of which nothing is left to verify need not be known any more.
        run(
            "DELETE FROM boots WHERE boot <> ? AND boot IN (SELECT value FROM json_each(?))"
            " AND ended_ms IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM entries WHERE entries.boot = boots.boot)"
            " AND NOT EXISTS (SELECT 1 FROM open_requests WHERE open_requests.boot = boots.boot)",
            (self.boot, canonical(list(heads))),
        )

    def _used_bytes(self) -> int:
        run = self._connection.execute
        pages = run("PRAGMA page_count").fetchone()[0] - run("PRAGMA freelist_count").fetchone()[0]
        return int(pages * run("PRAGMA page_size").fetchone()[0])


def _never_wait_for_the_disk(connection: sqlite3.Connection) -> None:
    """Commits leave it to `checkpoint` to wait."""
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchone()


def require_our_schema(connection: sqlite3.Connection, *, empty_is_fine: bool = False) -> None:
    """Raises UnknownSchema unless the file is a record that this release can read."""
    # One statement, so that it cannot see half of another process creating the file.
    found = connection.execute(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    if found[:2] == (SCHEMA_VERSION, _APPLICATION_ID) or (empty_is_fine and found == (0, 0, 0)):
        return
    raise UnknownSchema(f"schema {found[0]}" if found[1] == _APPLICATION_ID else "foreign file")


__all__ = [
    "SCHEMA_VERSION",
    "Database",
    "Draft",
    "OpenRequest",
    "UnknownSchema",
    "require_our_schema",
]
