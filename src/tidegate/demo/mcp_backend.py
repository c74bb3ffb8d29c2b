"""What does an MCP server look like that trusts nobody but the gateway?

Lives here: a small server of both eras with harmless tools, two that only an administrator
should reach, and a log of every tool it really ran. It checks no roles of its own: whoever holds
the service credential may call everything, which is why a gateway stands before it. Does not
live here: who may call what (mcp.authorize).
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tidegate import strictjson
from tidegate.demo.exchange import Exchange, Receive, Scope, Send
from tidegate.jsonrpc import (
    Batch,
    Code,
    Malformed,
    Request,
    Tree,
    classify,
    error_body,
    result_body,
)

_MODERN: Final = "2026-07-28"
_LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_SERVER_INFO: Final = {"name": "tidegate-demo-backend", "version": "1.0.0"}
_CAPABILITIES: Final[Tree] = {"tools": {}, "resources": {}, "prompts": {}}
_HANDBOOK: Final = "docs://handbook"
_REPORT_STEPS: Final = 3

Pace = Callable[[int], Awaitable[None]]


def _tool(name: str, description: str, **arguments: str) -> Tree:
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                key: {"type": "string", "description": d} for key, d in arguments.items()
            },
            "required": [key for key in arguments if key != "service"],
        },
    }


def tools() -> list[Tree]:
    """Every tool, as tools/list describes it."""
    return [
        _tool("get_status", "Tell how a service is doing.", service="Name of the service."),
        _tool("search_docs", "Search the handbook.", query="What to look for."),
        _tool("get_customer", "Look up a customer.", customer_id="Such as CUST-10001."),
        _tool("run_report", "Run a report that takes a while.", title="Title of the report."),
        _tool("admin_reset_key", "Reset the key of a tenant."),
        _tool("admin_delete_tenant", "Delete a tenant with all its data.", tenant="Its name."),
    ]


class McpBackend:
    """`POST /mcp` for clients with the bearer `token`; `GET /_log` and `POST /_reset` for anyone.

    Speaks 2026-07-28 and the three revisions before it, without sessions. The log holds the names
    of the tools that ran, in order. `pace`, if given, is awaited before each step of run_report.
    """

    def __init__(self, *, token: str, pace: Pace | None = None) -> None:
        self._authorization = f"Bearer {token}".encode()
        self._pace = pace
        self.log: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            return
        async with Exchange(scope, receive, send) as exchange:
            match exchange.method, exchange.path:
                case "GET", "/_log":
                    await exchange.json(200, self.log)
                case "POST", "/_reset":
                    self.log.clear()
                    await exchange.json(200, self.log)
                case "POST", "/mcp" if self._is_gateway(scope):
                    await self._post(exchange)
                case "POST", "/mcp":
                    challenge = (b"www-authenticate", b"Bearer")
                    await exchange.json(401, {"error": "service credential required"}, [challenge])
                case _, "/mcp":
                    await exchange.json(405, {"error": "POST only"}, [(b"allow", b"POST")])
                case _:
                    await exchange.json(404, {"error": "no such path"})

    def _is_gateway(self, scope: Scope) -> bool:
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(sent) == 1 and hmac.compare_digest(sent[0], self._authorization)

    async def _post(self, exchange: Exchange) -> None:
        try:
            message = classify(strictjson.loads(await exchange.body()))
        except strictjson.StrictJSONError as error:
            await exchange.json(400, error_body(None, Code.PARSE_ERROR, error.reason))
            return
        if isinstance(message, Malformed | Batch):
            await exchange.json(400, error_body(None, Code.INVALID_REQUEST, "one message, please"))
        elif not isinstance(message, Request):
            await exchange.head(202, [(b"content-length", b"0")])
            await exchange.end()
        elif message.method == "tools/call" and _argument(message, "name") == "run_report":
            await self._report(exchange, message)
        else:
            answer = self._answer(message)
            await exchange.json(_status(answer, modern=_is_modern(message)), answer)

    def _answer(self, request: Request) -> Tree:
        if request.method == "tools/call":
            return self._call(request)
        make = _RESULTS.get(request.method)
        if make is None:
            return error_body(request.id, Code.METHOD_NOT_FOUND, "Method not found")
        result = make(request.params or {})
        if result is None:
            return error_body(request.id, Code.INVALID_PARAMS, "Resource or prompt not found")
        return result_body(request.id, _complete(request, result, cacheable=True))

    def _call(self, request: Request) -> Tree:
        name = _argument(request, "name")
        run = _TOOLS.get(name)
        if run is None:
            return error_body(request.id, Code.INVALID_PARAMS, f"Unknown tool: {name}")
        arguments = (request.params or {}).get("arguments", {})
        if not isinstance(arguments, dict):
            return error_body(request.id, Code.INVALID_PARAMS, "arguments must be an object")
        self.log.append(name)
        text, is_error = run({key: str(value) for key, value in arguments.items()})
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        return result_body(request.id, _complete(request, result))

    async def _report(self, exchange: Exchange, request: Request) -> None:
        """An event stream: progress while it runs, then the result."""
        self.log.append("run_report")
        meta = (request.params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        await exchange.start_events()
        for step in range(1, _REPORT_STEPS + 1):
            if self._pace is not None:
                await self._pace(step)
            elif await exchange.gone_within(0.1):
                return
            if token is not None:
                progress = {"progressToken": token, "progress": step, "total": _REPORT_STEPS}
                await exchange.event(
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
                )
        result = {"content": [{"type": "text", "text": "the report is done"}], "isError": False}
        await exchange.event(result_body(request.id, _complete(request, result)))
        await exchange.end()


def app(credential: str) -> McpBackend:
    """The backend as an ASGI application that knows this service credential."""
    return McpBackend(token=credential)


def _is_modern(request: Request) -> bool:
    meta = (request.params or {}).get("_meta")
    return isinstance(meta, dict) and meta.get(_VERSION_KEY) == _MODERN


def _argument(request: Request, name: str) -> str:
    value = (request.params or {}).get(name)
    return value if isinstance(value, str) else ""


def _status(answer: Tree, *, modern: bool) -> int:
    error = answer.get("error")
    if not modern or not isinstance(error, dict):
        return 200
    return 404 if error["code"] == Code.METHOD_NOT_FOUND else 400


def _complete(request: Request, result: Tree, *, cacheable: bool = False) -> Tree:
    """`result` with the members that 2026-07-28 demands."""
    if not _is_modern(request) and request.method != "server/discover":
        return result
    extra: Tree = {"ttlMs": 60_000, "cacheScope": "public"} if cacheable else {}
    return {**result, "resultType": "complete", **extra}


def _initialize(params: Mapping[str, object]) -> Tree:
    wanted = params.get("protocolVersion")
    version = wanted if wanted in _LEGACY else _LEGACY[0]
    return {
        "protocolVersion": version,
        "capabilities": _CAPABILITIES,
        "serverInfo": _SERVER_INFO,
    }


def _discover(_params: Mapping[str, object]) -> Tree:
    return {
        "supportedVersions": [_MODERN, *_LEGACY],
        "capabilities": _CAPABILITIES,
        "_meta": {"io.modelcontextprotocol/serverInfo": _SERVER_INFO},
    }


def _read(params: Mapping[str, object]) -> Tree | None:
    if params.get("uri") != _HANDBOOK:
        return None
    text = "Ask before you delete."
    return {"contents": [{"uri": _HANDBOOK, "mimeType": "text/plain", "text": text}]}


def _prompt(params: Mapping[str, object]) -> Tree | None:
    if params.get("name") != "greet":
        return None
    return {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}]}


_RESULTS: Final[Mapping[str, Callable[[Mapping[str, object]], Tree | None]]] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": lambda _params: {},
    "tools/list": lambda _params: {"tools": tools()},
    "resources/list": lambda _params: {"resources": [{"uri": _HANDBOOK, "name": "handbook"}]},
    "resources/templates/list": lambda _params: {"resourceTemplates": []},
    "resources/read": _read,
    "prompts/list": lambda _params: {"prompts": [{"name": "greet", "description": "A greeting."}]},
    "prompts/get": _prompt,
}


def _customer(arguments: Mapping[str, str]) -> tuple[str, bool]:
    if arguments.get("customer_id") != "CUST-10001":
        return "customer not found", True
    return "CUST-10001: Jane Doe, jane@example.com, card 4111 1111 1111 1111", False


_TOOLS: Final[Mapping[str, Callable[[Mapping[str, str]], tuple[str, bool]]]] = {
    "get_status": lambda given: (f"{given.get('service', 'everything')} is up", False),
    "search_docs": lambda given: (f"1 result for {given.get('query', '')}: {_HANDBOOK}", False),
    "get_customer": _customer,
    "admin_reset_key": lambda _given: ("the key was reset", False),
    "admin_delete_tenant": lambda given: (f"tenant {given.get('tenant', '')} is gone", False),
}

__all__ = ["McpBackend", "app", "tools"]
