"""Several processes on one file: exactly the cap, and nothing lost by a kill."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import check_sums, opened
from tests.wire.ledger_children import child
from tests.wire.ledger_process import AMOUNT, OWNER, SCOPE, USED, limit, parallel
from tidegate.clock import SystemClock
from tidegate.limits import Charge, Granted, Need, Refused, SQLiteLedger, Usage
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full


@pytest.mark.full
def test_eight_processes_racing_one_file_admit_exactly_the_cap(tmp_path: Path) -> None:
    """maximhq/bifrost#3547, vutran1710/PyrateLimiter#60 and #67."""
    path, cap, tries = tmp_path / "ledger.db", 1_000, 60

    async def body() -> None:
        async with AsyncExitStack() as stack:
            racers = [
                await stack.enter_async_context(child("race", path, cap, tries, f"p{number}"))
                for number in range(8)
            ]
            assert [await racer.hears() for racer in racers] == ["ready"] * 8
            for racer in racers:
                racer.go_on()
            counts = [json.loads(await racer.hears()) for racer in racers]
        assert sum(one["granted"] for one in counts) == cap // AMOUNT
        assert sum(one["granted"] + one["refused"] for one in counts) == 8 * tries
        check_sums(tmp_path)

    asyncio.run(body())


@pytest.mark.parametrize(
    ("role", "lines"),
    [
        pytest.param("write", 5, marks=pytest.mark.full),
        ("write", 400),
        pytest.param("write_owned", 400, marks=pytest.mark.full),
    ],
)
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, role: str, lines: int) -> None:
    asyncio.run(_killed_after(tmp_path, lines, role))


@pytest.mark.parametrize(
    "turns",
    [pytest.param(20, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.proof)],
)
@pytest.mark.parametrize("role", ["write", "write_owned"])
def test_what_was_acknowledged_survives_many_kills(tmp_path: Path, role: str, turns: int) -> None:
    """R9."""
    for turn in range(turns):
        folder = tmp_path / str(turn)
        folder.mkdir()
        asyncio.run(_killed_after(folder, 1 + 137 * turn % 2_741, role))


async def _killed_after(folder: Path, lines: int, role: str) -> None:
    path, lease_s = folder / "ledger.db", 30.0
    reserved, settled = set[str](), set[str]()

    def note(line: str) -> None:
        what, _, name = line.partition(" ")
        (settled if what == "settled" else reserved).add(name)

    async with child(role, path, lease_s) as writer:
        for _ in range(lines):
            note(await writer.hears())
        writer.kill()
        while line := await writer.hears():
            note(line)
    check_sums(folder)
    clock = ManualClock(SystemClock().now_s())
    async with opened(SQLiteLedger(path, clock)) as ledger:
        usage = await ledger.usage(limit(10**9), SCOPE)
        charged = len(settled) * USED.total_tokens + len(reserved - settled) * AMOUNT
        # Each of the eight callers may have been killed between commit and acknowledgment.
        assert abs(usage.used + usage.reserved - charged) <= 8 * AMOUNT
        clock.advance(lease_s)
        assert isinstance(
            await ledger.reserve("new", "me", (Charge(parallel(), SCOPE, 1),), lease_s=1.0),
            Granted,
        )
        await _until_all_leases_ended(ledger)
        after = await ledger.usage(limit(10**9), SCOPE)
        assert (after.used, after.reserved) == (usage.used + usage.reserved, 0)
        for name in reserved - settled:
            late = await ledger.settle(name, OWNER, USED)
            assert late or await _was_settled_unheard(ledger, name)
    check_sums(folder)


async def _until_all_leases_ended(ledger: SQLiteLedger) -> None:
    turn = 0
    while (await ledger.usage(parallel(), SCOPE)).reserved > 1:
        turn += 1
        await ledger.reserve(f"turn{turn}", "me", (Charge(limit(10**9), "other", 1),), lease_s=9.0)
        assert turn < 100


async def _was_settled_unheard(ledger: SQLiteLedger, name: str) -> bool:
    # Only odd turns are settled at all, so an even one must have been found.
    return int(name.partition("-")[2]) % 2 == 1


def test_a_restart_keeps_the_quota(tmp_path: Path) -> None:
    async def body() -> None:
        clock, path, tokens = ManualClock(), tmp_path / "ledger.db", limit(100)
        charges = (Charge(tokens, SCOPE, 60),)
        async with opened(SQLiteLedger(path, clock)) as ledger:
            await ledger.reserve("a", "boot 1", charges, lease_s=30.0)
        async with opened(SQLiteLedger(path, clock)) as ledger:
            assert await ledger.usage(tokens, SCOPE) == Usage(0, 60, 40, 3_615.0 - 5.0)
            refused = await ledger.reserve("b", "boot 2", charges, lease_s=30.0)
            assert isinstance(refused, Refused)
            assert not await ledger.settle("a", "boot 2", Need(1, 1))

    asyncio.run(body())


@pytest.mark.parametrize("step_s", [-3_600.0, 0.0])
def test_a_restart_gives_no_free_quota_when_the_wall_clock_went_back(
    tmp_path: Path, step_s: float
) -> None:
    async def body() -> None:
        clock, path, tokens = ManualClock(), tmp_path / "ledger.db", limit(100)
        async with opened(SQLiteLedger(path, clock)) as ledger:
            await ledger.reserve("a", "me", (Charge(tokens, SCOPE, 100),), lease_s=9_999.0)
        clock.step(step_s)
        async with opened(SQLiteLedger(path, clock)) as ledger:
            one = (Charge(tokens, SCOPE, 1),)
            refused = await ledger.reserve("b", "me", one, lease_s=30.0)
            assert isinstance(refused, Refused)
            assert refused.retry_after_s <= 3_615.0
            clock.advance(refused.retry_after_s)
            assert isinstance(await ledger.reserve("b", "me", one, lease_s=30.0), Granted)

    asyncio.run(body())


def test_two_ledgers_in_one_process_share_the_file(tmp_path: Path) -> None:
    async def body() -> None:
        clock, path, tokens = ManualClock(), tmp_path / "ledger.db", limit(100)
        async with (
            opened(SQLiteLedger(path, clock)) as one,
            opened(SQLiteLedger(path, clock)) as two,
        ):
            verdicts = await asyncio.gather(
                *(
                    (one, two)[turn % 2].reserve(
                        f"r{turn}", "me", (Charge(tokens, SCOPE, 10),), lease_s=30.0
                    )
                    for turn in range(40)
                )
            )
            assert sum(isinstance(verdict, Granted) for verdict in verdicts) == 10
            assert await one.usage(tokens, SCOPE) == await two.usage(tokens, SCOPE)

    asyncio.run(body())
