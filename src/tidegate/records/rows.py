"""How do entries and open requests become rows?

Lives here: the statements for both, within a transaction of the caller, and that transaction. Does
not live here: the schema and the file (database), what dead processes left (recovery).
"""

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from tidegate.records.chain import Entry, Head
from tidegate.records.entries import Kind


class Draft(Struct, frozen=True):
    """An entry before it has its place in the chain."""

    kind: Kind
    request_id: str
    at_ms: int
    body: str


class OpenRequest(Struct, frozen=True):
    """A request that has begun; `state` is "begun" or "intent"."""

    request_id: str
    at_ms: int
    state: str
    body: str


class Transaction:
    """Takes the write lock, commits at the end, rolls back when anything is raised."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # a full disk has rolled back already
            self._connection.execute("ROLLBACK")


def insert(
    connection: sqlite3.Connection, node: str, boot: str, drafts: Sequence[Draft], head: Head
) -> Head:
    """Add to the chain of `boot` behind `head`; returns its new head."""
    rows = []
    for draft in drafts:
        entry = Entry(
            node=node,
            boot=boot,
            seq=head.seq + 1,
            kind=draft.kind,
            request_id=draft.request_id,
            at_ms=draft.at_ms,
            body=draft.body,
            prev_hash=head.hash,
        )
        head = Head(entry.seq, entry.digest)
        rows.append(
            (
                *(entry.node, entry.boot, entry.seq, entry.kind, entry.request_id),
                *(entry.at_ms, entry.body, entry.prev_hash, head.hash),
            )
        )
    connection.executemany(
        "INSERT INTO entries"
        " (node, boot, seq, kind, request_id, at_ms, body, prev_hash, hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    return head


def note_open(connection: sqlite3.Connection, boot: str, opened: Sequence[OpenRequest]) -> None:
    """These requests of `boot` are open, in this state."""
    connection.executemany(
        "INSERT OR REPLACE INTO open_requests (boot, request_id, at_ms, state, body)"
        " VALUES (?, ?, ?, ?, ?)",
        [(boot, o.request_id, o.at_ms, o.state, o.body) for o in opened],
    )


def note_closed(connection: sqlite3.Connection, boot: str, closed: Sequence[str]) -> None:
    """These requests of `boot` are open no longer."""
    connection.executemany(
        "DELETE FROM open_requests WHERE boot = ? AND request_id = ?",
        [(boot, request_id) for request_id in closed],
    )


def open_of(connection: sqlite3.Connection, boot: str) -> list[OpenRequest]:
    """What is open of `boot`, oldest first."""
    rows = connection.execute(
        "SELECT request_id, at_ms, state, body FROM open_requests WHERE boot = ?"
        " ORDER BY at_ms, request_id",
        (boot,),
    )
    return [OpenRequest(*row) for row in rows]


__all__ = ["Draft", "OpenRequest", "Transaction", "insert", "note_closed", "note_open", "open_of"]
