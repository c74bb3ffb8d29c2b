"""What happens to a process on stdio that nobody can talk to, as descriptors have run out?"""

import asyncio
import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.logged import logged
from tests.wire.stdio_servers import children, until
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.servers import ServerCommand

pytestmark = pytest.mark.full


class Full(asyncio.SelectorEventLoop):
    """A loop that can take over so many pipes and no more."""

    pipes_left = 0

    async def connect_write_pipe(self, *given: Any) -> Any:
        self._count()
        return await super().connect_write_pipe(*given)

    async def connect_read_pipe(self, *given: Any) -> Any:
        self._count()
        return await super().connect_read_pipe(*given)

    def _count(self) -> None:
        if not self.pipes_left:
            raise OSError(errno.EMFILE, "Too many open files")
        self.pipes_left -= 1


def of_ours(word: str) -> list[int]:
    """Our processes whose command has this word."""
    found = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        # Threads and processes may end while they are looked at.
        with suppress(FileNotFoundError, ProcessLookupError):
            pids = (task / "children").read_text().split()
            for pid in pids:
                with suppress(FileNotFoundError, ProcessLookupError):
                    command = Path(f"/proc/{pid}/cmdline").read_text()
                    found += [int(pid)] if word in command else []
    return found


@pytest.mark.parametrize("pipes", [0, 1, 2])
def test_a_process_whose_pipes_cannot_be_taken_over_is_ended_and_counts_as_not_started(
    pipes: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    word = f"mute-{pipes}"
    command = (sys.executable, "-c", "import time; time.sleep(300)", word)

    async def body(loop: Full) -> None:
        loop.pipes_left = pipes
        async with children() as all_of_them:
            carrier = all_of_them.carrier(ServerCommand("mute", command))
            with pytest.raises(ServerFailed, match="not_started"):
                await carrier.start()
            assert logged(caplog, "tidegate.gateway") == ["tool_server_not_started"]
            await until(lambda: not of_ours(word))
            # The next one is a new attempt.
            loop.pipes_left = 3
            await carrier.start()
            await until(lambda: len(of_ours(word)) == 1)
        assert of_ours(word) == []

    loop = Full()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(body(loop))
