"""Where does the support desk keep its money, so that none is paid twice or lost?

In one SQLite file, or in memory. A refund is one transaction that takes the write lock before it
reads: the balance, the row of the refund and its key change together or not at all, whatever other
processes do with the file, and what was acknowledged is on the disk. Lives here: that file and its
revisions. Does not live here: which orders are valid (support).
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from tidegate.sqlite_words import meaning_of
from tidegate.tools import ToolFailure

REVISION: Final = 1
_APPLICATION_ID: Final = 0x74676465
_WAIT_S: Final = 5.0
_PAUSE_S: Final = 0.01
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CUSTOMERS: Final = (
    ("CUST-10001", "Jane Doe", "jane@example.com", 25_000),
    ("CUST-10002", "Luis Ortega", "luis@example.com", 120_050),
    ("CUST-10003", "Mei Lin", "mei@example.com", 0),
)
_TABLES: Final = (
    """create table customers (
      id text primary key, name text not null, email text not null, balance_cents integer not null
        check (balance_cents >= 0)
    ) strict""",
    """create table refunds (
      id integer primary key, customer text not null references customers (id),
      cents integer not null, reason text not null
    ) strict""",
)
# What was added to the file of the first release, which had no keys and no number.
_KEYS: Final = (
    "alter table refunds add column refund_id text",
    "alter table refunds add column left_cents integer",
    "create unique index refund_ids on refunds (refund_id)",
)
_FIRST_COLUMNS: Final = {
    "customers": ["id", "name", "email", "balance_cents"],
    "refunds": ["id", "customer", "cents", "reason"],
}


class StoreUnusable(Exception):
    """The file cannot be the store; `str(error)` says why, for whoever started the program."""


@dataclass(frozen=True, slots=True)
class Customer:
    """One customer; `balance_cents` is what can still be refunded."""

    customer_id: str
    name: str
    email: str
    balance_cents: int


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be refunded; an order with the `refund_id` of an earlier one is that one again."""

    customer_id: str
    cents: int
    reason: str
    refund_id: str | None = None


@dataclass(frozen=True, slots=True)
class Booked:
    """A refund and the balance right after it; `replayed`: booked by an earlier call."""

    cents: int
    left_cents: int
    replayed: bool = False


class SupportStore:
    """Customers and refunds in the SQLite database `path`; the default is a private memory.

    Every method is one transaction and safe to call from any thread, with other processes on the
    same file. A call waits for others for at most ten seconds. Raises StoreUnusable for a file
    that cannot be opened, is no store, or was written by a later release.
    """

    def __init__(self, path: str = ":memory:") -> None:
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_WAIT_S
            )
        except sqlite3.Error as error:
            raise StoreUnusable(meaning_of(error)) from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._db.close()
            raise StoreUnusable(meaning_of(error)) from None
        except StoreUnusable:
            self._db.close()
            raise

    def close(self) -> None:
        """Closes the database after the call that is under way."""
        with self._lock:
            self._db.close()

    def customer(self, customer_id: str) -> Customer | None:
        """The record; None for an unknown id."""
        with self._turn():
            row = self._db.execute(
                "select id, name, email, balance_cents from customers where id = ?", (customer_id,)
            ).fetchone()
        return None if row is None else Customer(*row)

    def refund(self, order: Order) -> Booked:
        """Books a refund, or finds the one that has this key.

        Raises ToolFailure if the world says no; nothing is written then, and the key is free.
        Any other error says that nobody knows: asked again with the same key, it is safe.
        """
        with self._turn(), self._writing():
            return self._booked_before(order) or self._book(order)

    def _booked_before(self, order: Order) -> Booked | None:
        if order.refund_id is None:
            return None
        row = self._db.execute(
            "select customer, cents, reason, left_cents from refunds where refund_id = ?",
            (order.refund_id,),
        ).fetchone()
        if row is None:
            return None
        if row[:3] != (order.customer_id, order.cents, order.reason):
            raise ToolFailure("this refund_id belongs to a refund with other arguments")
        return Booked(order.cents, row[3], replayed=True)

    def _book(self, order: Order) -> Booked:
        row = self._db.execute(
            "select balance_cents from customers where id = ?", (order.customer_id,)
        ).fetchone()
        if row is None:
            raise ToolFailure("customer not found")
        left: int = row[0] - order.cents
        if left < 0:
            raise ToolFailure("the refund is larger than the customer's balance")
        self._db.execute(
            "update customers set balance_cents = ? where id = ?", (left, order.customer_id)
        )
        self._db.execute(
            "insert into refunds (customer, cents, reason, refund_id, left_cents)"
            " values (?, ?, ?, ?, ?)",
            (order.customer_id, order.cents, order.reason, order.refund_id, left),
        )
        return Booked(order.cents, left)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One thread at a time; a database that others hold too long is a refusal."""
        if not self._lock.acquire(timeout=_WAIT_S):
            raise _busy()
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in _BUSY:
                raise _busy() from None
            raise
        finally:
            self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        # The write lock comes first: two refunds must not both read the old balance.
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        finally:
            # After an error the disk may have ended the transaction already.
            if self._db.in_transaction:
                with suppress(sqlite3.Error):
                    self._db.execute("rollback")

    def _prepare(self) -> None:
        # Asked first: a file of somebody else's is not touched.
        found = self._revision()
        self._patiently("pragma journal_mode = wal")
        # A refund that was acknowledged outlives a power cut.
        self._db.execute("pragma synchronous = full")
        self._db.execute("pragma foreign_keys = on")
        if found == REVISION:
            return
        with self._writing():
            found = self._revision()  # another process may have been quicker
            if found == REVISION:
                return
            for statement in (*(() if found == 0 else _TABLES), *_KEYS):
                self._db.execute(statement)
            self._db.executemany("insert or ignore into customers values (?, ?, ?, ?)", _CUSTOMERS)
            self._db.execute(f"pragma application_id = {_APPLICATION_ID:d}")
            self._db.execute(f"pragma user_version = {REVISION:d}")

    def _patiently(self, statement: str) -> None:
        """Repeats it: SQLite does not wait where two processes change the mode of a file."""
        waits = threading.Event()
        for _ in range(int(_WAIT_S / _PAUSE_S)):
            try:
                self._db.execute(statement).fetchall()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY:
                    raise
                waits.wait(_PAUSE_S)
            else:
                return
        raise StoreUnusable("locked by another process")

    def _revision(self) -> int:
        """REVISION, 0 for a file of the first release, -1 for an empty one."""
        # One statement, so that it cannot see half of another process's work.
        number, owner, tables = self._db.execute(
            "select user_version, application_id, (select count(*) from sqlite_master)"
            " from pragma_user_version, pragma_application_id"
        ).fetchone()
        if (number, owner, tables) == (0, 0, 0):
            return -1
        if (number, owner) == (0, 0) and self._is_first():
            return 0
        if owner != _APPLICATION_ID:
            raise StoreUnusable("it is a database of something else")
        if number != REVISION:
            raise StoreUnusable(f"a later release wrote it (revision {number})")
        return REVISION

    def _is_first(self) -> bool:
        found = {
            table: [row[1] for row in self._db.execute(f"pragma table_info({table})")]
            for table in _FIRST_COLUMNS
        }
        return found == _FIRST_COLUMNS


def _busy() -> ToolFailure:
    return ToolFailure("the support desk is busy and did nothing; ask again")


__all__ = ["REVISION", "Booked", "Customer", "Order", "StoreUnusable", "SupportStore"]
