"""How does a profile of examples/ run in a test: a real gateway process, upstreams we can watch?

The gateway is `tidegate serve` in a process of its own, on free ports; the upstreams run in the
test, on one event loop that lasts for the module.
"""

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.seed.lines import CURL_LINES, parse
from tidegate.demo.listener import HOST, bind, listening, port_of
from tidegate.sse import Decoder
from tidegate.testing.sockets import Answer, RawClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
START_S = 60.0
STOP_S = 30.0
T = TypeVar("T")


@dataclass(slots=True)
class Running:
    """A gateway process on `port`; `run` runs a coroutine on the loop of the upstreams."""

    port: int
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    restart: Callable[[], None]

    async def client(self) -> RawClient:
        """A new connection to the gateway."""
        return await RawClient.connect(HOST, self.port)

    async def curl(self, name: str) -> Answer:
        """The answer to one of the README's curl lines."""
        request = parse(CURL_LINES[name])
        return await self.ask(request.method, request.target, request.headers, request.body)

    async def post(self, target: str, token: str | None, body: object) -> Answer:
        """A JSON request with a bearer token."""
        headers = [("content-type", "application/json")]
        if token is not None:
            headers.append(("authorization", f"Bearer {token}"))
        return await self.ask("POST", target, headers, json.dumps(body).encode())

    async def ask(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        """One request on a connection of its own."""
        async with await self.client() as client:
            return await client.ask(method, target, headers=headers, body=body)


@contextmanager
def running(
    profile: str,
    upstreams: Mapping[int, Any],
    folder: Path,
    *,
    replace: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """The profile with `upstreams` (usual port -> ASGI app) and the gateway on free ports.

    `replace` changes further words of the file; `environ` adds to the environment.
    """
    text = (EXAMPLES / f"{profile}.yaml").read_text()
    sockets = {usual: bind(0) for usual in upstreams}
    for usual, sock in sockets.items():
        text = text.replace(f":{usual}/", f":{port_of(sock)}/")
    text = re.sub(r"admin: \{ port: \d+ \}", "admin: { port: 0 }", text)
    # On a busy machine a sound store may be late.
    text = re.sub(r'(store: \{ url: "sqlite:[^"]*")', r"\1, wait_s: 30.0", text)
    for old, new in (replace or {}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / "profile.yaml").write_text(text)
    environment = {**os.environ, "TIDEGATE_LOG": "json", **(environ or {})}
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        for usual, app in upstreams.items():
            runner.run(stack.enter_async_context(listening(app, sockets[usual])))
        process, port = runner.run(_start(folder, environment))
        gateway = Running(port, runner.run, lambda: None)

        def restart() -> None:
            nonlocal process
            runner.run(_stop(process))
            process, gateway.port = runner.run(_start(folder, environment))

        gateway.restart = restart
        try:
            yield gateway
        finally:
            runner.run(_stop(process))
            runner.run(stack.aclose())


async def _start(folder: Path, environment: Mapping[str, str]) -> tuple[Process, int]:
    arguments = ("-m", "tidegate", "serve", "--config", "profile.yaml", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=folder, env=environment, stdin=DEVNULL, stderr=PIPE
    )
    try:
        return process, await _ready(process)
    except BaseException:
        process.kill()
        await process.communicate()
        raise


async def _ready(process: Process) -> int:
    """The port of the main listener, once it accepts."""
    assert process.stderr is not None
    seen = b""
    async with asyncio.timeout(START_S):
        while line := await process.stderr.readline():
            seen += line
            event = json.loads(line) if line.startswith(b"{") else {}
            if event.get("event") == "ready" and event.get("listener") == "main":
                port: int = event["port"]
                return port
    raise AssertionError(f"the gateway did not start: {seen.decode()}")


async def _stop(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_S):
            # Reads the rest of the log too: a full pipe would keep the process from ending.
            await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def deltas(body: bytes) -> dict[int, str]:
    """The whole text of each choice of a stream."""
    texts: dict[int, str] = {}
    for event in Decoder(1 << 20).feed(body):
        if event.data == b"[DONE]":
            continue
        for choice in json.loads(event.data)["choices"]:
            text = choice["delta"].get("content") or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + text
    return texts
