"""What does a test of the MCP path need: the path, a scripted server behind it, and its traces."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.app.virtual import clock_here
from tidegate import sse
from tidegate.demo.mcp_backend import McpBackend
from tidegate.errors import StoreUnavailable, TidegateError
from tidegate.gateway.accounting import Accounting
from tidegate.gateway.body import BodyGate, BodyReader
from tidegate.gateway.charge import Charging
from tidegate.gateway.masking import Masking
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pins.checked import Pins
from tidegate.gateway.respond import Responder
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.children import Children, ChildSettings
from tidegate.gateway.servers.upstream import ToolTimes, ToolUpstream
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.relay import ToolRelay
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.streams import StreamCaps
from tidegate.gateway.tool_requests.turn import ToolServer, ToolTrafficPolicy
from tidegate.gateway.tool_traffic import ToolTraffic
from tidegate.identity.keys import KeyEntry, KeyTable
from tidegate.jsonrpc import error_of
from tidegate.limits import LimitTable, MemoryLedger
from tidegate.limits.ledger import Limit
from tidegate.mcp import Rule, RuleSet
from tidegate.mcp.pin_store import MemoryPins, PinStore
from tidegate.mcp.pins import Mode
from tidegate.mcp.servers import ServerAddress
from tidegate.mcp.sessions import Sessions
from tidegate.mcp.shelf import Shelf
from tidegate.policy import Principal
from tidegate.records.entries import Trail
from tidegate.redaction import RedactionPolicy
from tidegate.testing.asgi import WAIT_S, ASGIClient, ASGIExchange
from tidegate.transport.inbox import Inboxes
from tidegate.transport.upstream import Failure, ResponseSink, UpstreamRequest

CREDENTIAL = "-".join(("service", "credential", "of", "the", "gateway"))
TOKENS = {role: f"{role}-token-of-the-test" for role in ("viewer", "admin", "guest", "second")}
RULES = RuleSet(
    [
        Rule("mcp.rules[0]", "deny", tools=("admin_*",), unless_roles=("admin",)),
        Rule("mcp.rules[1]", "allow", roles=("viewer", "admin")),
    ]
)
OFF = Masking(RedactionPolicy.preset(), tool_arguments="off", tool_results="off")


class Asked:
    """One request as the scripted server got it, and its answer as the test gives it."""

    def __init__(self, request: UpstreamRequest, sink: ResponseSink) -> None:
        self.method = request.method
        self.headers = {name.lower(): value for name, value in request.headers}
        self.header_names = [name for name, _ in request.headers]
        self.raw = request.body
        self.gone = asyncio.Event()
        self.paused = False
        self._sink = sink
        self._over = False

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._over

    @property
    def message(self) -> Any:
        """The JSON value of the body."""
        return json.loads(self.raw)

    def head(self, status: int = 200, content_type: str = "application/json", **more: str) -> None:
        """Status and headers; `mcp_session_id="x"` stands for Mcp-Session-Id."""
        if not self._over:
            named = {name.replace("_", "-"): value for name, value in more.items()}
            self._sink.on_head(status, {"content-type": content_type, **named})

    def body(self, data: bytes) -> None:
        """Bytes of the body."""
        if not self._over and data:
            self._sink.on_body(data)

    def event(self, value: object) -> None:
        """One event of a stream."""
        self.body(sse.encode(json.dumps(value).encode(), event="message"))

    def end(self) -> None:
        """The end of the body."""
        if not self._over:
            self._over = True
            self._sink.on_end()

    def fail(self, failure: Failure = Failure.RESET) -> None:
        """The connection is lost, with the gateway at its other end."""
        if not self._over:
            self._over = True
            self._sink.on_failure(failure)
            self.gone.set()

    def whole(self, value: object, status: int = 200, **more: str) -> None:
        """One JSON answer; bytes go out as they are."""
        self.head(status, **more)
        self.body(value if isinstance(value, bytes) else json.dumps(value).encode())
        self.end()

    def result(self, result: object, **more: str) -> None:
        """A result for the message's own id."""
        self.whole({"jsonrpc": "2.0", "id": self.message["id"], "result": result}, **more)

    def pause(self) -> None:
        """Of Attempt: its reader does not keep up."""
        self.paused = True

    def resume(self) -> None:
        """Of Attempt."""

    def abort(self) -> None:
        """Of Attempt: the gateway has left."""
        self._over = True
        self.gone.set()


Script = Callable[[Asked], Awaitable[None]]


class ScriptedTransport:
    """Runs `script` for every request instead of opening sockets; `asked` holds all of them."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Asked:
        """Of Transport."""
        del connect_s
        asked = Asked(request, sink)
        self.asked.append(asked)
        task = asyncio.get_running_loop().create_task(self._run(asked))  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asked

    async def _run(self, asked: Asked) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.script(asked)

    async def open(self) -> None:
        """Of Transport."""

    async def close(self) -> None:
        """Of Transport."""

    open_connections = idle_connections = 0


def served_by(app: McpBackend) -> Script:
    """A script that lets an ASGI application answer."""

    async def run(asked: Asked) -> None:
        headers = [(n.encode(), v.encode()) for n, v in asked.headers.items()]
        scope = {"type": "http", "method": asked.method, "path": "/mcp", "query_string": b""}
        bodies = [{"type": "http.request", "body": asked.raw, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not bodies:
                await asked.gone.wait()
                return {"type": "http.disconnect"}
            return bodies.pop()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                named = {n.decode().replace("-", "_"): v.decode() for n, v in message["headers"]}
                asked.head(message["status"], **named)
                return
            asked.body(message.get("body", b""))
            if not message.get("more_body", False):
                asked.end()

        await app({**scope, "headers": headers}, receive, send)

    return run


async def echo(asked: Asked) -> None:
    """Answers every request with its params, every notification with 202."""
    if "id" in asked.message:
        asked.result({"echo": asked.message.get("params", {})})
    else:
        asked.head(202)
        asked.end()


@dataclass(slots=True)
class Records:
    """A recorder that keeps everything in memory and can be made to fail."""

    fails: bool = False
    intents: list[tuple[str, int]] = field(default_factory=list)
    ends: list[Trail] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def begin(self, trail: Trail) -> None:
        """Of Recorder."""
        del trail

    async def intent(self, trail: Trail) -> None:
        """Of Recorder."""
        if self.fails:
            raise StoreUnavailable("records")
        self.intents.append((trail.request_id, len(trail.snapshot().steps)))
        self.order.append("intent")

    def end(self, trail: Trail) -> None:
        """Of Recorder."""
        self.ends.append(trail)
        self.order.append("end")


class World:
    """The MCP path with one server behind it. `policy` may be replaced at any time."""

    def __init__(
        self,
        script: Script = echo,
        *,
        limits: Iterable[Limit] = (),
        times: ToolTimes | None = None,
        max_answer_bytes: int = 1 << 20,
        masking: Masking = OFF,
        url: str = "http://backend.example/mcp",
        transport: Any = None,
        pin: Mode = "off",
        pin_store: PinStore | None = None,
        shelf: Shelf | None = None,
        caps: StreamCaps | None = None,
        **policy: Any,
    ) -> None:
        """`url` and `transport` are for a real server; then `script` is not used."""
        self.transport = transport or ScriptedTransport(script)
        self.records = Records()
        self.clock = clock_here()
        settings: dict[str, Any] = {"rules": RULES, "hide_denied": "off", **policy}
        self.policy = ToolTrafficPolicy(
            revision="r1",
            keys=keys(),
            servers={
                "backend": ToolServer(ServerAddress("backend", url, CREDENTIAL), masking, pin)
            },
            limits=LimitTable(tuple(limits)),
            **settings,
        )
        self.inboxes = Inboxes(self.clock)
        self.upstream = ToolUpstream(
            self.transport, self.inboxes, self.clock, max_answer_bytes=max_answer_bytes, times=times
        )
        children = Children(ChildSettings(self.clock))
        self.carriers = carriers = Carriers(
            self.upstream,
            children,
            self.clock,
            tools_changed=lambda name, announced: self.pins.stale(name, announced=announced),
        )
        carriers.retain(server.place for server in self.policy.servers.values())
        self.metrics = Metrics()
        self.pins = Pins(
            pin_store or MemoryPins(),
            self.clock,
            self.metrics,
            servers=lambda: self.policy.pinned_servers,
        )
        sessions = ToolSessions(Sessions(), self.clock, shelf)
        self.traffic = ToolTraffic(
            policy=lambda: self.policy,
            bodies=BodyReader(BodyGate(1 << 26), max_bytes=1 << 22),
            charging=Charging(MemoryLedger(self.clock), "test"),
            accounting=Accounting(self.records, self.metrics, self.clock),  # type: ignore[arg-type]
            relay=ToolRelay(
                carriers,
                PinGate(self.pins, carriers, sessions),
                self.clock,
                self.upstream.times,
                sessions,
            ),
            clock=self.clock,
            caps=caps,
        )
        self.client = ASGIClient(self)
        self._requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI entry, with as little of the gateway's front as a test needs."""
        self._requests += 1
        responder = Responder(send, f"request{self._requests}")
        responder.error_body = error_of
        try:
            await self.traffic.serve(scope, receive, responder)
        except TidegateError as error:
            if responder.started:
                raise
            await responder.error(error)

    def exchange(
        self, body: object, *, role: str = "viewer", method: str = "POST", **headers: str
    ) -> ASGIExchange:
        """One request in flight. `mcp_name="x"` stands for the header Mcp-Name."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("content-type", "application/json")
        if role:
            named.setdefault("authorization", f"Bearer {TOKENS[role]}")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.exchange(method, "/mcp", headers=list(named.items()), body=data)

    async def post(self, body: object, *, role: str = "viewer", **headers: str) -> ASGIExchange:
        """A finished exchange."""
        async with self.exchange(body, role=role, **headers) as exchange:
            await exchange.read()
        return exchange

    @property
    def sent(self) -> list[Any]:
        """Every message the server got, in order."""
        return [asked.message for asked in self.transport.asked if asked.raw]


def keys() -> KeyTable:
    """A key for each role, and one more viewer."""
    people = {
        "viewer": Principal("vera", "acme", ("viewer",), "k1"),
        "admin": Principal("adam", "acme", ("admin",), "k2"),
        "guest": Principal("gus", "other", ("guest",), "k3"),
        "second": Principal("viktor", "acme", ("viewer",), "k4"),
    }
    return KeyTable(
        KeyEntry(hashlib.sha256(TOKENS[role].encode()).digest(), principal)
        for role, principal in people.items()
    )


def value(exchange: ASGIExchange) -> Any:
    """The JSON value of an answer."""
    return json.loads(exchange.body)


def events(exchange: ASGIExchange) -> list[Any]:
    """The JSON values of an event stream."""
    return [json.loads(event.data) for event in sse.Decoder(1 << 20).feed(exchange.body)]


def call(name: str, arguments: object = None, *, id: object = 1, **params: object) -> Any:  # noqa: A002
    """A tools/call."""
    params = {"name": name, "arguments": {} if arguments is None else arguments, **params}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def ask(method: str, *, id: object = 1, **params: object) -> Any:  # noqa: A002
    """A request."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params:
        message["params"] = params
    return message


def tell(method: str, **params: object) -> Any:
    """A notification."""
    message = ask(method, **params)
    del message["id"]
    return message


DENIED = {
    "jsonrpc": "2.0",
    "id": 1,
    "error": {
        "code": -32001,
        "message": "Unauthorized Tool Call",
        "data": {"tool": "admin_reset_key", "required_role": "admin", "your_role": "viewer"},
    },
}
