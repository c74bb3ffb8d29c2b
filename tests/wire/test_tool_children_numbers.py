"""Do the metrics say how the process of a server on stdio began and ended, and whether it is up?

Real processes; the server is nasty_tools.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.wire.stdio_servers import WAIT_S, call, place, until
from tidegate.clock import SystemClock
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.servers.child import EndReason
from tidegate.gateway.servers.children import ChildCarrier, Children, ChildSettings
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.watched import Watched
from tidegate.mcp.servers import ServerCommand

pytestmark = pytest.mark.full
Numbers = dict[str, dict[tuple[str, ...], float]]


def numbers(metrics: Metrics) -> Numbers:
    """What is told of servers on stdio, by name and values of labels."""
    return {
        family.name.removeprefix("tidegate_tool_server_"): {
            tuple(sample.labels.values()): sample.value for sample in family.samples
        }
        for family in metrics.collect()
        if family.name.startswith("tidegate_tool_server_")
    }


@asynccontextmanager
async def counted() -> AsyncIterator[tuple[Children, Metrics]]:
    metrics = Metrics()
    settings = ChildSettings(
        SystemClock(), chance=lambda: 0.0, search_path=os.environ["PATH"], metrics=metrics
    )
    children = Children(settings)
    metrics.watched = Watched(tool_processes=children.running)
    async with asyncio.timeout(WAIT_S):
        try:
            yield children, metrics
        finally:
            await children.close()


async def crash(carrier: ChildCarrier) -> None:
    with pytest.raises(ServerFailed, match="crashed"):
        await call(carrier, "die")


async def exit_in_order(carrier: ChildCarrier) -> None:
    assert await call(carrier, "answer and die") == "done"


async def kill(carrier: ChildCarrier) -> None:
    os.kill((await call(carrier, "surroundings"))["pid"], signal.SIGKILL)


async def hang(carrier: ChildCarrier) -> None:
    await call(carrier, "close stdin")


ENDS: dict[EndReason, Callable[[ChildCarrier], Awaitable[None]]] = {
    "failed": crash,
    "exited": exit_in_order,
    "killed": kill,
    "hung": hang,
}


@pytest.mark.parametrize("reason", ENDS)
def test_an_end_is_counted_by_its_reason_and_the_next_start_beside(reason: EndReason) -> None:
    async def body() -> None:
        async with counted() as (children, metrics):
            children.retain([place()])
            assert numbers(metrics)["processes"] == {("nasty",): 0}
            carrier = children.carrier(place())
            await call(carrier, "echo")
            assert numbers(metrics)["processes"] == {("nasty",): 1}
            await ENDS[reason](carrier)
            await until(lambda: ("nasty", reason) in numbers(metrics)["ends"])
            assert numbers(metrics)["processes"] == {("nasty",): 0}
            await call(carrier, "echo")
            assert numbers(metrics) == {
                "starts": {("nasty", "ok"): 2},
                "ends": {("nasty", reason): 1},
                "processes": {("nasty",): 1},
            }
        assert numbers(metrics)["ends"] == {("nasty", reason): 1, ("nasty", "closed"): 1}

    asyncio.run(body())


def test_one_that_is_replaced_counts_until_its_calls_have_ended() -> None:
    async def body() -> None:
        async with counted() as (children, metrics):
            old, new = place(env={"A": "1"}), place(env={"A": "2"})
            children.retain([old])
            before = children.carrier(old)
            held = asyncio.ensure_future(call(before, "hold", key="a"))
            await until(lambda: before.is_up)
            children.retain([new])
            await call(children.carrier(new), "echo")
            assert numbers(metrics)["processes"] == {("nasty",): 2}
            await call(before, "release", keys=["a"])
            assert await held == "a"
            await until(lambda: numbers(metrics)["ends"] == {("nasty", "closed"): 1})
            assert numbers(metrics)["processes"] == {("nasty",): 1}

    asyncio.run(body())


@pytest.mark.parametrize("program", ["no-such-program-anywhere", sys.executable + "/x"])
def test_a_start_that_fails_is_counted(program: str) -> None:
    async def body() -> None:
        async with counted() as (children, metrics):
            command = ServerCommand("nasty", (program,))
            children.retain([command])
            for _ in range(2):
                with pytest.raises(ServerFailed, match="not_started"):
                    await call(children.carrier(command), "echo")
            assert numbers(metrics) == {
                "starts": {("nasty", "failed"): 2},
                "ends": {},
                "processes": {("nasty",): 0},
            }

    asyncio.run(body())
