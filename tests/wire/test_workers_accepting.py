"""Do several listeners on one socket share its connections out, and lose none at their end?"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import SOON_S, answer
from tests.wire.supervised import until
from tidegate.gateway.acceptor import HEAD_START, Acceptor
from tidegate.gateway.listener import Listener, WireCaps
from tidegate.gateway.workers.seats import Seat, Table, make_table
from tidegate.testing.sockets import RawClient, request_bytes


class Place:
    """One of several processes, as far as accepting goes."""

    def __init__(self, slot: int, sock: socket.socket, fd: int) -> None:
        self.name = b"%d" % slot
        self._table = Table(fd)
        self.listener = Listener(self, WireCaps(linger_s=SOON_S), seats=Seat(self._table, slot))
        self.sock = sock.dup()

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, self.name)

    @property
    def held(self) -> int:
        return len(self.listener.connections)

    async def close(self) -> None:
        await self.listener.close(flush_s=SOON_S)
        self.sock.close()
        self._table.close()


@asynccontextmanager
async def places(count: int, *, opened: bool = True) -> AsyncIterator[tuple[int, list[Place]]]:
    """The port and so many places on it."""
    fd = make_table(count)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as sock:
        found = [Place(slot, sock, fd) for slot in range(1, count + 1)]
        try:
            for place in found if opened else ():
                await place.listener.open(place.sock)
            yield sock.getsockname()[1], found
        finally:
            for place in found:
                await place.close()
            os.close(fd)


@pytest.mark.parametrize("count", [2, 4])
def test_a_burst_of_connections_is_shared_out_evenly(run: Run, count: int) -> None:
    async def body() -> None:
        async with places(count) as (port, found):
            clients = await asyncio.gather(
                *(RawClient.connect("127.0.0.1", port) for _ in range(20 * count))
            )
            await until(lambda: sum(place.held for place in found) == 20 * count)
            held = [place.held for place in found]
            assert max(held) - min(held) <= HEAD_START + 1
            for client in clients:
                await client.close()
            await until(lambda: sum(place.held for place in found) == 0)

    run(body())


def test_one_that_comes_later_gets_the_new_ones_until_it_has_as_many(run: Run) -> None:
    async def body() -> None:
        async with places(2, opened=False) as (port, (first, second)):
            await first.listener.open(first.sock)
            clients = [await RawClient.connect("127.0.0.1", port) for _ in range(10)]
            await until(lambda: first.held == 10)
            await second.listener.open(second.sock)
            clients += [await RawClient.connect("127.0.0.1", port) for _ in range(8)]
            await until(lambda: first.held + second.held == 18)
            assert second.held >= 7
            for client in clients:
                await client.close()

    run(body())


def test_one_that_does_not_accept_is_in_nobody_s_way_for_long(run: Run) -> None:
    async def body() -> None:
        fd = make_table(2)
        hanging = Table(fd)
        Seat(hanging, 2).hold(0)  # it says that it has room, and never takes any
        with socket.create_server(("127.0.0.1", 0)) as sock:
            place = Place(1, sock, fd)
            await place.listener.open(place.sock)
            clients = []
            for number in range(1, 9):
                clients.append(await RawClient.connect("127.0.0.1", sock.getsockname()[1]))
                assert (await clients[-1].ask("GET", "/")).body == b"1"
                assert place.held == number
            for client in clients:
                await client.close()
            await place.close()
        hanging.close()
        os.close(fd)

    run(body())


def test_whoever_waits_in_the_queue_at_the_end_is_served_and_nobody_after(run: Run) -> None:
    async def body() -> None:
        async with places(2, opened=False) as (port, found):
            waiting = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(6)]
            for sock in waiting:
                sock.sendall(request_bytes("GET", "/"))
            for place in found:
                await place.listener.open(place.sock)
            for place in found:
                place.listener.stop()
            for place in found:
                await asyncio.wait_for(place.listener.met(), 30)
                await place.listener.quiet()
            answers = [await asyncio.to_thread(sock.recv, 4096) for sock in waiting]
            assert [b" 200 OK" in each for each in answers] == [True] * 6
            assert all(b"connection: close" in each.lower() for each in answers)
            for sock in waiting:
                sock.close()

    run(body())


class Exhausted:
    """A listening socket of a process without a free descriptor, until `left` accepts failed."""

    def __init__(self, sock: socket.socket, left: int) -> None:
        self._sock, self.left, self.asked = sock, left, 0

    def fileno(self) -> int:
        return self._sock.fileno()

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - as a socket has it
        self._sock.setblocking(flag)

    def accept(self) -> Any:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._sock.accept()

    def close(self) -> None:
        self._sock.close()


@pytest.mark.full
def test_without_a_free_descriptor_it_waits_says_so_and_does_not_spin(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        fd = make_table(1)
        table = Table(fd)
        came: list[socket.socket] = []

        async def connect(sock: socket.socket) -> None:
            came.append(sock)

        listening = socket.create_server(("127.0.0.1", 0))
        sock: Any = Exhausted(listening, left=1)
        acceptor = Acceptor(sock, Seat(table, 1), connect=connect, held=lambda: len(came))
        acceptor.open()
        with socket.create_connection(listening.getsockname()):
            await until(lambda: len(came) == 1)
            assert sock.asked == 2
            came[0].close()
        acceptor.close()
        acceptor.close()
        table.close()
        os.close(fd)

    with caplog.at_level(logging.WARNING):
        run(body())
    (line,) = [record for record in caplog.records if record.msg == "accept_failed"]
    assert vars(line)["problem"] == "Too many open files"
