"""Does a demo upstream really listen, fall back to a free port, and end with its block?"""

import asyncio
import socket
from contextlib import suppress

import pytest

from tests.unit.demo.chat import until
from tidegate.demo.leaky_provider import LeakyProvider
from tidegate.demo.listener import HOST, bind, listening, port_of
from tidegate.demo.providers import Providers
from tidegate.testing.asgi import WAIT_S


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request)
    try:
        async with asyncio.timeout(WAIT_S):
            return await reader.read()
    finally:
        writer.close()


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_a_taken_port_is_an_error_or_another_port_as_asked() -> None:
    with bind(0) as first:
        with pytest.raises(OSError, match="in use"):
            bind(port_of(first))
        with bind(port_of(first), fall_back=True) as second:
            assert port_of(second) not in (0, port_of(first))


def test_requests_are_served_over_a_socket_and_the_port_is_free_afterwards() -> None:
    async def body() -> int:
        async with listening(LeakyProvider(total_s=0.0), bind(0)) as port:
            answer = await ask(port, post("/v1/chat/completions", b"{}"))
            assert answer.startswith(b"HTTP/1.1 200")
            return port

    port = asyncio.run(body())
    with socket.socket() as probe:
        assert probe.connect_ex((HOST, port)) != 0


def test_a_cut_stream_lacks_its_last_chunk_on_the_wire() -> None:
    async def body() -> None:
        async with listening(Providers(), bind(0)) as port:
            await ask(port, post("/_set?provider=primary&behaviour=cut", b""))
            answer = await ask(port, post("/primary/v1/chat/completions", b'{"stream":true}'))
            assert b"Hello" in answer
            assert not answer.endswith(b"0\r\n\r\n")

    asyncio.run(body())


def test_leaving_the_block_ends_a_request_that_hangs() -> None:
    async def body() -> None:
        providers = Providers()
        async with listening(providers, bind(0)) as port:
            await ask(port, post("/_set?provider=primary&behaviour=hang", b""))
            hanging = asyncio.create_task(ask(port, post("/primary/v1/chat/completions", b"{}")))
            await until(lambda: providers.calls["primary"] == 1)
        with suppress(ConnectionError):
            assert await hanging == b""

    asyncio.run(body())
