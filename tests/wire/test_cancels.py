"""Clients that leave, and deadlines that pass, at random points: what is held afterwards?

Over real sockets, against a whole gateway and an upstream that counts. BerriAI/litellm #37140 and
Portkey-AI/gateway (the upstream goes on when the client is gone), encode/httpcore #1093 (calls
that were cancelled keep their slot of the pool for ever).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.wire.cancel_plans import PLACES, plans
from tests.wire.cancels import Crowd, crowding
from tests.wire.crowd_upstream import turns
from tidegate.testing.asgi import WAIT_S

AT_ONCE = 32
A_ROUND = 500


async def visited(crowd: Crowd, seed: int, count: int) -> None:
    """Carry out the plans of one seed, `AT_ONCE` at a time."""
    waiting = plans(seed, count)[::-1]

    async def one_after_another() -> None:
        while waiting:
            plan = waiting.pop()
            try:
                await crowd.visit(plan)
            except BaseException as error:
                error.add_note(f"seed {seed}: {plan}")
                raise

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one_after_another())


async def rounds(folder: Path, seeds: Iterable[int], pool: int = 0) -> Counter[str]:
    """500 plans of every seed; after each seed all is as it was before. How the plans ended."""
    wrong: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
    async with crowding(folder) as crowd:
        # Ours has no bound: admission is the gateway's. One that has makes attempts wait for it.
        connector = crowd.app._transport._ways.pool
        connector._limit = pool
        await visited(crowd, 0, 16)
        before = await crowd.at_rest()
        for seed in seeds:
            await visited(crowd, seed, A_ROUND)
            assert await crowd.at_rest(before) == before, f"seed {seed}"
            assert (crowd.upstream.faults, crowd.trouble, wrong) == ([], [], []), f"seed {seed}"
            assert (len(connector._acquired), len(connector._waiters)) == (0, 0), f"seed {seed}"
        return crowd.ends


def places(ends: Counter[str]) -> set[str]:
    """Where the plans ended."""
    return {end.partition(":")[0] for end in ends}


@pytest.mark.full
def test_five_hundred_random_cancels_leave_everything_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "tidegate")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ends = runner.run(rounds(tmp_path, [1]))
    assert places(ends) == set(PLACES)
    assert [record.msg for record in caplog.records if record.name.startswith("tidegate")] == []


MANY: dict[str, tuple[Callable[[], asyncio.AbstractEventLoop], range, int]] = {
    "uvloop": (uvloop.new_event_loop, range(2, 12), 0),
    "asyncio": (asyncio.new_event_loop, range(12, 17), 0),
    "a pool at its limit": (uvloop.new_event_loop, range(17, 22), 8),
}


@pytest.mark.full
@pytest.mark.parametrize("case", MANY)
def test_ten_thousand_random_cancels_leave_everything_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    caplog.set_level(logging.ERROR, "tidegate")
    loop, seeds, pool = MANY[case]
    with asyncio.Runner(loop_factory=loop) as runner:
        ends = runner.run(rounds(tmp_path, seeds, pool))
    assert sum(ends.values()) == len(seeds) * A_ROUND + 16
    assert places(ends) == set(PLACES)
    assert [record.msg for record in caplog.records if record.name.startswith("tidegate")] == []


@pytest.mark.full
@pytest.mark.parametrize("seed", [22, 23, 24])
def test_nor_does_a_drain_that_cuts_answers_among_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """After the cut new requests are refused, and what runs ends; some clients leave even so."""
    caplog.set_level(logging.ERROR, "tidegate")

    async def body() -> None:
        async with crowding(tmp_path) as crowd:
            await visited(crowd, 0, 16)
            before = await crowd.at_rest()
            visits = asyncio.ensure_future(visited(crowd, seed, A_ROUND))
            async with asyncio.timeout(WAIT_S):
                while len(crowd.ends) < len(PLACES):
                    await turns(20)
            crowd.app.cut()
            await visits
            assert await crowd.at_rest(before) == before
            assert (crowd.upstream.faults, crowd.trouble) == ([], [])
            assert crowd.ends["waiting for the head: 503"] > 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(body())
    assert [record.msg for record in caplog.records if record.name.startswith("tidegate")] == []
