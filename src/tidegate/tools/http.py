"""How is a tool server reached over HTTP?

Streamable HTTP in both eras, in front of the SDK's low-level server but without its transport: the
body is parsed once and strictly, and decides the era; a header that says something else than the
body is refused. Lives here: the path of one HTTP request. Does not live here: who is let in
(doors), how an answer is written (http_answers), what an era does (http_modern, http_sessions).

Sources: MCP 2026-07-28 and 2025-11-25, basic/transports.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.shared.inbound import validate_mcp_param_headers
from mcp_types import PROTOCOL_VERSION_META_KEY

from tidegate.jsonrpc import Batch, Malformed, Message, Request
from tidegate.mcp.eras import (
    MODERN,
    McpHeaders,
    Rejection,
    read_headers,
    settle,
)
from tidegate.tools import http_modern
from tidegate.tools.boundary import guard
from tidegate.tools.doors import TOO_LARGE, Doors, Refusal, media_refusal
from tidegate.tools.http_answers import PING_S, Reply, Send
from tidegate.tools.http_edges import BrokenBody, Receive, RequestBoundary, Scope, Watch, Web
from tidegate.tools.http_legacy import NEEDS_EVENTS, LegacyHttp, id_of
from tidegate.tools.http_sessions import Sessions
from tidegate.tools.messages import BadMessage, read_body
from tidegate.tools.outbox import Outbox

_METHODS: Final = Refusal(
    405, "The method must be POST, GET or DELETE", headers=((b"allow", b"POST, GET, DELETE"),)
)
_NOT_ACCEPTABLE: Final = Refusal(406, "The client takes neither JSON nor an event stream")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What an application may do. Bytes and seconds."""

    doors: Doors = field(default_factory=Doors)
    path: str = "/mcp"
    max_body_bytes: int = 4 * 1024 * 1024
    most_sessions: int = 1000
    session_idle_s: float = 1800.0
    ping_s: float = PING_S


def http_app(
    server: Server[Any],
    *,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    path: str = "/mcp",
    token: str | None = None,
    max_body_bytes: int = 4 * 1024 * 1024,
) -> "HttpApp":
    """An ASGI application over any low-level server of the SDK; see ToolServer.http_app.

    Mcp-Param headers are compared for the tools whose schema `server.get_tool_input_schema` knows.
    """
    doors = Doors(
        frozenset(host.lower() for host in allowed_hosts),
        frozenset(origin.lower() for origin in allowed_origins),
        token,
    )
    return HttpApp(server, HttpOptions(doors, path, max_body_bytes))


class HttpApp:
    """The application. Its lifespan is optional; without it end it with `close`."""

    def __init__(self, server: Server[Any], options: HttpOptions) -> None:
        self._server, self._options = server, options
        if guard not in server.middleware:
            server.middleware.insert(0, guard)
        self.sessions = Sessions(server, most=options.most_sessions, idle_s=options.session_idle_s)
        self._legacy = LegacyHttp(self.sessions, handshake_s=options.session_idle_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            reply = Reply(send, ping_s=self._options.ping_s)
            async with RequestBoundary(reply):
                await self._enter(scope, receive, reply)

    @property
    def path(self) -> str:
        """Where the endpoint is."""
        return self._options.path

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What the server needs around its requests; ends every session on the way out."""
        async with self._server.lifespan(self._server) as state:
            self.sessions.state = state
            try:
                yield
            finally:
                await self.close()

    def let_go(self) -> None:
        """Ends what has no end of its own, the standing streams; calls go on."""
        self.sessions.let_go()

    async def close(self) -> None:
        """Ends every session."""
        await self.sessions.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _enter(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        method: str = scope["method"]
        server = scope.get("server")
        doors = self._options.doors
        if method == "OPTIONS":
            doors = Doors(doors.hosts, doors.origins)  # a question of a browser bears no token
        refusal = doors.refusal(headers, server[0] if server else None)
        if refusal is not None:
            return await reply.refuse(refusal)
        reply.extra.extend(doors.shared(headers))
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))  # where it is mounted
        if path.rstrip("/") != self._options.path.rstrip("/"):
            return await reply.refuse(Refusal(404, "Not found"))
        web = Web(scope, receive, reply, read_headers(headers))
        match method:
            case "POST":
                await self._post(web)
            case "GET" | "DELETE":
                await self._legacy.verb(web)
            case "OPTIONS" if len(reply.extra) > 0:
                await reply.whole(204, headers=doors.preflight(headers))
            case _:
                await reply.refuse(_METHODS)
        return None

    async def _post(self, web: Web) -> None:
        known, reply, headers = web.known, web.reply, web.scope["headers"]
        refusal = media_refusal(headers, self._options.max_body_bytes) or _unacceptable(known)
        data = b"" if refusal else await self._read(web.receive)
        if refusal is not None or data is None:
            return await reply.refuse(refusal or TOO_LARGE)
        try:
            message = await read_body(data)
        except BadMessage as bad:
            return await reply.refuse(Refusal(400, bad.reason, bad.code))
        if isinstance(message, Malformed):
            return await reply.refuse(Refusal(400, _sentence(message.reason)), message.id)
        session = self.sessions.get(known.session) if known.session is not None else None
        version = session.version if session is not None else None
        settled = settle(message, known, session_version=version)
        if isinstance(settled, Rejection):
            refused = Refusal(400, settled.message, settled.code, _versions(settled, message))
            return await reply.refuse(refused, id_of(message))
        if settled.modern:
            return await self._modern(web, message)
        return await self._legacy.post(web, message)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body, counted as it comes; None beyond the cap."""
        chunks, size = [], 0
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                # With a reason the client is still there, but the rest will not come.
                raise BrokenBody(event.get("reason"))
            chunk: bytes = event.get("body", b"")
            size += len(chunk)
            if size > self._options.max_body_bytes:
                return None
            chunks.append(chunk)
            if not event.get("more_body", False):
                return b"".join(chunks)

    async def _modern(self, web: Web, message: Message | Batch) -> None:
        known, reply = web.known, web.reply
        if not isinstance(message, Request):
            return await reply.whole(202)  # settle lets nothing but a notification through
        events = web.takes_events
        if message.method == "subscriptions/listen" and not events:
            return await reply.refuse(NEEDS_EVENTS, message.id)
        if (refused := self._params_refusal(message, known)) is not None:
            return await reply.refuse(refused, message.id)
        outbox = Outbox((message.id,))
        version = known.version or ""
        running = asyncio.create_task(
            http_modern.answer(
                self._server,
                message,
                version,
                outbox,
                http=web.request(),
                state=self.sessions.state,
            )
        )
        running.add_done_callback(lambda _: outbox.close())
        try:
            # Leaving is how a client of this era cancels.
            async with Watch(web, outbox):
                await reply.relay(outbox, events=events)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait((running,))
        if not running.cancelled():
            running.result()  # a fault of ours, if it is one
        return None

    def _params_refusal(self, request: Request, known: McpHeaders) -> Refusal | None:
        lookup = self._server.get_tool_input_schema
        params = request.params or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if request.method != "tools/call" or lookup is None or not isinstance(name, str):
            return None
        schema = lookup(name)
        if schema is None or not isinstance(arguments, dict):
            return None
        found = validate_mcp_param_headers(schema, arguments, dict(known.params))
        return None if found is None else Refusal(400, found.message, found.code)


def _versions(rejection: Rejection, message: Message | Batch) -> object:
    """What to say of the versions served: a request of the stateless era is told of its own."""
    data = rejection.data
    if data is None or "supported" not in data or not isinstance(message, Request):
        return data
    meta = (message.params or {}).get("_meta")
    envelope = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
    return data | {"supported": [MODERN]} if envelope else data


def _unacceptable(known: McpHeaders) -> Refusal | None:
    types = {part.split(";", 1)[0].strip() for part in known.accept.split(",")} - {""}
    takes = {"*/*", "application/*", "application/json", "text/event-stream"}
    return _NOT_ACCEPTABLE if types and not types & takes else None


def _sentence(reason: str) -> str:
    return f"Invalid request: {reason}"


__all__ = ["HttpApp", "HttpOptions", "http_app"]
