"""An attempt that is given up while its connection is made: which descriptors does that close?"""

import asyncio
import gc
import socket
from typing import cast

import pytest

from tests.wire.attempts import Log, post, turns, world
from tests.wire.conftest import Run
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import steps
from tidegate.transport import UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport
from tidegate.transport.connecting import connecting, make_socket

MOST_TURNS = 12


def assert_that_new_sockets_stay_open() -> None:
    """They get the lowest free numbers: those that were closed last."""
    pairs = [socket.socketpair() for _ in range(8)]
    # Whoever still believes to own one of those numbers closes it now.
    gc.collect(1)
    for left, right in pairs:
        right.settimeout(WAIT_S)
        left.send(b"x")
        assert right.recv(1) == b"x"
        left.close()
        right.close()


def test_giving_up_at_any_moment_of_a_connection_closes_nobody_elses(run: Run) -> None:
    """MagicStack/uvloop #738: a descriptor closed twice, the second time somebody else's."""

    async def body() -> None:
        async with world(steps(asyncio.Event())) as (transport, upstream):
            for count in range(MOST_TURNS):
                attempt = transport.start(post(upstream), Log(), connect_s=WAIT_S)
                if count == MOST_TURNS - 1:
                    await upstream.until(lambda: len(upstream.requests) > 0)
                await turns(count)
                attempt.abort()
                await turns(MOST_TURNS)
                assert_that_new_sockets_stay_open()
                await upstream.until(lambda: upstream.open_connections == 0)
                assert transport.open_connections == 0
            # Some were given up before anything was sent, some after.
            assert 0 < len(upstream.requests) < MOST_TURNS

    run(body())


@pytest.mark.parametrize("when", ["early", "late"])
def test_nor_does_a_handshake_that_does_not_end(run: Run, when: str) -> None:
    async def body() -> None:
        held: set[asyncio.BaseProtocol] = set()

        class Held(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast("asyncio.Transport", transport)
                held.add(self)

            def connection_lost(self, exc: Exception | None) -> None:
                held.discard(self)

        server = await asyncio.get_running_loop().create_server(Held, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = AiohttpTransport()
        await transport.open()
        request = UpstreamRequest("GET", f"https://127.0.0.1:{port}/")
        attempt = transport.start(request, Log(), connect_s=WAIT_S)
        async with asyncio.timeout(WAIT_S):
            while not held:
                await turns(1)
            await turns(0 if when == "early" else 30)
            attempt.abort()
            while held:
                await turns(1)
        assert_that_new_sockets_stay_open()
        assert transport.open_connections == 0
        await transport.close()
        server.close()

    run(body())


def test_what_is_closed_already_stays_as_it_is() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        made = make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9)))
        with pytest.raises(OSError, match="gone"), connecting(loop):  # noqa: PT012
            inner = make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9)))
            inner.close()
            raise OSError("gone")
        assert (made.fileno() > 0, inner.fileno()) == (True, -1)
        made.close()

    asyncio.run(body())
