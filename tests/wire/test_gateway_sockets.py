"""What only sockets show: clients that vanish, clients that do not read, and what is left."""

import asyncio
import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.app.chat_upstreams import HELLO, ROLE, completion, delta, event, texts
from tests.app.test_chat_bodies import whole
from tests.wire.conftest import Run
from tests.wire.gateways import CHAT, JSON, KEYED, Served, chat, config_text, serving
from tidegate.testing.scripted import (
    STREAM_HEAD,
    ScriptedUpstream,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
    steps,
)
from tidegate.testing.sockets import RawClient, request_bytes

pytestmark = pytest.mark.full

HEADERS = [JSON, KEYED]
FIRST = ROLE + event(delta(content="Hello "))


def request(**fields: object) -> bytes:
    return request_bytes("POST", CHAT, headers=HEADERS, body=chat(**fields))


def ends(folder: Path) -> list[dict[str, Any]]:
    """The ends on record, once the gateway is closed."""
    with sqlite3.connect(f"file:{folder}/records.db?mode=ro", uri=True) as file:
        found = file.execute("select body from entries where kind = 'end' order by seq").fetchall()
    file.close()
    return [json.loads(row[0]) for row in found]


async def quiet(served: Served, upstream: ScriptedUpstream) -> None:
    """Until the gateway and its upstream have let go of each other."""
    await upstream.until(lambda: upstream.open_connections == 0)
    await served.scene.until(lambda: served.app.in_flight == 0)


@pytest.mark.parametrize("leave", ["reset", "close"])
@pytest.mark.parametrize("when", ["before the head", "mid-stream", "plain"])
def test_a_client_that_leaves_takes_its_upstream_with_it(
    run: Run, tmp_path: Path, when: str, leave: str
) -> None:
    async def body() -> None:
        never = asyncio.Event()
        parts = (STREAM_HEAD, chunk_bytes(FIRST)) if when == "mid-stream" else ()
        async with ScriptedUpstream(steps(*parts, never)) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1", backup=f"{upstream.url}/v1")
            async with serving(text) as served:
                client = await RawClient.connect("127.0.0.1", served.scene.port)
                await client.send(request(stream=when != "plain"))
                await upstream.until(lambda: len(upstream.requests) == 1)
                if when == "mid-stream":
                    assert (await client.head()).status == 200
                    assert await client.chunk()
                if leave == "reset":
                    client.abort()
                else:
                    await client.close()
                await quiet(served, upstream)
                assert len(upstream.requests) == 1
                assert served.metric("requests_total") == 1
        (end,) = ends(tmp_path)
        assert end["outcome"] == "cancelled"
        attempts = [step for step in end["steps"] if step["stage"] == "attempt"]
        assert [step["verdict"] for step in attempts] == ["cancelled"]
        (settled,) = [step for step in end["steps"] if step["verdict"] == "settle"]
        # It counts as a request whenever it was sent; tokens are paid for what was delivered.
        tokens = settled["values"]["input_tokens"] + settled["values"]["output_tokens"]
        assert (tokens > 0) == (when == "mid-stream")

    run(body())


def test_one_that_does_not_read_is_felt_by_its_upstream_and_by_nobody_else(
    run: Run, tmp_path: Path
) -> None:
    async def body() -> None:
        piece = chunk_bytes(event(delta(content="word " * 2000)))
        sent = 0

        async def hose(exchange: UpstreamExchange) -> None:
            nonlocal sent
            await exchange.send(STREAM_HEAD + chunk_bytes(ROLE))
            with suppress(ConnectionError):
                for _ in range(3000):
                    await exchange.send(piece)
                    sent += len(piece)

        fast = whole(completion("hello"))
        async with ScriptedUpstream(hose, fast) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1")
            async with serving(text) as served:
                slow = await RawClient.connect(
                    "127.0.0.1", served.scene.port, receive_buffer_bytes=4096
                )
                await slow.send(request(stream=True))
                assert (await slow.head()).status == 200
                held = -1
                async with await served.scene.client() as other:
                    while held != sent or not sent:
                        held = sent
                        for _ in range(5):
                            answer = await other.ask("POST", CHAT, headers=HEADERS, body=chat())
                            assert answer.status == 200
                # 30 MB were ready; only what sockets and our own marks hold was taken.
                assert held < 15_000_000
                slow.abort()
                await served.scene.until(lambda: served.app.in_flight == 0)

    run(body())


def test_a_body_beyond_the_cap_is_413_and_the_client_can_read_it(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        text = config_text(tmp_path, server={"caps": {"llm_body_bytes": 100_000}})
        big = chat(user="x" * 2_000_000)
        framings = [
            request_bytes("POST", CHAT, headers=HEADERS, body=big),
            request_bytes("POST", CHAT, headers=[*HEADERS, ("Transfer-Encoding", "chunked")])
            + chunk_bytes(big)
            + chunk_bytes(b""),
        ]
        async with serving(text) as served:
            for data in framings:
                async with await served.scene.client() as client:
                    await client.send(data)
                    answer = await client.answer()
                    assert answer.status == 413
                    error = json.loads(answer.body)["error"]
                    assert error["code"] == "gateway.body_too_large"
                    assert error["request_id"] == answer.header("x-request-id")
            await served.scene.until(lambda: served.app.in_flight == 0)
        assert [end["outcome"] for end in ends(tmp_path)] == ["gateway.body_too_large"] * 2

    run(body())


def test_requests_on_one_connection_follow_each_other(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        stream = steps(STREAM_HEAD, chunk_bytes(HELLO), chunk_bytes(b""))
        scripts = [whole(completion("a")), stream, steps(answer_bytes(500)), whole(completion("b"))]
        async with ScriptedUpstream(*scripts) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1", backup=f"{upstream.url}/v1")
            async with serving(text) as served, await served.scene.client() as client:
                ask = client.ask
                first = await ask("POST", CHAT, headers=HEADERS, body=chat())
                second = await ask("POST", CHAT, headers=HEADERS, body=chat(stream=True))
                third = await ask("POST", CHAT, headers=HEADERS, body=chat())
                missing = await ask("GET", "/nowhere")
                assert [a.status for a in (first, second, third, missing)] == [200, 200, 200, 404]
                assert texts(second.body) == {0: "Hello"}
                assert third.header("x-tidegate-attempts") == "primary:server_error,backup:ok"
                # One connection to the upstream served all of it.
                assert upstream.connections == 1
        assert [end["outcome"] for end in ends(tmp_path)] == ["ok", "ok", "ok"]

    run(body())


def test_a_killed_drain_ends_a_stream_honestly(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        never = asyncio.Event()
        script = steps(STREAM_HEAD, chunk_bytes(FIRST), never)
        async with ScriptedUpstream(script) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1", backup=f"{upstream.url}/v1")
            async with serving(text) as served, await served.scene.client() as client:
                await client.send(request(stream=True))
                assert (await client.head()).status == 200
                seen = await client.chunk()
                served.app.cut()
                while piece := await client.chunk():
                    seen += piece
                assert b"gateway.upstream_interrupted" in seen
                assert b"[DONE]" not in seen
                async with await served.scene.client() as late:
                    answer = await late.ask("POST", CHAT, headers=HEADERS, body=chat())
                    assert answer.status == 503
                    assert json.loads(answer.body)["error"]["code"] == "gateway.overloaded"
                assert len(upstream.requests) == 1

    run(body())
