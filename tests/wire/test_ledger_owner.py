"""One process keeps the ledger for its workers: exactly the cap, and nothing lost with either."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import check_sums, opened
from tests.wire.ledger_process import OWNER, SCOPE, limit
from tidegate.errors import StoreUnavailable
from tidegate.frames import Frames
from tidegate.limits import Charge, Granted, Need, Refused, SQLiteLedger, Usage
from tidegate.limits import owner_frames as frames
from tidegate.limits.group_commit import MAX_BATCH
from tidegate.limits.owned import OwnedLedger
from tidegate.limits.owner import Owner
from tidegate.testing.clock import ManualClock

WAIT_S = 60.0  # nobody waits so long but on a busy machine
TOKENS = limit(100)
ASKED = (Charge(TOKENS, SCOPE, 10),)


class World:
    """An owner and workers of it, on one file."""

    def __init__(self, folder: Path) -> None:
        self.path, self.clock = folder / "ledger.db", ManualClock()
        self.owner = Owner(self.path, self.clock, WAIT_S)
        self.owner.start()
        self.lines: list[socket.socket] = []

    def worker(self) -> OwnedLedger:
        line = self.owner.connect()
        self.lines.append(line)
        return OwnedLedger(line, self.alone(), WAIT_S)

    def alone(self) -> SQLiteLedger:
        return SQLiteLedger(self.path, self.clock, WAIT_S)

    async def end(self) -> None:
        assert await asyncio.to_thread(self.owner.stop)


@asynccontextmanager
async def world_in(folder: Path) -> AsyncIterator[World]:
    world = World(folder)
    try:
        yield world
    finally:
        await world.end()
    check_sums(folder)


async def take(ledger: OwnedLedger | SQLiteLedger, name: str) -> bool:
    verdict = await ledger.reserve(name, OWNER, ASKED, lease_s=30.0)
    assert isinstance(verdict, Granted | Refused)
    return isinstance(verdict, Granted)


async def until_serving_alone(ledger: OwnedLedger) -> None:
    async with asyncio.timeout(WAIT_S):
        while ledger.degraded:
            await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)


def test_workers_and_strangers_to_the_owner_admit_exactly_the_cap(tmp_path: Path) -> None:
    """maximhq/bifrost#3547. What the owner remembers of the file never outlives a stranger."""

    async def body() -> None:
        async with world_in(tmp_path) as world, AsyncExitStack() as stack:
            all_of_them = [world.worker(), world.worker(), world.alone()]
            for ledger in all_of_them:
                await stack.enter_async_context(opened(ledger))
            one_by_one = [await take(all_of_them[turn % 3], f"a{turn}") for turn in range(6)]
            assert one_by_one == [True] * 6
            together = await asyncio.gather(
                *(take(all_of_them[turn % 3], f"b{turn}") for turn in range(30))
            )
            assert sum(together) == 4
            seen = {await ledger.usage(TOKENS, SCOPE) for ledger in all_of_them}
            assert {(usage.used, usage.reserved) for usage in seen} == {(0, 100)}

    asyncio.run(body())


def test_more_calls_than_fit_one_transaction_are_answered_in_their_order(tmp_path: Path) -> None:
    async def body() -> None:
        async with world_in(tmp_path) as world, opened(world.worker()) as ledger:
            small = (Charge(limit(10**9), SCOPE, 1),)
            names = [f"r{turn:04}" for turn in range(2 * MAX_BATCH)]
            verdicts = await asyncio.gather(
                *(ledger.reserve(name, OWNER, small, lease_s=30.0) for name in names)
            )
            assert [one.reservation_id for one in verdicts if isinstance(one, Granted)] == names
            assert sorted(one.standings[0].used for one in verdicts) == [  # type: ignore[union-attr]
                *range(1, len(names) + 1)
            ]

    asyncio.run(body())


def test_a_worker_that_dies_leaves_its_leases_and_disturbs_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        async with world_in(tmp_path) as world, opened(world.worker()) as other:
            dead = world.worker()
            await dead.open()
            assert await take(dead, "held")
            world.lines[-1].shutdown(socket.SHUT_RDWR)
            assert [await take(other, f"o{turn}") for turn in range(10)] == [True] * 9 + [False]
            world.clock.advance(30.0)
            # An expired lease stays charged at its estimate, and only its owner may correct it.
            assert not await other.settle("held", "another", Need(1, 0))
            assert await other.settle("held", OWNER, Need(1, 0))
            await until_serving_alone(dead)
            await dead.close()

    asyncio.run(body())


def test_one_that_talks_nonsense_is_let_go_and_the_others_are_served(tmp_path: Path) -> None:
    async def body() -> None:
        async with world_in(tmp_path) as world, opened(world.worker()) as other:
            with world.owner.connect() as stranger:
                stranger.sendall(b"\x00\x00\x00\x02hi")
                stranger.settimeout(WAIT_S)
                assert await asyncio.to_thread(stranger.recv, 1) == b""
            assert await take(other, "a")

    asyncio.run(body())


def test_without_its_owner_a_worker_goes_on_with_the_file(tmp_path: Path) -> None:
    async def body() -> None:
        world = World(tmp_path)
        ledger = world.worker()
        await ledger.open()
        assert await take(ledger, "a")
        assert await take(ledger, "b")
        await world.end()
        await until_serving_alone(ledger)
        assert await ledger.usage(TOKENS, SCOPE) == Usage(0, 20, 80, 3_610.0)
        assert await ledger.scopes([TOKENS]) == ((TOKENS, SCOPE),)
        assert await ledger.settle("a", OWNER, Need(2, 1))
        assert await ledger.release("b", OWNER)
        assert [await take(ledger, f"c{turn}") for turn in range(10)] == [True] * 9 + [False]
        await ledger.close()
        check_sums(tmp_path)

    asyncio.run(body())


class Dying:
    """An owner that answers what it is asked first, and then hears one frame and is gone."""

    def __init__(self) -> None:
        self._ours, self.line = socket.socketpair()
        self._ours.settimeout(WAIT_S)
        self._cutter = Frames()

    def lives(self) -> None:
        self._hears()
        answers = frames.Answers(False, 0.0, (frames.Walked(()),))
        self._ours.sendall(frames.encode(answers))

    def dies(self) -> frames.Calls:
        calls = self._hears()
        self._ours.close()
        return calls

    def _hears(self) -> frames.Calls:
        bodies: list[bytes] = []
        while not bodies:
            bodies = self._cutter.feed(self._ours.recv(65_536))
        return frames.calls_in(bodies[0])


@pytest.mark.parametrize("end", ["settle", "release"])
def test_what_must_happen_and_was_not_answered_happens_without_the_owner(
    tmp_path: Path, end: str
) -> None:
    async def body() -> None:
        path, clock, owner = tmp_path / "ledger.db", ManualClock(), Dying()
        async with opened(SQLiteLedger(path, clock)) as other:
            assert await take(other, "a")
            ledger = OwnedLedger(owner.line, SQLiteLedger(path, clock), WAIT_S)
            await asyncio.gather(ledger.open(), asyncio.to_thread(owner.lives))
            asked = [
                ledger.settle("a", OWNER, Need(3, 0))
                if end == "settle"
                else ledger.release("a", OWNER),
                ledger.reserve("b", OWNER, ASKED, lease_s=30.0),
            ]
            *answers, calls = await asyncio.gather(
                *asked, asyncio.to_thread(owner.dies), return_exceptions=True
            )
            assert isinstance(calls, frames.Calls)
            assert len(calls.calls) == 2
            # Whether it was done is not known: it is told so, and what may be held is given back.
            assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
            await ledger.close()
            usage = await other.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (3 if end == "settle" else 0, 0)

    asyncio.run(body())
