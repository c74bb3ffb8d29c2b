"""How does a test talk to the processes of ledger_process?"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

WAIT_S = 60.0  # a whole process, on a machine that is busy with other tests
ROOT = Path(__file__).parents[2]


class Child:
    """One such process; every wait is bounded."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def hears(self) -> str:
        """The next line it says; "" when it is gone."""
        assert self._process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            return (await self._process.stdout.readline()).decode().strip()

    def go_on(self) -> None:
        """Let it pass its next wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    def kill(self) -> None:
        """SIGKILL: no clean-up of any kind."""
        self._process.kill()

    async def ends(self) -> None:
        """Wait until it has ended."""
        async with asyncio.timeout(WAIT_S):
            await self._process.wait()


@asynccontextmanager
async def child(role: str, path: Path | str, *numbers: object) -> AsyncIterator[Child]:
    """Start the process; it is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.wire.ledger_process",
        role,
        str(path),
        *(str(number) for number in numbers),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(WAIT_S):
            await process.communicate()
