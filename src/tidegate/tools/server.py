"""How are strict tools served over MCP?

Lives here: the mapping between strict tools and the official SDK's low-level server. Does not live
here: the checks (strict), what is told when a call goes wrong (profiles), descriptors and lines
(stdio), HTTP (http). The SDK's high-level server is not used: it coerces arguments and drops
unknown ones before a tool sees them.
"""

from collections.abc import Collection, Sequence
from typing import Any

import anyio
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header

from tidegate import __version__, strictjson
from tidegate.tools import stdio
from tidegate.tools.boundary import ToolError, guard, tool_boundary
from tidegate.tools.context import ToolContext
from tidegate.tools.ends import HardEnd
from tidegate.tools.http import HttpApp, http_app
from tidegate.tools.lines import LineSession
from tidegate.tools.profiles import (
    INVALID_PARAMS,
    PROFILES,
    FailedResult,
    Profile,
    Refused,
    Trouble,
    UnknownTool,
    WrongArguments,
    tell,
)
from tidegate.tools.strict import InvalidArguments, StrictTool, ToolFailure, ToolResult
from tidegate.tools.tracing import trace_when_collected

_MIB = 1024 * 1024
X_MCP_HEADER = "x-mcp-header"
"""What a schema says of an argument that travels in a header, too (MCP 2026-07-28)."""

_Context = ServerRequestContext[Any, Any]


class ToolServer:
    """Serves `tools` over MCP, to one client on stdio or to many over HTTP.

    `errors` is the profile of the errors that clients get (profiles). Raises ValueError for two
    tools of one name and for an unknown profile. `server` is the SDK's low-level server, for
    methods that are not offered here.
    """

    def __init__(
        self,
        tools: Sequence[StrictTool[Any]],
        *,
        name: str = "tidegate-tools",
        errors: Profile = "brief",
        version: str | None = None,
        instructions: str | None = None,
        max_line_bytes: int = 4 * _MIB,
        max_body_bytes: int = 4 * _MIB,
    ) -> None:
        self.errors = errors
        self.max_line_bytes, self.max_body_bytes = max_line_bytes, max_body_bytes
        self._tools: dict[str, StrictTool[Any]] = {}
        for tool in tools:
            if not isinstance(tool, StrictTool):
                raise TypeError(f"{tool!r} is no tool; strict_tool makes one of a function")
            if tool.name in self._tools:
                raise ValueError(f"two tools are called {tool.name!r}")
            self._tools[tool.name] = tool
        self._listed = [_listed(tool) for tool in tools]
        # Only of tools with something to compare: it is asked for on every call over HTTP.
        schemas = {
            tool.name: tool.input_schema
            for tool in self._listed
            if X_MCP_HEADER in str(tool.input_schema)
        }
        self.server: Server[Any] = Server(
            name,
            version=version or __version__,
            instructions=instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
            get_tool_input_schema=schemas.get,
        )
        trace_when_collected(self.server)
        self.server.middleware.insert(0, guard)

    @property
    def errors(self) -> Profile:
        """The profile of errors; may be changed before serving."""
        return self._errors

    @errors.setter
    def errors(self, profile: Profile) -> None:
        if profile not in PROFILES:
            raise ValueError(f"errors is one of {', '.join(PROFILES)}")
        self._errors: Profile = profile

    def run_stdio(self, wire: stdio.Wire | None = None, *, ends_process: bool = False) -> None:
        """Serves until stdin ends; every call taken by then is answered.

        Hand over a `wire` that was seized before the imports of your program, or leave it to
        this call. While it serves, the process is over two seconds after the client has gone,
        whatever a tool still does; with `ends_process` also if that happens after this call
        returned (a thread that goes on, a handler at exit).
        """
        with HardEnd(stays=ends_process) as hard_end:
            anyio.run(self._serve, wire or stdio.seize_stdio(), hard_end)

    def http_app(
        self,
        *,
        allowed_hosts: Collection[str] = (),
        allowed_origins: Collection[str] = (),
        path: str = "/mcp",
        token: str | None = None,
    ) -> HttpApp:
        """An ASGI application that serves both eras of Streamable HTTP at `path`.

        A request must name this machine in Host: a loopback name where the server listens on
        loopback, an IP address elsewhere, or one of `allowed_hosts`; and come from no other
        Origin than its own or one of `allowed_origins`. With a `token` it must bear that.
        """
        return http_app(
            self.server,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            path=path,
            token=token,
            max_body_bytes=self.max_body_bytes,
        )

    async def _list(
        self, _: _Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor")  # there is one page, and no next one
        return mcp_types.ListToolsResult(tools=self._listed)

    async def _call(
        self, context: _Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        tool = self._tools.get(params.name)
        if tool is None:
            return self._tell(UnknownTool())
        try:
            with tool_boundary():
                return _result(await tool(params.arguments or {}, _Call(context)))
        except InvalidArguments as error:
            return self._tell(WrongArguments(error.faults))
        except ToolFailure as failure:
            return self._tell(Refused(str(failure)))

    def _tell(self, trouble: Trouble) -> mcp_types.CallToolResult:
        told = tell(trouble, self._errors)
        if isinstance(told, FailedResult):
            content = mcp_types.TextContent(type="text", text=told.text)
            made = mcp_types.CallToolResult(content=[content], is_error=True)
            return made if told.meta is None else made.model_copy(update={"meta": told.meta})
        raise ToolError(told.code, told.message, told.data, in_result=self._errors == "brief")

    async def _serve(self, wire: stdio.Wire, hard_end: HardEnd) -> None:
        async with anyio.create_task_group() as tasks:
            session = LineSession(
                wire, tasks.cancel_scope, hard_end, max_line_bytes=self.max_line_bytes
            )
            tasks.start_soon(session.read)
            tasks.start_soon(session.write)
            options = self.server.create_initialization_options()
            await self.server.run(session.requests, session.answers, options)


class _Call(ToolContext):
    """The context of one call that came over MCP."""

    def __init__(self, request: _Context) -> None:
        self.request = request

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """See ToolContext."""
        await self.request.session.report_progress(done, total, message)


def _listed(tool: StrictTool[Any]) -> mcp_types.Tool:
    hints = {
        key if key == "title" else f"{key}Hint": value for key, value in tool.annotations.items()
    }
    schema = tool.schema()
    if (flaw := find_invalid_x_mcp_header(schema)) is not None:
        raise ValueError(f"{tool.name}: {flaw}")  # clients would leave the tool out
    return mcp_types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        output_schema=tool.output_schema(),
        annotations=mcp_types.ToolAnnotations.model_validate(hints) if hints else None,
    )


def _result(answer: Any) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
    """Raises what any part of a tool's answer raises that cannot be written as JSON."""
    if isinstance(answer, mcp_types.CallToolResult | mcp_types.InputRequiredResult):
        return answer
    value, meta = (answer.value, answer.meta) if isinstance(answer, ToolResult) else (answer, {})
    # Also text is encoded here, where a failure has an id: half a surrogate pair has no bytes.
    text = (value.encode() if isinstance(value, str) else strictjson.dumps(value)).decode()
    made = mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=text)],
        structured_content=value if isinstance(value, dict) else None,
    )
    return (
        made.model_copy(update={"meta": strictjson.loads(strictjson.dumps(dict(meta)))})
        if meta
        else made
    )


__all__ = ["ToolServer"]
