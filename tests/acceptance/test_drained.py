"""What happens to running and new requests on SIGTERM, and is anything owed afterwards?"""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import HOST, serving, started
from tests.acceptance.worlds import (
    Upstream,
    begin,
    call,
    chat,
    code,
    configuration,
    scripted,
    write,
)
from tidegate.sse import Decoder
from tidegate.testing.scripted import ScriptedUpstream
from tidegate.testing.sockets import RawClient


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


def test_sigterm_under_load_ends_everything_honestly_and_owes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, file(server, 1.0))
            async with serving(tmp_path) as gateway:
                patient, endless = await begin(gateway), await begin(gateway, "stuck")
                await gateway.client()
                waiting = [asyncio.ensure_future(chat(gateway, "silent")) for _ in range(5)]
                calling = asyncio.ensure_future(call(gateway, "hang"))
                await server.until(lambda: upstream.begun["silent"] == 5)
                await server.until(lambda: upstream.begun["hang"] == 1)
                await chat(gateway)

                gateway.signal(signal.SIGTERM)
                assert (await gateway.event("draining"))["running"] >= 8
                with pytest.raises(ConnectionRefusedError):
                    await RawClient.connect(HOST, gateway.port)
                ready = await gateway.admin("/readyz")
                assert (ready.status, json.loads(ready.body)["draining"]) == (503, True)

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
                assert "error" in json.loads((await calling).body)
                assert await gateway.ended() == 0
        assert owed(tmp_path) == (0, 0)

    asyncio.run(body())


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
