"""A file that is locked, broken or gone: an answer in time, a free loop, and nothing left over."""

import asyncio
import fcntl
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import check_sums, let_writers_end, opened, owned
from tests.wire.ledger_children import child
from tests.wire.ledger_process import SCOPE, limit
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, SQLiteLedger, Usage
from tidegate.limits.group_commit import MAX_BATCH, MAX_QUEUED
from tidegate.limits.ledger import MAX_AMOUNT
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

WAIT_S = 1.5
"""As short as a machine that is busy allows: what is not held must be had within it."""
TOKENS = limit(100)
ASKED = (Charge(TOKENS, SCOPE, 10),)
HOLDERS = pytest.mark.parametrize("holder", ["lock", pytest.param("hog", marks=pytest.mark.full)])


@pytest.fixture(autouse=True)
def _nobody_left_behind() -> Iterator[None]:
    yield
    let_writers_end()


Make = Callable[..., Ledger]
MAKERS = pytest.mark.parametrize(
    "make", [SQLiteLedger, pytest.param(owned, marks=pytest.mark.full)], ids=["alone", "owned"]
)


async def turns_of_the_loop(count: int) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


@MAKERS
@HOLDERS
def test_a_file_held_by_another_process_answers_in_time_and_keeps_the_loop_free(
    tmp_path: Path, make: Make, holder: str
) -> None:
    """P4-15: a busy file is 503 within the configured wait, never an internal error."""
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(make(path, ManualClock(), WAIT_S)) as ledger:
            async with child(holder, path) as other:
                assert await other.hears() == "held"
                asked = asyncio.gather(
                    *(ledger.reserve(f"r{turn}", "me", ASKED, lease_s=30.0) for turn in range(20)),
                    return_exceptions=True,
                )
                await turns_of_the_loop(200)
                assert not asked.done()
                async with asyncio.timeout(30.0):
                    answers = await asked
                assert {type(answer) for answer in answers} == {StoreUnavailable}
                assert ledger.degraded
                other.go_on()
                await other.ends()
            # Readiness comes back without a request: none is sent here while it is away.
            async with asyncio.timeout(30.0):
                while ledger.degraded:
                    await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)
            # What was given up is not granted behind the callers' backs.
            assert await _usage_when_free(ledger) == Usage(0, 0, 100, None)
            assert await ledger.reserve("new", "me", ASKED, lease_s=30.0) == Granted("new")
        check_sums(tmp_path)

    asyncio.run(body())


@MAKERS
@HOLDERS
def test_a_short_hold_only_delays(tmp_path: Path, make: Make, holder: str) -> None:
    """P4-15: all are answered, none by an error."""
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with (
            opened(make(path, ManualClock(), 30.0)) as ledger,
            child(holder, path) as other,
        ):
            assert await other.hears() == "held"
            asked = asyncio.gather(
                *(ledger.reserve(f"r{turn}", "me", ASKED, lease_s=30.0) for turn in range(20))
            )
            await turns_of_the_loop(100)
            assert not asked.done()
            other.go_on()
            verdicts = await asked
            assert sum(isinstance(verdict, Granted) for verdict in verdicts) == 10

    asyncio.run(body())


@pytest.mark.full
@MAKERS
@HOLDERS
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_end_given_while_the_file_is_held_is_applied_later(
    tmp_path: Path,
    make: Make,
    holder: str,
    is_cancelled: bool,  # noqa: FBT001
) -> None:
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(make(path, ManualClock(), WAIT_S)) as ledger:
            await ledger.reserve("a", "me", ASKED, lease_s=30.0)
            async with child(holder, path) as other:
                assert await other.hears() == "held"
                ending = asyncio.ensure_future(ledger.settle("a", "me", Need(2, 1)))
                await turns_of_the_loop(3)
                if is_cancelled:
                    ending.cancel()
                await asyncio.wait((ending,))
                assert ending.cancelled() or isinstance(ending.exception(), StoreUnavailable)
                other.go_on()
                await other.ends()
            assert await _usage_when_free(ledger) == Usage(3, 0, 97, 3_610.0)

    asyncio.run(body())


async def _usage_when_free(ledger: Ledger) -> Usage:
    for _ in range(30):
        try:
            return await ledger.usage(TOKENS, SCOPE)
        except StoreUnavailable:
            continue
    raise AssertionError("the ledger did not recover")


@MAKERS
@pytest.mark.parametrize("turns", range(12))
def test_a_reservation_cancelled_at_any_moment_leaves_nothing(
    tmp_path: Path, make: Make, turns: int
) -> None:
    async def body() -> None:
        async with opened(make(tmp_path / "ledger.db", ManualClock())) as ledger:
            asking = asyncio.ensure_future(ledger.reserve("a", "me", ASKED, lease_s=30.0))
            await turns_of_the_loop(turns * turns)
            asking.cancel()
            await asyncio.wait((asking,))
            usage = await ledger.usage(TOKENS, SCOPE)
            assert usage.reserved == (0 if asking.cancelled() else 10)
            assert usage.used == 0

    asyncio.run(body())


@MAKERS
def test_a_grant_that_arrives_together_with_a_cancellation_is_undone(
    tmp_path: Path, make: Make
) -> None:
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(make(path, ManualClock())) as ledger:

            async def cancel_when_answered() -> None:
                await ledger.usage(TOKENS, SCOPE)
                asking.cancel()

            with path.with_name(path.name + ".lock").open("w") as beside:
                fcntl.flock(beside, fcntl.LOCK_EX)
                first = asyncio.ensure_future(ledger.usage(TOKENS, SCOPE))
                await turns_of_the_loop(3)
                # The writer waits with the first job: the next two will share a transaction,
                # are answered together, and the one that cancels is resumed before the other.
                canceling = asyncio.ensure_future(cancel_when_answered())
                asking = asyncio.ensure_future(ledger.reserve("a", "me", ASKED, lease_s=30.0))
                await turns_of_the_loop(3)
            await asyncio.wait((first, canceling, asking))
            assert asking.cancelled()
            assert await ledger.usage(TOKENS, SCOPE) == Usage(0, 0, 100, None)

    asyncio.run(body())


def test_a_broken_file_is_unavailable_and_usable_again_when_mended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database at all, and long enough to be read as one" * 20)

    async def body() -> None:
        ledger = SQLiteLedger(path, ManualClock(), WAIT_S)
        with pytest.raises(StoreUnavailable):
            await ledger.open()
        path.unlink()
        async with opened(ledger):
            assert await ledger.reserve("a", "me", ASKED, lease_s=30.0) == Granted("a")

    asyncio.run(body())


def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    async def body() -> None:
        ledger = SQLiteLedger(tmp_path / "nowhere" / "ledger.db", ManualClock(), WAIT_S)
        with pytest.raises(StoreUnavailable):
            await ledger.open()

    asyncio.run(body())


def test_tables_of_an_unknown_release_are_left_alone(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "ledger.db"
        async with opened(SQLiteLedger(path, ManualClock())):
            pass
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE limit_meta SET value = 999 WHERE name = 'schema'")
        with pytest.raises(StoreUnavailable):
            await SQLiteLedger(path, ManualClock(), WAIT_S).open()

    asyncio.run(body())


@MAKERS
def test_a_write_that_fails_is_refused_and_its_settlements_are_made_up_for(
    tmp_path: Path, make: Make
) -> None:
    """A full disk, played by a trigger: what must happen waits until it can."""
    path = tmp_path / "ledger.db"

    def sabotage(statement: str) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(statement)

    async def body() -> None:
        async with opened(make(path, ManualClock(), 3.0)) as ledger:
            await ledger.reserve("a", "me", ASKED, lease_s=30.0)
            for event in ("INSERT", "UPDATE"):
                sabotage(
                    f"CREATE TRIGGER full_{event} BEFORE {event} ON limit_buckets"
                    " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
                )
            with pytest.raises(StoreUnavailable):
                await ledger.reserve("b", "me", ASKED, lease_s=30.0)
            with pytest.raises(StoreUnavailable):
                await ledger.settle("a", "me", Need(2, 1))
            assert (await ledger.usage(TOKENS, SCOPE)).reserved == 10
            sabotage("DROP TRIGGER full_INSERT")
            sabotage("DROP TRIGGER full_UPDATE")
            assert await ledger.reserve("b", "me", ASKED, lease_s=30.0) == Granted("b")
            assert await ledger.usage(TOKENS, SCOPE) == Usage(3, 10, 87, 3_610.0)
        check_sums(tmp_path)

    asyncio.run(body())


@MAKERS
def test_a_bad_call_does_not_harm_those_in_the_same_transaction(tmp_path: Path, make: Make) -> None:
    async def body() -> None:
        async with opened(make(tmp_path / "ledger.db", ManualClock())) as ledger:
            twice = (*ASKED, *ASKED)
            odd = (Charge(Limit("\ud800", "tokens", MAX_AMOUNT), SCOPE, 1),)
            answers = await asyncio.gather(
                ledger.reserve("a", "me", ASKED, lease_s=30.0),
                ledger.reserve("b", "me", twice, lease_s=30.0),
                ledger.reserve("c", "me", odd, lease_s=30.0),
                ledger.reserve("d", "me", ASKED, lease_s=30.0),
                return_exceptions=True,
            )
            assert [type(one) for one in answers[1:3]] == [ValueError, UnicodeEncodeError]
            assert (answers[0], answers[3]) == (Granted("a"), Granted("d"))
            assert (await ledger.usage(TOKENS, SCOPE)).reserved == 20

    asyncio.run(body())


def test_a_ledger_that_is_not_open_is_unavailable(tmp_path: Path) -> None:
    async def body() -> None:
        ledger = SQLiteLedger(tmp_path / "ledger.db", ManualClock())
        assert ledger.degraded
        with pytest.raises(StoreUnavailable):
            await ledger.usage(TOKENS, SCOPE)
        for _ in range(2):
            await ledger.open()
        assert not ledger.degraded
        for _ in range(2):
            await ledger.close()
        with pytest.raises(StoreUnavailable):
            await ledger.reserve("a", "me", ASKED, lease_s=30.0)

    asyncio.run(body())


def test_closing_commits_what_was_accepted(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "ledger.db"
        async with opened(SQLiteLedger(path, ManualClock())) as ledger:
            await ledger.reserve("a", "me", ASKED, lease_s=30.0)
            ending = asyncio.ensure_future(ledger.settle("a", "me", Need(2, 1)))
            await turns_of_the_loop(1)
        assert await ending
        async with opened(SQLiteLedger(path, ManualClock())) as ledger:
            assert (await ledger.usage(TOKENS, SCOPE)).used == 3

    asyncio.run(body())


@pytest.mark.full
def test_closing_does_not_wait_for_a_file_that_stays_held(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def body() -> None:
        ledger = SQLiteLedger(path, ManualClock(), WAIT_S)
        await ledger.open()
        async with child("hog", path) as other:
            assert await other.hears() == "held"
            with pytest.raises(StoreUnavailable):
                await ledger.release("a", "me")
            async with asyncio.timeout(30.0):
                await ledger.close()

    asyncio.run(body())


@MAKERS
@pytest.mark.full
def test_more_than_can_ever_be_answered_is_refused_at_once(tmp_path: Path, make: Make) -> None:
    """BerriAI/litellm#38193: a stuck file must not eat the memory."""
    path = tmp_path / "ledger.db"

    async def body() -> None:
        async with opened(make(path, ManualClock(), 30.0)) as ledger:
            with path.with_name(path.name + ".lock").open("w") as beside:
                fcntl.flock(beside, fcntl.LOCK_EX)
                asked = [
                    asyncio.ensure_future(ledger.usage(TOKENS, SCOPE))
                    for _ in range(MAX_QUEUED + 2 * MAX_BATCH)
                ]
                await turns_of_the_loop(2)
                refused = sum(one.done() for one in asked)
                assert MAX_BATCH <= refused <= 2 * MAX_BATCH
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(one, StoreUnavailable) for one in answers) == refused

    asyncio.run(body())


@MAKERS
def test_a_stepped_wall_clock_is_reported_once_each_way(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with opened(make(tmp_path / "ledger.db", clock)) as ledger:
            for step_s in (0.0, 3_600.0, 0.0, -3_600.0, 0.0):
                clock.step(step_s)
                await ledger.usage(TOKENS, SCOPE)

    asyncio.run(body())
    # Only this event: the writer of a ledger that was closed while its file was held may still
    # be ending.
    stepped = [one for one in caplog.records if one.msg == "wall_clock_stepped"]
    assert [vars(one)["ahead_s"] for one in stepped] == [3_600.0, 0.0]


def test_nobody_else_on_the_machine_reads_the_ledger(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(SQLiteLedger(tmp_path / "ledger.db", ManualClock(), 5.0)) as ledger:
            await ledger.reserve("r", "me", ASKED, lease_s=30.0)
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert modes == dict.fromkeys(
            ("ledger.db", "ledger.db-shm", "ledger.db-wal", "ledger.db.lock"), 0o600
        )

    asyncio.run(body())


def test_the_lock_is_never_somebody_elses_file(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    (tmp_path / "ledger.db.lock").symlink_to(trap)

    async def body() -> None:
        with pytest.raises(StoreUnavailable):
            await SQLiteLedger(tmp_path / "ledger.db", ManualClock(), WAIT_S).open()

    asyncio.run(body())
    assert not trap.exists()
