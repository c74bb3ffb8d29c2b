"""Are the messages for one request kept in order, ended once, and found again?"""

import asyncio
from typing import Any

import pytest

from tidegate.tools.outbox import Item, Outbox


def read(box: Outbox, most: int = 1000) -> list[Item]:
    """What is there without waiting."""

    async def body() -> list[Item]:
        found = []
        while len(found) < most and (item := await box.reader.next(0)) is not None:
            found.append(item)
        return found

    return asyncio.run(body())


def names(items: list[Item]) -> list[tuple[bytes, Any]]:
    return [(item.data, item.event_id) for item in items]


def test_an_answer_ends_its_request_and_a_second_one_is_dropped() -> None:
    box = Outbox((1, "1"))
    box.put(Item(b"news"))
    box.put(Item(b"one", (False, 1)))
    box.put(Item(b"again", (False, 1)))
    assert not box.complete
    box.put(Item(b"text one", (True, "1")))
    box.put(Item(b"late"))
    assert box.complete
    assert [item.data for item in read(box)] == [b"news", b"one", b"text one"]
    assert box.reader.over


def test_what_nobody_reads_is_bounded_in_bytes_and_no_answer_is_lost() -> None:
    box = Outbox((1, 2), name="a")
    box.put(Item(b"one", (False, 1)))
    for _ in range(20):
        box.put(Item(b"n" * 1_000_000))
    assert [len(item.data) for item in read(box)][:2] == [3, 1_000_000]
    for _ in range(20):
        box.put(Item(b"n" * 1_000_000))
    box.put(Item(b"two", (False, 2)))
    box.read(0)
    rest = [len(item.data) for item in read(box)]
    assert rest == [1_000_000] * 4 + [3]
    assert box.complete


def test_an_answer_to_nobody_is_dropped() -> None:
    box = Outbox((1,))
    box.put(Item(b"foreign", (False, 2)))
    assert read(box) == []


def test_a_named_stream_is_taken_up_behind_any_event() -> None:
    box = Outbox((1,), name="a")
    for number in range(3):
        box.put(Item(b"%d" % number))
    box.put(Item(b"end", (False, 1)))
    assert names(read(box)) == [(b"0", "a-1"), (b"1", "a-2"), (b"2", "a-3"), (b"end", "a-4")]
    for seen in range(5):
        box.read(seen)
        assert len(read(box)) == 4 - seen
    box.read(99)
    assert read(box) == []


def test_one_that_is_let_go_ends_for_its_reader_and_goes_on_for_the_next() -> None:
    box = Outbox((1,), name="a")
    box.put(Item(b"first"))
    assert len(read(box)) == 1
    box.detach()
    assert box.reader.over
    assert not box.complete
    box.put(Item(b"end", (False, 1)))
    assert read(box) == []
    box.read(1)
    assert [item.data for item in read(box)] == [b"end"]


def test_a_reader_that_is_slow_loses_the_oldest_and_never_the_answer() -> None:
    box = Outbox((1,), name="a")
    for number in range(1000):
        box.put(Item(b"%d" % number))
    box.put(Item(b"end", (False, 1)))
    found = read(box)
    assert len(found) == 256
    assert found[-1].data == b"end"
    box.read(0)
    assert len(read(box)) == 256


def test_a_stream_without_requests_ends_when_it_is_closed() -> None:
    box = Outbox(name="s")
    box.put(Item(b"a"))
    assert not box.complete
    box.close()
    box.put(Item(b"b"))
    assert [item.data for item in read(box)] == [b"a"]
    assert box.reader.over


@pytest.mark.parametrize("end", ["put", "close", "detach"])
def test_who_waits_is_woken(end: str) -> None:
    async def body() -> Item | None:
        box = Outbox((1,))
        waiting = asyncio.ensure_future(box.reader.next(5))
        await asyncio.wait((waiting,), timeout=0)
        if end == "put":
            box.put(Item(b"x", (False, 1)))
        else:
            getattr(box, end)()
        async with asyncio.timeout(5):
            return await waiting

    assert (asyncio.run(body()) is not None) == (end == "put")


def test_a_new_reader_takes_the_place_of_the_last_one() -> None:
    async def body() -> tuple[Item | None, Item | None]:
        box = Outbox((1,), name="a")
        box.put(Item(b"first"))
        old = box.reader
        await old.next(0)
        waiting = asyncio.ensure_future(old.next(5))
        await asyncio.wait((waiting,), timeout=0)
        new = box.read(0)
        assert old.over
        box.put(Item(b"end", (False, 1)))
        async with asyncio.timeout(5):
            assert await waiting is None
            return await new.next(5), await new.next(5)

    first, end = asyncio.run(body())
    assert first is not None
    assert end is not None
    assert (first.data, end.data) == (b"first", b"end")
