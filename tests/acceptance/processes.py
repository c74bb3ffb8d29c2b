"""How does a test run the real program: a gateway in a process of its own, on free ports?

Lives here: starting, reading what it says, asking it, ending it by its own id. Every wait is
bounded. Does not live here: configurations and upstreams (worlds).
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tidegate.testing.sockets import Answer, RawClient

HOST = "127.0.0.1"
START_S = 60.0
WAIT_S = 30.0
"""Other tests run beside these on the same cores, so a process may take its time."""

_READY = re.compile(r"tidegate ready: http://\S+:(\d+) admin: http://\S+:(\d+)")
# Files and variables of whoever runs the tests must not reach the program.
_INHERITED = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("TIDEGATE", "HIDE_ADMIN", "XDG_", "PYTHONDONTWRITE"))
}


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a process under test."""
    return {**_INHERITED, "XDG_CONFIG_HOME": "/nowhere", "NO_COLOR": "1", **(extra or {})}


def tidegate(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One command, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *arguments],
        cwd=folder,
        env=environment(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


class Running:
    """A process and everything it has said. Ports are 0 until it is ready."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.port = self.admin_port = 0
        self.stderr = b""
        self.stdout = b""
        self._clients: list[RawClient] = []
        self._news = asyncio.Event()
        self._readers = [
            asyncio.ensure_future(self._read(stream, name))
            for name, stream in (("stderr", process.stderr), ("stdout", process.stdout))
            if stream is not None
        ]
        for reader in self._readers:
            reader.add_done_callback(lambda _reader: self._news.set())

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        """All complete lines of stderr."""
        return self.stderr.decode()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of this event so far."""
        lines = [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == name]

    async def until(self, true: Callable[[], bool], *, within_s: float = WAIT_S) -> None:
        """Wait until `true()` holds; looked at after each line the process says, and at its end."""
        async with asyncio.timeout(within_s):
            while not true():
                if all(reader.done() for reader in self._readers):
                    raise AssertionError("the process has ended")
                self._news.clear()
                await self._news.wait()

    async def event(self, name: str, *, times: int = 1, within_s: float = WAIT_S) -> dict[str, Any]:
        """Wait for the log line number `times` of this event."""
        await self.until(lambda: len(self.events(name)) >= times, within_s=within_s)
        return self.events(name)[times - 1]

    async def ready(self) -> None:
        """Wait for the ready line and take the ports from it."""
        await self.until(lambda: _READY.search(self.said) is not None, within_s=START_S)
        found = _READY.search(self.said)
        assert found is not None
        self.port, self.admin_port = int(found[1]), int(found[2])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def signal_group(self, number: int) -> None:
        """As a terminal does: to the process and all that it has started."""
        os.killpg(self.pid, number)

    async def ended(self, *, within_s: float = WAIT_S) -> int:
        """Wait for the end; returns the exit code (negative: the signal)."""
        async with asyncio.timeout(within_s):
            code = await self.process.wait()
            await asyncio.wait(self._readers)
        return code

    async def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """kill -9."""
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()

    async def client(self, **options: Any) -> RawClient:
        """A new connection to the first listener; closed with the process at the latest."""
        client = await RawClient.connect(HOST, self.port, **options)
        self._clients.append(client)
        return client

    async def clean_up(self) -> None:
        """End the process, if it has not, and every connection to it."""
        await self.kill()
        for client in self._clients:
            await client.close()

    async def ask(self, method: str, target: str, **request: Any) -> Answer:
        """One request on a connection of its own."""
        async with await self.client() as client:
            return await client.ask(method, target, **request)

    async def admin(self, target: str, **request: Any) -> Answer:
        """One GET to the second listener."""
        async with await RawClient.connect(HOST, self.admin_port) as client:
            return await client.ask("GET", target, **request)

    async def _read(self, stream: asyncio.StreamReader, name: str) -> None:
        while line := await stream.readline():
            setattr(self, name, getattr(self, name) + line)
            self._news.set()


@asynccontextmanager
async def started(
    folder: Path,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    program: tuple[str, ...] = (sys.executable, "-m", "tidegate"),
    own_group: bool = False,
) -> AsyncIterator[Running]:
    """A process, ended at the end of the block whatever state it is in."""
    process = await asyncio.create_subprocess_exec(
        *program,
        *arguments,
        cwd=folder,
        env=environment(environ),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        limit=2**22,
        process_group=0 if own_group else None,
    )
    running = Running(process)
    try:
        yield running
    except BaseException as error:
        error.add_note(f"the process said:\n{running.said[-8000:]}")
        raise
    finally:
        await running.clean_up()


@asynccontextmanager
async def serving(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """`tidegate serve` on the configuration in `folder`, ready; it must end well on SIGTERM.

    Unless the test has ended it before.
    """
    async with started(folder, "serve", *arguments, environ=environ) as running:
        await running.ready()
        yield running
        if running.process.returncode is None:
            assert await running.stop() == 0
