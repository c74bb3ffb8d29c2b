"""When does the process of a server on stdio begin, begin again and end, and who is left?

Real processes; the server is nasty_tools, the clock of the pauses stands until it is moved.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.logged import lines, logged
from tests.wire.stdio_servers import (
    BOB,
    answer_of,
    asked,
    call,
    children,
    is_alive,
    is_gone,
    place,
    tool,
    until,
    value_of,
)
from tidegate.gateway.process import loop_factory
from tidegate.gateway.servers.children import ChildCarrier
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.servers import ServerCommand
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full
LOG = "tidegate.gateway.servers.child"
ROOT = Path(__file__).parent.parent.parent


def run(body: Coroutine[Any, Any, None]) -> None:
    """On the loop of the gateway; the other tests of the children are on that of Python."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(body)


async def pid_of(carrier: ChildCarrier) -> int:
    return int((await call(carrier, "surroundings"))["pid"])


# Crashes


def test_a_crash_answers_every_call_at_once_and_none_is_made_again() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            first = await pid_of(carrier)
            waiting = [
                asyncio.ensure_future(call(carrier, "hold", 1, BOB, key=key)) for key in ("a", "b")
            ]
            with pytest.raises(ServerFailed, match="crashed"):
                await call(carrier, "die")
            failed = await asyncio.gather(*waiting, return_exceptions=True)
            assert [str(error) for error in failed] == ["crashed", "crashed"]
            seen = await call(carrier, "seen")
            assert [message["params"]["name"] for message in seen] == ["seen"]
            assert await pid_of(carrier) != first

    run(body())


def test_an_answer_right_before_the_end_still_counts() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            assert await call(carrier, "answer and die") == "done"
            await until(lambda: carrier.generation == 2)
            assert await call(carrier, "echo", n=1) == {"n": 1}

    run(body())


@pytest.mark.parametrize("name", ["close stdin", "close stdout"])
def test_a_server_that_closes_a_pipe_is_ended_and_started_anew(name: str) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            first = await pid_of(carrier)
            if name == "close stdin":
                await call(carrier, name)
                await until(lambda: carrier.generation == 2)
            else:
                with pytest.raises(ServerFailed, match="crashed"):
                    await call(carrier, name)
            assert await pid_of(carrier) != first
            assert not is_alive(first)

    run(body())


# Starting again


def test_the_pause_before_the_next_start_grows_with_each_short_life_and_is_counted_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def crash(carrier: ChildCarrier) -> str:
        with pytest.raises(ServerFailed) as failed:
            await call(carrier, "echo")
        return failed.value.reason

    async def body() -> None:
        clock = ManualClock()
        async with children(clock, chance=lambda: 1.0) as all_of_them:
            carrier = all_of_them.carrier(place("--exit", "3"))
            for pause_s in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
                if pause_s > 2.0:
                    assert await crash(carrier) == "resting"
                    clock.advance(pause_s - 2.001)
                    assert await crash(carrier) == "resting"
                clock.advance(2.001)
                assert await crash(carrier) == "crashed"

    with caplog.at_level("INFO"):
        run(body())
    assert logged(caplog, LOG).count("tool_server_started") == 9
    ended = [vars(r) for r in lines(caplog, LOG) if r.getMessage() == "tool_server_ended"]
    assert {record["status"] for record in ended} == {3}


def test_a_life_that_lasted_is_followed_by_the_next_at_once() -> None:
    async def body() -> None:
        clock = ManualClock()
        async with children(clock, chance=lambda: 1.0) as all_of_them:
            carrier = all_of_them.carrier(place())
            for _ in range(3):
                await call(carrier, "echo")
                clock.advance(60.0)
                with pytest.raises(ServerFailed, match="crashed"):
                    await call(carrier, "die")
            assert await call(carrier, "echo", n=1) == {"n": 1}

    run(body())


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (ServerCommand("n", ("no-such-program-anywhere", "x")), "no-such-program-anywhere was not"),
        (ServerCommand("n", (sys.executable,), cwd="/no/such/folder"), "directory /no/such/folder"),
        (ServerCommand("n", ("/etc/passwd",)), "program /etc/passwd may not be run"),
    ],
)
def test_what_cannot_be_started_is_said_and_waits_like_a_short_life(
    command: ServerCommand, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with children(clock, chance=lambda: 1.0) as all_of_them:
            carrier = all_of_them.carrier(command)
            for _ in range(4):
                clock.advance(2.0)
                with pytest.raises(ServerFailed, match="not_started"):
                    await call(carrier, "echo")
            with pytest.raises(ServerFailed, match="resting"):
                await call(carrier, "echo")

    run(body())
    said = [vars(r) for r in lines(caplog, LOG) if r.getMessage() == "tool_server_not_started"]
    assert len(said) == 4
    assert problem in said[0]["problem"]


def test_it_is_started_when_it_is_first_needed_or_when_asked_to() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            assert all_of_them.carrier(place()) is carrier
            assert carrier.generation == 0
            await asyncio.gather(carrier.start(), carrier.start())
            assert carrier.generation == 1

    run(body())


def test_who_gives_up_during_the_start_takes_it_from_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place("--wait", str(tmp_path / "go")))
            first = asyncio.ensure_future(call(carrier, "echo"))
            second = asyncio.ensure_future(call(carrier, "echo", n=2))
            await asyncio.wait((first,), timeout=0.001)
            first.cancel()
            (tmp_path / "go").touch()
            assert await second == {"n": 2}
            assert carrier.generation == 1

    run(body())


# The end


@pytest.mark.parametrize("habit", ["echo", "stubborn", "deaf"])
def test_at_the_end_nothing_is_left_whatever_it_ignores(habit: str) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            pids = [await pid_of(carrier), await call(carrier, "fork")]
            await call(carrier, habit)
        for pid in pids:
            await is_gone(pid)

    run(body())


def test_what_a_crashed_server_had_started_ends_with_it() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            pid = await call(carrier, "fork")
            with pytest.raises(ServerFailed, match="crashed"):
                await call(carrier, "die")
            await is_gone(pid)

    run(body())


def test_a_kill_of_the_gateway_leaves_no_process_behind(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys
from tests.wire.stdio_servers import call, children, place

async def main():
    async with children() as all_of_them:
        carrier = all_of_them.carrier(place())
        pid = (await call(carrier, "surroundings"))["pid"]
        await call(carrier, "stubborn")
        print(pid, await call(carrier, "fork"), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    pids = [int(word) for word in ended.stdout.split()]
    assert len(pids) == 2

    async def body() -> None:
        for pid in pids:
            await is_gone(pid)

    run(body())


# A new configuration


def test_a_changed_command_ends_the_process_once_its_calls_have_ended() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            old, kept = place(env={"A": "1"}), ServerCommand("kept", place().command)
            new = place(env={"A": "2"})
            all_of_them.retain([old, kept])
            before, beside = all_of_them.carrier(old), all_of_them.carrier(kept)
            first, other = await pid_of(before), await pid_of(beside)
            with before.exchange(asked(tool("hold", key="a"))) as exchange:
                await exchange.head()
                all_of_them.retain([new, kept])
                after = all_of_them.carrier(new)
                assert (await call(after, "surroundings"))["env"]["A"] == "2"
                assert all_of_them.carrier(old) is before
                # A request that began before the change, too, may finish what it does.
                await call(before, "release", keys=["a"])
                assert [value_of(m) for m in await answer_of(exchange)] == ["a"]
            await is_gone(first)
            with pytest.raises(ServerFailed, match="replaced"):
                await call(all_of_them.carrier(old), "echo")
            assert all_of_them.carrier(kept) is beside
            assert await pid_of(beside) == other
            assert is_alive(await pid_of(after))

    run(body())


def test_a_subscription_does_not_keep_a_process_that_is_replaced() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            first = await pid_of(carrier)
            with carrier.exchange(asked(tool("hold", key="s"), endless=True)) as exchange:
                await exchange.head()
                all_of_them.retain([])
                with pytest.raises(ServerFailed, match="replaced"):
                    await exchange.read()
            await is_gone(first)

    run(body())


def test_a_command_that_comes_back_while_its_process_still_ends_gets_a_new_one() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            first = await pid_of(carrier)
            with carrier.exchange(asked(tool("hold", key="s"))) as exchange:
                await exchange.head()
                all_of_them.retain([])
                all_of_them.retain([place()])
                second = await pid_of(all_of_them.carrier(place()))
                assert second != first
                assert is_alive(first)
            await is_gone(first)
            assert is_alive(second)

    run(body())


# What it says beside


def test_stderr_is_logged_line_by_line_masked_and_not_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret, own = "sk-" + "proj-" + "Ab3d" * 12, "a value that only the file knows"

    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place(env={"OWN": own}))
            await call(carrier, "stderr", secret=f"{secret} {own}", lines=100_000)
            assert await call(carrier, "echo", n=1) == {"n": 1}
            await until(lambda: logged(caplog, LOG).count("tool_server_said") >= 50)

    with caplog.at_level("INFO"):
        run(body())
    said = [vars(r)["said"] for r in lines(caplog, LOG) if r.getMessage() == "tool_server_said"]
    assert said[0].startswith("using [REDACTED")
    assert set(said[1:]) == {"a line of many"}
    assert len(said) < 500
    shown = str([vars(r) for r in lines(caplog, "tidegate")])
    assert secret not in shown
    assert own not in shown
