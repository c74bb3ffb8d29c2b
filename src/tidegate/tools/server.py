"""How are strict tools served over MCP?

Lives here: the mapping between strict tools and the official SDK's low-level server, and the loop
that serves one client over stdio. Does not live here: the checks (strict.py), descriptors and
lines (stdio.py). The SDK's high-level server is not used: it coerces arguments and drops unknown
ones before a tool sees them.
"""

import logging
import secrets
import sys
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any

import anyio
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tidegate import __version__, strictjson
from tidegate.tools import stdio
from tidegate.tools.blocking import BlockingThread
from tidegate.tools.strict import Answer, InvalidArguments, StrictTool, ToolFailure

logger = logging.getLogger(__name__)

INVALID_PARAMS, UNKNOWN_TOOL, CRASHED = -32602, -32601, -32603
_GRACE_S = 1.5

_Context = ServerRequestContext[Any]


class ToolServer:
    """Serves `tools` to one MCP client.

    Invalid arguments are error -32602, an unknown tool is -32601, a ToolFailure is a result with
    `isError`, and a crash is -32603 with a constant text and an id that the log has too.
    """

    def __init__(self, tools: Sequence[StrictTool[Any]], *, name: str = "tidegate-tools") -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._listed = [
            mcp_types.Tool(name=t.name, description=t.description, input_schema=t.schema())
            for t in tools
        ]
        self.server: Server[Any] = Server(
            name, version=__version__, on_list_tools=self._list, on_call_tool=self._call
        )

    def run_stdio(self, wire: stdio.Wire | None = None) -> None:
        """Serves until stdin ends; every call taken by then is answered.

        Hand over a `wire` that was seized before the imports of your program, or leave it to
        this call.
        """
        anyio.run(self._serve, wire or stdio.seize_stdio())

    async def _list(
        self, _: _Context, __: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=self._listed)

    async def _call(
        self, _: _Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(UNKNOWN_TOOL, "Unknown tool")
        try:
            with _ToolBoundary():
                return _result(await tool(params.arguments or {}))
        except InvalidArguments as error:
            faults = [asdict(fault) for fault in error.faults]
            first = f"{error.faults[0].pointer}: {error.faults[0].sentence}"
            raise MCPError(
                INVALID_PARAMS, f"Invalid arguments: {first}", {"faults": faults}
            ) from None
        except ToolFailure as failure:
            return _result(str(failure), failed=True)

    async def _serve(self, wire: stdio.Wire) -> None:
        async with anyio.create_task_group() as tasks:
            session = _StdioSession(wire, tasks.cancel_scope)
            tasks.start_soon(session.read)
            tasks.start_soon(session.write)
            options = self.server.create_initialization_options()
            await self.server.run(session.requests, session.answers, options)


class _ToolBoundary:
    """Where the code of a tool, which is not ours, ends: its crash becomes a constant answer.

    Without it the SDK shows the text of an exception to clients of the older revisions.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        expected = (InvalidArguments, ToolFailure, MCPError)
        if isinstance(error, Exception) and not isinstance(error, expected):
            incident = secrets.token_hex(8)
            logger.error("tool_crashed", extra={"incident": incident}, exc_info=error)
            data = {"incident": incident}
            raise MCPError(CRASHED, "The tool failed. The incident is logged.", data) from None


class _StdioSession:
    """The two ends of the SDK's streams, joined to the wire; `scope` is what runs on it."""

    def __init__(self, wire: stdio.Wire, scope: anyio.CancelScope) -> None:
        self._wire = wire
        self._scope = scope
        self._reader, self._writer = BlockingThread("stdin"), BlockingThread("stdout")
        self._to_sdk, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](
            0
        )
        self.answers, self._from_sdk = anyio.create_memory_object_stream[SessionMessage](0)
        self._open_ids: set[int | str] = set()
        self._all_answered = anyio.Event()
        self._at_end = False

    async def read(self) -> None:
        """Lines to messages, until stdin ends and what was asked is answered."""
        splitter = stdio.LineSplitter()
        async with self._to_sdk:
            chunk = await self._next()
            while chunk:
                for line in splitter.feed(chunk):
                    await self._take(line)
                chunk = await self._next()
            for line in splitter.finish():
                await self._take(line)
            # The SDK gives up running calls when its stream closes; a call that was taken may
            # already have moved money, so its answer is worth a short wait.
            self._at_end = True
            if self._open_ids:
                with anyio.move_on_after(_GRACE_S):
                    await self._all_answered.wait()

    async def write(self) -> None:
        """Answers to lines."""
        async with self._from_sdk:
            async for answer in self._from_sdk:
                identifier = getattr(answer.message, "id", None)
                await self._send(stdio.message_line(answer))
                self._open_ids.discard(identifier if identifier is not None else "")
                if self._at_end and not self._open_ids:
                    self._all_answered.set()

    async def _next(self) -> bytes:
        # A thread, because neither epoll nor kqueue can watch a redirected file.
        return await self._reader.run(stdio.read_some, self._wire.read_fd)

    async def _take(self, line: bytes | stdio.LineTooLong) -> None:
        try:
            await self._to_sdk.send(SessionMessage(self._message(line)))
        except stdio.BadLine as bad:
            sys.stderr.write(f"tidegate: dropped a line: {bad.reason}\n")
            await self._send(stdio.error_line(bad.code, bad.reason))

    def _message(self, line: bytes | stdio.LineTooLong) -> mcp_types.JSONRPCMessage:
        if isinstance(line, stdio.LineTooLong):
            raise stdio.BadLine(stdio.INVALID_REQUEST, "the line is longer than 4 MiB")
        value = stdio.read_message(line)
        identifier = value.get("id")
        is_request = "method" in value and isinstance(identifier, int | str)
        if is_request and identifier in self._open_ids:
            raise stdio.BadLine(stdio.INVALID_REQUEST, "this id is already in flight")
        try:
            message: mcp_types.JSONRPCMessage = mcp_types.jsonrpc_message_adapter.validate_python(
                value, by_name=False
            )
        except ValidationError:
            raise stdio.BadLine(stdio.INVALID_REQUEST, "not a JSON-RPC message") from None
        if is_request and isinstance(identifier, int | str):
            self._open_ids.add(identifier)
        if value.get("method") == "notifications/cancelled":
            self._forget(value.get("params"))
        return message

    def _forget(self, params: object) -> None:
        """A cancelled request has no answer: it holds up neither its id nor the end."""
        identifier = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(identifier, int | str):
            self._open_ids.discard(identifier)

    async def _send(self, data: bytes) -> None:
        try:
            await self._writer.run(stdio.write_all, self._wire.write_fd, data)
        except BrokenPipeError:
            # Nobody listens any more: there is nothing left to do, and nobody to tell.
            self._scope.cancel()


def _result(answer: Answer, *, failed: bool = False) -> mcp_types.CallToolResult:
    text = answer if isinstance(answer, str) else strictjson.dumps(answer).decode()
    content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(type="text", text=text)]
    if isinstance(answer, dict):
        return mcp_types.CallToolResult(content=content, structured_content=answer)
    return mcp_types.CallToolResult(content=content, is_error=failed)


__all__ = ["ToolServer"]
