"""Books that are taken away, and a wall clock that is set while nobody looks."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import check_sums, let_writers_end, opened
from tests.wire.ledger_process import SCOPE, limit
from tidegate.clock import boot_number
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Need, Refused, SQLiteLedger
from tidegate.limits.sqlite_rows import SQLiteRows
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

WAIT_S = 1.5
"""As short as a machine that is busy allows: what is not held must be had within it."""
TOKENS = limit(100)
ASKED = (Charge(TOKENS, SCOPE, 10),)
FULL = (Charge(TOKENS, SCOPE, 100),)


@pytest.fixture(autouse=True)
def _nobody_left_behind() -> Iterator[None]:
    yield
    let_writers_end()


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_is_taken_away_is_noticed_and_serves_again_when_it_is_back(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / "ledger.db"
    gone, kept = path.with_name(path.name + suffix), tmp_path / "kept"

    async def body() -> None:
        async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)) as ledger:
            assert await ledger.reserve("a", "me", ASKED, lease_s=30.0) == Granted("a")
            gone.rename(kept)
            with pytest.raises(StoreUnavailable):
                await ledger.reserve("b", "me", ASKED, lease_s=30.0)
            assert ledger.degraded
            assert not gone.exists()
            with pytest.raises(StoreUnavailable):
                await ledger.settle("a", "me", Need(1, 1))
            kept.rename(gone)
            async with asyncio.timeout(30.0):
                while ledger.degraded:
                    await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)
            seen = await ledger.usage(TOKENS, SCOPE)
            assert (seen.used, seen.reserved, seen.free) == (2, 0, 98)

    asyncio.run(body())
    check_sums(tmp_path)


def test_new_books_in_the_place_of_the_old_are_not_taken_up_before_a_restart(
    tmp_path: Path,
) -> None:
    """Whoever removes the file hands out no second quota while somebody still counts in it."""
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)) as ledger:
            assert await ledger.reserve("a", "me", FULL, lease_s=30.0) == Granted("a")
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink()
            async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)) as other:
                with pytest.raises(StoreUnavailable):
                    await ledger.reserve("b", "me", FULL, lease_s=30.0)
                assert await other.reserve("c", "me", FULL, lease_s=30.0) == Granted("c")
        async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)) as ledger:
            assert (await ledger.usage(TOKENS, SCOPE)).free == 0

    asyncio.run(body())


@pytest.mark.parametrize("step_s", [-3_600.0, 3_600.0, 86_400.0])
@pytest.mark.parametrize("first_stays", [True, False])
def test_a_process_that_begins_after_the_clock_was_set_counts_like_those_before(
    tmp_path: Path, step_s: float, *, first_stays: bool
) -> None:
    """R10, for a worker that is restarted and for a gateway that is."""
    path, clock = tmp_path / "ledger.db", ManualClock()

    async def body() -> None:
        first = SQLiteLedger(path, clock, boot=7)
        await first.open()
        assert await first.reserve("a", "me", FULL, lease_s=30.0) == Granted("a")
        if not first_stays:
            await first.close()
        clock.step(step_s)
        clock.advance(5.0)
        async with opened(SQLiteLedger(path, clock, boot=7)) as second:
            refused = await second.reserve("b", "me", ASKED, lease_s=30.0)
            assert isinstance(refused, Refused)
            assert second.clock_ahead_s == step_s
            clock.advance(refused.retry_after_s)
            assert await second.reserve("c", "me", ASKED, lease_s=30.0) == Granted("c")
        await first.close()

    asyncio.run(body())


def test_books_may_lie_behind_a_link(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    (tmp_path / "disk").mkdir()
    path.symlink_to(tmp_path / "disk" / "books.db")

    async def body() -> None:
        async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)) as ledger:
            assert await ledger.reserve("a", "me", ASKED, lease_s=30.0) == Granted("a")
            (tmp_path / "disk" / "books.db-wal").rename(tmp_path / "kept")
            with pytest.raises(StoreUnavailable):
                await ledger.reserve("b", "me", ASKED, lease_s=30.0)

    asyncio.run(body())


def test_what_shows_that_a_file_serves_again_is_a_write(tmp_path: Path) -> None:
    """Readiness does not flap on a full disk, where a transaction that writes nothing passes."""
    path = tmp_path / "ledger.db"
    asyncio.run(_made(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for proof, written in ((False, 0), (True, 1)):
            before = db.total_changes
            db.execute("BEGIN IMMEDIATE")
            rows = SQLiteRows(db)
            rows.begin()
            rows.finish(2, proof=proof)
            db.execute("COMMIT")
            assert db.total_changes - before == written


async def _made(path: Path) -> None:
    async with opened(SQLiteLedger(path, ManualClock(), WAIT_S)):
        pass


def test_after_a_restart_of_the_machine_the_wall_clock_counts_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(SQLiteLedger(path, ManualClock(1e9, monotonic_s=9e5), boot=7)) as ledger:
            assert await ledger.reserve("a", "me", FULL, lease_s=30.0) == Granted("a")
        clock = ManualClock(1e9 + 1e5, monotonic_s=3.0)
        async with opened(SQLiteLedger(path, clock, boot=8)) as ledger:
            assert await ledger.reserve("b", "me", FULL, lease_s=30.0) == Granted("b")
            assert ledger.clock_ahead_s == 0.0

    asyncio.run(body())


def test_a_boot_has_a_number_where_the_system_names_it(tmp_path: Path) -> None:
    named = tmp_path / "boot_id"
    named.write_text("0123abcd-4567-89ab-cdef-0123456789ab\n")
    assert boot_number(named) == 0x0123ABCD456789A
    assert boot_number(tmp_path / "nothing") == 0
    assert 0 <= boot_number() < 2**60
