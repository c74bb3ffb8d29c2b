"""What does a test of several servers behind one endpoint need?"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.app.mcp_world import CREDENTIAL, OFF, Asked, Script, ScriptedTransport, World
from tidegate.gateway.masking import Masking
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.mcp.eras import NAME_MEMBER
from tidegate.mcp.header_values import encode_value
from tidegate.mcp.servers import ServerAddress
from tidegate.testing.asgi import ASGIExchange
from tidegate.transport.upstream import ResponseSink, UpstreamRequest

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_LEGACY_ONLY = {
    "initialize",
    "logging/setLevel",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
}
NOT_FOUND = {"code": -32601, "message": "Method not found"}


class Server:
    """A server of every revision with things of its own.

    `ran` holds what it was told to use; a list longer than `page` comes in pages. A list that is
    None is one that it does not have.
    """

    def __init__(
        self,
        *,
        page: int = 100,
        instructions: str | None = None,
        legacy: bool = False,
        **things: Any,
    ) -> None:
        """`legacy`: it knows the handshake era alone; otherwise both."""
        self.legacy = legacy
        self.page = page
        self.instructions = instructions
        self.things: dict[str, Any] = {
            "tools": ["get_status", "admin_reset"],
            "prompts": ["greet"],
            "resources": ["file:///a"],
            "resourceTemplates": ["file:///{name}"],
            **things,
        }
        self.ran: list[str] = []
        self.heard: list[str] = []
        self.ttl_ms = 60_000

    async def __call__(self, asked: Asked) -> None:
        if not asked.raw:
            asked.whole({})
            return
        message = asked.message
        method, params = message["method"], message.get("params", {})
        self.heard.append(method)
        if self.legacy and asked.headers.get("mcp-protocol-version") == MODERN:
            text = "Unsupported protocol version"
            refusal = {"code": -32600, "message": text}
            asked.whole({"jsonrpc": "2.0", "id": None, "error": refusal}, 400)
        elif "id" not in message:
            asked.head(202)
            asked.end()
        elif method in MEMBERS:
            self._list(asked, MEMBERS[method], params)
        elif method in ("server/discover", "initialize"):
            asked.result(self.described(method))
        elif method in ("ping", "logging/setLevel"):
            asked.result({})
        elif method == "subscriptions/listen":
            await self.listen(asked)
        else:
            named = params.get("ref", params)
            self.ran.append(f"{method} {named.get('name') or named.get('uri')}")
            await self.run(asked)

    @property
    def told(self) -> list[str]:
        """Every method it heard of that is no question of the gateway's own about what it is."""
        return [method for method in self.heard if method not in ("initialize", "server/discover")]

    async def run(self, asked: Asked) -> None:
        """What a thing does when it is used."""
        content = [
            {"type": "text", "text": "done"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
        ]
        params = asked.message.get("params", {})
        uri = params.get("uri", "file:///a")
        if asked.message["method"] == "completion/complete":
            result: Any = {"completion": {"values": ["x"]}}
        elif asked.message["method"] == "resources/read":
            result = {"contents": [{"uri": uri, "text": "t"}]}
        else:
            result = {"content": content}
        asked.result({"resultType": "complete", "ttlMs": 1, "cacheScope": "public", **result})

    async def listen(self, asked: Asked) -> None:
        """A subscription that grants everything and lasts until the gateway leaves."""
        asked.head(200, "text/event-stream")
        wanted = asked.message["params"]["notifications"]
        asked.event(heard(asked, "notifications/subscriptions/acknowledged", notifications=wanted))
        await asked.gone.wait()

    def described(self, method: str) -> Any:
        """What it says of itself."""
        offers = {
            "tools": {"listChanged": True},
            "prompts": {},
            "resources": {"subscribe": True},
            "completions": {},
            "logging": {},
        }
        has = {key: value for key, value in offers.items() if self.things.get(key, 0) is not None}
        result: Any = {"capabilities": has, "instructions": self.instructions}
        if method == "initialize":
            return {**result, "protocolVersion": "2025-11-25", "serverInfo": {"name": "s"}}
        extra = {"resultType": "complete", "ttlMs": 9, "cacheScope": "public"}
        return {**result, "supportedVersions": [MODERN], **extra}

    def _list(self, asked: Asked, member: str, params: Any) -> None:
        names = self.things[member]
        if names is None:
            id, error = asked.message["id"], NOT_FOUND  # noqa: A001 - the member's name
            asked.whole({"jsonrpc": "2.0", "id": id, "error": error}, 404)
            return
        start = int(params.get("cursor", "0"))
        key = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(member, "name")
        items = [{key: name, "title": f"the {name}"} for name in names[start : start + self.page]]
        result = {member: items, "resultType": "complete"}
        result |= {"ttlMs": self.ttl_ms, "cacheScope": "public"}
        if start + self.page < len(names):
            result["nextCursor"] = str(start + self.page)
        asked.result(result)


def heard(asked: Asked, method: str, **params: Any) -> Any:
    """A notification on the subscription that was asked for."""
    meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}}


async def dead(asked: Asked) -> None:
    """Nobody is there."""
    asked.fail()


async def silent(asked: Asked) -> None:
    """Takes a request and never answers."""
    if asked.raw and "id" not in asked.message:
        asked.head(202)
        asked.end()
    else:
        await asked.gone.wait()


async def html(asked: Asked) -> None:
    """Something else listens there."""
    asked.head(200, "text/html")
    asked.body(b"<html><body>Welcome to db-3.internal</body></html>")
    asked.end()


async def failing(asked: Asked) -> None:
    """A proxy in front of a server that is down."""
    asked.whole(b"<html>502 Bad Gateway</html>", 502)


async def refusing(asked: Asked) -> None:
    """A server that wants another credential."""
    asked.whole({"error": "unauthorized"}, 401)


async def shapeless(asked: Asked) -> None:
    """Answers every list with something that is none."""
    asked.result({"tools": "none", "prompts": {}, "resources": 1})


class Routed(ScriptedTransport):
    """Lets the script of each server answer what goes to its address; the rest is as above."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        super().__init__(self._dispatch)
        self.scripts = dict(scripts)

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Asked:
        asked = super().start(request, sink, connect_s=connect_s)
        asked.server = request.url.split("/")[2].removesuffix(".example")  # type: ignore[attr-defined]
        return asked

    async def _dispatch(self, asked: Asked) -> None:
        await self.scripts[asked.server](asked)  # type: ignore[attr-defined]


def places(names: Any, masking: Masking = OFF) -> dict[str, ToolServer]:
    """Servers of these names, each with an address and a credential of its own."""
    return {
        name: ToolServer(
            ServerAddress(name, f"http://{name}.example/mcp", f"{CREDENTIAL}-{name}"), masking
        )
        for name in names
    }


class Federated(World):
    """The MCP path with several servers behind it."""

    def __init__(self, *, masking: Masking = OFF, **scripts_and_policy: Any) -> None:
        """Servers by name, in order; what is no script is for the policy."""
        scripts = {k: v for k, v in scripts_and_policy.items() if callable(v)}
        rest = {k: v for k, v in scripts_and_policy.items() if not callable(v)}
        super().__init__(transport=Routed(scripts), **rest)
        self.reload(places(scripts, masking))

    def reload(self, servers: Mapping[str, ToolServer]) -> None:
        """From now on these are the servers."""
        self.policy = replace(self.policy, servers=servers)
        self.carriers.retain(server.place for server in servers.values())

    def exchange(
        self, body: object, *, role: str = "viewer", method: str = "POST", **headers: str
    ) -> ASGIExchange:
        """As of any world; a request that says nothing of its revision is of the newest."""
        if isinstance(body, dict) and "id" in body and not set(headers) - {"accept"}:
            named = body.get("method")
            if named is not None and named not in _LEGACY_ONLY:
                body = {**body, "params": {"_meta": META, **body.get("params", {})}}
                headers = {**self._headers_of(body), **headers}
        return super().exchange(body, role=role, method=method, **headers)

    def _headers_of(self, body: Any) -> dict[str, str]:
        name = body["params"].get(NAME_MEMBER.get(body["method"], ""))
        named = isinstance(name, str) and bool(name)
        return modern(body["method"], **({"mcp_name": encode_value(name)} if named else {}))

    async def over(self) -> None:
        """End what the gateway keeps towards its servers, as it does at its own end."""
        await self.pins.close()
        await self.carriers.close()
        await self.upstream.drain(5)

    def to(self, server: str) -> list[Any]:
        """Every message that this server got, in order, but for questions about what it is."""
        messages = [each.message for each in self.transport.asked if each.server == server]
        return [m for m in messages if m["method"] not in ("initialize", "server/discover")]

    def steps(self, stage: str, request: int = -1) -> list[tuple[str, Any]]:
        """Verdict and server of the steps of a stage, of one ended request."""
        steps = self.records.ends[request].snapshot().steps
        return [(s.verdict, s.values.get("server")) for s in steps if s.stage == stage]


OLD = {"mcp_protocol_version": "2025-11-25"}
"""The header of a client of the handshake era that has no session."""


def modern(method: str, **headers: str) -> dict[str, str]:
    """The headers of 2026-07-28."""
    return {"mcp_protocol_version": MODERN, "mcp_method": method, **headers}


async def until(condition: Any) -> None:
    """Wait until something is so: bounded in turns of the loop, as virtual time stands still."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
    raise AssertionError("it never came to be")
