"""What does the conformance harness see of `tidegate mcp connect`? The bridge, used by this client.

The harness starts `python -m tests.conformance.bridge_client MODE URL` and is the server at URL.
The official client speaks stdio to the bridge, in MODE, and does whatever the server offers: every
tool of its list (or the calls that the harness asks for), its first resource and its first prompt.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from pydantic import ValidationError

LONGEST_S = 15.0
_SAMPLES = {"number": 1.5, "integer": 2, "boolean": True, "object": {}, "array": []}
_Found = TypeVar("_Found")


async def accept(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Takes every default of a form."""
    schema = getattr(params, "requested_schema", {})
    properties = schema.get("properties", {})
    content = {name: each["default"] for name, each in properties.items() if "default" in each}
    return types.ElicitResult(action="accept", content=content)


def arguments_for(tool: types.Tool, tools: list[types.Tool]) -> dict[str, Any]:
    """Something for every argument that must be there."""
    properties = tool.input_schema.get("properties", {})
    if "schema" in properties:
        return {"schema": tools[0].input_schema}  # the harness compares it with what it sent
    required = tool.input_schema.get("required", [])
    return {name: _SAMPLES.get(properties.get(name, {}).get("type"), "x") for name in required}


async def tried(asked: Awaitable[_Found]) -> _Found | None:
    """None where the server has an error, or a result that is none: some scenarios do."""
    try:
        return await asked
    except (MCPError, ValidationError) as error:
        sys.stderr.write(f"{type(error).__name__}\n")
        return None


async def main(mode: str, url: str) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tidegate", "mcp", "connect", url],
        env=dict(os.environ),
    )
    wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls", [])
    connected = Client(server, mode=mode, elicitation_callback=accept)
    async with asyncio.timeout(LONGEST_S), connected as client:
        listed = await tried(client.list_tools())
        tools = [] if listed is None else listed.tools
        made = [{"name": tool.name, "arguments": arguments_for(tool, tools)} for tool in tools]
        for call in wanted or made:
            await tried(client.call_tool(call["name"], call["arguments"]))
        resources = await tried(client.list_resources())
        if resources is not None and resources.resources:
            await tried(client.read_resource(resources.resources[0].uri))
        prompts = await tried(client.list_prompts())
        if prompts is not None and prompts.prompts:
            await tried(client.get_prompt(prompts.prompts[0].name))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
