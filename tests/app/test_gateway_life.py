"""The gateway as one object: opened and closed by a server, put under another configuration."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Config, ConfigInvalid, load_config_text
from tidegate.gateway import create_app
from tidegate.gateway.app import CHAT_PATH, Gateway
from tidegate.testing.asgi import ASGIClient

JSON = ("content-type", "application/json")
ASK = b'{"messages":[{"role":"user","content":"x"}]}'


def configured(folder: Path, *, port: int = 8080, path: str = "/mcp", records: str = "") -> Config:
    return load_config_text(
        "identity: { anonymous: { principal: p, tenant: t, roles: [tenant] } }\n"
        f"server: {{ port: {port} }}\n"
        f"mcp: {{ path: {path} }}\n"
        "store: { url: 'memory:' }\n"
        f"records: {{ path: {records or folder / 'records.db'} }}\n",
        {},
    )


async def lifespan(gateway: Gateway) -> list[dict[str, Any]]:
    """What a server is told that opens the application and closes it again."""
    told: list[dict[str, Any]] = []
    questions = iter(({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))

    async def receive() -> Any:
        return next(questions)

    async def send(message: Any) -> None:
        told.append(message)

    await gateway({"type": "lifespan"}, receive, send)
    return told


def test_a_server_that_speaks_lifespan_opens_and_closes_it(tmp_path: Path) -> None:
    async def body() -> None:
        gateway = create_app(configured(tmp_path))
        assert await lifespan(gateway) == [
            {"type": "lifespan.startup.complete"},
            {"type": "lifespan.shutdown.complete"},
        ]

    asyncio.run(body())


def test_a_server_is_told_that_a_store_does_not_open_and_does_not_serve(tmp_path: Path) -> None:
    """An exception instead means to some servers that lifespan is not spoken here: they go on."""

    async def body() -> None:
        gateway = create_app(configured(tmp_path, records=str(tmp_path / "no" / "records.db")))
        (told,) = await lifespan(gateway)
        assert told["type"] == "lifespan.startup.failed"
        assert "records.path" in told["message"]
        assert told["message"].endswith("no/records.db: the directory does not exist")

    asyncio.run(body())


def test_what_only_a_restart_takes_over_is_said_until_there_is_one(tmp_path: Path) -> None:
    async def body() -> None:
        gateway = create_app(configured(tmp_path))
        assert gateway.reload(configured(tmp_path, port=8090)) == ("server",)
        # Not compared with the last file but with what the process began with.
        assert gateway.reload(configured(tmp_path, port=8090, path="/tools")) == ("server",)
        assert gateway.reload(configured(tmp_path)) == ()

    asyncio.run(body())


@pytest.mark.parametrize("running", [False, True])
def test_a_reload_switches_the_demo_neither_on_nor_off(tmp_path: Path, *, running: bool) -> None:
    own, demo = configured(tmp_path), load_config_text("store: { url: 'memory:' }\ndemo: true", {})
    inforce, other = (demo, own) if running else (own, demo)

    async def body() -> None:
        gateway = create_app(inforce)
        with pytest.raises(ConfigInvalid) as caught:
            gateway.reload(other)
        (problem,) = caught.value.problems
        assert "demo" in problem.path
        assert "restart" in problem.right
        assert gateway.config is inforce
        assert gateway.readiness.revision == inforce.revision

    asyncio.run(body())


def with_provider(folder: Path, name: str) -> Config:
    return load_config_text(
        "identity: { anonymous: { principal: p, tenant: t, roles: [tenant] } }\n"
        "store: { url: 'memory:' }\n"
        f"records: {{ path: {folder / 'records.db'} }}\n"
        # Nobody listens on port 9.
        f"providers: {{ {name}: {{ base_url: 'http://127.0.0.1:9/v1', credentials: [k] }} }}\n"
        f"routes: [{{ name: all, candidates: [{{ provider: {name} }}] }}]\n",
        {},
    )


def test_a_provider_that_a_reload_took_away_is_forgotten(tmp_path: Path) -> None:
    async def body() -> None:
        gateway = create_app(with_provider(tmp_path, "former"))
        await gateway.open()
        client = ASGIClient(gateway)
        ask = {"method": "POST", "target": CHAT_PATH.decode(), "body": ASK}
        assert (await client.request(**ask, headers=[JSON])).status == 502
        assert b'breaker_state{provider="former"}' in gateway.metrics.render()[1]
        gateway.reload(with_provider(tmp_path, "latter"))
        assert (await client.request(**ask, headers=[JSON])).status == 502
        shown = gateway.metrics.render()[1]
        assert b'breaker_state{provider="latter"}' in shown
        assert b'breaker_state{provider="former"}' not in shown
        await gateway.close()

    asyncio.run(body())


def test_what_fails_at_the_end_does_not_keep_the_rest_from_ending(tmp_path: Path) -> None:
    async def body() -> None:
        gateway = create_app(configured(tmp_path))
        await gateway.open()
        close = gateway._transport.close

        async def failing() -> None:
            await close()
            raise RuntimeError

        gateway._transport.close = failing  # type: ignore[method-assign]
        with pytest.raises(RuntimeError):
            await gateway.close()
        with closing(sqlite3.connect(tmp_path / "records.db")) as records:
            ((ended_ms,),) = records.execute("SELECT ended_ms FROM boots").fetchall()
        assert ended_ms is not None

    asyncio.run(body())
