"""One gateway in front of the failing providers of the demo, and all that one request leaves.

Everything runs in one loop on loopback: the providers on ports of their own, the gateway on one,
the client on a raw socket, so that not a byte of the answer is missed.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.wire.gateways import CHAT, CREDENTIAL, KEYED, Served, config_text, serving
from tests.wire.listening import parsed
from tidegate.demo.doors import Doors
from tidegate.demo.leaks import LEAKS
from tidegate.demo.listener import bind, listening
from tidegate.demo.providers import Providers
from tidegate.limits.estimate import TextMeter, estimate_request
from tidegate.limits.ledger import Usage, scope_key
from tidegate.policy import Principal
from tidegate.routing.targets import TargetSnapshot
from tidegate.sse import Decoder
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import request_bytes

DEADLINE_S = 1.2
PATIENT = {"first_token_s": 10.0, "idle_s": 10.0, "total_s": 30.0, "stream_total_s": 30.0}
SHORT = {
    "connect_s": DEADLINE_S / 2,
    "first_token_s": DEADLINE_S,
    "idle_s": DEADLINE_S,
    "total_s": 30.0,
    "stream_total_s": 30.0,
}
TENANT = Principal("acme", "acme", ("tenant",), "")
MESSAGES = [{"role": "user", "content": "hi"}]
# What an upstream may say of itself, and where it is: none of it is a client's business.
NEVER = (
    *LEAKS,
    CREDENTIAL,
    "psycopg",
    "Traceback",
    "127.0.0.1",
    "html",
    "x-upstream",
    "organization",
)


@dataclass(frozen=True, slots=True)
class Got:
    """What the client has, in bytes and read."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    body: bytes

    @property
    def events(self) -> list[bytes]:
        """The payloads of a stream, in order."""
        return [event.data for event in Decoder(1 << 20).feed(self.body)]

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def values(self) -> list[Any]:
        """The JSON values: of the one document, or of every event but the end mark."""
        if not self.is_stream:
            return [json.loads(self.body)]
        return [json.loads(data) for data in self.events if data != b"[DONE]"]

    @property
    def is_done(self) -> bool:
        """Whether the last event is the end mark."""
        return self.is_stream and self.events[-1:] == [b"[DONE]"]

    @property
    def error(self) -> dict[str, str] | None:
        """The error object, of a document or of the last event."""
        error: dict[str, str] | None = self.values[-1].get("error")
        return error

    @property
    def text(self) -> str:
        """The text that arrived."""
        text = ""
        for value in self.values:
            for choice in value.get("choices", ()):
                piece = choice.get("delta") or choice.get("message") or {}
                text += piece.get("content") or ""
        return text

    @property
    def finishes(self) -> list[str]:
        """The finish reasons that arrived."""
        choices = [choice for value in self.values for choice in value.get("choices", ())]
        return [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]


class WatchedProviders(Providers):
    """They keep the heads of the requests they get, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].endswith("/chat/completions"):
            self.heads.append({n.decode(): v.decode() for n, v in scope["headers"]})
        await super().__call__(scope, receive, send)


@dataclass
class FaultWorld:
    """The providers, the doors before them, and the gateway."""

    providers: WatchedProviders
    doors: Doors
    served: Served

    async def behave(self, provider: str, *behaviors: str, **options: Any) -> None:
        """As `/_set`."""
        self.providers.set(provider, *behaviors, **options)
        await self.doors.follow(provider)

    async def ask(self, *, stream: bool, headers: Any = (), **fields: Any) -> Got:
        """One request, and every byte until the gateway closes; it may hold no leak."""
        raw = await self.served.scene.raw(asking(stream=stream, headers=headers, **fields))
        status, heads, rest = parsed(raw)
        if heads.get("transfer-encoding") == "chunked":
            rest = unchunked(rest)
        got = Got(status, heads, raw, rest)
        leaks = [word for word in NEVER if word.encode() in raw]
        assert leaks == [], raw
        return got

    async def books(self) -> Usage:
        """Where the tenant's limit stands, once every reservation has ended."""
        gateway = self.served.app
        await gateway._charging.drain(WAIT_S)
        (limit,) = gateway._revision.chat.limits.limits
        return await gateway._ledger.usage(limit, scope_key(limit.per, TENANT))

    def target(self, provider: str) -> TargetSnapshot | None:
        """How the gateway thinks a provider is doing; None if it was never asked."""
        seen = self.served.app._targets.snapshot(self.served.app._clock.monotonic_s())
        return next((target for target in seen if target.provider == provider), None)

    def verdict(self, provider: str) -> str:
        """What one request has said about a provider: "" if nothing."""
        target = self.target(provider)
        if target is None:
            return ""
        if target.state != "closed":
            return "open"
        resting = "rests" if target.cooling_s > 0.0 else ""
        told = {(0, 0): resting, (1, 0): "good", (0, 1): "bad"}
        return told[target.successes, target.failures]

    @property
    def calls(self) -> tuple[int, int]:
        """How often each provider was asked."""
        return self.providers.calls["primary"], self.providers.calls["backup"]


def asking(*, stream: bool, headers: Any = (), **fields: Any) -> bytes:
    """The bytes of one request, after which the connection ends."""
    body = {"model": "m", "messages": MESSAGES, "max_tokens": 100, **fields, "stream": stream}
    named = [("Content-Type", "application/json"), KEYED, ("Connection", "close"), *headers]
    return request_bytes("POST", CHAT, headers=named, body=json.dumps(body).encode())


def estimated_prompt() -> int:
    """What the gateway takes the prompt of `ask` for when nobody says what it was."""
    return estimate_request({"messages": MESSAGES, "max_tokens": 100}).input_tokens


def counted(text: str) -> int:
    """The tokens of an answer of which nobody says how many it has."""
    meter = TextMeter()
    meter.add(text)
    return meter.tokens


def unchunked(body: bytes) -> bytes:
    """A chunked body; it has its last chunk, or AssertionError."""
    whole = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        if int(size, 16) == 0:
            assert body == b"\r\n"
            return whole
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]


@asynccontextmanager
async def fault_world(
    folder: Path,
    *,
    deadlines: Mapping[str, float] = PATIENT,
    targets: tuple[str, ...] = ("primary", "backup"),
    route: Mapping[str, Any] | None = None,
    credentials: Mapping[str, str] | None = None,
    **parts: Any,
) -> AsyncIterator[FaultWorld]:
    """The world with these deadlines and targets; `route` and `parts` change the configuration.

    Both providers have the same credential unless `credentials` says otherwise.
    """
    providers = WatchedProviders()
    async with listening(providers, bind(0)), Doors(providers) as doors:
        urls = {name: f"http://127.0.0.1:{port}/v1" for name, port in doors.ports.items()}
        routes = [
            {
                "name": "default",
                "candidates": [{"provider": name} for name in targets],
                "cooling": {"on_429_s": 5.0},
                "deadlines": {"connect_s": 2.0, **deadlines},
                **(route or {}),
            }
        ]
        caps = {"server": {"caps": {"upstream_event_bytes": 262_144}}}
        named = {
            name: {"base_url": url, "credentials": [(credentials or {}).get(name, CREDENTIAL)]}
            for name, url in urls.items()
        }
        text = config_text(folder, providers=named, routes=routes, **{**caps, **parts})
        async with serving(text) as served:
            yield FaultWorld(providers, doors, served)
