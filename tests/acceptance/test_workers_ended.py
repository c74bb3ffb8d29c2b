"""What happens when one of several processes ends, or all of them, and is anything owed then?"""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.crews import (
    Load,
    ends,
    file,
    kill,
    nobody_listens,
    owed,
    readiness,
    replaced,
    scraped,
    scraped_until,
    until,
    until_ready,
)
from tests.acceptance.processes import START_S, serving, started
from tests.acceptance.worlds import Upstream, begin, chat, code, scripted, write
from tidegate.clock import SystemClock
from tidegate.limits import SQLiteLedger
from tidegate.limits.ledger import Charge, Granted, Limit
from tidegate.records import as_json, broken_chains, find
from tidegate.testing.clock import ManualClock

STREAMS = 8
SLOTS = Limit("streams", "concurrent", STREAMS)
LIMITS = [{"name": "streams", "match": {"tenants": ["*"]}, "concurrent": STREAMS}]
# The longest stream that the file allows, and the minute that a lease lasts beyond it.
LEASE_S = 300.0 + 60.0


@pytest.mark.full
def test_kill_9_of_one_costs_its_own_requests_and_nothing_else(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        records = tmp_path / "records.db"
        async with scripted(upstream) as server:
            write(tmp_path, file(server, limits=LIMITS))
            async with serving(tmp_path) as gateway:
                streams = [await begin(gateway, max_tokens=100) for _ in range(STREAMS)]
                before = await scraped(gateway)
                # What began in the last moments is not on disk yet (records.writer.Keeping).
                await until(lambda: owed(tmp_path)[1] == len(streams))
                kill(gateway, 1)
                ended = await gateway.event("worker_ended")
                assert (ended["worker"], ended["reason"]) == (1, "signal:9")
                # The other one goes on meanwhile, and what the dead one held is not free.
                busy = await chat(gateway)
                assert (busy.status, code(busy)) == (429, "gateway.rate_limited")
                await replaced(gateway)
                assert (await gateway.event("requests_lost"))["worker"] == 1
                upstream.release.set()
                whole = [await ends(stream) for stream in streams]
                assert 3 <= whole.count(False) <= 5  # half of them, as connections are shared out
                after = await scraped(gateway)
                lower = [name for name in before if "_total" in name and after[name] < before[name]]
                assert lower == []
                assert await gateway.stop() == 0
        states = []
        for stream in streams:
            record = find(records, stream.request_id)
            assert record is not None
            states.append(as_json(record)["state"])
        assert states == ["ended" if ok else "lost" for ok in whole]
        assert broken_chains(records) == {}
        # What the dead one held ends with its lease; nothing else is open.
        assert owed(tmp_path) == (whole.count(False), 0)
        for after_s, granted in ((0.0, False), (LEASE_S, True)):
            clock = ManualClock(SystemClock().now_s() + after_s)
            ledger = SQLiteLedger(tmp_path / "ledger.db", clock)
            await ledger.open()
            every = [Charge(SLOTS, "tenant:acme", STREAMS)]
            verdict = await ledger.reserve(f"late-{granted}", "test", every, lease_s=1.0)
            assert isinstance(verdict, Granted) is granted
            await ledger.close()

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize("keep_alive", [False, True])
def test_sigterm_under_load_leaves_no_request_without_its_answer(
    tmp_path: Path, *, keep_alive: bool
) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, file(server, 3))
            async with serving(tmp_path) as gateway:
                load = Load(gateway, clients=24, keep_alive=keep_alive)
                stream = await begin(gateway)
                await load.answered(150)
                gateway.signal(signal.SIGTERM)
                await gateway.event("draining", times=3)
                upstream.release.set()
                assert await ends(stream)
                assert await gateway.ended() == 0
                await load.ended()
                assert load.unanswered == []
                assert set(load.statuses) == {200}
        assert owed(tmp_path) == (0, 0)
        assert broken_chains(tmp_path / "records.db") == {}

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_reaches_all_of_them_and_means_the_same_as_to_one_process(
    tmp_path: Path, signals: int
) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, file(server, drain_s=600.0))
            async with started(tmp_path, "serve", own_group=True) as gateway:
                await gateway.ready()
                streams = [await begin(gateway) for _ in range(4)]
                gateway.signal_group(signal.SIGINT)
                await gateway.event("draining", times=2)
                if signals == 1:
                    upstream.release.set()
                else:
                    gateway.signal_group(signal.SIGINT)
                assert await gateway.ended() == (0 if signals == 1 else 130)
                assert [await ends(stream) for stream in streams] == [signals == 1] * 4
                assert "Traceback" not in gateway.said
            await nobody_listens(gateway)
        assert owed(tmp_path) == (0, 0)

    asyncio.run(body())


@pytest.mark.full
def test_a_parent_that_is_killed_leaves_no_orphans_and_its_workers_end_in_peace(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, file(server))
            async with started(tmp_path, "serve") as gateway:
                await gateway.ready()
                streams = [await begin(gateway) for _ in range(4)]
                gateway.process.kill()
                await gateway.event("draining", times=2)
                assert len(gateway.events("parent_gone")) == 2
                # Another gateway can have the ports while these end.
                await nobody_listens(gateway)
                upstream.release.set()
                assert [await ends(stream) for stream in streams] == [True] * 4
                assert await gateway.ended() == -9  # and nobody holds its output any more
        assert owed(tmp_path) == (0, 0)

    asyncio.run(body())


@pytest.mark.full
def test_one_that_is_told_to_end_alone_drains_and_is_replaced_before_that(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            # Another one may take long to start before this one is through.
            write(tmp_path, file(server, drain_s=20.0))
            async with serving(tmp_path) as gateway:
                load = Load(gateway, clients=8, keep_alive=False)
                streams = [await begin(gateway) for _ in range(4)]
                kill(gateway, 1, signal.SIGTERM)
                await replaced(gateway)
                await load.answered(50)
                upstream.release.set()
                assert [await ends(stream) for stream in streams] == [True] * 4
                load.stop()
                await load.ended()
                assert load.unanswered == []
                assert gateway.events("worker_ended") == []

    asyncio.run(body())


@pytest.mark.full
def test_one_that_is_started_while_the_books_are_away_begins_no_new_ones(tmp_path: Path) -> None:
    """Whoever takes the file away from a running gateway hands out no second quota."""

    async def body() -> None:
        upstream = Upstream()
        limits = [{"name": "requests", "requests": 2, "window_s": 3_600.0}]
        async with scripted(upstream) as server:
            # Whoever asks while they are away hears of it after this time.
            store = {"url": "sqlite:///ledger.db", "wait_s": 2.0}
            write(tmp_path, file(server, limits=limits, store=store))
            async with serving(tmp_path) as gateway:
                assert (await chat(gateway)).status == 200
                taken = [tmp_path / f"ledger.db{suffix}" for suffix in ("", "-wal", "-shm")]
                for part in taken:
                    part.rename(part.with_name(f"{part.name}.away"))
                kill(gateway, 1)
                failure = await gateway.event("worker_cannot_start")
                assert "ledger" in failure["problem"]
                for _ in range(6):
                    answer = await chat(gateway)
                    assert (answer.status, code(answer)) == (503, "gateway.store_unavailable")
                assert [part.exists() for part in taken] == [False] * 3
                for part in taken:
                    part.with_name(f"{part.name}.away").rename(part)
                await until_ready(gateway, lambda r: r["workers"]["accepting"] == 2)
                async with asyncio.timeout(START_S):
                    while (answer := await chat(gateway)).status == 503:
                        pass
                assert answer.status == 200
                refused = await chat(gateway)
                assert (refused.status, code(refused)) == (429, "gateway.rate_limited")

    asyncio.run(body())


@pytest.mark.full
def test_a_crash_loop_does_not_spin_is_seen_and_heals(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            tree = file(server, records={"path": "place/records.db"})
            (tmp_path / "place").mkdir()
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                (tmp_path / "place").rename(tmp_path / "elsewhere")
                kill(gateway, 1)
                loop = await until_ready(gateway, lambda r: r["workers"]["crash_loop"] == [1])
                assert "worker_crash_loop" in loop["reasons"]
                assert loop["ready"]  # the other one serves
                assert (await chat(gateway)).status == 200
                failure = await gateway.event("worker_cannot_start")
                assert failure["problem"].endswith("the directory does not exist")
                waits = [line["pause_s"] for line in gateway.events("worker_ended")]
                assert waits == sorted(waits)
                assert waits[-1] >= 0.5
                (tmp_path / "elsewhere").rename(tmp_path / "place")
                await until_ready(gateway, lambda r: r["workers"]["accepting"] == 2)
                assert (await readiness(gateway))[0] == 200

    asyncio.run(body())


@pytest.mark.full
def test_a_worker_that_hangs_delays_neither_clients_nor_probes_for_long(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server))
            async with serving(tmp_path) as gateway:
                kill(gateway, 1, signal.SIGSTOP)
                assert [(await chat(gateway)).status for _ in range(6)] == [200] * 6
                status, report = await readiness(gateway)
                assert (status, report["ready"]) == (200, True)
                numbers = await scraped_until(
                    gateway, lambda found: found.get("tidegate_requests_total", 0) >= 6
                )
                assert numbers["tidegate_requests_total"] == 6
                kill(gateway, 1, signal.SIGCONT)

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"store": {"url": "sqlite:///missing/l.db"}}, "store.url sqlite:///missing/l.db: "),
        ({"records": {"path": "missing/r.db"}}, "records.path missing/r.db: "),
    ],
    ids=["store", "records"],
)
def test_what_cannot_start_ends_all_with_1_and_one_reason(
    tmp_path: Path, parts: dict[str, Any], words: str
) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server, 3, **parts))
            async with started(tmp_path, "serve") as gateway:
                assert await gateway.ended(within_s=START_S) == 1
                (failure,) = gateway.events("worker_cannot_start")
                assert failure["problem"].startswith(words)
                assert "tidegate ready" not in gateway.said
                assert "Traceback" not in gateway.said

    asyncio.run(body())


@pytest.mark.full
def test_a_port_that_is_taken_ends_with_1_before_anybody_is_started(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            tree = file(server)
            taken = int(server.url.rsplit(":", 1)[1])
            write(tmp_path, tree | {"server": tree["server"] | {"port": taken}})
            async with started(tmp_path, "serve") as gateway:
                assert await gateway.ended(within_s=START_S) == 1
                assert gateway.events("cannot_listen")[0]["listener"] == "main"
                assert gateway.events("worker_spawned") == []

    asyncio.run(body())
