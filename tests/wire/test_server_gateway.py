"""The whole gateway between two sockets: when bytes move, and who feels whom leave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import Scene, listening
from tidegate.config import load_config_text
from tidegate.gateway import create_app
from tidegate.testing.scripted import (
    STREAM_HEAD,
    Script,
    ScriptedUpstream,
    UpstreamExchange,
    chunk_bytes,
    steps,
)
from tidegate.testing.sockets import RawClient, request_bytes

CHAT = "/v1/chat/completions"
ASK = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'


def event(text: str) -> bytes:
    delta = f'{{"index":0,"delta":{{"content":"{text}"}}}}'
    return f'data: {{"id":"1","object":"chat.completion.chunk","choices":[{delta}]}}\n\n'.encode()


@asynccontextmanager
async def world(folder: Path, *scripts: Script) -> AsyncIterator[tuple[Scene, ScriptedUpstream]]:
    async with ScriptedUpstream(*scripts) as upstream:
        config = load_config_text(
            "identity: { anonymous: { principal: p, tenant: t, roles: [tenant] } }\n"
            "store: { url: 'memory:' }\n"
            f"records: {{ path: {folder / 'records.db'} }}\n"
            f"providers: {{ primary: {{ base_url: {upstream.url}/v1, credentials: [k] }} }}\n"
            "routes: [{ name: all, candidates: [{ provider: primary }] }]\n",
            {},
        )
        gateway = create_app(config)
        await gateway.open()
        try:
            async with listening(gateway) as scene:
                yield scene, upstream
        finally:
            await gateway.close()


async def ask(client: RawClient) -> None:
    json_type = [("Content-Type", "application/json")]
    await client.send(request_bytes("POST", CHAT, headers=json_type, body=ASK))


def test_content_leaves_before_its_upstream_has_written_the_rest(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        rest = asyncio.Event()
        script = steps(
            STREAM_HEAD, chunk_bytes(event("the first half, ")), rest, chunk_bytes(event("end"))
        )
        async with world(tmp_path, script) as (scene, upstream), await scene.client() as client:
            await ask(client)
            assert (await client.head()).status == 200
            assert b"the first half" in await client.chunk()
            assert upstream.open_connections == 1
            rest.set()

    run(body())


@pytest.mark.parametrize("when", ["before_the_head", "in_the_stream"])
@pytest.mark.parametrize("way", ["close", "reset"])
def test_a_client_that_leaves_closes_the_upstream_at_once(
    run: Run, tmp_path: Path, when: str, way: str
) -> None:
    async def body() -> None:
        first = () if when == "before_the_head" else (STREAM_HEAD, chunk_bytes(event("hello, a ")))
        script = steps(*first, asyncio.Event())
        async with world(tmp_path, script) as (scene, upstream), await scene.client() as client:
            await ask(client)
            await upstream.until(lambda: len(upstream.requests) == 1)
            if when == "in_the_stream":
                await client.head()
                await client.chunk()
            if way == "reset":
                client.abort()
            else:
                await client.close()
            await upstream.until(lambda: upstream.open_connections == 0)
            await scene.until(lambda: scene.listener.running == 0)

    run(body())


def test_a_slow_reader_is_felt_by_the_upstream(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        exchanges: list[UpstreamExchange] = []
        piece = chunk_bytes(event("word " * 10_000))

        async def flood(exchange: UpstreamExchange) -> None:
            exchanges.append(exchange)
            await exchange.send(STREAM_HEAD)
            while not exchange.gone.is_set():
                await exchange.send(piece)

        async with world(tmp_path, flood) as (scene, upstream):
            client = await scene.client(receive_buffer_bytes=4_096)
            await ask(client)
            await client.head()
            (connection,) = scene.listener.connections
            # Everything is full now, from the client's window back to the upstream's buffer.
            await scene.until(lambda: exchanges[0].unsent_bytes() > 0 and _rests(exchanges[0]))
            assert connection.transport.get_write_buffer_size() < 1_000_000
            client.abort()
            await upstream.until(lambda: upstream.open_connections == 0)

    run(body())


def _rests(exchange: UpstreamExchange) -> bool:
    """Whether the upstream's own buffer is above its mark, so that its script waits."""
    return exchange.unsent_bytes() >= 65_536
