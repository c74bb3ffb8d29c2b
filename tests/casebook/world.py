"""What does a test of a whole case stand on: a gateway, its providers, its clients?

Lives here: one gateway process in front of scripted providers (or one scripted MCP backend) for a
case of kind steps, and short ways to ask and to look. Does not live here: the cases themselves
(tests/cases), what providers do (behaviors).
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.casebook import behaviors, configs
from tests.casebook.backend import Backend
from tests.casebook.client import ask
from tests.casebook.gateways import SERVE, Gateway
from tests.casebook.seen import Call, Exchange, Mismatch, Sent, short
from tests.casebook.upstreams import Answerer, Upstreams
from tests.casebook.waiting import passing

TENANT = "acme"
WAIT_S = 30.0
CHAT_PATH = "/v1/chat/completions"
_JSON = ("Content-Type", "application/json")


def play(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the body of a case to its end; used by the test functions."""
    asyncio.run(body())


def provider_key(name: str) -> str:
    """The credential of one provider."""
    return "-".join(("case", "provider", name))


class World:
    """To be entered with `async with`. `config` is laid over what the other arguments say.

    `providers` are scripted and answer well until told otherwise with `behave`; `limit` and
    `parallel` are words as in the case files; `route` overrides parts of the only route.
    """

    def __init__(
        self,
        *,
        providers: Sequence[str] = ("primary", "backup"),
        limit: str = "",
        route: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVE,
    ) -> None:
        self._command = command
        self._providers = list(providers)
        self._limit = limit
        self._route = dict(route or {})
        self._config = dict(config or {})
        self._environment = dict(environment or {})
        self.upstreams = Upstreams()
        self.backend = Backend()
        self._gateway: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        """The process."""
        if self._gateway is None:
            raise RuntimeError("enter the world first")
        return self._gateway

    def behave(self, name: str, what: str | Answerer) -> None:
        """From now on the provider does this: words of behaviors, or an answerer."""
        self.upstreams.answer(name, behaviors.behavior(what) if isinstance(what, str) else what)

    def calls(self, name: str) -> list[Call]:
        """What one provider got so far."""
        return self.upstreams.of(name)

    def reached(self) -> int:
        """Requests that reached any provider."""
        return sum(len(self.calls(name)) for name in self._providers)

    async def chat(
        self,
        *,
        text: str = "hi",
        headers: Sequence[tuple[str, str]] = (),
        role: str = "tenant",
        **fields: Any,
    ) -> Exchange:
        """One chat request; `fields` are further members of its body."""
        body = {"model": "m", "messages": [{"role": "user", "content": text}]} | fields
        return await self.post(CHAT_PATH, body, headers=headers, role=role)

    async def chats(self, count: int, **fields: Any) -> list[Exchange]:
        """So many chat requests at the same time."""
        return list(await asyncio.gather(*(self.chat(**fields) for _ in range(count))))

    async def mcp(
        self,
        message: object,
        *,
        role: str = "viewer",
        headers: Sequence[tuple[str, str]] = (),
        method: str = "POST",
    ) -> Exchange:
        """One MCP message."""
        accept = ("Accept", "application/json, text/event-stream")
        return await self.post(
            "/mcp", message, headers=[accept, *headers], role=role, method=method
        )

    async def post(
        self,
        path: str,
        value: object,
        *,
        headers: Sequence[tuple[str, str]] = (),
        role: str = "tenant",
        method: str = "POST",
    ) -> Exchange:
        """One request with a JSON body (None: without a body)."""
        sent = self.sent(path, value, headers=headers, role=role, method=method)
        return await ask(self.gateway.port, sent)

    def sent(
        self,
        path: str,
        value: object,
        *,
        headers: Sequence[tuple[str, str]] = (),
        role: str = "tenant",
        method: str = "POST",
    ) -> Sent:
        """The request without sending it."""
        own = [("Authorization", f"Bearer {self.key(role)}"), *headers]
        if value is None:
            return Sent(method, path, own)
        return Sent(method, path, [*own, _JSON], json.dumps(value).encode())

    def key(self, role: str = "tenant") -> str:
        """The key of the client with that role."""
        return configs.key_of(TENANT, role)

    async def settled(self, least: int = 1) -> int:
        """Tokens charged so far, once at least that many are."""
        return int(await self.metric("tidegate_tokens_total", lambda value: value >= least))

    async def metric(self, name: str, true: Callable[[float], bool], **labels: str) -> float:
        """A sample, read again until it fits or `WAIT_S` is over; then the last reading."""
        value = 0.0
        for _ in range(int(WAIT_S / 0.05)):
            value = await asyncio.to_thread(lambda: self.gateway.metric(name, **labels))
            if true(value):
                break
            await passing(0.05)
        return value

    async def breaker(self, provider: str = "primary") -> str:
        """closed, half_open or open."""
        read = self.gateway.metric
        value = await asyncio.to_thread(lambda: read("tidegate_breaker_state", provider=provider))
        return ("closed", "half_open", "open")[int(value)]

    async def __aenter__(self) -> Self:
        await self.upstreams.__aenter__()
        for name in self._providers:
            self.upstreams.answer(name, behaviors.ok)
        self.upstreams.answer("tools", self.backend.serve)
        self._gateway = Gateway(
            self._whole_config(), environment=self._environment, command=self._command
        )
        try:
            await asyncio.to_thread(self._gateway.start)
        except BaseException:
            await self.upstreams.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.gateway.__exit__, None, None, None)
        await self.upstreams.__aexit__(kind, error, trace)

    def _whole_config(self) -> dict[str, Any]:
        keys = [
            {"key": self.key(role), "principal": role, "tenant": TENANT, "roles": [role]}
            for role in ("tenant", *configs.ROLES)
        ]
        tools = configs.for_tools([], self.upstreams.url("tools"), configs.Wanted())
        config: dict[str, Any] = {
            "identity": {"keys": keys},
            "redaction": dict(configs.ENFORCED),
            "providers": {
                name: {
                    "base_url": f"{self.upstreams.url(name)}/v1",
                    "credentials": [provider_key(name)],
                }
                for name in self._providers
            },
            "routes": [
                {
                    "name": "default",
                    "candidates": [{"provider": name} for name in self._providers],
                    **self._route,
                }
            ],
            "mcp": tools["mcp"],
        }
        config["mcp"]["servers"]["backend"]["redaction"] = tools["redaction"]
        if self._limit:
            config["limits"] = [configs.limit(self._limit)]
        return configs.merge(config, self._config)


async def within(seconds: float, what: str, waiting: Awaitable[Any]) -> Any:
    """The result of `waiting`; Mismatch if it takes longer."""
    try:
        return await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        raise Mismatch(f"{what} took more than {seconds:g} s") from None


def statuses(exchanges: Sequence[Exchange]) -> dict[int, int]:
    """How often each status was answered."""
    found: dict[int, int] = {}
    for exchange in exchanges:
        found[exchange.status] = found.get(exchange.status, 0) + 1
    return dict(sorted(found.items()))


def lacks(words: Sequence[str], text: str, where: str) -> None:
    """Raises Mismatch if one of the words is in the text."""
    for word in words:
        at = text.find(word)
        if at >= 0:
            raise Mismatch(f"{where} holds {word!r}: {short(text[max(0, at - 60) : at + 60])}")


def used_of(exchange: Exchange) -> tuple[int, int]:
    """(used, cap) as a 429 tells them."""
    error = exchange.json.get("error", {}) if isinstance(exchange.json, dict) else {}
    found = re.search(r"(\d+) of (\d+) used", str(error.get("message", "")))
    if found is None:
        raise Mismatch(f"status {exchange.status}: {short(exchange.text)}")
    return int(found[1]), int(found[2])
