"""Do messages between a parent and a worker arrive whole and in order, and is the end noticed?"""

import asyncio
import os
import select
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.supervised import until
from tidegate.gateway.workers import words
from tidegate.gateway.workers.channel import Channel, Ends, make_ends

LARGE = words.Begin(1, b"c" * 3_000_000, b"s")


@dataclass
class End:
    """One end and what it heard."""

    channel: "Channel[Any]"
    heard: list[Any] = field(default_factory=list)
    lost: list[bool] = field(default_factory=list)


def end(ends: Ends, decode: Callable[[bytes], Any]) -> End:
    heard: list[Any] = []
    lost: list[bool] = []
    channel = Channel(ends, decode, heard=heard.append, lost=lambda: lost.append(True))
    return End(channel, heard, lost)


def test_messages_pass_both_ways_in_order_however_large(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        parent, worker = end(ours, words.for_parent), end(theirs, words.for_worker)
        down = [LARGE, words.Accept(), LARGE, words.Take(2)]
        up = [words.Opened(1), words.Told(1, {"n": "x" * 500_000}), words.Accepting()]
        for order in down:
            parent.channel.send(order)
        for word in up:
            worker.channel.send(word)
        await until(lambda: len(worker.heard) == len(down) and len(parent.heard) == len(up))
        assert (worker.heard == down, parent.heard == up) == (True, True)
        parent.channel.close()
        await until(lambda: worker.lost == [True])
        assert parent.lost == []

    run(body())


def test_what_was_said_before_the_end_is_heard_and_the_end_once(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        parent = end(ours, words.for_parent)
        os.write(theirs.write, words.encode(words.Opened(1)) + words.encode(words.Leaving())[:3])
        theirs.close()
        await until(lambda: parent.lost == [True])
        assert parent.heard == [words.Opened(1)]
        parent.channel.send(words.Drain())
        parent.channel.close()
        assert parent.lost == [True]

    run(body())


def test_a_reader_that_is_gone_loses_nothing_that_it_had_said(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        os.write(theirs.write, words.encode(words.CannotStart("no disk")))
        theirs.close()
        parent = end(ours, words.for_parent)
        parent.channel.send(words.Begin(1, b"", b""))
        await until(lambda: parent.lost == [True])
        assert parent.heard == [words.CannotStart("no disk")]

    run(body())


def test_one_that_leaves_with_words_unread_is_heard_to_the_end_and_missed(run: Run) -> None:
    # Its end is then an error of the socket, of which the readers of uvloop never tell.
    async def once() -> None:
        ours, theirs = make_ends()
        parent = end(ours, words.for_parent)
        parent.channel.send(words.Ask(1, "pulse"))
        await until(lambda: bool(select.select([theirs.read], [], [], 0)[0]))
        os.write(theirs.write, words.encode(words.Leaving()))
        theirs.close()
        await until(lambda: parent.lost == [True])
        assert parent.heard == [words.Leaving()]

    async def body() -> None:
        for _ in range(20):
            await once()

    run(body())


def test_what_was_sent_last_arrives_before_the_end(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        parent, worker = end(ours, words.for_parent), end(theirs, words.for_worker)
        parent.channel.send(LARGE)
        await parent.channel.closed(within_s=30.0)
        await until(lambda: worker.lost == [True])
        assert len(worker.heard) == 1
        assert parent.lost == []

    run(body())


def test_one_that_never_reads_does_not_keep_the_other(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        parent = end(ours, words.for_parent)
        parent.channel.send(LARGE)
        await parent.channel.closed(within_s=0.01)
        theirs.close()

    run(body())


@pytest.mark.parametrize("nonsense", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\1\xc1"])
def test_nonsense_ends_it(run: Run, nonsense: bytes) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        parent = end(ours, words.for_parent)
        os.write(theirs.write, nonsense)
        await until(lambda: parent.lost == [True])
        assert parent.heard == []
        theirs.close()

    run(body())


def test_a_message_that_ends_the_channel_is_the_last_one_heard(run: Run) -> None:
    async def body() -> None:
        ours, theirs = make_ends()
        heard: list[Any] = []

        def hear(message: words.ToParent) -> None:
            heard.append(message)
            parent.close()

        parent = Channel(ours, words.for_parent, heard=hear, lost=lambda: heard.append("lost"))
        os.write(theirs.write, words.encode(words.Opened(1)) + words.encode(words.Accepting()))
        await until(lambda: bool(heard))
        await asyncio.wait_for(asyncio.to_thread(theirs.close), 30)
        assert heard == [words.Opened(1)]

    run(body())
