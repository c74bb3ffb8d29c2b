"""How do pins survive a restart, and how do processes of one machine share them?

Lives here: the pins in the file of the ledger, in a table of their own. Does not live here: the
ledger (limits), the file itself and the lock of its writers (limits.books_file), what a book
means (pins).

Readers see the last commit and wait for nobody. A writer takes its turn by the lock that the
writers of the ledger take (see limits.group_commit): SQLite's own waiting is a poll, which a
busy ledger starves. Whoever has pins in a file that was taken away must not go on in a new one:
there, everything would be trusted once more.
"""

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from tidegate.errors import StoreUnavailable
from tidegate.limits.books_file import FileReplaced, Mark, make_file, mark_of, open_lock
from tidegate.mcp.pin_store import Kept, decode, encode, fresh_mark
from tidegate.mcp.pins import Book
from tidegate.sqlite_words import meaning_of

_BUSY_S: Final = 1.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS pin_books (
    server TEXT PRIMARY KEY, mark INTEGER NOT NULL, document BLOB NOT NULL)
"""
_HAS_TABLE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pin_books'"
_KEEP: Final = """
INSERT INTO pin_books VALUES (?, ?, ?)
ON CONFLICT (server) DO UPDATE SET mark = excluded.mark, document = excluded.document
"""

T = TypeVar("T")


class SQLitePins:
    """A PinStore in the file `path`. No call waits longer than about `wait_s`.

    The file is created with the first write, unless `creates` is False.
    """

    def __init__(self, path: str | Path, wait_s: float = 5.0, *, creates: bool = True) -> None:
        self._path = Path(path)
        self._wait_s = wait_s
        self._creates = creates
        self._mark: Mark | None = None
        self._reader: sqlite3.Connection | None = None
        self._has_table = False
        self._reading = threading.Lock()
        self._writing = asyncio.Lock()
        self._last: asyncio.Future[Any] | None = None

    async def marks(self) -> dict[str, int]:
        """See PinStore.marks."""

        def look(db: sqlite3.Connection) -> dict[str, int]:
            return dict(db.execute("SELECT server, mark FROM pin_books").fetchall())

        return await self._within(asyncio.to_thread(self._read, look)) or {}

    async def read(self, server: str) -> Kept | None:
        """See PinStore.read."""

        def look(db: sqlite3.Connection) -> tuple[int, object] | None:
            wanted = "SELECT mark, document FROM pin_books WHERE server = ?"
            row: tuple[int, object] | None = db.execute(wanted, (server,)).fetchone()
            return row

        row = await self._within(asyncio.to_thread(self._read, look))
        return None if row is None else Kept(row[0], decode(row[1]))

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        """See PinStore.write."""
        document = encode(book)

        def work() -> int | None:
            with self._turn(), closing(self._connect()) as db:
                return _keep(db, server, document, was)

        return await self._within(self._in_turn(work))

    async def close(self) -> None:
        """See PinStore.close."""
        await asyncio.to_thread(self._close)

    async def _within(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._wait_s):
                return await work
        except TimeoutError:
            raise StoreUnavailable("it does not answer in time") from None
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(meaning_of(error)) from error

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """What `work` returns. One at a time, also behind one that its caller has given up."""
        async with self._writing:
            if self._last is not None and not self._last.done():
                await asyncio.wait((self._last,))
            self._last = future = self._begun(work)
            return await asyncio.shield(future)

    def _begun(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """What `work` will return from a thread of its own, which may wait for its turn for long.

        Not one of the executor: the interpreter waits for those before it ends.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(_heard)

        def tell(result: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # no error, so there is one

        def main() -> None:
            result, failed = None, None
            try:
                result = work()
            except (sqlite3.Error, OSError) as error:
                failed = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell, result, failed)

        threading.Thread(target=main, name="tidegate-pins", daemon=True).start()
        return future

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T | None:
        with self._reading:
            try:
                if not self._is_there():
                    return None
                if self._reader is None:
                    self._reader = self._connect()
                if not self._has_table:
                    self._has_table = self._reader.execute(_HAS_TABLE).fetchone() is not None
                return look(self._reader) if self._has_table else None
            except (sqlite3.Error, OSError):
                self._hang_up()
                raise

    def _connect(self) -> sqlite3.Connection:
        """A connection to the file, which is there from now on. Raises OSError, sqlite3.Error."""
        if not self._is_there():
            self._make()
            self._is_there()  # from now on it is this one
        db = sqlite3.connect(
            self._path, isolation_level=None, timeout=_BUSY_S, check_same_thread=False
        )
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # Seldom, and what it protects outlives the loss of power.
            db.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _is_there(self) -> bool:
        """Whether the file exists; raises FileReplaced if it is not the one it was."""
        try:
            found = mark_of(self._path)
        except FileNotFoundError:
            if self._mark is not None:
                raise FileReplaced from None
            return False
        if self._mark is None:
            self._mark = found
        elif self._mark != found:
            raise FileReplaced
        return True

    def _make(self) -> None:
        if not self._creates:
            raise FileNotFoundError(2, "no such file")
        make_file(self._path)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        fd = open_lock(self._path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _close(self) -> None:
        with self._reading:
            self._hang_up()

    def _hang_up(self) -> None:
        reader, self._reader, self._has_table = self._reader, None, False
        if reader is not None:
            reader.close()


def _heard(future: "asyncio.Future[T]") -> None:
    """Whoever waited may have left before it failed."""
    if not future.cancelled():
        future.exception()


def _keep(db: sqlite3.Connection, server: str, document: bytes, was: int) -> int | None:
    db.execute("BEGIN IMMEDIATE")
    db.execute(_TABLE)
    row = db.execute("SELECT mark FROM pin_books WHERE server = ?", (server,)).fetchone()
    if (row[0] if row is not None else 0) != was:
        db.execute("ROLLBACK")
        return None
    mark = fresh_mark()
    db.execute(_KEEP, (server, mark, document))
    db.execute("COMMIT")
    return mark


__all__ = ["SQLitePins"]
