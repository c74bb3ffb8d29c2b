"""A command beside a running gateway reads the same numbers and changes nothing."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import LEASE_S, SCOPE, one, tokens
from tidegate.errors import StoreUnavailable
from tidegate.limits import Granted, Limit, Need, SQLiteLedger
from tidegate.limits.sqlite_reader import SQLiteReader
from tidegate.testing.clock import ManualClock

LIMIT = tokens(100)
PARALLEL = Limit("parallel", "concurrent", 2)


def contents(folder: Path) -> dict[str, bytes]:
    # The -shm file holds the marks of readers, never data.
    return {one.name: one.read_bytes() for one in folder.iterdir() if "-shm" not in one.name}


def test_the_reader_sees_what_the_writer_has_committed_and_writes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        clock = ManualClock()
        ledger = SQLiteLedger(tmp_path / "ledger.db", clock)
        await ledger.open()
        reader = SQLiteReader(tmp_path / "ledger.db", clock)
        assert await reader.scopes([LIMIT]) == ()
        granted = await ledger.reserve("a", "me", one(LIMIT, 30), lease_s=LEASE_S)
        assert granted == Granted("a")
        before = contents(tmp_path)
        assert await reader.scopes([PARALLEL, LIMIT]) == ((LIMIT, SCOPE),)
        assert await reader.usage(LIMIT, SCOPE) == await ledger.usage(LIMIT, SCOPE)
        clock.advance(LEASE_S)
        both = [(LIMIT, SCOPE), (PARALLEL, SCOPE)]
        assert await reader.usages(both) == [await ledger.usage(*each) for each in both]
        assert (await reader.usage(LIMIT, SCOPE)).reserved == 0
        assert contents(tmp_path) == before
        assert await ledger.settle("a", "me", Need(1, 1))
        assert await reader.usage(LIMIT, SCOPE) == await ledger.usage(LIMIT, SCOPE)
        await ledger.close()
        assert (await reader.usage(LIMIT, SCOPE)).used == 2

    asyncio.run(body())


def test_a_reader_whose_clock_is_ahead_does_not_pull_the_books_forward(tmp_path: Path) -> None:
    async def body() -> None:
        clock, ahead = ManualClock(), ManualClock()
        ahead.step(3_600)
        ledger = SQLiteLedger(tmp_path / "ledger.db", clock)
        await ledger.open()
        await ledger.reserve("a", "me", one(LIMIT, 100), lease_s=LEASE_S)
        assert (await SQLiteReader(tmp_path / "ledger.db", ahead).usage(LIMIT, SCOPE)).free == 100
        assert (await ledger.usage(LIMIT, SCOPE)).free == 0
        await ledger.close()

    asyncio.run(body())


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 100])
def test_a_file_without_books_is_an_error_and_stays_as_it_is(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "odd?name#%41.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreUnavailable):
        asyncio.run(SQLiteReader(path, ManualClock()).usage(LIMIT, SCOPE))
    assert contents(tmp_path) == ({} if content is None else {path.name: content})
