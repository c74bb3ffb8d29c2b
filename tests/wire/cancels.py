"""What does a crowd of clients need that leave at random points: a world, and its baseline?

Nothing here sleeps: a client leaves so many turns of the loop after an event that was seen to
happen. Does not live here: which moments those are (cancel_plans).
"""

import asyncio
import os
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tests.wire.cancel_plans import Plan
from tests.wire.crowd_upstream import CrowdUpstream, Deaf, Mute, turns
from tests.wire.gateways import CHAT, JSON, KEYED, Served, config_text, serving
from tidegate.limits.ledger import scope_key
from tidegate.policy import Principal
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import request_bytes

_NOBODY = 1_000_000


class Visitor(asyncio.Protocol):
    """A client: counts what comes and leaves when it is told to."""

    def __init__(self, moved: Callable[[], None]) -> None:
        self.received = b""
        self.lost = False
        self._moved = moved

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._moved()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._moved()

    @property
    def has_all(self) -> bool:
        """Whether the last byte of an answer has come."""
        head, _, body = self.received.partition(b"\r\n\r\n")
        if b"transfer-encoding" in head:
            return body.endswith(b"0\r\n\r\n")
        return b"content-length" in head and bool(body) and body.endswith(b"}")

    def leave(self, how: str) -> None:
        """A reset, a clean close, or an end of what we send."""
        if self.lost:
            return
        if how == "eof" and self.transport.can_write_eof():
            self.transport.write_eof()
            return
        if how == "reset":
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the process holds when nobody asks for anything; idle connections do not count."""

    descriptors: int
    tasks: int
    reserved: int
    connections: int
    sides: int
    mute: int
    inboxes: int
    probes: int
    pending: int
    in_flight: int
    scripts: int

    def without_requests(self) -> "Baseline":
        """The same without all that a request brings; files and tasks are there before."""
        return Baseline(self.descriptors, self.tasks, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@dataclass
class Crowd:
    """A gateway, its upstreams, and who is on the way."""

    served: Served
    upstream: CrowdUpstream
    mute: set[Mute]
    deaf: set[Mute]
    wanted: dict[int, Plan]
    moved: dict[int, asyncio.Event]
    ends: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)

    @property
    def app(self) -> Any:
        return self.served.app

    async def baseline(self) -> Baseline:
        """What is held now."""
        # All the rest is of one moment.
        reserved = await self._reserved()
        transport, idle = self.app._transport, self.app._transport.idle_connections
        states = self.app._targets._states.values()
        listener, wanted = self.served.scene.listener, transport._ways.pool.wanted_by
        return Baseline(
            # The listeners stay, and each idle connection has two ends in this process.
            descriptors=len(os.listdir("/proc/self/fd")) - 2 * idle,
            tasks=len(asyncio.all_tasks()),
            reserved=reserved,
            connections=transport.open_connections - idle,
            sides=len(self.upstream.open) - idle,
            mute=len(self.mute) + len(self.deaf),
            inboxes=len(self.app._inboxes) + len(transport._ways.running) + len(wanted),
            probes=sum(state.breaker._probe is not None for state in states),
            pending=self.app._charging.pending,
            in_flight=self.app.in_flight + listener.running + len(listener.connections),
            scripts=self.upstream.running,
        )

    async def at_rest(self, wanted: Baseline | None = None) -> Baseline:
        """What is held once that is `wanted`, or nothing; or what it is when the time is over."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + WAIT_S
        found = await self.baseline()
        while found != (wanted or found.without_requests()) and loop.time() < due_s:
            await asyncio.wait((loop.create_future(),), timeout=0.005)
            found = await self.baseline()
        return found

    async def _reserved(self) -> int:
        limits = self.app._revision.chat.limits.limits
        who = Principal("acme", "acme", ("tenant",), "k1")
        found = [await self.app._ledger.usage(x, scope_key(x.per, who)) for x in limits]
        return sum(usage.reserved for usage in found)

    async def visit(self, plan: Plan) -> None:
        """Carry out one plan; returns when the gateway has let go of its upstreams."""
        moved = self.moved[plan.number] = asyncio.Event()
        self.wanted[plan.number] = plan
        if plan.route == "alone":
            self._allow_a_retry()
        loop = asyncio.get_running_loop()
        _, visitor = await loop.create_connection(
            lambda: Visitor(moved.set), "127.0.0.1", self.served.scene.port
        )
        data = request_bytes("POST", CHAT, headers=[JSON, KEYED], body=plan.body())
        try:
            async with asyncio.timeout(WAIT_S):
                if plan.leave == "part":
                    data = data[: int(len(data) * plan.part)]
                visitor.transport.write(data)
                await self._come_to(plan, visitor, moved)
                await turns(plan.turns)
                self.ends[self._seen(plan, visitor)] += 1
                visitor.leave(plan.how if plan.leave else "close")
                await self._let_go(plan, moved)
        finally:
            visitor.transport.abort()

    def _allow_a_retry(self) -> None:
        """A target that always fails would soon have no retry left to leave in."""
        for state in self.app._targets._states.values():
            for _ in range(10):
                state.earn_retry()

    async def _come_to(self, plan: Plan, visitor: Visitor, moved: asyncio.Event) -> None:
        """Wait for the event at which the client leaves; an end of the answer is one as well."""
        if plan.leave in ("part", "sent"):
            return
        while not (visitor.lost or visitor.has_all or self._has_come(plan, visitor)):
            moved.clear()
            await moved.wait()

    def _has_come(self, plan: Plan, visitor: Visitor) -> bool:
        match plan.leave:
            case "asked":
                return len(self.upstream.asked.get(plan.number, ())) >= plan.count
            case "chunks":
                return visitor.received.count(b"data: ") >= plan.count
            case "deaf":
                return any(isinstance(x, Deaf) and x.number == plan.number for x in self.deaf)
            case _:
                return False

    async def _let_go(self, plan: Plan, moved: asyncio.Event) -> None:
        """Every connection that served this plan is closed, or its exchange ended well."""
        while True:
            deaf = [x for x in self.deaf if isinstance(x, Deaf) and x.number == plan.number]
            sides = self.upstream.asked.get(plan.number, ())
            held = [
                s
                for s in sides
                if s.number == plan.number and not s.clean and s in self.upstream.open
            ]
            if not held and not deaf:
                return
            for one in deaf:
                one.transport.resume_reading()
            moved.clear()
            await (turns(1) if deaf else moved.wait())

    def _seen(self, plan: Plan, visitor: Visitor) -> str:
        if not visitor.received:
            seen = "nothing"
        elif not visitor.has_all:
            seen = "a part"
        else:
            status = int(visitor.received[9:12])
            body = visitor.received.partition(b"\r\n\r\n")[2]
            seen = str(status)
            if status == 200 and b"gateway.upstream_interrupted" in body:
                seen = "cut"
                if b"[DONE]" in body:
                    self.trouble.append(f"{plan}: a cut answer that says it is whole")
            elif status == 200 and plan.stream and b"[DONE]" not in body:
                self.trouble.append(f"{plan}: an answer without its end")
        if visitor.lost and not visitor.has_all:
            self.trouble.append(f"{plan}: the connection was lost: {visitor.received!r}")
        return f"{plan.place}: {seen}"


def _configuration(folder: Path, upstream: CrowdUpstream, ports: dict[str, int]) -> str:
    def route(name: str, providers: tuple[str, ...], **more: Any) -> dict[str, Any]:
        healthy = {"consecutive": _NOBODY, "min_results": _NOBODY}
        candidates = [{"provider": provider} for provider in providers]
        return {
            "name": name,
            "model": f"{name}-*",
            "candidates": candidates,
            "breaker": healthy,
            **more,
        }

    url = f"http://127.0.0.1:{upstream.port}"
    soon = {"first_token_s": 0.06, "idle_s": 0.06, "total_s": 0.16, "stream_total_s": 0.16}
    return config_text(
        folder,
        server={"caps": {"requests_in_flight": 200}},
        limits=[
            {"name": "tokens", "tokens": 1_000_000_000},
            {"name": "slots", "concurrent": 10_000},
        ],
        providers={
            **{name: {"base_url": f"{url}/{name}/v1"} for name in ("first", "second", "third")},
            "mute": {"base_url": f"https://127.0.0.1:{ports['mute']}/v1"},
            **{
                name: {"base_url": f"http://127.0.0.1:{ports[name]}/v1"}
                for name in ("deaf", "full")
            },
        },
        routes=[
            route("calm", ("first", "second")),
            route("alone", ("first",)),
            route("dark", ("mute", "second")),
            route("dial", ("full", "second")),
            route("deaf", ("deaf", "second")),
            route("late", ("first", "second"), deadlines=soon),
            route("murky", ("mute", "second"), deadlines={**soon, "connect_s": 0.05}),
            route("ring", ("full", "second"), deadlines={**soon, "connect_s": 0.05}),
            route(
                "sick",
                ("third", "second"),
                breaker={"consecutive": 1, "open_s": 0.001, "max_open_s": 0.002},
            ),
        ],
    )


@asynccontextmanager
async def crowding(folder: Path) -> AsyncIterator[Crowd]:
    """The gateway and all its upstreams, on loopback."""
    wanted: dict[int, Plan] = {}
    moved: dict[int, asyncio.Event] = {}
    mute: set[Mute] = set()
    deaf: set[Mute] = set()

    def tell(number: int) -> None:
        if number in moved:
            moved[number].set()

    def script(number: int, provider: str) -> str:
        return wanted[number].scripts[provider == "second"]

    loop = asyncio.get_running_loop()
    silent = await loop.create_server(lambda: Mute(mute), "127.0.0.1", 0, backlog=1024)
    closed = socket.create_server(("127.0.0.1", 0))
    closed.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    unwilling = await loop.create_server(lambda: Deaf(deaf, tell), sock=closed)
    try:
        with full_house() as full:
            async with CrowdUpstream(script, tell) as upstream:
                ports = {
                    "mute": silent.sockets[0].getsockname()[1],
                    "deaf": unwilling.sockets[0].getsockname()[1],
                    "full": full,
                }
                async with serving(_configuration(folder, upstream, ports)) as served:
                    yield Crowd(served, upstream, mute, deaf, wanted, moved)
    finally:
        silent.close()
        unwilling.close()


@contextmanager
def full_house() -> Iterator[int]:
    """A port on which nobody is accepted any more: who dials it waits."""
    with socket.socket() as listening, ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            caller = waiting.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]
