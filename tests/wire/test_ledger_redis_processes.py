"""Several processes on one server: exactly the cap, and no error anywhere."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import opened
from tests.redis_server import redis_server
from tests.wire.ledger_children import child
from tests.wire.ledger_process import AMOUNT, SCOPE, limit
from tidegate.clock import SystemClock
from tidegate.limits.redis import RedisLedger


@pytest.mark.full
@pytest.mark.parametrize("count", [4, 8])
def test_processes_racing_one_server_admit_exactly_the_cap(tmp_path: Path, count: int) -> None:
    """maximhq/bifrost#3547: replicas must not multiply the cap."""
    cap, tries = 1_000, 60

    async def body(url: str) -> None:
        async with AsyncExitStack() as stack:
            racers = [
                await stack.enter_async_context(child("race", url, cap, tries, f"p{number}"))
                for number in range(count)
            ]
            assert [await racer.hears() for racer in racers] == ["ready"] * count
            for racer in racers:
                racer.go_on()
            counts = [json.loads(await racer.hears()) for racer in racers]
        assert sum(one["granted"] for one in counts) == cap // AMOUNT
        assert sum(one["granted"] + one["refused"] for one in counts) == count * tries
        async with opened(RedisLedger(url, SystemClock(), deadline_s=30.0)) as ledger:
            assert (await ledger.usage(limit(cap), SCOPE)).reserved == cap

    with redis_server(tmp_path) as server:
        asyncio.run(body(server.url))
