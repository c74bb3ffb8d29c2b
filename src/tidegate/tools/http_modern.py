"""How is one request of the stateless era answered?

Lives here: a request of MCP 2026-07-28, which carries everything it needs, run once on the SDK's
server; what it reports meanwhile goes into its outbox. Does not live here: headers and bodies
(http), eras before it (http_sessions).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import anyio
import mcp_types
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext

from tidegate import strictjson
from tidegate.jsonrpc import Id, Request, error_body, typed
from tidegate.mcp.meta_keys import CAPABILITIES_KEY, CLIENT_KEY
from tidegate.tools.boundary import ToolError, plain_error
from tidegate.tools.outbox import Item, Outbox

STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
)
"""The HTTP status of an error. Source: MCP 2026-07-28, basic/transports; others are 200."""


@dataclass
class OneExchange:
    """What the SDK's server sees of one request: a way to report, none to ask."""

    transport: TransportContext
    request_id: Id
    message_metadata: ServerMessageMetadata
    outbox: Outbox
    progress_token: Id | None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = field(default=False, init=False)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """This era has no requests to clients."""
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """A notification on the stream of this request."""
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        self.outbox.put(Item(strictjson.dumps(message)))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Progress, if the client asked for it."""
        if self.progress_token is None:
            return
        told = {"total": total, "message": message}
        params = {"progressToken": self.progress_token, "progress": progress}
        params |= {key: value for key, value in told.items() if value is not None}
        await self.notify("notifications/progress", params)


async def answer(
    server: Server[Any], request: Request, version: str, outbox: Outbox, *, http: Any, state: Any
) -> None:
    """Runs `request` and puts its answer into `outbox`; `http` is the request of the web."""
    params = request.params or {}
    meta: Any = params.get("_meta")
    connection = Connection.from_envelope(version, meta.get(CLIENT_KEY), meta.get(CAPABILITIES_KEY))
    exchange = OneExchange(
        transport=TransportContext(
            kind="streamable-http", can_send_request=False, headers=http.headers
        ),
        request_id=request.id,
        message_metadata=ServerMessageMetadata(request_context=http),
        outbox=outbox,
        progress_token=progress_token_from_params(params),
    )
    status, body = 200, None
    try:
        with plain_error():
            result = await serve_one(
                server,
                exchange,
                request.method,
                params,
                connection=connection,
                lifespan_state=state,
            )
            body = strictjson.dumps({"jsonrpc": "2.0", "id": request.id, "result": result})
    except MCPError as error:
        told = error.error
        body = strictjson.dumps(error_body(request.id, told.code, told.message, told.data))
        in_result = isinstance(error, ToolError) and error.in_result
        status = 200 if in_result else STATUS.get(told.code, 200)
    assert body is not None  # noqa: S101 - for the type checker
    outbox.put(Item(body, typed(request.id), status))


def as_request(request: Request) -> mcp_types.JSONRPCRequest:
    """The SDK's form of a request."""
    return mcp_types.JSONRPCRequest(
        jsonrpc="2.0", id=request.id, method=request.method, params=request.params
    )


__all__ = ["STATUS", "answer", "as_request"]
