"""What do clients cost that crawl, stop in the middle, or do not read?"""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.processes import Running, serving
from tests.acceptance.worlds import (
    CHAT,
    DONE,
    Upstream,
    begin,
    chat,
    chat_body,
    configuration,
    event,
    explained,
    headers,
    scripted,
    write,
)
from tidegate.testing.scripted import (
    STREAM_HEAD,
    ScriptedUpstream,
    UpstreamExchange,
    chunk_bytes,
)
from tidegate.testing.sockets import request_bytes

SLOW = 200
FLOOD_BYTES = 52_000_000
MOST_GROWTH_MB = 32.0
"""Buffers of two streams, and room for an allocator that gives nothing back."""
_PIECE = event("The quick brown fox jumps over the lazy dog. " * 400)


class Flood:
    """Streams `FLOOD_BYTES` to whoever reads. `stalled`: no reader took a piece for a while."""

    def __init__(self) -> None:
        self.sent = 0
        self.gone = self.finished = False
        self.stalled = asyncio.Event()

    async def __call__(self, exchange: UpstreamExchange) -> None:
        try:
            await exchange.send(STREAM_HEAD + chunk_bytes(event("go ")))
            while self.sent < FLOOD_BYTES:
                self.sent += len(_PIECE)
                await self._send(exchange, chunk_bytes(_PIECE))
            end = event(finish="stop") + DONE
            await self._send(exchange, chunk_bytes(end) + chunk_bytes(b""))
            self.finished = True
        except ConnectionError:
            self.gone = True

    async def _send(self, exchange: UpstreamExchange, data: bytes) -> None:
        sending = asyncio.ensure_future(exchange.send(data))
        _, late = await asyncio.wait((sending,), timeout=1.0)
        if late:
            self.stalled.set()
        await sending
        if exchange.gone.is_set():
            raise ConnectionResetError


class Floods:
    """A flood for each request."""

    def __init__(self) -> None:
        self.all: list[Flood] = []

    async def __call__(self, exchange: UpstreamExchange) -> None:
        self.all.append(Flood())
        await self.all[-1](exchange)


def memory_mb(gateway: Running, field: str) -> float:
    """VmRSS (now) or VmHWM (at most, so far)."""
    for line in Path(f"/proc/{gateway.pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    pytest.skip("this system does not tell the memory of a process")


@pytest.mark.full
def test_two_hundred_slow_clients_do_not_hold_up_a_fast_one(tmp_path: Path) -> None:
    async def body() -> None:
        whole = request_bytes("POST", CHAT, headers=headers(), body=chat_body())
        async with scripted(Upstream()) as server:
            # The slow ones are not to be cut by their timers before the fast one has been served.
            caps = {"header_timeout_s": 120.0, "body_idle_s": 120.0}
            section = {"port": 0, "admin": {"port": 0}, "caps": caps}
            write(tmp_path, configuration(server.url, server=section))
            async with serving(tmp_path) as gateway:
                slow = [await gateway.client() for _ in range(SLOW)]
                for number, client in enumerate(slow):
                    await client.send(whole[: 30 if number % 2 else -10])
                for _ in range(20):
                    assert (await chat(gateway)).status == 200
                assert not any(client.reader.at_eof() for client in slow)
                # They were not forgotten either: each is served once it goes on.
                for number, client in enumerate(slow[:20]):
                    await client.send(whole[30 if number % 2 else -10 :])
                    assert (await client.answer()).status == 200
                for client in slow:
                    client.abort()

    asyncio.run(body())


@pytest.mark.full
def test_a_reader_that_stops_costs_no_memory_and_is_cut_in_the_end(tmp_path: Path) -> None:
    async def body() -> None:
        floods = Floods()
        async with ScriptedUpstream(floods) as server:
            caps = {"write_stall_s": 6.0}
            tree = configuration(server.url, server={"port": 0, "admin": {"port": 0}, "caps": caps})
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                warm = await begin(gateway, "warm")
                warm.client.abort()
                before_mb = memory_mb(gateway, "VmRSS")
                stopped = await begin(gateway, "stopped", receive_buffer_bytes=65_536)
                async with asyncio.timeout(60.0):
                    await floods.all[1].stalled.wait()
                assert not floods.all[1].finished

                reading = await begin(gateway, "reading")
                read = len(reading.received)
                tail = b""
                while piece := await reading.client.chunk():
                    read, tail = read + len(piece), piece[-100:]
                assert floods.all[2].finished
                assert read > FLOOD_BYTES
                assert tail.endswith(DONE)
                assert memory_mb(gateway, "VmHWM") - before_mb < MOST_GROWTH_MB

                await server.until(lambda: floods.all[1].gone)
                assert not (await stopped.rest()).endswith(DONE)
        assert "cancelled" in explained(tmp_path, stopped.request_id)

    asyncio.run(body())
