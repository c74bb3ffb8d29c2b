"""What is on disk at once, what a moment later, and what is left to the writer's thread?"""

import asyncio
import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.unit.records.traffic import answered, called, finish, request_id
from tests.wire.recorded import until, written
from tidegate.clock import SystemClock
from tidegate.errors import StoreUnavailable
from tidegate.records import Recorder, broken_chains, find


@contextmanager
def somebodys_turn(path: Path) -> Iterator[None]:
    """Another process of ours is writing to the file."""
    with path.with_name(path.name + ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kinds(path: Path, number: int) -> list[str]:
    found = find(path, request_id(number))
    return [] if found is None else [entry.entry.kind for entry in found.entries]


def test_what_was_handed_in_is_in_the_database_a_moment_later(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for number in range(5):
            answered(recorder, number)
        await called(recorder, 9)
        await written(recorder, path)
        assert [kinds(path, number) for number in (0, 4, 9)] == [["end"], ["end"], ["intent"]]
        await recorder.close()

    asyncio.run(body())
    assert broken_chains(path) == {}


def test_what_was_committed_once_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        trail = await called(recorder, 1)
        await recorder.intent(trail)
        finish(recorder, trail)
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == ["intent", "end"]


def test_an_intent_that_was_refused_is_not_written_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock(), wait_s=1.5)
        await recorder.open()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("ALTER TABLE open_requests RENAME TO elsewhere")
            await called(recorder, 1)
            await asyncio.to_thread(until, lambda: recorder.degraded)
            with pytest.raises(StoreUnavailable):
                await called(recorder, 3)
            connection.execute("ALTER TABLE elsewhere RENAME TO open_requests")
        trail = await called(recorder, 2)
        finish(recorder, trail)
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == ["intent"]
    assert kinds(path, 3) == []
    assert kinds(path, 2) == ["intent", "end"]
    assert broken_chains(path) == {}


def test_an_intent_waits_for_nobody_and_the_database_for_its_turn(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        with somebodys_turn(path):
            trail = await called(recorder, 1)
            found = find(path, request_id(1))
            assert found is not None
            assert (found.entries, found.open and found.open.state) == ((), "intent")
        await written(recorder, path)
        assert kinds(path, 1) == ["intent"]
        finish(recorder, trail)
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == ["intent", "end"]
    assert broken_chains(path) == {}


def test_a_crowd_is_written_by_the_thread_and_single_ones_in_between_join_its_chain(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for crowd in range(4):
            for number in range(100):
                answered(recorder, 1000 * crowd + number)
            await called(recorder, 1000 * crowd + 900)
            await called(recorder, 1000 * crowd + 901)
        await recorder.close()

    asyncio.run(body())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*), max(seq) FROM entries").fetchall() == [
            (408, 408)
        ]
    assert broken_chains(path) == {}


@pytest.mark.full
def test_the_log_of_the_file_does_not_grow_with_intents_that_nobody_else_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    log = path.with_name(path.name + "-wal")

    async def body() -> int:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        largest = 0
        for number in range(6_000):
            finish(recorder, await called(recorder, number))
            largest = max(largest, log.stat().st_size)
        await recorder.close()
        return largest

    assert asyncio.run(body()) < 24_000_000
    assert broken_chains(path) == {}
