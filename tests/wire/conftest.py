"""Every wire test that asks for `run` runs once on each event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

Run = Callable[[Coroutine[Any, Any, None]], None]

LONGEST_S = 150.0
"""No test may wait for ever, whatever it waits for."""


# The fast tier runs on the loop that serves.
@pytest.fixture(
    params=[
        pytest.param(asyncio.new_event_loop, id="asyncio", marks=pytest.mark.full),
        pytest.param(uvloop.new_event_loop, id="uvloop"),
    ]
)
def run(request: pytest.FixtureRequest) -> Run:
    def runner(body: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(LONGEST_S):
                await body

        with asyncio.Runner(loop_factory=request.param) as loop:
            loop.run(bounded())

    return runner
