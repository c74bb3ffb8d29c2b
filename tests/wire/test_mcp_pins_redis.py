"""Pins in Redis can be read and approved beside a running gateway, which does not hang on it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.app.mcp_world import ask, call
from tests.app.pinned import Pinned
from tests.redis_server import redis_server
from tests.unit.cli.test_mcp_pins import FILES, approves, folder, keep_in, write_config
from tidegate.cli import run
from tidegate.mcp.pin_store_redis import RedisPins

__all__ = ["folder"]
pytestmark = pytest.mark.full
WAIT_S = 30.0
AT_ONCE = 40


@contextmanager
def silent() -> Iterator[str]:
    """The address of a store that takes every connection and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=AT_ONCE) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


def test_pins_in_redis_are_read_and_approved_alike(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = folder / "redis"
    data.mkdir()
    with redis_server(data) as server:
        write_config(folder, server.url)
        asyncio.run(keep_in(RedisPins(server.url), {"files": FILES}))
        assert run(["mcp", "pins"]) == 4
        assert approves("files/read") == 0
        assert "Approved: read" in capsys.readouterr().out
        assert run(["mcp", "pins"]) == 4
        assert "files   read   pinned" in capsys.readouterr().out
        server.kill()
        assert run(["mcp", "pins"]) == 1
        assert "nothing listens there" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [ask("tools/list"), call("read")], ids=["list", "call"])
def test_block_refuses_while_the_store_is_silent_and_nobody_waits_for_the_others(
    asked: object,
) -> None:
    async def body(url: str) -> None:
        world = Pinned(pin="block", store=RedisPins(url))
        async with asyncio.timeout(WAIT_S):
            answers = await asyncio.gather(*(world.post(asked) for _ in range(AT_ONCE)))
        assert {answer.status for answer in answers} == {503}
        outcomes = [trail.snapshot().outcome for trail in world.records.ends]
        assert outcomes == ["gateway.store_unavailable"] * AT_ONCE
        assert world.server.ran == []
        await world.pins.close()

    with silent() as url:
        asyncio.run(body(url))


def test_warn_passes_and_says_so_while_the_store_is_silent() -> None:
    async def body(url: str) -> None:
        world = Pinned(pin="warn", store=RedisPins(url))
        async with asyncio.timeout(WAIT_S):
            told = await asyncio.gather(*(world.calls("read") for _ in range(AT_ONCE)))
            listed = await asyncio.gather(*(world.listed() for _ in range(AT_ONCE)))
        assert told == ["done"] * AT_ONCE
        assert listed == [["read", "write"]] * AT_ONCE
        assert set(world.steps()) == {("warn", "pin_unchecked")}
        await world.pins.close()

    with silent() as url:
        asyncio.run(body(url))
