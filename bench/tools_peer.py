"""How fast do others serve the two tools of bench_tools.py?

Run as `python tools_peer.py DESIGN stdio` or `python tools_peer.py DESIGN PORT` with the Python of
bench/.venv. `sdk` is the high-level server of the official SDK, `fastmcp` the library of that name;
over HTTP both answer with JSON, which is their faster way, in uvicorn with uvloop and httptools.
"""

# ruff: noqa: PLC0415 - each design imports what it is made of

import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.tools_world import CUSTOMER, record, refund

CustomerId = Annotated[str, Field(pattern=CUSTOMER)]
Amount = Annotated[float, Field(gt=0, le=10000)]
Reason = Annotated[str, Field(min_length=10)]


async def get_customer_record(customer_id: CustomerId) -> dict[str, Any]:
    """The record of a customer."""
    return record(customer_id)


async def trigger_refund(customer_id: CustomerId, amount: Amount, reason: Reason) -> dict[str, Any]:
    """Pays back."""
    return refund(customer_id, amount)


def serve(app: Any, port: int) -> None:
    """Until it is ended."""
    import uvicorn

    options: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "log_level": "error"}
    uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, **options)


def main(design: str, where: str) -> None:
    """Serves `design` on stdio or a port."""
    server: Any
    if design == "sdk":
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("bench", log_level="ERROR")
        server.add_tool(get_customer_record)
        server.add_tool(trigger_refund)
        if where == "stdio":
            server.run("stdio")
        else:
            serve(server.streamable_http_app(json_response=True), int(where))
        return
    from fastmcp import FastMCP

    server = FastMCP("bench")
    server.tool(get_customer_record)
    server.tool(trigger_refund)
    if where == "stdio":
        server.run(transport="stdio", show_banner=False, log_level="ERROR")
    else:
        serve(server.http_app(json_response=True), int(where))


if __name__ == "__main__":
    main(*sys.argv[1:])
