"""Every wire test that asks for `run` runs once on each event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

Run = Callable[[Coroutine[Any, Any, None]], None]

LONGEST_S = 150.0
"""No test may wait for ever, whatever it waits for."""


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def runner(body: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(LONGEST_S):
                await body

        with asyncio.Runner(loop_factory=request.param) as loop:
            loop.run(bounded())

    return runner
