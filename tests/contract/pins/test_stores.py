"""Each store of pins keeps the same promises."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.contract.pins.stores import KINDS, SHARED, book, make, used
from tidegate.mcp.pin_store import PinStore

pytestmark = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.full) if kind in SHARED else kind for kind in KINDS],
)


def run(kind: str, folder: Path, body: Callable[[PinStore], Awaitable[None]]) -> None:
    async def main() -> None:
        store = make(kind, folder)
        async with used(store):
            await body(store)

    asyncio.run(main())


def test_at_first_there_is_nothing(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        assert await store.marks() == {}
        assert await store.read("files") is None

    run(kind, tmp_path, body)


def test_what_was_written_is_read_under_its_mark(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        mark = await store.write("files", book("read"), was=0)
        other = await store.write("mail", book("send"), was=0)
        assert mark
        assert other
        assert await store.marks() == {"files": mark, "mail": other}
        assert await store.read("files") == (mark, book("read"))
        assert await store.read("mail") == (other, book("send"))

    run(kind, tmp_path, body)


def test_a_write_counts_only_in_place_of_what_its_writer_has_read(
    kind: str, tmp_path: Path
) -> None:
    async def body(store: PinStore) -> None:
        first = await store.write("files", book("read"), was=0)
        assert first is not None
        assert await store.write("files", book("evil"), was=0) is None
        second = await store.write("files", book("read", "write"), was=first)
        assert second not in (None, 0, first)
        assert await store.write("files", book("evil"), was=first) is None
        assert await store.write("other", book("evil"), was=first) is None
        assert await store.read("files") == (second, book("read", "write"))
        assert await store.marks() == {"files": second}

    run(kind, tmp_path, body)


def test_names_and_texts_of_every_kind_survive(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        odd = book(
            'o"d\\d', "b\u202ed", "日本語", "emoji 🔥", description="\x00\r\n'--;\u2028" * 50
        )
        mark = await store.write("a.b-c_D", odd, was=0)
        assert await store.read("a.b-c_D") == (mark, odd)

    run(kind, tmp_path, body)


def test_a_large_book_is_kept_whole(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        large = book(*(f"tool{number}" for number in range(400)), description="x" * 3_000)
        mark = await store.write("files", large, was=0)
        assert await store.read("files") == (mark, large)

    run(kind, tmp_path, body)


def test_of_writers_at_the_same_time_one_wins_each_round(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        async def add(number: int) -> None:
            while True:
                kept = await store.read("files")
                mark, turn = (kept.mark, kept.book.turn) if kept else (0, 0)
                names = list(kept.book.pins) if kept else []
                written = book(*names, f"tool{number}", turn=turn + 1)
                if await store.write("files", written, was=mark) is not None:
                    return

        await asyncio.gather(*map(add, range(6)))
        kept = await store.read("files")
        assert kept is not None
        assert kept.book.turn == 6
        assert len(kept.book.pins) == 6

    run(kind, tmp_path, body)


def test_another_process_and_a_later_one_see_what_was_written(kind: str, tmp_path: Path) -> None:
    if kind not in SHARED:
        return

    async def main() -> None:
        here, there = make(kind, tmp_path), make(kind, tmp_path)
        async with used(here, there):
            assert await there.marks() == {}
            first = await here.write("files", book("read"), was=0)
            assert await there.marks() == {"files": first}
            assert await there.write("files", book("evil"), was=0) is None
            second = await there.write("files", book("read", "write"), was=first or 0)
            assert await here.read("files") == (second, book("read", "write"))
        later = make(kind, tmp_path)
        async with used(later):
            assert await later.read("files") == (second, book("read", "write"))

    asyncio.run(main())


def test_a_store_that_was_closed_opens_itself_again(kind: str, tmp_path: Path) -> None:
    async def body(store: PinStore) -> None:
        mark = await store.write("files", book("read"), was=0)
        await store.close()
        await store.close()
        assert await store.marks() == {"files": mark}

    run(kind, tmp_path, body)
