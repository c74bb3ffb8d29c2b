"""How does a test talk to a server process of the gateway?

Lives here: the carrier of the nasty server, calls of two clients, and what is left of processes.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tidegate.clock import Clock, SystemClock
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.carrier import Asked, Exchange
from tidegate.gateway.servers.children import ChildCarrier, Children, ChildSettings
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.jsonrpc import Id, Message, Request
from tidegate.mcp.eras import McpHeaders, Revision
from tidegate.mcp.servers import ServerCommand
from tidegate.mcp.sessions import Owner

WAIT_S = 30.0
"""Other tests run beside these on the same cores."""
NASTY = str(Path(__file__).parent / "nasty_tools.py")
ALICE: Owner = ("issuer", "acme", "alice", "")
BOB: Owner = ("issuer", "acme", "bob", "")


def place(*arguments: str, **more: Any) -> ServerCommand:
    """The nasty server."""
    return ServerCommand("nasty", (sys.executable, NASTY, *arguments), **more)


def asked(
    message: Message,
    owner: Owner = ALICE,
    *,
    upstream_id: Id | None = None,
    session: str | None = None,
    endless: bool = False,
    life: int | None = None,
) -> Asked:
    """A message on its way."""
    revision, headers = Revision("2025-11-25"), McpHeaders()
    return Asked(message, revision, headers, owner, upstream_id, session, endless, life=life)


def tool(name: str, identifier: Id = 1, *, token: Id | None = None, **arguments: Any) -> Request:
    """A call of a tool."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return Request(identifier, "tools/call", params)


async def answer_of(exchange: Exchange) -> list[Any]:
    """All messages of an exchange."""
    messages: list[Any] = []
    await exchange.head()
    while (arrived := await exchange.read()) is not None:
        messages += [incoming.value for incoming in arrived]
    return messages


def value_of(answer: Any) -> Any:
    """What a tool of the nasty server answered."""
    (block,) = answer["result"]["content"]
    return json.loads(block["text"])


async def call(
    carrier: ChildCarrier, name: str, identifier: Id = 1, owner: Owner = ALICE, **arguments: Any
) -> Any:
    """What a tool answers; its id is looked at."""
    with carrier.exchange(asked(tool(name, identifier, **arguments), owner)) as exchange:
        *_, answer = await answer_of(exchange)
    assert answer["id"] == identifier
    assert type(answer["id"]) is type(identifier)
    return value_of(answer)


@asynccontextmanager
async def children(
    clock: Clock | None = None,
    *,
    times: ToolTimes | None = None,
    max_line_bytes: int = 1_048_576,
    chance: Callable[[], float] = lambda: 0.0,
) -> AsyncIterator[Children]:
    """All servers of a gateway; every wait is bounded, and nothing is left at the end."""
    settings = ChildSettings(
        clock or SystemClock(),
        times=times or ToolTimes(),
        max_line_bytes=max_line_bytes,
        chance=chance,
        search_path=os.environ["PATH"],
    )
    made = Children(settings)
    async with asyncio.timeout(WAIT_S):
        try:
            yield made
        finally:
            await made.close()


def is_alive(pid: int) -> bool:
    """Whether this process runs; one that nobody has collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def is_gone(pid: int) -> None:
    """Wait until it does not run any more."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, ended.set)
    try:
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    assert not is_alive(pid)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it does; whoever asks without a pause takes the time of those it waits for."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await pause(0.01)
