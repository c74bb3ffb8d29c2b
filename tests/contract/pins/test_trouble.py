"""A store of pins that cannot be used says so in words, and goes on once it can."""

import asyncio
import fcntl
import os
import sqlite3
import stat
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tests.contract.pins.stores import book, used
from tests.redis_server import redis_server
from tidegate.errors import StoreUnavailable
from tidegate.gateway.pause import pause
from tidegate.limits import Charge, Limit, Need, SQLiteLedger
from tidegate.mcp.pin_store import PinStore
from tidegate.mcp.pin_store_redis import RedisPins
from tidegate.mcp.pin_store_sqlite import SQLitePins
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full
WAIT_S = 30.0
T = TypeVar("T")


async def refusal(store: PinStore) -> str:
    """Why marks, read and write all refuse."""
    (reason,) = {await reason_of(call) for call in calls_of(store)}
    return reason


def calls_of(store: PinStore) -> tuple[Callable[[], Awaitable[object]], ...]:
    return store.marks, lambda: store.read("s"), lambda: store.write("s", book("a"), was=0)


async def reason_of(call: Callable[[], Awaitable[object]]) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await call()
    return caught.value.detail


async def served(call: Callable[[], Awaitable[T]]) -> T:
    """What the store says once it serves again, which it finds out by itself."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(StoreUnavailable):
                return await call()
            await pause(0.01)


class Relay:
    """A way to a Redis on which answers to an EVAL come when `released`.

    With `forgets` the first one never does: the connection is lost in its place.
    """

    def __init__(self, port: int, *, forgets: bool = False) -> None:
        self.forgets = forgets
        self.released = asyncio.Event()
        self._port = port
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        back, far = await asyncio.open_connection("127.0.0.1", self._port)
        evaluates = asyncio.Event()
        answering = asyncio.create_task(self._answer(back, out, evaluates))
        try:
            while asked := await near.read(1 << 20):
                if b"EVAL" in asked:
                    evaluates.set()
                far.write(asked)
        finally:
            answering.cancel()
            for writer in (far, out):
                writer.close()

    async def _answer(
        self, back: asyncio.StreamReader, out: asyncio.StreamWriter, evaluates: asyncio.Event
    ) -> None:
        while said := await back.read(1 << 20):
            if evaluates.is_set() and self.forgets:
                self.forgets = False
                out.close()
                return
            if evaluates.is_set():
                await self.released.wait()
            out.write(said)


def test_the_file_is_for_nobody_else_and_a_look_does_not_make_it(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "ledger.db"
        store = SQLitePins(path)
        async with used(store):
            assert await store.marks() == {}
            assert not path.exists()
            await store.write("files", book("read"), was=0)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    asyncio.run(main())


def test_a_store_that_may_not_make_the_file_says_that_it_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        store = SQLitePins(tmp_path / "ledger.db", creates=False)
        async with used(store):
            with pytest.raises(StoreUnavailable):
                await store.write("files", book("read"), was=0)
        assert not (tmp_path / "ledger.db").exists()

    asyncio.run(main())


def test_pins_and_the_books_of_the_ledger_share_a_file_without_noticing(tmp_path: Path) -> None:
    path, limit = tmp_path / "ledger.db", Limit("tokens", "tokens", 1_000, 60.0)

    async def main() -> None:
        clock = ManualClock()
        ledger, pins = SQLiteLedger(path, clock), SQLitePins(path)
        await ledger.open()
        async with used(pins):
            mark = 0
            for number in range(20):
                charges = (Charge(limit, "tenant:acme", 10),)
                granted = ledger.reserve(f"r{number}", "me", charges, lease_s=30.0)
                written = pins.write("files", book("read", turn=number), was=mark)
                _, kept = await asyncio.gather(granted, written)
                assert kept is not None
                mark = kept
                await ledger.settle(f"r{number}", "me", Need(5, 5))
            assert (await ledger.usage(limit, "tenant:acme")).used == 200
            assert not ledger.degraded
        await ledger.close()
        again, later = SQLiteLedger(path, clock), SQLitePins(path)
        await again.open()
        async with used(later):
            assert (await again.usage(limit, "tenant:acme")).used == 200
            assert await later.marks() == {"files": mark}
        await again.close()

    asyncio.run(main())


def test_a_file_that_was_taken_away_is_not_begun_anew(tmp_path: Path) -> None:
    path, aside = tmp_path / "ledger.db", tmp_path / "aside.db"

    async def main() -> None:
        store = SQLitePins(path)
        async with used(store):
            mark = await store.write("files", book("read"), was=0)
            path.rename(aside)
            assert await refusal(store) == "it was removed or replaced"
            assert not path.exists()
            path.write_bytes(b"")
            assert await refusal(store) == "it was removed or replaced"
            path.unlink()
            aside.rename(path)
            assert await store.marks() == {"files": mark}

    asyncio.run(main())


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "ledger.db").write_bytes(b"not a database at all, by any measure" * 40)
        store = SQLitePins(tmp_path / "ledger.db")
        async with used(store):
            assert await refusal(store) == "it is no database"

    asyncio.run(main())


def test_a_book_that_is_damaged_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        store = SQLitePins(path)
        async with used(store):
            await store.write("files", book("read"), was=0)
            kept = await store.write("mail", book("send"), was=0)
            with closing(sqlite3.connect(path)) as db:
                db.execute("UPDATE pin_books SET document = x'7b7d' WHERE server = 'files'")
                db.commit()
            with pytest.raises(StoreUnavailable, match="another release or damaged"):
                await store.read("files")
            assert await store.read("mail") == (kept, book("send"))

    asyncio.run(main())


def test_a_writer_waits_for_its_turn_for_a_bounded_time_and_readers_for_nobody(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        patient, hurried = SQLitePins(path), SQLitePins(path, wait_s=0.05)
        async with used(patient, hurried):
            mark = await patient.write("files", book("read"), was=0)
            fd = os.open(tmp_path / "ledger.db.lock", os.O_RDWR)
            fcntl.flock(fd, fcntl.LOCK_EX)
            with pytest.raises(StoreUnavailable, match="in time"):
                await hurried.write("mail", book("send"), was=0)
            with pytest.raises(StoreUnavailable, match="in time"):
                await hurried.write("mail", book("send"), was=0)
            waiting = asyncio.create_task(patient.write("other", book("x"), was=0))
            assert await patient.marks() == {"files": mark}
            os.close(fd)
            assert await waiting is not None
            for thread in threading.enumerate():
                if thread.name == "tidegate-pins":
                    await asyncio.to_thread(thread.join, WAIT_S)
            # The first was begun, and nobody could take it back; the second never was.
            assert set(await patient.marks()) == {"files", "other", "mail"}

    asyncio.run(main())


def test_a_reader_looks_while_somebody_else_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        store = SQLitePins(path)
        async with used(store):
            mark = await store.write("files", book("read"), was=0)
            with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
                stranger.execute("BEGIN IMMEDIATE")
                stranger.execute("UPDATE pin_books SET mark = 7")
                assert await store.marks() == {"files": mark}
                stranger.execute("COMMIT")
            assert await store.marks() == {"files": 7}

    asyncio.run(main())


def test_a_redis_that_goes_and_comes_is_used_again_with_what_it_wrote(tmp_path: Path) -> None:
    async def main() -> None:
        with redis_server(tmp_path) as server:
            store = RedisPins(server.url, deadline_s=5.0)
            async with used(store):
                mark = await store.write("files", book("read"), was=0)
                await asyncio.to_thread(server.kill)
                with pytest.raises(StoreUnavailable):
                    await store.marks()  # of the connection there was
                for call in calls_of(store):
                    # Each connection may still have met the one that was about to end.
                    async with asyncio.timeout(WAIT_S):
                        while await reason_of(call) != "nothing listens there":
                            await pause(0.01)
                await asyncio.to_thread(server.start)
                assert await served(store.marks) == {"files": mark}
                assert await served(lambda: store.read("files")) == (mark, book("read"))

    asyncio.run(main())


def test_a_redis_that_stands_still_is_waited_for_once_by_all_together(tmp_path: Path) -> None:
    async def main() -> None:
        with redis_server(tmp_path) as server:
            store = RedisPins(server.url, deadline_s=1.5)
            async with used(store):
                mark = await store.write("files", book("read"), was=0)
                assert await store.marks() == {"files": mark}
                server.pause()
                async with asyncio.timeout(WAIT_S):
                    calls = [refusal(store) for _ in range(30)]
                    assert set(await asyncio.gather(*calls)) == {"it does not answer"}
                server.resume()
                assert await served(store.marks) == {"files": mark}
                assert await served(lambda: store.read("files")) == (mark, book("read"))

    asyncio.run(main())


def test_one_who_looks_does_not_wait_behind_a_book(tmp_path: Path) -> None:
    async def main() -> None:
        with redis_server(tmp_path) as server:
            store, relay = RedisPins(server.url, deadline_s=WAIT_S), Relay(server.port)
            async with used(store), relay as url, asyncio.timeout(WAIT_S):
                mark = await store.write("files", book("read"), was=0)
                behind = RedisPins(url, deadline_s=WAIT_S)
                async with used(behind):
                    reading = asyncio.create_task(behind.read("files"))
                    assert await behind.marks() == {"files": mark}
                    assert not reading.done()
                    relay.released.set()
                    assert await reading == (mark, book("read"))

    asyncio.run(main())


def test_a_write_that_is_said_again_counts_as_what_it_was(tmp_path: Path) -> None:
    """The connection is lost after the server has kept the book and before it could say so."""

    async def main() -> None:
        with redis_server(tmp_path) as server:
            store, relay = RedisPins(server.url), Relay(server.port, forgets=True)
            relay.released.set()
            async with used(store), relay as url, asyncio.timeout(WAIT_S):
                mark = await store.write("files", book("read"), was=0)
                assert mark is not None
                behind = RedisPins(url, deadline_s=WAIT_S)
                async with used(behind):
                    later = await behind.write("files", book("write"), was=mark)
                    assert not relay.forgets
                    assert later is not None
                    assert await store.read("files") == (later, book("write"))

    asyncio.run(main())


def test_a_redis_that_may_not_keep_anything_says_why(tmp_path: Path) -> None:
    async def main() -> None:
        with redis_server(tmp_path, {"appendonly": "no"}) as server:
            store = RedisPins(server.url)
            async with used(store):
                assert "appendonly" in await refusal(store)

    asyncio.run(main())


def test_a_caller_that_leaves_does_not_leave_its_answer_to_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        with redis_server(tmp_path) as server:
            store = RedisPins(server.url, deadline_s=WAIT_S)
            async with used(store):
                mark = await store.write("files", book("read"), was=0)
                server.pause()
                leaving = asyncio.create_task(store.read("files"))
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
                leaving.cancel()
                server.resume()
                assert await store.marks() == {"files": mark}

    asyncio.run(main())
