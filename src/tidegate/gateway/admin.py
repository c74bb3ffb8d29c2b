"""Is the gateway alive, is it ready, what are its numbers, and how are its targets?

The second listener as a raw ASGI application: GET /healthz, /readyz, /metrics and /targets. It
only reports: nothing here changes anything. Lives here: these four answers and their token. Does
not live here: which hosts and origins may ask (exposure), the sockets (supervise).
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import json as msgspec_json

from tidegate.config import Config, is_loopback
from tidegate.errors import MethodNotAllowed, NotFound, TidegateError, Unauthenticated, envelope
from tidegate.gateway.exposure import Exposure
from tidegate.gateway.respond import Receive, Responder, Scope, Send
from tidegate.gateway.target_rows import TargetsReport

Guard = Callable[[Scope], TidegateError | None]
"""Looks at Host and Origin of one request; the refusal, or None."""

Refresh = Callable[[str], Awaitable[None]]
"""Brings what the answer of a path is made of up to date."""

_NO_STORE = (b"cache-control", b"no-store")
_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/targets"})


class Reporting(Protocol):
    """Says on /readyz how things are."""

    def report(self) -> Mapping[str, object]:
        """The body; "ready" in it decides the status."""


class Rendering(Protocol):
    """Says on /metrics how much there was."""

    def render(self) -> tuple[str, bytes]:
        """Content type and body."""


Targets = Callable[[], TargetsReport]
"""Says on /targets how each target is."""


class RecordsHealth(Protocol):
    """What readiness wants to know of the records."""

    @property
    def degraded(self) -> bool:
        """Whether records are not being kept right now."""

    @property
    def dropped(self) -> int:
        """Ends that were not recorded."""


@dataclass(frozen=True, slots=True)
class IssuersHealth:
    """The issuers whose keys are not at hand, and whether anybody can be identified at all."""

    without_keys: tuple[str, ...] = ()
    serves: bool = True


class Readiness:
    """Why the gateway should, or should not, get requests.

    The supervisor sets `revision`, `reload_failed` and `draining`. A failed reload is reported
    and does not make the gateway unready: the last good configuration is in force. So is a
    store that is away while some limit is not closed without it (`serves_without_store`), and
    a wall clock that does not agree with the time in the books (`clock_ahead_s`, 0.0: it does):
    limits count on by the time that has passed. Routes whose targets all rest
    (`resting_routes`) are named, too: every gateway in front of the same providers sees the same,
    the other routes serve, and a 503 with the true time to come back is an answer. So are files of
    tenants' rules that are not right (`broken_rules`): the last good ones are in force. So are
    issuers without keys (`issuers`): only when nobody can be identified is that a reason to be
    unready.
    """

    def __init__(
        self,
        *,
        records: RecordsHealth,
        store_degraded: Callable[[], bool],
        serves_without_store: Callable[[], bool] = lambda: False,
        clock_ahead_s: Callable[[], float] = lambda: 0.0,
        resting_routes: Callable[[], list[str]] = list,
        demo: bool = False,
        revision: str = "",
    ) -> None:
        self._records = records
        self._store_degraded = store_degraded
        self._serves_without_store = serves_without_store
        self._clock_ahead_s = clock_ahead_s
        self._resting_routes = resting_routes
        self.issuers: Callable[[], IssuersHealth] = IssuersHealth
        self._demo = demo
        self.revision = revision
        self.broken_rules: Callable[[], list[str]] = list
        self.reload_failed = False
        self.draining = False

    def report(self) -> dict[str, object]:
        """The body of /readyz; `ready` decides its status."""
        store_degraded, records_degraded = self._store_degraded(), self._records.degraded
        unready = {
            "draining": self.draining,
            "store_degraded": store_degraded,
            "records_degraded": records_degraded,
        }
        reasons = [reason for reason, holds in unready.items() if holds]
        # All gateways lose a shared store at once: unready, they would leave nobody to serve.
        serves, issuers = self._serves_without_store(), self.issuers()
        ready = issuers.serves and not [
            one for one in reasons if not (serves and one == "store_degraded")
        ]
        if issuers.without_keys:
            reasons.append("issuer_keys_missing")
        if self.reload_failed:
            reasons.append("config_reload_failed")
        ahead_s = self._clock_ahead_s()
        if ahead_s:
            reasons.append("wall_clock_stepped")
        resting = self._resting_routes()
        if resting:
            reasons.append("route_resting")
        broken = self.broken_rules()
        if broken:
            reasons.append("tenant_rules_broken")
        return {
            "ready": ready,
            "reasons": reasons,
            "config": {
                "revision": self.revision,
                "last_reload": "failed" if self.reload_failed else "ok",
            },
            "store": {"degraded": store_degraded},
            "clock": {"ahead_s": round(ahead_s, 3)},
            "routes": {"resting": resting},
            "issuers": {"without_keys": list(issuers.without_keys)},
            "tenant_rules": {"broken": broken},
            "records": {"degraded": records_degraded, "dropped": self._records.dropped},
            "draining": self.draining,
            "demo": self._demo,
        }


class Admin:
    """The application. Without `metrics` there is no /metrics; with `token` all need it.

    `refresh` is awaited before every answer but /healthz: some have to ask others first.
    """

    def __init__(
        self,
        readiness: Reporting,
        *,
        metrics: Rendering | None,
        targets: Targets,
        token: str | None,
        guard: Guard,
        refresh: Refresh | None = None,
    ) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._targets = targets
        self._refresh = refresh
        self._token = None if token is None else b"Bearer " + token.encode()
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; other ASGI scopes than http are none of ours."""
        if scope["type"] != "http":
            return
        responder = Responder(send, secrets.token_hex(16), extra=(_NO_STORE,))
        try:
            self._check(scope)
            await self._answer(scope["path"], responder)
        except TidegateError as error:
            allow: list[tuple[bytes, bytes]] = []
            if isinstance(error, MethodNotAllowed):
                allow.append((b"allow", b"GET, HEAD"))
            if isinstance(error, Unauthenticated):
                allow.append((b"www-authenticate", b"Bearer"))
            body = envelope(error, responder.request_id)
            await responder.json(error.status, body, allow)

    def _check(self, scope: Scope) -> None:
        refusal = self._guard(scope)
        if refusal is not None:
            raise refusal
        if not self._is_authorized(scope):
            raise Unauthenticated
        if scope["path"] not in _PATHS:
            raise NotFound
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed

    def _is_authorized(self, scope: Scope) -> bool:
        if self._token is None:
            return True
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, rest = given[0].partition(b" ")
        # The scheme is case-insensitive (RFC 9110 section 11.1), the token is not.
        return hmac.compare_digest(scheme.title() + b" " + rest.strip(), self._token)

    async def _answer(self, path: str, responder: Responder) -> None:
        if path == "/healthz":
            await responder.json(200, {"alive": True})
            return
        if self._refresh is not None:
            await self._refresh(path)
        if path == "/readyz":
            report = self._readiness.report()
            await responder.json(200 if report["ready"] else 503, report)
        elif path == "/targets":
            await responder.json(200, msgspec_json.encode(self._targets()))
        elif self._metrics is not None:
            content_type, body = self._metrics.render()
            await responder.whole(200, body, ((b"content-type", content_type.encode()),))
        else:
            raise NotFound


def admin_of(
    config: Config,
    readiness: Reporting,
    metrics: Rendering,
    targets: Targets,
    *,
    refresh: Refresh | None = None,
) -> Admin:
    """The application of the second listener, as the file wants it."""
    settings = config.server.admin
    exposure = exposure_of(config, settings.host)
    return Admin(
        readiness,
        metrics=metrics if config.telemetry.metrics else None,
        targets=targets,
        token=settings.token.get_secret_value() if settings.token else None,
        guard=lambda scope: exposure.refusal(scope["method"], scope["headers"]),
        refresh=refresh,
    )


def exposure_of(config: Config, host: str) -> Exposure:
    """Which Host and Origin the listener on `host` takes."""
    return Exposure(
        loopback=is_loopback(host),
        allowed_hosts=config.server.allowed_hosts,
        allowed_origins=config.server.allowed_origins,
    )


__all__ = [
    "Admin",
    "Guard",
    "IssuersHealth",
    "Readiness",
    "RecordsHealth",
    "admin_of",
    "exposure_of",
]
