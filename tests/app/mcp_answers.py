"""Words and answers that the tests of MCP answers share."""

import asyncio
from typing import Any

from tests.app.mcp_world import Asked, Script, World, value
from tests.app.virtual import run_timeless
from tidegate.gateway.masking import Masking
from tidegate.redaction import RedactionPolicy

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"
STREAM = "text/event-stream"
ADMIN = {"name": "admin_reset_key", "inputSchema": {"type": "object"}}
STATUS = {"name": "get_status", "inputSchema": {"type": "object"}}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}
ENFORCE = Masking(RedactionPolicy.preset(), tool_arguments="off", tool_results="enforce")


def run(body: Any) -> None:
    asyncio.run(body())


def run_in_no_time(body: Any) -> None:
    """For what waits for timers and for nothing else."""
    run_timeless(body())


def modern(method: str, **headers: str) -> dict[str, str]:
    return {"mcp_protocol_version": MODERN, "mcp_method": method, **headers}


def result(result: object, id: object = 1) -> Any:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": result}


def generic(answer: Any) -> bool:
    """Whether an answer is the one error for everything behind us."""
    return value(answer)["error"] == {
        "code": -32603,
        "message": "The MCP server behind the gateway failed.",
        "data": {"request_id": "request1"},
    }


def answering(*parts: bytes, content_type: str = "application/json", status: int = 200) -> Any:
    async def script(asked: Asked) -> None:
        asked.head(status, content_type)
        for part in parts:
            asked.body(part)
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        asked.end()

    return script


def offering(script: Script, *names: str) -> Script:
    """A server that lists tools of these names; everything else is for `script`."""

    async def run(asked: Asked) -> None:
        if asked.raw and asked.message.get("method") == "tools/list":
            asked.result({"tools": [{"name": name, "inputSchema": {}} for name in names]})
        else:
            await script(asked)

    return run


def unlisted(script: Script) -> Script:
    """A server that knows no tools/list, and nobody knows which tools it has."""

    async def run(asked: Asked) -> None:
        if asked.raw and asked.message.get("method") == "tools/list":
            error = {"code": -32601, "message": "Method not found"}
            asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error})
        else:
            await script(asked)

    return run


def called(world: World) -> list[str]:
    """The names of all tools that the server was called for."""
    return [m["params"]["name"] for m in world.sent if m.get("method") == "tools/call"]
