"""Do processes agree about sessions on every store, whatever has happened between them?"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.contract.shelf.shelves import WAIT_S, make
from tidegate.errors import StoreUnavailable
from tidegate.gateway.tool_requests.sessions import FRESH_S, ToolSessions
from tidegate.mcp.session_papers import IDLE_S, SESSIONS
from tidegate.mcp.sessions import Owner, Session, Sessions, owner_of
from tidegate.mcp.shelf import Kind
from tidegate.policy import Principal
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

PER_OWNER, MOST = 3, 6
SMALL = Kind("sessions", SESSIONS.live_s, MOST, PER_OWNER)
PEOPLE = (
    Principal("alice", "acme", ("r",), "k1"),
    Principal("alice", "other", ("r",), "k2"),
    Principal("alice", "acme", ("r",), "k3", issuer="https://issuer.example"),
)


@dataclass
class Known:
    owner: Owner
    upstream_id: str
    version: str


class World:
    """Processes on one store (one process, if that is memory), and what must be true."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.kind, self.folder, self.clock = kind, folder, ManualClock()
        self.random = Random(seed)  # noqa: S311 - a history to play again
        self.alive: dict[str, Known] = {}
        self.ended: set[str] = set()
        self.dead: list[ToolSessions] = []
        count = 1 if kind == "memory" else 3
        self.processes = [self.process() for _ in range(count)]

    def process(self) -> ToolSessions:
        shelf = None if self.kind == "memory" else make(self.kind, self.folder, self.clock)
        local = Sessions(bound=MOST, per_owner=PER_OWNER)
        return ToolSessions(local, self.clock, shelf, kind=SMALL)

    async def close(self) -> None:
        for process in (*self.processes, *self.dead):
            await process.close()

    async def found(self, process: ToolSessions, name: str, who: Principal) -> Session | None:
        await process.bring(name, who)
        return process.local.find(name, who, self.clock.monotonic_s())

    async def step(self, number: int) -> None:
        choose = self.random.choice
        process, who = choose(self.processes), choose(PEOPLE)
        self.clock.advance(choose((0.0, 0.3, 70.0)))
        match choose(("open", "open", "find", "find", "end", "crash", "idle")):
            case "open":
                await self.open(process, who, f"theirs {number}")
            case "end" if self.alive:
                name = choose(list(self.alive))
                await self.end(process, name)
            case "crash" if self.kind != "memory":
                self.dead.append(process)
                self.processes[self.processes.index(process)] = self.process()
            case "idle" if self.kind != "redis":  # which has a clock of its own
                self.clock.advance(IDLE_S + 200.0)
                self.ended |= set(self.alive)
                self.alive.clear()
            case _:
                for name in choose(((), tuple(self.alive), tuple(self.ended)[:5])):
                    await self.look(process, name, who)

    async def open(self, process: ToolSessions, who: Principal, upstream_id: str) -> None:
        now_s = self.clock.monotonic_s()
        session = process.local.open(who, "server", upstream_id, None, now_s)
        session.version = self.random.choice(("2025-11-25", "2025-06-18"))
        await process.keep(session)
        theirs = [name for name, known in self.alive.items() if known.owner == owner_of(who)]
        crowded = theirs if len(theirs) == PER_OWNER else list(self.alive)
        is_full = len(theirs) == PER_OWNER or len(self.alive) == MOST
        self.alive[session.id] = Known(owner_of(who), upstream_id, session.version)
        if is_full:
            self.clock.advance(FRESH_S + 0.1)
            gone = [
                name for name in crowded if await self.of_owner(self.processes[0], name) is None
            ]
            assert len(gone) == 1
            self.ended.add(gone[0])
            del self.alive[gone[0]]

    async def of_owner(self, process: ToolSessions, name: str) -> Session | None:
        (who,) = [one for one in PEOPLE if owner_of(one) == self.alive[name].owner]
        return await self.found(process, name, who)

    async def end(self, process: ToolSessions, name: str) -> None:
        session = await self.of_owner(process, name)
        assert session is not None
        await process.end(session)
        del self.alive[name]
        self.ended.add(name)
        for who in PEOPLE:
            assert await self.found(process, name, who) is None  # there at once
        self.clock.advance(FRESH_S + 0.1)

    async def look(self, process: ToolSessions, name: str, who: Principal) -> None:
        session, known = await self.found(process, name, who), self.alive.get(name)
        if known is None or known.owner != owner_of(who):
            assert session is None
        else:
            assert session is not None
            assert (session.upstream_id, session.version) == (known.upstream_id, known.version)

    async def agree(self) -> None:
        for process in self.processes:
            for name in [*self.alive, *self.ended, "0" * 32, "x"]:
                for who in PEOPLE:
                    await self.look(process, name, who)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])
@pytest.mark.parametrize("seed", range(8))
def test_every_process_knows_the_sessions_that_are_and_nobody_anothers(
    kind: str, seed: int, tmp_path: Path
) -> None:
    async def run() -> None:
        world = World(kind, tmp_path, seed)
        async with asyncio.timeout(12 * WAIT_S):
            for number in range(80):
                await world.step(number)
                if number % 20 == 19:
                    await world.agree()
        await world.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_many_who_meet_one_session_at_once_look_for_it_as_one(kind: str, tmp_path: Path) -> None:
    async def run() -> None:
        world = World(kind, tmp_path, 0)
        one, other, _ = world.processes
        session = one.local.open(PEOPLE[0], "server", "theirs", "2025-11-25", 0.0)
        await one.keep(session)
        async with asyncio.timeout(WAIT_S):
            met = await asyncio.gather(
                *(world.found(other, session.id, PEOPLE[number % 3]) for number in range(30))
            )
        assert [each is not None for each in met] == [True, False, False] * 10
        assert len({id(each) for each in met if each is not None}) == 1
        await world.close()

    asyncio.run(run())


def test_a_file_that_is_locked_or_no_store_refuses_new_sessions_and_no_process_dies(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        (tmp_path / "store.db").write_bytes(b"no database" * 1000)
        world = World("sqlite", tmp_path, 0)
        process = world.processes[0]
        session = process.local.open(PEOPLE[0], "server", "theirs", None, 0.0)
        with pytest.raises(StoreUnavailable):
            await process.keep(session)
        assert len(process.local) == 0
        with pytest.raises(StoreUnavailable):
            process.check()
        with pytest.raises(StoreUnavailable):
            await process.bring("0" * 32, PEOPLE[0])
        (tmp_path / "store.db").unlink()
        async with asyncio.timeout(WAIT_S):
            while await refuses(process):
                pass
        await world.close()

    async def refuses(process: ToolSessions) -> bool:
        session = process.local.open(PEOPLE[0], "server", "theirs", None, 0.0)
        try:
            await process.keep(session)
        except StoreUnavailable:
            return True
        return False

    asyncio.run(run())
