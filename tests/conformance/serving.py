"""How is a tool server started as a user starts it, over HTTP?

Lives here: `tidegate mcp serve MODULE:SERVER --http` as a process, until it says where it listens,
and its end. Every wait is bounded. Does not live here: what is served.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = 60.0
_URL = re.compile(rb"http://127\.0\.0\.1:\d+\S*")


@asynccontextmanager
async def served(target: str | None, *options: str) -> AsyncIterator[str]:
    """The URL of `target` (or of the demo tools), served in the spec profile."""
    named = [target] if target else []
    with tempfile.TemporaryDirectory(prefix="tidegate-served-") as folder:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "mcp", "serve", *named),
            *("--http", "127.0.0.1:0", *(options or ("--errors", "spec"))),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        heard: list[bytes] = []
        rest = None
        try:
            async with asyncio.timeout(START_S):
                url = await _said(process.stderr, heard)
            rest = asyncio.create_task(_drain(process.stderr))
            yield url
        finally:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(START_S):
                await process.wait()
            if rest is not None:
                await rest


async def _said(stderr: asyncio.StreamReader, heard: list[bytes]) -> str:
    while line := await stderr.readline():
        heard.append(line)
        if found := _URL.search(line):
            return found[0].decode()
    raise RuntimeError("the server did not start:\n" + b"".join(heard).decode())


async def _drain(stderr: asyncio.StreamReader) -> None:
    """A full pipe would stop the server."""
    while await stderr.read(65536):
        pass
