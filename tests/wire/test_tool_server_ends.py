"""Does a tool server end when it is told to, or when nobody listens any more?

Real processes over real pipes, as in test_task1_stdio.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.wire.test_task1_stdio import HELLO, READY, SERVE, WAIT_S, call, environment, lines
from tidegate.tools.blocking import BlockingThread

TOOLS = '''
import anyio
from tidegate.tools import StrictInput, ToolServer, strict_tool

class Nothing(StrictInput):
    """No arguments."""

@strict_tool
async def endless(call: Nothing) -> str:
    """Never ends."""
    await anyio.sleep_forever()
    return ""

@strict_tool
async def large(call: Nothing) -> str:
    """Says much."""
    return "x" * (1 << 20)

tools = ToolServer([endless, large])
'''
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


class Server:
    """A running tool server; `say` writes messages, `hear` reads one answer."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def say(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(lines(*messages))
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ended(self) -> tuple[int, str]:
        """Exit code and stderr, within the bound; stdin stays open."""
        code = self.process.wait(WAIT_S)
        assert self.process.stderr is not None
        return code, self.process.stderr.read().decode()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    (folder / "some_tools.py").write_text(TOOLS)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*SERVE, "some_tools:tools"],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=folder,
        env=environment(unbuffered=False),
    )
    with process:
        try:
            server = Server(process)
            server.say(HELLO, READY)
            assert server.hear()["id"] == "hello"
            yield server
        finally:
            process.kill()


def test_a_call_that_blocks_can_be_left_and_its_failure_is_heard() -> None:
    async def body() -> None:
        thread = BlockingThread("test")
        assert await thread.run(pow, 2, 5) == 32
        with pytest.raises(FileNotFoundError):
            await thread.run(os.stat, "/nowhere/at/all")
        go = Event()
        left = asyncio.ensure_future(thread.run(go.wait))
        await asyncio.wait((left,), timeout=0)
        left.cancel()
        await asyncio.wait((left,))
        assert left.cancelled()
        go.set()
        assert await thread.run(len, "abc") == 3

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, -15, marks=pytest.mark.full)],
)
def test_a_signal_ends_it_although_stdin_stays_open(tmp_path: Path, number: int, code: int) -> None:
    with serving(tmp_path) as server:
        server.say(call(1, "endless", {}), PING)
        assert server.hear()["id"] == "ping"
        server.process.send_signal(number)
        ended, errors = server.ended()
        assert ended == code
        assert "Traceback" not in errors


@pytest.mark.full
def test_ctrl_c_ends_it_although_nobody_reads_its_answer(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.say(PING, call(1, "large", {}))
        assert server.hear()["id"] == "ping"
        assert server.process.stdout is not None
        assert server.process.stdout.read(1) == b"{"
        server.process.send_signal(signal.SIGINT)
        assert server.ended()[0] == 130


@pytest.mark.full
def test_a_client_that_closes_its_end_is_the_end_without_a_trace(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.say(PING)
        assert server.ended() == (0, "")


@pytest.mark.full
def test_a_cancelled_call_is_no_longer_in_flight(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        cancelled = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1},
        }
        server.say(call(1, "endless", {}), cancelled, call(1, "large", {}))
        answer = server.hear()
        assert answer["id"] == 1
        assert "result" in answer
