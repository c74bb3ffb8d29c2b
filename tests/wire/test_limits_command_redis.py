"""`tidegate limits` reads the books of a Redis that gateways share, and joins no fleet."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from tests.redis_server import need_redis, redis_server
from tidegate.cli import run
from tidegate.clock import SystemClock
from tidegate.config import load_config, values
from tidegate.limits.ledger import Need
from tidegate.limits.redis import RedisLedger

LIMITS = [{"name": "per-minute", "tokens": 1000}, {"name": "slots", "concurrent": 3}]


def written(folder: Path, url: str) -> Path:
    tree = {
        "store": {"url": url},
        "identity": {"keys": [{"sha256": "0" * 64, "principal": "vera", "tenant": "acme"}]},
        "limits": LIMITS,
        "providers": {"primary": {"base_url": "http://127.0.0.1:1/v1"}},
    }
    path = folder / "tidegate.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


async def used(path: Path, url: str) -> None:
    config = load_config(path, {})
    table = values.limit_table(config)
    (vera,) = values.callers(config)
    ledger = RedisLedger(url, SystemClock(), deadline_s=5.0)
    await ledger.open()
    for number in range(2):
        owed = table.charges(vera, route="default", need=Need(10, 90))
        await ledger.reserve(f"r{number}", "me", owed, lease_s=600.0)
    await ledger.settle("r0", "me", Need(12, 131))
    await ledger.close()


def everything(url: str) -> dict[bytes, Any]:
    with redis.Redis.from_url(url) as client:
        return {key: client.dump(key) for key in client.scan_iter()}


def test_the_books_are_read_and_stay_as_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_redis()
    with redis_server(tmp_path) as server:
        path = written(tmp_path, server.url)
        asyncio.run(used(path, server.url))
        before = everything(server.url)
        assert run(["limits", "acme", "--config", str(path), "--json"]) == 0
        found = {row["limit"]: row for row in json.loads(capsys.readouterr().out)["limits"]}
        assert everything(server.url) == before
    figures = ("used", "reserved", "free", "overrun")
    assert [found["per-minute"][name] for name in figures] == [143, 100, 757, 43]
    assert [found["slots"][name] for name in figures] == [0, 1, 2, 0]
    assert run(["limits", "--config", str(path)]) == 1
    assert "cannot be read" in capsys.readouterr().err
