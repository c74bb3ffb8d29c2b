"""A server of the official SDK on stdio, of both eras; run as a script."""

import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@server.tool()
def fail() -> str:
    """An exception with a text that nobody should see."""
    raise RuntimeError("db-3.internal is down")


@server.tool()
async def count(steps: int, context: Context) -> str:
    """Reports progress."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps)
    return "counted"


@server.tool()
async def wait_for_ever() -> str:
    """Never answers."""
    await asyncio.Event().wait()
    return "never"


@server.resource("memo://today")
def memo() -> str:
    """One resource."""
    return "buy milk"


@server.prompt()
def greet(name: str) -> str:
    """One prompt."""
    return f"Greet {name}"


if __name__ == "__main__":
    server.run("stdio")
