"""A tool server's HTTP application without a socket: one request in, what it sent out."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
WAIT_S = 5.0
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"
HEAD = {"host": "127.0.0.1:9000", "content-type": "application/json", "accept": BOTH}


@dataclass
class Answer:
    """Status, headers (the last one of a name) and body."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON of each event that has any."""
        lines = self.body.decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    @property
    def ids(self) -> list[str]:
        return [line[4:] for line in self.body.decode().splitlines() if line.startswith("id: ")]

    @property
    def code(self) -> Any:
        """The code of the error, or None."""
        return self.json.get("error", {}).get("code")


class Call:
    """One request that runs; `leave` is the client going away."""

    def __init__(self, app: Any, scope: dict[str, Any], chunks: list[bytes]) -> None:
        self.answer = Answer()
        self.said = asyncio.Event()
        self._left = asyncio.Event()
        self._chunks = chunks
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._chunks:
            chunk = self._chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks)}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.answer.status = message["status"]
            pairs = message["headers"]
            self.answer.headers = {name.decode(): value.decode() for name, value in pairs}
        else:
            self.answer.body += message.get("body", b"")
            self.answer.ended = not message.get("more_body", False)
        self.said.set()

    def leave(self) -> None:
        self._left.set()

    async def heard(self, word: bytes) -> None:
        """Until `word` stands in the body."""
        async with asyncio.timeout(WAIT_S):
            while word not in self.answer.body:
                self.said.clear()
                await self.said.wait()

    async def done(self) -> Answer:
        await asyncio.wait_for(asyncio.shield(self.task), WAIT_S)
        return self.answer


def start(
    app: Any,
    body: object = b"",
    *,
    method: str = "POST",
    path: str = "/mcp",
    server: str = "127.0.0.1",
    root_path: str = "",
    headers: list[tuple[str, str]] | None = None,
    chunks: list[bytes] | None = None,
    **more: str | None,
) -> Call:
    """A request that begins; `more` are headers with _ for -, None takes one away."""
    given = HEAD | {name.replace("_", "-"): value for name, value in more.items()}
    pairs = [(name, value) for name, value in given.items() if value is not None]
    pairs += headers or []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": root_path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
        "server": (server, 9000),
    }
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Call(app, scope, chunks if chunks is not None else [data])


async def ask(app: Any, body: object = b"", **how: Any) -> Answer:
    return await start(app, body, **how).done()


def message(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    made = {"jsonrpc": "2.0", "method": method}
    return (
        made | ({} if id is None else {"id": id}) | ({} if params is None else {"params": params})
    )


def modern(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    """The body of a request of 2026-07-28."""
    given = params or {}
    return message(method, given | {"_meta": ENVELOPE | given.get("_meta", {})}, id)


def mirrored(body: dict[str, Any]) -> dict[str, str]:
    """The headers that belong to such a body."""
    headers = {"mcp_protocol_version": MODERN, "mcp_method": body["method"]}
    name = body.get("params", {}).get("name")
    return headers | ({} if name is None else {"mcp_name": name})


async def ask_modern(app: Any, method: str, params: dict[str, Any] | None = None) -> Answer:
    body = modern(method, params)
    return await ask(app, body, **mirrored(body))


async def handshake(app: Any, version: str = "2025-11-25") -> dict[str, str]:
    """Opens a session; the headers that its requests carry."""
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    answer = await ask(app, message("initialize", params))
    assert answer.json["result"]["protocolVersion"] == version
    session = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": version}
    ready = await ask(app, message("notifications/initialized", id=None), **session)
    assert (ready.status, ready.body) == (202, b"")
    return session


def play(app: Any, body: Callable[[], Awaitable[T]]) -> T:
    """Runs `body`, and ends the sessions of `app`."""

    async def whole() -> T:
        try:
            async with asyncio.timeout(WAIT_S):
                return await body()
        finally:
            await app.close()

    made: Coroutine[Any, Any, T] = whole()
    return asyncio.run(made)
