"""Which targets serve this request, in which order?

Lives here: routes, their targets and deadlines, and the table that picks a route by model and
principal. Does not live here: the order for one request (order.py), whether a target is healthy
(breaker.py, targets.py), what happens after a failure (failover.py), addresses and keys
(providers).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Literal

from tidegate.errors import Forbidden, InvalidRequest, TidegateError
from tidegate.policy import Principal
from tidegate.routing.breaker import BreakerSettings

Strategy = Literal["priority", "weighted", "least_latency"]
_Matcher = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The clocks of one request, in seconds.

    `first_token_s` bounds one attempt: for a stream until its first content, for a plain answer
    the whole attempt. `idle_s` runs between contents of a stream. `total_s` (plain) and
    `stream_total_s` (stream) bound the request with all its attempts.
    """

    connect_s: float = 2.0
    first_token_s: float = 10.0
    idle_s: float = 15.0
    total_s: float = 60.0
    stream_total_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Cooling:
    """How long a target rests after a 429 that names no time of its own; 0 = not at all."""

    on_429_s: float = 5.0
    max_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Target:
    """One provider with one of its credentials.

    `credential` is the index into the provider's credentials and `credential_id` a name for the
    secret that changes when the secret does (such as eight hex digits of its hash; "" if
    unknown). `upstream_model` None keeps the name the client sent. `context_tokens` None means
    that the window is not declared. `weight` is its share for the strategy `weighted`.
    `parameters` are set in the body of every request to it: JSON scalars by field name, which may
    hold a secret and so are in no `repr`. `address` is where the provider is: what is known of a
    target is forgotten when it moves.
    """

    provider: str
    credential: int = 0
    upstream_model: str | None = None
    context_tokens: int | None = None
    weight: float = 1
    credential_id: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict, hash=False, repr=False)
    address: str = field(default="", compare=False, repr=False)

    def shares_credential(self, other: "Target") -> bool:
        """Whether both would present the same secret."""
        if self.credential_id and other.credential_id:
            return self.credential_id == other.credential_id
        return (self.provider, self.credential) == (other.provider, other.credential)


@dataclass(frozen=True, slots=True)
class Route:
    """What the operator said about one group of models.

    `model`, `tenants` and `roles` are globs (`*`, `?`, `[...]`, case matters). `targets` are in
    the order of the file. `attempts` bounds the calls made for one request, and
    `default_output_tokens` is reserved for the answer to one that names no maximum. `redaction`
    holds overrides that this package does not read.
    """

    name: str
    targets: tuple[Target, ...]
    model: str = "*"
    tenants: tuple[str, ...] = ("*",)
    roles: tuple[str, ...] = ("*",)
    strategy: Strategy = "priority"
    deadlines: Deadlines = field(default_factory=Deadlines)
    attempts: int = 3
    default_output_tokens: int = 1024
    cooling: Cooling = field(default_factory=Cooling)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    failover_on_credential_error: bool = False
    redaction: object = None


class RouteTable:
    """The routes in the order of the file; the first that matches wins."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes: tuple[Route, ...] = tuple(routes)
        self._entries = tuple(_Entry(route) for route in self.routes)

    def match(self, model: str | None, principal: Principal) -> Route | None:
        """The route for this model and principal, or None. Cost O(number of routes).

        A request that names no model is served by a route for every model ("*") only.
        """
        for entry in self._entries:
            if entry.serves(model) and entry.admits(principal):
                return entry.route
        return None

    def refusal(self, model: str | None, principal: Principal) -> TidegateError:
        """The error to raise when `match` found nothing: no such model, or not for this caller."""
        detail = f"no route for {principal.tenant}/{principal.name}"
        if any(entry.serves(model) for entry in self._entries):
            return Forbidden(detail)
        if model is None:
            return InvalidRequest(detail, public="Name a model.", param="model")
        return InvalidRequest(detail, public="No route serves this model.", param="model")


class _Entry:
    """A route with its globs compiled."""

    __slots__ = ("_model", "_roles", "_tenants", "route")

    def __init__(self, route: Route) -> None:
        self.route = route
        self._model = _glob(route.model)
        self._tenants = _globs(route.tenants)
        self._roles = _globs(route.roles)

    def serves(self, model: str | None) -> bool:
        """Whether the route is meant for `model`; None is "no model named"."""
        if model is None:
            return self._model is None
        return self._model is None or self._model(model) is not None

    def admits(self, principal: Principal) -> bool:
        """Whether tenant and at least one role match; "*" also admits those without a role."""
        return _any(self._tenants, (principal.tenant,)) and _any(self._roles, principal.roles)


def _glob(pattern: str) -> _Matcher | None:
    return None if pattern == "*" else re.compile(translate(pattern)).fullmatch


def _globs(patterns: Sequence[str]) -> tuple[_Matcher, ...] | None:
    return None if "*" in patterns else tuple(re.compile(translate(p)).fullmatch for p in patterns)


def _any(matchers: tuple[_Matcher, ...] | None, values: Sequence[str]) -> bool:
    return matchers is None or any(m(value) is not None for m in matchers for value in values)


__all__ = ["Cooling", "Deadlines", "Route", "RouteTable", "Strategy", "Target"]
