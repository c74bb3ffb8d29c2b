"""Is everything on record that has to be, and is the file as promised?"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.unit.records.traffic import answered, begun, called, finish, request_id
from tests.wire.recorded import left_to_the_thread, until, written
from tidegate.clock import SystemClock
from tidegate.errors import StoreUnavailable
from tidegate.records import Recorder, broken_chains, find
from tidegate.records.entries import MAX_STEPS
from tidegate.testing.clock import ManualClock

DAY_S = 86_400.0


def kinds(path: Path, number: int) -> list[str]:
    record = find(path, request_id(number))
    return [] if record is None else [found.entry.kind for found in record.entries]


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Somebody else holds the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_request_that_ended_is_on_record_once_and_no_longer_open(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        trail = begun(recorder, 1)
        finish(recorder, trail)
        trail.finish("other", 500)
        recorder.end(trail)  # only the first end counts
        await recorder.close()
        assert (recorder.written, recorder.dropped, recorder.waiting) == (1, 0, 0)

    asyncio.run(body())
    record = find(path, request_id(1))
    assert record is not None
    assert [(e.entry.kind, e.body["outcome"], e.intact) for e in record.entries] == [
        ("end", "ok", True)
    ]
    assert record.open is None
    assert broken_chains(path) == {}


def test_an_intent_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        trail = await called(recorder, 1)
        for _moment in ("at once", "in the database"):
            record = find(path, request_id(1))  # another connection, while the gateway runs
            assert record is not None
            assert record.open is not None
            assert (record.open.state, record.open.running) == ("intent", True)
            await written(recorder, path)
        assert kinds(path, 1) == ["intent"]
        finish(recorder, trail)
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == ["intent", "end"]


def test_many_intents_at_once_share_commits_and_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def one(recorder: Recorder, number: int) -> None:
        finish(recorder, await called(recorder, number))

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        await asyncio.gather(*(one(recorder, number) for number in range(700)))
        await recorder.close()

    asyncio.run(body())
    assert rows(path, "SELECT count(*), max(seq) FROM entries") == [(1400, 1400)]
    assert rows(path, "SELECT * FROM open_requests") == []
    assert broken_chains(path) == {}


@pytest.mark.full
def test_what_cannot_be_committed_must_not_be_done(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock(), wait_s=1.5)
        await recorder.open()
        with locked(path):
            await called(recorder, 1)  # it is on disk, and nobody knows of the trouble yet
            await asyncio.to_thread(until, lambda: recorder.degraded)
            with pytest.raises(StoreUnavailable):
                await called(recorder, 2)
        trail = await called(recorder, 3)
        assert not recorder.degraded
        finish(recorder, trail)
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == ["intent"]
    assert kinds(path, 3) == ["intent", "end"]
    assert broken_chains(path) == {}


@pytest.mark.full
def test_an_idle_gateway_finds_out_by_itself_that_the_disk_is_back(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock(), wait_s=1.5)
        await recorder.open()
        with locked(path):
            await called(recorder, 1)
            await asyncio.to_thread(until, lambda: recorder.degraded)
        await asyncio.to_thread(until, lambda: not recorder.degraded)
        await recorder.close()

    asyncio.run(body())


def test_a_full_queue_drops_ends_and_says_so_but_never_the_end_of_an_intent(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock(), queue=10)
        await recorder.open()
        calls = [await called(recorder, number) for number in range(5)]
        with locked(path):
            for number in range(100, 140):
                answered(recorder, number)
            assert recorder.degraded
            with pytest.raises(StoreUnavailable):
                await called(recorder, 50)  # fail closed at once, not after a wait
            for trail in calls:
                finish(recorder, trail)
        await recorder.close()
        assert recorder.dropped > 20
        assert recorder.written + recorder.dropped == 5 + 5 + 40
        assert not recorder.degraded

    asyncio.run(body())
    assert all(kinds(path, number) == ["intent", "end"] for number in range(5))
    assert kinds(path, 50) == []
    # What was dropped has ended all the same: the next start must not find it lost.
    assert rows(path, "SELECT * FROM open_requests") == []
    assert broken_chains(path) == {}


def test_a_cancelled_wait_for_an_intent_harms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for number in (3, 4):
            # When the second is answered the pruning of the start is over: it would wait for
            # the lock in place of what is asked for below.
            trail = left_to_the_thread(recorder, number)
            await recorder.intent(trail)
            finish(recorder, trail)
        with locked(path):
            trail = left_to_the_thread(recorder, 1)
            task = asyncio.create_task(recorder.intent(trail))
            await asyncio.to_thread(until, lambda: recorder.waiting == 0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            finish(recorder, trail, "cancelled", 0)
        finish(recorder, await called(recorder, 2))
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 1) == kinds(path, 2) == ["intent", "end"]


def test_an_intent_that_does_not_hold_every_step_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path / "r.db", SystemClock())
        await recorder.open()
        trail = begun(recorder, 1, "mcp")
        for _call in range(MAX_STEPS):
            trail.step("authorize", "allow", tool="echo")
        with pytest.raises(StoreUnavailable):
            await recorder.intent(trail)
        await recorder.close()

    asyncio.run(body())


def test_before_open_and_after_close_nothing_is_promised_and_losses_are_counted(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path / "r.db", SystemClock())
        with pytest.raises(StoreUnavailable):
            await called(recorder, 1)
        await recorder.close()
        await recorder.open()
        await recorder.close()
        answered(recorder, 2)
        with pytest.raises(StoreUnavailable):
            await called(recorder, 3)
        assert (recorder.dropped, recorder.degraded) == (1, False)

    asyncio.run(body())


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        await called(recorder, 1)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert set(modes.values()) == {0o600}
        assert {"r.db", "r.db-wal", f"r.{recorder.boot}.db.lock"} <= set(modes)
        await recorder.close()

    asyncio.run(body())
    assert {file.name for file in tmp_path.iterdir()} == {"r.db", "r.db.lock"}


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE reservations (id TEXT)")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


def later_release(path: Path) -> None:
    asyncio.run(open_and_close(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")


def no_database(path: Path) -> None:
    path.write_bytes(b"precious text " * 100)


def a_folder(path: Path) -> None:
    path.mkdir()


async def open_and_close(path: Path) -> None:
    recorder = Recorder(path, SystemClock())
    await recorder.open()
    await recorder.close()


@pytest.mark.parametrize("make", [foreign_database, later_release, no_database, a_folder])
def test_a_file_that_is_not_our_record_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "r.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreUnavailable) as caught:
        asyncio.run(open_and_close(path))
    assert str(tmp_path) not in caught.value.detail
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        asyncio.run(open_and_close(tmp_path / "missing" / "r.db"))


class Broken(SystemClock):
    def now_s(self) -> float:
        raise RuntimeError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_while_the_file_is_opened_is_a_refusal_and_no_endless_wait(tmp_path: Path) -> None:
    before = set(threading.enumerate())

    async def body() -> None:
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(Recorder(tmp_path / "r.db", Broken()).open(), 30.0)

    asyncio.run(body())
    # The thread ends with its own exception, which must not be heard in another test.
    for thread in set(threading.enumerate()) - before:
        thread.join(30.0)


def test_old_entries_leave_and_the_rest_of_the_chain_still_holds(tmp_path: Path) -> None:
    path, clock = tmp_path / "r.db", ManualClock()

    async def body() -> None:
        recorder = Recorder(path, clock, keep_days=7)
        await recorder.open()
        for number in range(600):
            answered(recorder, number)
        await called(recorder, 1000)
        await written(recorder, path)
        clock.advance(6 * DAY_S)
        await called(recorder, 1001)
        await written(recorder, path)
        clock.advance(1.5 * DAY_S)
        await called(recorder, 1002)
        await asyncio.to_thread(until, lambda: kinds(path, 1000) == [])
        await recorder.close()

    asyncio.run(body())
    assert kinds(path, 0) == kinds(path, 599) == kinds(path, 1000) == []
    assert kinds(path, 1001) == kinds(path, 1002) == ["intent"]
    oldest = find(path, request_id(1001))
    assert oldest is not None
    assert oldest.entries[0].intact
    assert broken_chains(path) == {}
    assert rows(path, "SELECT pruned_seq FROM boots") == [(601,)]


@pytest.mark.full
def test_the_file_stays_within_its_size_and_keeps_the_newest(tmp_path: Path) -> None:
    path, bound = tmp_path / "r.db", 1024 * 1024

    async def body() -> None:
        recorder = Recorder(path, SystemClock(), max_bytes=bound)
        await recorder.open()
        for number in range(6000):
            answered(recorder, number)
            if number % 100 == 0:
                await called(recorder, 10_000 + number)
        await recorder.close()

    asyncio.run(body())
    assert path.stat().st_size < 2 * bound
    assert kinds(path, 0) == []
    assert kinds(path, 5999) == ["end"]
    assert broken_chains(path) == {}


def test_a_chain_that_was_edited_is_found_broken(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for number in range(5):
            answered(recorder, number)
        await recorder.close()

    asyncio.run(body())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE entries SET body = replace(body, '\"ok\"', '\"no\"') WHERE seq=3"
        )
        connection.commit()
    assert list(broken_chains(path).values()) == [3]
    record = find(path, request_id(2))
    assert record is not None
    assert not record.entries[0].intact


def test_nothing_of_a_request_but_its_decisions_is_in_any_file(tmp_path: Path) -> None:
    canary = "canary-" + "4111-1111-1111-1111"

    async def body() -> None:
        recorder = Recorder(tmp_path / "r.db", SystemClock())
        await recorder.open()
        trail = begun(recorder, 1, "mcp")
        trail.step(
            "authorize", "v", canary + " x", tool=canary, text=canary, operands={"card": canary}
        )
        await recorder.intent(trail)
        for file in tmp_path.iterdir():
            assert b"canary" not in file.read_bytes()
            assert b"4111" not in file.read_bytes()
        await recorder.close()

    asyncio.run(body())
