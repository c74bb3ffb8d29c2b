"""Whoever the kernel has connected before the gateway stops accepting is served."""

import asyncio
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import answer, turn
from tidegate.gateway.closing_time import let_no_one_begin, those_who_wait
from tidegate.gateway.listener import Listener, WireCaps
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import request_bytes


def test_those_who_wait_when_a_listener_stops_are_answered(run: Run) -> None:
    async def hello(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, b"hello")

    async def body() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listener = Listener(hello, WireCaps())
        await listener.open(listening)
        with ExitStack() as stack:
            address = listening.getsockname()
            # The loop has no turn in between: all of them wait in the queue of the kernel.
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(20)]
            listener.stop()
            with pytest.raises((ConnectionRefusedError, TimeoutError)):
                stack.enter_context(socket.create_connection(address, 0.01))
            for client in clients:
                client.sendall(request_bytes("GET", "/"))
                client.setblocking(False)
            async with asyncio.timeout(WAIT_S):
                await listener.met()
                for client in clients:
                    while not (got := came(client)):
                        await turn()
                    assert got.startswith(b"HTTP/1.1 200 ")
        await listener.close()

    run(body())


def came(client: socket.socket) -> bytes:
    try:
        return client.recv(4_096)
    except BlockingIOError:
        return b""


@pytest.mark.skipif("sys.platform != 'linux'", reason="only Linux can be told")
def test_no_handshake_begins_any_more_and_those_that_stand_go_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        with socket.create_connection(listening.getsockname()) as early, socket.socket() as late:
            let_no_one_begin(listening)
            late.settimeout(0.05)
            with pytest.raises(TimeoutError):
                late.connect(listening.getsockname())
            (accepted,) = those_who_wait(listening)
            with accepted:
                early.sendall(b"still")
                accepted.setblocking(True)
                assert accepted.recv(10) == b"still"
    let_no_one_begin(listening)  # closed by now, and nothing happens
