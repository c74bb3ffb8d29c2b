"""A wall clock that steps gives no free quota, locks nobody out, and is said.

R10 of the requirements: back an hour and forward an hour.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.chat_upstreams import answers, completion
from tests.app.chat_world import ChatWorld, run
from tidegate.config import load_config_text
from tidegate.gateway.app import Gateway
from tidegate.limits import MemoryLedger, SQLiteLedger
from tidegate.limits.ledger import Ledger, Limit
from tidegate.testing.asgi import ASGIClient
from tidegate.testing.clock import ManualClock

HELLO = answers(completion("hello"))
TWO = Limit("two", "requests", 2)
HOUR_S = 3600.0


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_an_hours_step_neither_refills_a_limit_nor_locks_it(
    kind: str, step_s: float, tmp_path: Path
) -> None:
    async def body() -> None:
        clock = ManualClock()
        ledger: Ledger = MemoryLedger(clock)
        if kind == "sqlite":
            ledger = SQLiteLedger(tmp_path / "books.db", clock, wait_s=5.0)
        await ledger.open()
        world = ChatWorld(clock=clock, ledger=ledger, primary=HELLO, limits=(TWO,))
        assert [(await world.post()).status for _ in range(3)] == [200, 200, 429]
        assert ledger.clock_ahead_s == 0.0
        clock.step(step_s)
        refused = await world.post()
        assert refused.status == 429
        assert ledger.clock_ahead_s == pytest.approx(step_s)
        # The time of the refusal is as true as before the step.
        clock.advance(int(refused.header("retry-after-ms") or 0) / 1000)
        assert (await world.post()).status == 200
        clock.step(-step_s)
        await world.post()
        assert ledger.clock_ahead_s == 0.0
        await world.assert_clean(ends=6)
        await ledger.close()

    run(body())


def test_the_admin_listener_says_so_and_the_gateway_stays_ready(tmp_path: Path) -> None:
    config = load_config_text(
        "identity: { anonymous: { principal: p, tenant: t } }\n"
        "store: { url: 'memory:' }\n"
        f"records: {{ path: {tmp_path / 'records.db'} }}\n",
        {},
    )
    clock = ManualClock()

    async def said(gateway: Gateway) -> tuple[int, Any, bytes]:
        admin = ASGIClient(gateway.admin)
        ready = await admin.request("GET", "/readyz")
        metrics = (await admin.request("GET", "/metrics")).body
        (line,) = (
            line for line in metrics.splitlines() if line.startswith(b"tidegate_wall_clock_ahead")
        )
        return ready.status, json.loads(ready.body), line.split(b" ")[1]

    async def body() -> None:
        gateway = Gateway(config, clock=clock)
        await gateway.open()
        status, ready, gauge = await said(gateway)
        assert (status, ready["reasons"], gauge) == (200, [], b"0.0")
        clock.step(-HOUR_S)
        status, ready, gauge = await said(gateway)
        assert (status, ready["reasons"], gauge) == (200, ["wall_clock_stepped"], b"-3600.0")
        assert ready["clock"] == {"ahead_s": -3600.0}
        await gateway.close()

    asyncio.run(body())
