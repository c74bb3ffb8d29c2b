"""What is wrong with a file is said so that somebody can mend it, and without its path."""

import errno
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tidegate.limits.sqlite_rows import UnknownSchema
from tidegate.sqlite_words import meaning_of


def connected(path: Path, mode: str = "rwc") -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode={mode}", uri=True, isolation_level=None, timeout=0)


def full(path: Path) -> None:
    with closing(connected(path)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA max_page_count = 2")
        for _ in range(10):
            db.execute("INSERT INTO t VALUES (zeroblob(4000))")


def only_read(path: Path) -> None:
    with closing(connected(path)) as db:
        db.execute("CREATE TABLE t (x)")
    with closing(connected(path, "ro")) as db:
        db.execute("INSERT INTO t VALUES (1)")


def held(path: Path) -> None:
    with closing(connected(path)) as one, closing(connected(path)) as other:
        one.execute("BEGIN EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")


def no_database(path: Path) -> None:
    path.write_bytes(b"these are words and no pages " * 100)
    with closing(connected(path)) as db:
        db.execute("SELECT * FROM sqlite_master")


def damaged(path: Path) -> None:
    with suppress(sqlite3.Error):
        full(path)
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    with closing(connected(path)) as db:
        db.execute("SELECT * FROM t").fetchall()


def nowhere(path: Path) -> None:
    connected(path / "below", "ro")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (full, "the disk is full"),
        (only_read, "it may only be read"),
        (held, "locked by another process"),
        (no_database, "it is no database"),
        (damaged, "it is damaged"),
        (nowhere, "it cannot be opened"),
    ],
)
def test_an_error_of_sqlite_has_words(
    tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    with pytest.raises(sqlite3.Error) as raised:
        harm(tmp_path / "ledger.db")
    assert meaning_of(raised.value) == words


def test_an_error_of_the_system_has_words_and_any_other_its_type() -> None:
    for code, words in ((errno.ENOSPC, "the disk is full"), (errno.EACCES, "may not open it")):
        said = meaning_of(OSError(code, "text of the system", "/a/path"))
        assert words in said
        assert "path" not in said
    assert meaning_of(UnknownSchema("9")) == "it was written by another release"
    assert meaning_of(sqlite3.ProgrammingError("a statement")) == "ProgrammingError"
    assert meaning_of(OSError("no number")) == "OSError"
