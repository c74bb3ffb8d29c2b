"""What happens to running and new requests on SIGTERM, and is anything owed afterwards?"""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import HOST, Running, serving, started
from tests.acceptance.worlds import (
    CHAT,
    KEY,
    Stream,
    Upstream,
    begin,
    call,
    chat,
    chat_body,
    code,
    configuration,
    headers,
    scripted,
    write,
)
from tidegate.sse import Decoder
from tidegate.testing.scripted import ScriptedUpstream
from tidegate.testing.sockets import Answer, RawClient, request_bytes


def file(upstream: ScriptedUpstream, drain_s: float) -> dict[str, Any]:
    return configuration(
        upstream.url,
        server={"port": 0, "admin": {"port": 0}, "drain_s": drain_s},
        limits=[{"name": "t", "match": {"tenants": ["*"]}, "per": "tenant", "tokens": 100_000}],
    )


def events(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream, without [DONE]."""
    found = Decoder(1 << 20).feed(body)
    return [json.loads(event.data) for event in found if event.data != b"[DONE]"]


def owed(folder: Path) -> tuple[int, int]:
    """Reservations and requests that are still open in the files."""
    counts = []
    for name, table in (("ledger.db", "limit_reservations"), ("records.db", "open_requests")):
        with closing(sqlite3.connect(folder / name)) as database:
            counts += database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    return counts[0], counts[1]


async def begin_report(gateway: Running) -> Stream:
    """A tool call whose answer is a stream that has begun."""
    params = {"name": "endless", "arguments": {}, "_meta": {"progressToken": "t"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    accept = ("Accept", "application/json, text/event-stream")
    client = await gateway.client()
    given = headers(KEY, accept)
    await client.send(request_bytes("POST", "/mcp", headers=given, body=body.encode()))
    return Stream(client, await client.head(), await client.chunk())


async def tools_are_cut(reporting: Stream, calling: "asyncio.Future[Answer]") -> None:
    """Both calls got an error of their own protocol: one as its answer, one in its stream."""
    (error,) = [event for event in events(await reporting.rest()) if "error" in event]
    assert (error["jsonrpc"], error["id"]) == ("2.0", 7)
    answered = json.loads((await calling).body)
    assert (answered["jsonrpc"], answered["id"]) == ("2.0", 1)
    assert set(answered["error"]) >= {"code", "message"}


@pytest.mark.full
def test_sigterm_under_load_ends_everything_honestly_and_owes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            # What is patient ends within this time; what is endless takes all of it.
            write(tmp_path, file(server, 5.0))
            async with serving(tmp_path) as gateway:
                patient, endless = await begin(gateway), await begin(gateway, "stuck")
                idle = await gateway.client()
                chatting = {"headers": headers(), "body": chat_body()}
                assert (await idle.ask("POST", CHAT, **chatting)).status == 200
                waiting = [asyncio.ensure_future(chat(gateway, "silent")) for _ in range(5)]
                reporting = await begin_report(gateway)
                calling = asyncio.ensure_future(call(gateway, "hang"))
                await server.until(lambda: upstream.begun["silent"] == 5)
                await server.until(lambda: upstream.begun["hang"] == 1)

                gateway.signal(signal.SIGTERM)
                assert (await gateway.event("draining"))["running"] >= 9
                with pytest.raises(ConnectionRefusedError):
                    await RawClient.connect(HOST, gateway.port)
                ready = await gateway.admin("/readyz")
                assert (ready.status, json.loads(ready.body)["draining"]) == (503, True)

                # Who has a connection cannot know: what it asks is served, and is its last.
                last = await idle.ask("POST", CHAT, **chatting)
                assert (last.status, last.header("connection")) == (200, "close")

                upstream.release.set()
                whole = await patient.rest()
                assert whole.endswith(b"data: [DONE]\n\n")
                assert "error" not in events(whole)[-1]

                await gateway.event("drain_limit_reached")
                cut = events(await endless.rest())
                assert b"[DONE]" not in endless.received
                assert ["error" in event for event in cut].count(True) == 1
                assert cut[-1]["error"]["code"] == "gateway.upstream_interrupted"
                for answer in await asyncio.gather(*waiting):
                    assert (answer.status, code(answer)) == (503, "gateway.overloaded")
                    assert answer.header("retry-after") is not None
                await tools_are_cut(reporting, calling)
                assert await gateway.ended() == 0
        assert owed(tmp_path) == (0, 0)

    asyncio.run(body())


@pytest.mark.full
def test_a_second_sigterm_ends_at_once_and_owes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            # Longer than any wait of this test: only the second signal can end the process.
            write(tmp_path, file(server, 600.0))
            async with started(tmp_path, "serve") as gateway:
                await gateway.ready()
                endless = await begin(gateway, "stuck")
                gateway.signal(signal.SIGTERM)
                await gateway.event("draining")
                gateway.signal(signal.SIGTERM)
                assert await gateway.ended() == 130
                assert b"[DONE]" not in await endless.rest()
        assert owed(tmp_path) == (0, 0)

    asyncio.run(body())
