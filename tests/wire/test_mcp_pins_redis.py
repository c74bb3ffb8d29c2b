"""Pins in Redis can be read and approved beside a running gateway."""

import asyncio
from pathlib import Path

import pytest

from tests.redis_server import redis_server
from tests.unit.cli.test_mcp_pins import FILES, approves, folder, keep_in, write_config
from tidegate.cli import run
from tidegate.mcp.pin_store_redis import RedisPins

__all__ = ["folder"]
pytestmark = pytest.mark.full


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
