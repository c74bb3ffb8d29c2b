"""Does every shelf answer like the ideal one, whoever asks and whatever happened before?"""

import asyncio
import fcntl
from pathlib import Path
from random import Random

import pytest

from tests.contract.shelf.shelves import KINDS, SMALL, WAIT_S, Model, make, play
from tidegate.mcp.shelf import MAX_NEWS, MAX_VALUE_BYTES, Kind, Mark, Shelf
from tidegate.testing.clock import ManualClock

KEYS = [f"key {number}" for number in range(9)]
GROUPS = ["a", "b", "c"]


class World:
    """Three processes with one store, and what an ideal one would have answered."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.kind, self.folder, self.clock = kind, folder, ManualClock()
        self.random = Random(seed)  # noqa: S311 - a history to play again
        self.model = Model(SMALL)
        self.shelves = [self.started() for _ in range(3)]
        self.marks: list[tuple[Mark, int]] = []

    def started(self) -> Shelf:
        shelf = make(self.kind, self.folder, self.clock)
        shelf.start()
        return shelf

    async def step(self, number: int) -> None:
        """One of them does something, ends and begins anew, or time passes."""
        choose, model, place = self.random.choice, self.model, self.random.randrange(3)
        shelf, key = self.shelves[place], choose(KEYS)
        match choose(("put", "put", "touch", "drop", "again", "later")):
            case "put":
                value, group = str(number).encode(), choose(GROUPS)
                await shelf.put(SMALL, key, value, group)
                model.put(key, value, group)
            case "touch":
                assert await shelf.touch(SMALL, key) is model.touch(key)
            case "drop":
                assert await shelf.drop(SMALL, key) is model.drop(key)
            case "again":
                await shelf.close()
                self.shelves[place] = self.started()
            case _ if self.kind == "sqlite":  # a server has a clock of its own
                seconds = choose((1.0, 40.0, 99.0))
                self.clock.advance(seconds)
                model.now_s += seconds

    async def agree(self) -> None:
        """All of them see what the model sees, and hear of what changed since they looked."""
        model = self.model
        alive = {key: document.value for key, document in model.living().items()}
        for number, shelf in enumerate(self.shelves):
            found = {key: await shelf.get(SMALL, key) for key in KEYS}
            assert {key: value for key, value in found.items() if value is not None} == alive
            for group in GROUPS:
                assert dict(await shelf.group(SMALL, group)) == model.group(group)
            mark, seen = self.marks[number]
            news = await shelf.news(SMALL, mark)
            assert news.changed == frozenset(model.changes[seen:])
            self.marks[number] = news.mark, len(model.changes)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_a_random_history_is_answered_as_the_ideal_shelf_would(
    kind: str, seed: int, tmp_path: Path
) -> None:
    """Several processes take turns; some end and begin anew, time passes, room is short."""

    async def run() -> None:
        world = World(kind, tmp_path, seed)
        for shelf in world.shelves:
            world.marks.append(((await shelf.news(SMALL, None)).mark, 0))
        async with asyncio.timeout(12 * WAIT_S):
            for number in range(150):
                await world.step(number)
                if number % 10 == 9:
                    await world.agree()
        for shelf in world.shelves:
            await shelf.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=pytest.mark.full)])
def test_of_many_who_take_a_document_away_one_hears_that_it_was_there(
    kind: str, tmp_path: Path
) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        other = make(kind, tmp_path, clock)
        other.start()
        await shelf.put(SMALL, "one", b"1", "a")
        taken = await asyncio.gather(*(each.drop(SMALL, "one") for each in (shelf, other) * 5))
        assert sorted(taken) == [False] * 9 + [True]
        await other.close()

    play(kind, tmp_path, body)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_who_missed_too_much_hears_that_anything_may_have_changed(
    kind: str, tmp_path: Path
) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        large = Kind("large", 100.0, 10, 10)
        first = (await shelf.news(large, None)).mark
        await shelf.put(large, "one", b"1", "a")

        async def change() -> None:
            await shelf.put(large, "one", b"1", "a")

        for _ in range(MAX_NEWS // 64):
            await asyncio.gather(*(change() for _ in range(64)))
        assert (await shelf.news(large, first)).changed == {"one"}
        await change()
        assert (await shelf.news(large, first)).changed is None

    play(kind, tmp_path, body)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_history_that_nobody_knows_is_no_history(kind: str, tmp_path: Path) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        news = await shelf.news(SMALL, None)
        assert news.changed is None
        assert (await shelf.news(SMALL, news.mark)).changed == frozenset()
        other = news.mark._replace(book=news.mark.book + 1)
        assert (await shelf.news(SMALL, other)).changed is None
        later = news.mark._replace(number=news.mark.number + 1)
        assert (await shelf.news(SMALL, later)).changed is None

    play(kind, tmp_path, body)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_know_nothing_of_each_other_and_bytes_come_back_as_they_went(
    kind: str, tmp_path: Path
) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        other = Kind("other", 100.0, 1, 1)
        value = bytes(range(256)) * (MAX_VALUE_BYTES // 256)
        await shelf.put(SMALL, "one", value, "a")
        await shelf.put(other, "one", b"", "a")
        await shelf.put(other, "two", b"\0\r\n", "a")
        assert await shelf.get(SMALL, "one") == value
        assert await shelf.get(other, "one") is None
        assert dict(await shelf.group(other, "a")) == {"two": b"\0\r\n"}
        with pytest.raises(ValueError, match="too large"):
            await shelf.put(SMALL, "one", value + b"x", "a")

    play(kind, tmp_path, body)


@pytest.mark.full
def test_a_process_that_stands_still_in_its_turn_holds_up_nobody_who_reads(tmp_path: Path) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        await shelf.put(SMALL, "one", b"1", "a")
        mark = (await shelf.news(SMALL, None)).mark
        with open(tmp_path / "store.db.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert await shelf.get(SMALL, "one") == b"1"
            assert dict(await shelf.group(SMALL, "a")) == {"one": b"1"}
            assert (await shelf.news(SMALL, mark)).changed == frozenset()
            late = asyncio.ensure_future(shelf.drop(SMALL, "one"))
        assert await late
        assert (await shelf.news(SMALL, mark)).changed == {"one"}

    play("sqlite", tmp_path, body)


@pytest.mark.full
def test_on_redis_a_document_ends_by_the_clock_of_the_server(tmp_path: Path) -> None:
    async def body(shelf: Shelf, clock: ManualClock) -> None:
        short = Kind("short", 0.5, 3, 3)
        for key in ("one", "two", "three"):
            await shelf.put(short, key, b"1", "a")
        async with asyncio.timeout(WAIT_S):
            while await shelf.get(short, "three") is not None:
                await asyncio.wait((asyncio.ensure_future(shelf.touch(short, "one")),))
        assert await shelf.get(short, "one") == b"1"
        assert not await shelf.touch(short, "two")
        assert dict(await shelf.group(short, "a")) == {"one": b"1"}
        mark = (await shelf.news(short, None)).mark
        # Those that are gone give way first, and nobody has to be told.
        for key in ("four", "five"):
            await shelf.put(short, key, b"1", "a")
            assert await shelf.touch(short, "one")
        assert (await shelf.news(short, mark)).changed == frozenset()

    play("redis", tmp_path, body)
