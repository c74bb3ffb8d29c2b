"""How do many callers share one transaction on one file, and one file with other processes?

Lives here: the writer thread, the lock between processes, and what becomes of work when the file
cannot be written. Does not live here: who asks and hears (job_queue, owner), what the work is
(books), the tables (sqlite_rows of the ledger).

Everything that is waiting runs in one transaction; nobody is answered before its commit.
Processes take turns by a kernel lock on a file beside the database: SQLite's own waiting is a
sleeping poll in steps of up to 100 ms, a kernel lock is a queue. It is never the database file
that is locked this way, since closing a second handle of that file would drop SQLite's locks.
"""

import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits.books_file import BooksFile, FileReplaced, open_lock
from tidegate.limits.sqlite_rows import SQLiteRows
from tidegate.limits.storetime import StoreTime
from tidegate.sqlite_words import meaning_of

logger = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""More waiting work than this is refused at once: a stuck disk must not eat the memory."""

MAX_BATCH = 512
_BUSY_MS = 100
_RETRY_S = 0.5
_CHECKPOINT_PAGES = 4000  # of 4 kB
_LOCKED = "locked by another process"
_TAKEN_AWAY = "the file of the ledger was removed or replaced"


class Tables(Protocol):
    """The tables that work is done on; see SQLiteRows for what each method promises."""

    def create(self) -> None:
        """Make them."""

    def begin(self, ids: Sequence[str] = ()) -> int:
        """Inside a transaction; returns the newest store time in the file."""

    def finish(self, now_us: int, *, proof: bool = False) -> None:
        """Write what changed."""

    def anchor_us(self, boot: int) -> int | None:
        """Where the processes of this run of the machine count from."""

    def keep_anchor(self, boot: int, anchor_us: int) -> None:
        """Have the others count from here."""


R_contra = TypeVar("R_contra", contravariant=True)


class Work(Protocol[R_contra]):
    """One piece of work. `is_withdrawn`: nobody waits for it any more.

    `must_happen`: applied as soon as the file allows, whoever waits. `about` is the reservation
    that it will ask for; `is_money`: once answered it survives the loss of power, too.
    """

    @property
    def must_happen(self) -> bool:
        """See above."""

    @property
    def about(self) -> str | None:
        """See above."""

    @property
    def is_money(self) -> bool:
        """See above."""

    @property
    def only_reads(self) -> bool:
        """Whether it writes nothing: then it waits for nobody who does."""

    @property
    def is_withdrawn(self) -> bool:
        """See above."""

    def begin(self) -> bool:
        """Whether to run it: from here on it cannot be withdrawn."""

    def run(self, rows: R_contra, now_us: int, /) -> object:
        """What is answered. Raises ValueError, before it changed anything, for a bad call."""


W = TypeVar("W", bound=Work[Any])


class Inbox(Protocol[W]):
    """Where work comes from and answers go to; called by the thread only."""

    def next_batch(self, timeout_s: float | None) -> list[W] | None:
        """Up to MAX_BATCH that wait; [] after `timeout_s`; None: there will be no more."""

    def answer(self, results: Sequence[tuple[W, object]]) -> None:
        """Say what became of each: its result, StoreUnavailable or ValueError.

        Called after every attempt, also with nothing. Work that must happen is answered once
        more when it has happened.
        """

    def close(self) -> list[W]:
        """The thread ends: take no more; returns what was never given out."""


class _GaveUp(Exception):
    """Nobody waits for this batch any more, or the writer is told to stop."""


class GroupCommit(Generic[W]):
    """One thread and one connection for the work of `inbox`; ends when that does.

    `tables` are what that work is done on. `name` is what the log calls this use of the file.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        inbox: Inbox[W],
        *,
        boot: int = 0,
        tables: Callable[[sqlite3.Connection], Tables] = SQLiteRows,
        name: str = "ledger",
    ) -> None:
        self._inbox = inbox
        self._tables = tables
        self._events = (f"{name}_store_failed", f"{name}_store_serves_again")
        self._path = path
        self._boot = boot
        self._anchor_us: int | None = None  # as the file has it
        self._file = BooksFile(path)
        self._clock = clock
        self._time = StoreTime(clock.now_s(), clock.monotonic_s())
        self._thread = threading.Thread(target=self._main, name=f"tidegate-{name}", daemon=True)
        self._hurry = threading.Event()
        self._stopped = threading.Event()
        self._db: sqlite3.Connection | None = None
        self._rows: Tables | None = None
        self._is_full: bool | None = None
        self._lock_fd = -1
        self._owed: list[W] = []
        self._clock_ahead_s = 0.0
        self._degraded = False

    def start(self) -> None:
        """Start the thread; the file is opened with the first batch."""
        self._thread.start()

    @property
    def degraded(self) -> bool:
        """Whether the last attempt failed, or somebody waited in vain since."""
        return self._degraded

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s."""
        return self._clock_ahead_s

    def note_late(self) -> None:
        """A caller waited in vain."""
        self._note_trouble("TimeoutError", "it does not answer in time")

    def give_up(self) -> None:
        """Stop waiting for a file that is locked by others."""
        self._hurry.set()

    def wait_stopped(self, timeout_s: float) -> bool:
        """Block until the thread has ended; not for the event loop."""
        return self._stopped.wait(timeout_s)

    def _main(self) -> None:
        try:
            while (batch := self._inbox.next_batch(self._patience_s)) is not None:
                if self._owed:
                    self._owed, owed = [], self._owed
                    self._commit(owed)
                if batch or self._degraded:
                    # An empty batch asks whether the file serves again.
                    self._commit(batch)
            if self._owed:
                self._commit(self._owed)
        finally:
            # Also when a bug ends the thread: from here on every caller is refused.
            self._degraded = True
            self._fail([*self._owed, *self._inbox.close()], "writer ended")
            self._disconnect()
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
            self._stopped.set()

    @property
    def _patience_s(self) -> float | None:
        return _RETRY_S if self._owed or self._degraded else None

    def _commit(self, batch: Sequence[W]) -> None:
        # A process that is stopped while it has its turn stops all others: who reads needs none.
        reads = self._db is not None and not self._degraded and all(job.only_reads for job in batch)
        try:
            with nullcontext() if reads else self._turn():
                results = self._transaction(batch, "DEFERRED" if reads else "IMMEDIATE")
        except _GaveUp:
            self._note_trouble("SQLITE_BUSY", _LOCKED)
            self._keep_owed(batch, _LOCKED)
        except FileReplaced as error:
            # The connection stays: if the file comes back, it is still the one we know.
            self._note_trouble(type(error).__name__, _TAKEN_AWAY)
            self._keep_owed(batch, _TAKEN_AWAY)
        except (sqlite3.Error, OSError) as error:
            why = meaning_of(error)
            self._note_trouble(type(error).__name__, why)
            self._disconnect()
            self._keep_owed(batch, why)
        else:
            self._note_service()
            self._inbox.answer(results)

    def _note_trouble(self, error: str, problem: str) -> None:
        if not self._degraded:
            self._degraded = True
            logger.warning(self._events[0], extra={"error": error, "problem": problem})

    def _note_service(self) -> None:
        if self._degraded:
            self._degraded = False
            logger.warning(self._events[1])

    def _keep_owed(self, batch: Sequence[W], why: str) -> None:
        self._fail(batch, why)
        owed = [job for job in batch if job.must_happen]
        self._owed = (self._owed + owed)[-MAX_QUEUED:]

    def _fail(self, batch: Sequence[W], why: str) -> None:
        self._inbox.answer([(job, StoreUnavailable(why)) for job in batch])

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._lock_fd < 0:
            self._lock_fd = open_lock(self._path)
        fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def _transaction(self, batch: Sequence[W], mode: str) -> list[tuple[W, object]]:
        self._file.check()
        db, rows = self._connect(batch)
        self._sync(db, full=any(job.is_money for job in batch))
        self._begin(db, batch, mode)
        seen_us = rows.begin([job.about for job in batch if job.about is not None])
        now_us = self._now_us(rows, seen_us)
        results = [(job, _outcome(job, rows, now_us)) for job in batch if job.begin()]
        rows.finish(now_us, proof=self._degraded)
        db.execute("COMMIT")
        self._watch_clock()
        return results

    def _now_us(self, rows: Tables, seen_us: int) -> int:
        """The time of this transaction; sees to it that others of this run count alike."""
        if self._boot and self._anchor_us is None:
            self._anchor_us = rows.anchor_us(self._boot)
            if self._anchor_us is not None:
                self._time.adopt(self._anchor_us)
        now_us = self._time.now_us(self._clock.monotonic_s(), last_seen_us=seen_us)
        if self._boot and self._time.anchor_us != self._anchor_us:
            self._anchor_us = self._time.anchor_us
            rows.keep_anchor(self._boot, self._anchor_us)
        return now_us

    def _sync(self, db: sqlite3.Connection, *, full: bool) -> None:
        """Whether the next commit waits for the disk: a budget in money does, a rate does not."""
        if full is not self._is_full:
            db.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            self._is_full = full

    def _connect(self, batch: Sequence[W]) -> tuple[sqlite3.Connection, Tables]:
        if self._db is None or self._rows is None:
            self._file.make()
            db = sqlite3.connect(
                self._path, isolation_level=None, timeout=_BUSY_MS / 1000, cached_statements=64
            )
            self._db, rows = db, self._tables(db)
            self._patiently(lambda: db.execute("PRAGMA journal_mode = WAL"), batch)
            self._is_full = None
            # A checkpoint waits for the disk while every process waits for its turn: seldom.
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            self._begin(db, batch)
            rows.create()
            db.execute("COMMIT")
            self._file.opened()
            self._rows = rows
        return self._db, self._rows

    def _disconnect(self) -> None:
        # Closing rolls back what a failure left open.
        db, self._db, self._rows = self._db, None, None
        self._anchor_us = None
        if db is not None:
            db.close()
            self._file.closed()

    def _begin(self, db: sqlite3.Connection, batch: Sequence[W], mode: str = "IMMEDIATE") -> None:
        # IMMEDIATE: a transaction that reads first and then wants to write is refused at once
        # when another process wrote in between, however long it was ready to wait.
        self._patiently(lambda: db.execute(f"BEGIN {mode}"), batch)

    def _patiently(self, statement: Callable[[], object], batch: Sequence[W]) -> None:
        """Repeat while a stranger to our lock holds the file and anybody still waits."""
        while True:
            try:
                statement()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                ):
                    raise
                if self._hurry.is_set() or all(job.is_withdrawn for job in batch):
                    raise _GaveUp from error
            else:
                return

    def _watch_clock(self) -> None:
        wall_s, monotonic_s = self._clock.now_s(), self._clock.monotonic_s()
        before, self._clock_ahead_s = self._clock_ahead_s, self._time.alarm_s(wall_s, monotonic_s)
        if bool(before) != bool(self._clock_ahead_s):
            ahead_s = self._time.wall_is_ahead_s(wall_s, monotonic_s)
            logger.warning("wall_clock_stepped", extra={"ahead_s": round(ahead_s, 3)})


def _outcome(job: Work[Any], rows: Tables, now_us: int) -> object:
    try:
        return job.run(rows, now_us)
    except ValueError as error:
        # A bad call is the caller's affair: it must not undo what the others asked for.
        return error


__all__ = ["MAX_BATCH", "MAX_QUEUED", "GroupCommit", "Inbox", "Work"]
