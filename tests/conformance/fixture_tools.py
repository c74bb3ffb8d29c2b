"""Which tools of the conformance harness answer at once?

Lives here: those tools, and how a function that wants the SDK's own context, or answers with more
than text, is made a strict tool. Does not live here: tools that ask the client something
(fixture_asking, fixture_rounds).
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from pydantic import Field

from tidegate.tools import StrictInput, ToolFailure, strict_tool
from tidegate.tools.context import ToolContext
from tidegate.tools.strict import StrictTool

Context = ServerRequestContext[Any]
Outcome = types.CallToolResult | types.InputRequiredResult
Handler = Callable[[Context, types.CallToolRequestParams], Awaitable[Outcome]]

# One red pixel, and eight samples of silence at 8 kHz.
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c4944415478da63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(
    b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\x08\0\0\0"
    + b"\x80" * 8
).decode()
_A_MOMENT_S = 0.05

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


# --- strict tools -------------------------------------------------------------------------------


class Nothing(StrictInput):
    """No arguments."""


class Sum(StrictInput):
    a: int = Field(ge=-(2**53) + 1, le=2**53 - 1)
    b: int = Field(ge=-(2**53) + 1, le=2**53 - 1)


class Region(StrictInput):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})
    note: str = ""


@strict_tool
async def test_simple_text(call: Nothing) -> str:
    """One text."""
    return "This is a simple text response for testing."


@strict_tool
async def test_error_handling(call: Nothing) -> str:
    """A refusal."""
    raise ToolFailure("This tool intentionally returns an error for testing")


@strict_tool
async def add_numbers(call: Sum) -> dict[str, Any]:
    """The sum of two whole numbers."""
    return {"sum": call.a + call.b}


@strict_tool
async def test_x_mcp_header(call: Region) -> str:
    """Says which region was meant; the region travels in a header, too."""
    return f"region {call.region}"


# --- tools that see the SDK's context -----------------------------------------------------------


def tool(
    name: str, description: str, run: Handler, model: type[StrictInput] = Nothing
) -> StrictTool[Any]:
    """A strict tool over `run`, which is handed the SDK's context and the params of the call."""

    async def checked(_: StrictInput, context: ToolContext) -> Outcome:
        request: Context = context.request
        params = types.CallToolRequestParams.model_validate(dict(request.params or {}))
        return await run(request, params)

    return StrictTool(name, description, model, checked, takes_context=True)


@dataclass(frozen=True)
class Published(StrictTool[Any]):
    """A tool that publishes another schema than its model's."""

    def schema(self) -> dict[str, Any]:
        return SCHEMA_2020_12


def text(*words: str) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=word) for word in words]
    return types.CallToolResult(content=content)


def embedded(uri: str, mime_type: str, body: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=body)
    return types.EmbeddedResource(resource=resource)


def constant(*content: types.ContentBlock) -> Handler:
    async def run(_: Context, __: types.CallToolRequestParams) -> Outcome:
        return types.CallToolResult(content=list(content))

    return run


async def _progress(context: Context, _: types.CallToolRequestParams) -> Outcome:
    token = (context.meta or {}).get("progress_token")
    for done in (0, 50, 100):
        if done:
            await anyio.sleep(_A_MOMENT_S)
        if token is not None:
            told = types.ProgressNotificationParams(progress_token=token, progress=done, total=100)
            await context.session.send_notification(
                types.ProgressNotification(params=told), related_request_id=context.request_id
            )
    return text("All of it is done.")


async def _logging(context: Context, _: types.CallToolRequestParams) -> Outcome:
    steps = ("Tool execution started", "Tool processing data", "Tool execution completed")
    for number, step in enumerate(steps):
        if number:
            await anyio.sleep(_A_MOMENT_S)
        await context.session.send_log_message("info", step, related_request_id=context.request_id)
    return text("Three messages were logged.")


async def _reconnection(context: Context, _: types.CallToolRequestParams) -> Outcome:
    """Closes the stream of its own answer; the client comes back for it."""
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(2 * _A_MOMENT_S)
    return text("The answer came after the stream was closed.")


async def _fine(_: StrictInput) -> str:
    return "fine"


SHOWING = (
    test_simple_text,
    test_error_handling,
    add_numbers,
    test_x_mcp_header,
    tool(
        "test_image_content",
        "One picture.",
        constant(types.ImageContent(data=PNG, mime_type="image/png")),
    ),
    tool(
        "test_audio_content",
        "One sound.",
        constant(types.AudioContent(data=WAV, mime_type="audio/wav")),
    ),
    tool(
        "test_embedded_resource",
        "One resource.",
        constant(
            embedded(
                "test://embedded-resource", "text/plain", "This is an embedded resource content."
            )
        ),
    ),
    tool(
        "test_multiple_content_types",
        "A text, a picture and a resource.",
        constant(
            types.TextContent(text="Multiple content types test:"),
            types.ImageContent(data=PNG, mime_type="image/png"),
            embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ),
    ),
    tool("test_tool_with_progress", "Tells how far it is.", _progress),
    tool("test_tool_with_logging", "Logs three messages.", _logging),
    tool("test_logging_tool", "Logs to those who asked for logs.", _logging),
    tool("test_reconnection", "Closes its stream.", _reconnection),
    Published("json_schema_2020_12_tool", "Has a schema with many words.", Nothing, _fine),
)
