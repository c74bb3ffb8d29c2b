"""What does a test of the chat path need: the path, scripted providers behind it, its traces."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.app.chat_upstreams import Providers, Script
from tests.app.virtual import clock_here
from tidegate.clock import Clock
from tidegate.gateway.accounting import Accounting
from tidegate.gateway.attempts import Attempts, Bounds
from tidegate.gateway.body import BodyGate, BodyReader
from tidegate.gateway.charge import Charging
from tidegate.gateway.chat import Chat, ChatPolicy
from tidegate.gateway.classifier import Classifiers
from tidegate.gateway.exposure import Exposure
from tidegate.gateway.front import Front, Path
from tidegate.gateway.logs import RefusalLog
from tidegate.gateway.masking import Masking
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.request_ids import RequestIds
from tidegate.identity.keys import KeyEntry, KeyTable
from tidegate.limits import LimitTable, MemoryLedger
from tidegate.limits.ledger import Ledger, Limit, Usage, scope_key
from tidegate.limits.prices import Price, PriceTable
from tidegate.policy import Principal
from tidegate.providers.base import Provider
from tidegate.records.entries import Step, Trail
from tidegate.redaction import RedactionPolicy
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.routing.plan import Cooling, Deadlines, Route, RouteTable, Target
from tidegate.routing.targets import Targets
from tidegate.testing.asgi import WAIT_S, ASGIClient, ASGIExchange
from tidegate.transport.inbox import Inboxes
from tidegate.transport.upstream import Transport

PATH = "/v1/chat/completions"
KEY = "-".join(("key", "of", "the", "test"))
SECRETS = {name: "-".join(("secret", "of", name)) for name in ("primary", "backup")}
LIMIT = Limit("tokens", "tokens", 50_000)
SLOTS = Limit("slots", "concurrent", 8)
MASKED = Masking(RedactionPolicy.preset())
OFF = Masking(RedactionPolicy.preset(), request="off", response="off", tool_arguments="off")
MESSAGES = [{"role": "user", "content": "hi"}]


@dataclass(slots=True)
class Records:
    """A recorder in memory."""

    begun: list[Trail] = field(default_factory=list)
    ends: list[Trail] = field(default_factory=list)

    def begin(self, trail: Trail) -> None:
        """Of Recorder."""
        self.begun.append(trail)

    def end(self, trail: Trail) -> None:
        """Of Recorder."""
        self.ends.append(trail)

    @property
    def outcomes(self) -> list[str]:
        """How each request ended, in order."""
        return [trail.snapshot().outcome for trail in self.ends]

    @property
    def steps(self) -> list[Step]:
        """The steps of the last request."""
        return list(self.ends[-1].snapshot().steps)

    def stages(self) -> list[str]:
        """The stages of the last request, in order."""
        return [step.stage for step in self.steps]


class ChatWorld:
    """The first listener with the chat path and two providers, primary before backup.

    `scripts` say what each provider does, attempt by attempt; `transport` replaces them. `targets`
    are names, or the targets themselves; `route` holds further fields of the route.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        transport: Transport | None = None,
        limits: Iterable[Limit] = (LIMIT, SLOTS),
        masking: Masking = OFF,
        deadlines: Deadlines | None = None,
        ledger: Ledger | None = None,
        urls: dict[str, str] | None = None,
        models: dict[str, str | None] | None = None,
        targets: tuple[str | Target, ...] = ("primary", "backup"),
        max_in_flight: int = 100,
        max_body_bytes: int = 1 << 22,
        bodies_bytes: int = 1 << 26,
        bounds: Bounds | None = None,
        attempts: int = 3,
        breaker: BreakerSettings | None = None,
        failover_on_credential_error: bool = False,
        prices: Mapping[str, Mapping[str, Price]] | None = None,
        seed: int = 1,
        route: Mapping[str, Any] | None = None,
        **scripts: Script | list[Script],
    ) -> None:
        self.clock: Clock = clock or clock_here()
        self.providers = Providers(**scripts)
        self.transport: Transport = transport or self.providers
        self.records = Records()
        self.metrics = Metrics()
        self.ledger = ledger or MemoryLedger(self.clock)
        self.charging = Charging(self.ledger, "test")
        self.targets = Targets()
        self.gate = BodyGate(bodies_bytes)
        asked = tuple(
            one if isinstance(one, Target) else Target(one, credential_id=one) for one in targets
        )
        names = dict.fromkeys(target.provider for target in asked)
        addresses = urls or {name: f"http://{name}.example/v1" for name in names}
        made = Route(
            "default",
            asked,
            deadlines=deadlines or Deadlines(first_token_s=2.0, idle_s=2.0, total_s=4.0),
            cooling=Cooling(on_429_s=0.0),
            breaker=breaker or BreakerSettings(),
            attempts=attempts,
            failover_on_credential_error=failover_on_credential_error,
        )
        self.route = replace(made, **route) if route else made
        self.policy = ChatPolicy(
            revision="r1",
            keys=keys(),
            routes=RouteTable([self.route]),
            limits=LimitTable(tuple(limits)),
            providers={
                name: Provider(
                    name, url, credentials=(SECRETS.get(name, name),), models=models or {}
                )
                for name, url in addresses.items()
            },
            masking={"default": masking},
            prices=PriceTable(prices or {}),
        )
        self.inboxes = Inboxes(self.clock)
        self.attempts = Attempts(
            self.transport,
            self.inboxes,
            self.clock,
            bounds or Bounds(1 << 23, 1 << 16),
            self.metrics,
            Random(seed),  # noqa: S311 - a test wants the same numbers again
        )
        self.chat = Chat(
            policy=lambda: self.policy,
            bodies=BodyReader(self.gate, max_bytes=max_body_bytes),
            charging=self.charging,
            attempts=self.attempts,
            targets=self.targets,
            accounting=Accounting(self.records, self.metrics, self.clock),  # type: ignore[arg-type]
            classifiers=Classifiers(self.transport, self.inboxes, self.clock, self.metrics),
        )
        self.paths = {PATH.encode(): Path(self.chat.serve)}
        self.front = Front(
            paths=lambda: self.paths,
            exposure=Exposure(loopback=True, allowed_origins=("https://app.example",)),
            max_in_flight=max_in_flight,
            metrics=self.metrics,
            refusals=RefusalLog(logging.getLogger("tidegate.test"), self.clock),
            mint=RequestIds(self.clock).mint,
        )
        self.client = ASGIClient(self.front)

    def exchange(
        self,
        body: object = None,
        *,
        key: str | None = KEY,
        headers: Iterable[tuple[str, str]] = (),
        **fields: object,
    ) -> ASGIExchange:
        """One request in flight; `body` bytes go as they are, `fields` are its members."""
        named = [("content-type", "application/json"), *headers]
        if key is not None:
            named.append(("authorization", f"Bearer {key}"))
        data = body if isinstance(body, bytes) else request(**fields)
        return self.client.exchange("POST", PATH, headers=named, body=data)

    async def post(self, body: object = None, **fields: Any) -> ASGIExchange:
        """A finished exchange."""
        async with self.exchange(body, **fields) as exchange:
            await exchange.read()
        return exchange

    async def usage(self, limit: Limit = LIMIT) -> Usage:
        """What the one tenant has used of a limit, once all settlements are done."""
        await self.charging.drain(WAIT_S)
        return await self.ledger.usage(limit, scope_key(limit.per, PRINCIPAL))

    async def assert_clean(self, ends: int) -> None:
        """Nothing of any request is left: no reservation, no bytes, no attempt, no slot."""
        assert await self.charging.drain(WAIT_S) == 0
        known = self.policy.limits.limits
        assert [(await self.usage(limit)).reserved for limit in known] == [0] * len(known)
        assert self.gate.held_bytes == 0
        assert self.front.in_flight == 0
        assert self.providers.running == []
        assert len(self.inboxes) == 0
        assert len(self.records.ends) == len(self.records.begun) == ends

    def state(self, provider: str = "primary") -> State:
        """The breaker of a provider's only target."""
        now_s = self.clock.monotonic_s()
        return next(s.state for s in self.targets.snapshot(now_s) if s.provider == provider)

    def state_or_none(self) -> State | None:
        """The breaker of the first provider; None if it was never asked."""
        return self.state() if self.providers.asked else None

    def metric(self, name: str, **labels: str) -> float:
        """The value of one counter; 0.0 if it was never counted."""
        total = 0.0
        for line in self.metrics.render()[1].decode().splitlines():
            if not line.startswith((f"tidegate_{name}{{", f"tidegate_{name} ")):
                continue
            if all(f'{label}="{value}"' in line for label, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total


def request(**fields: object) -> bytes:
    """The body of a chat request; a member given as None is left out."""
    members = {"model": "m", "messages": MESSAGES, "max_tokens": 100, **fields}
    return json.dumps({k: v for k, v in members.items() if v is not None}).encode()


PRINCIPAL = Principal("acme", "acme", ("tenant",), "k1")


def keys() -> KeyTable:
    """One key for one tenant."""
    return KeyTable([KeyEntry(hashlib.sha256(KEY.encode()).digest(), PRINCIPAL)])


def run(body: Any, *, runner: Callable[[Any], None] = asyncio.run) -> None:
    """Run one coroutine, and see that it leaves no task behind."""

    async def watched() -> None:
        await body
        leaked = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        if leaked:
            await asyncio.wait(leaked, timeout=0.5)
        assert [task for task in leaked if not task.done()] == []

    runner(watched())
