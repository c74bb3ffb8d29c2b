"""What must a store of reservations guarantee?

Lives here: the words of a limit (Limit, Need, Charge), of an answer (Granted, Refused,
NeverFits, Usage), which limits concern a call (LimitTable), and the Ledger protocol. Does not
live here: the arithmetic of the window (window), the life of a reservation (books), any store.
"""

import fnmatch
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, Protocol, assert_never
from urllib.parse import unquote

from msgspec import Struct

from tidegate.policy import Principal

Unit = Literal["tokens", "input_tokens", "output_tokens", "requests", "concurrent", "money_micros"]
Scope = Literal["key", "principal", "tenant", "global"]
OnStoreDown = Literal["closed", "local_share", "open"]

MAX_AMOUNT = 10**12
"""No single amount counts as more: a hostile usage figure must not overflow a store."""


@dataclass(frozen=True)
class Limit:
    """At most `cap` of `unit` in any `window_s` seconds, for each member of `per`.

    The five tuples are glob patterns; a limit concerns a call when each of its kind matches.
    `routes` speaks of model calls, `servers` and `tools` of MCP calls; with none of the three
    given it concerns every model call. `roles` matches when any role of the principal does;
    "*" also matches a principal without roles. For `concurrent` the window is irrelevant.
    """

    name: str
    unit: Unit
    cap: int
    window_s: float = 60.0
    per: Scope = "tenant"
    tenants: tuple[str, ...] = ("*",)
    roles: tuple[str, ...] = ("*",)
    routes: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    on_store_down: OnStoreDown = "closed"

    def __post_init__(self) -> None:
        if not 0 <= self.cap <= MAX_AMOUNT:
            raise ValueError(f"limit {self.name}: cap must be between 0 and {MAX_AMOUNT}")
        if not 0.001 <= self.window_s <= 366 * 86_400:
            raise ValueError(f"limit {self.name}: window_s must be between 0.001 and one year")

    @cached_property
    def window_us(self) -> int:
        """The window in whole microseconds, the unit all stores count time in."""
        return round(self.window_s * 1_000_000)


@dataclass(frozen=True, slots=True)
class Need:
    """What one call takes, or took. It always counts as one request and one concurrent slot.

    `output_is_default`: the caller named no maximum, so `output_tokens` is our own guess. It
    then gives way to the cap (see `amount_of`). `prompt_micros` is the part of `money_micros`
    that the prompt alone costs.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    output_is_default: bool = False
    money_micros: int = 0
    prompt_micros: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together."""
        return self.input_tokens + self.output_tokens


class Charge(Struct, frozen=True, gc=False):
    """What one limit is asked for: `amount` of its unit, in the scope `scope_key`."""

    limit: Limit
    scope_key: str
    amount: int


class Standing(Struct, frozen=True, gc=False):
    """Where a limit stands after an answer: a by-product of the decision, not a second look.

    `used` counts everything in the window, leases included; `free` is what is left of the cap.
    After `reset_s` without further traffic nothing is left in the window: 0.0 when nothing is
    in it, and for `concurrent`. It follows the newest bucket, also when that was released
    since, so it may be late by what a caller gave back, never early.
    """

    limit: Limit
    used: int
    free: int
    reset_s: float


@dataclass(slots=True)
class Granted:
    """Every limit had room; the lease `reservation_id` holds it.

    `standings`: one for each charge, in their order, with this grant counted; empty when the
    lease was held already. `degraded`: the store did not take part (see `on_store_down`).
    """

    reservation_id: str
    standings: tuple[Standing, ...] = field(default=(), compare=False)
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """No room now. Without other traffic this very request fits after `retry_after_s` (> 0).

    `limit` is the one that keeps it waiting longest. `exact` is False for a concurrency limit:
    when a running call ends is not known, so the time is only advice. `standings` and
    `degraded` as in Granted, without this request.
    """

    limit: Limit
    used: int
    requested: int
    retry_after_s: float
    exact: bool = True
    standings: tuple[Standing, ...] = field(default=(), compare=False)
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class NeverFits:
    """`requested` is more than the whole of `limit`: no wait helps."""

    limit: Limit
    requested: int


@dataclass(frozen=True, slots=True)
class Usage:
    """One limit in one scope, now.

    `used` is settled, `reserved` still leased, `free` what a new request may take. `overrun` is
    the part of `used` that exceeded its reservation. `next_free_s`: seconds until something
    leaves the window; None when nothing is in it, or when that is not known (`concurrent`).
    """

    used: int
    reserved: int
    free: int
    next_free_s: float | None
    overrun: int = 0


class Ledger(Protocol):
    """Remembers who has taken what. Every method may raise StoreUnavailable and nothing else.

    A reservation is a lease. It ends once: settled, released, or expired when `lease_s` is
    over (its holder is taken for dead). An expired reservation stays charged at its estimate;
    a later settle or release still corrects it, once. Only the `owner` that reserved may end a
    reservation. If the holder of a reservation is the only user of a scope, its usage is exact
    after each awaited call.
    """

    @property
    def degraded(self) -> bool:
        """Whether the store failed to answer at the last attempt; for readiness and gauges."""

    @property
    def clock_ahead_s(self) -> float:
        """How far the wall clock was ahead of the time in the books when they were last used.

        Negative when it is behind; 0.0 while the difference is within `storetime.ALARM_S`.
        """

    async def open(self) -> None:
        """Make the store usable; raises StoreUnavailable if it is not."""

    async def close(self) -> None:
        """Finish what was accepted, as far as the store allows. Idempotent."""

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """Take all of `charges` or none; a refusal leaves no trace in the store.

        Each limit may occur once. Asking again for a lease that is held answers Granted without
        a second charge. When the call raises, or is cancelled, nothing stays reserved.
        """

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """End the lease by what was really used; None: unknown, so the estimate stands.

        More than was reserved is charged as well, in the place in the window where the
        reservation was made. True if this call changed the books; False if the lease had
        ended, belongs to another owner or never was. Once accepted it is applied even if the
        caller is cancelled or told StoreUnavailable, as soon as the store allows.
        """

    async def release(self, reservation_id: str, owner: str) -> bool:
        """End the lease and charge nothing. Answers and promises like `settle`."""

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """What is used, reserved and free now. Reads only."""

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """Every (limit, scope) of `limits` of which the store holds a counter. Reads only.

        By the order of `limits`, then by scope. Cost: a walk over all counters of the store.
        """


class LimitTable:
    """The configured limits, in order. Raises ValueError if two share a name."""

    def __init__(self, limits: Iterable[Limit]) -> None:
        self.limits = tuple(limits)
        if len({limit.name for limit in self.limits}) < len(self.limits):
            raise ValueError("two limits share a name")
        self._matchers = tuple(_Matcher(limit) for limit in self.limits)

    def charges(
        self,
        principal: Principal,
        *,
        route: str | None = None,
        server: str | None = None,
        tool: str | None = None,
        need: Need,
    ) -> tuple[Charge, ...]:
        """What this call asks of each limit that concerns it, in configuration order.

        `route` names a model call; `server` and `tool` an MCP call.
        """
        return tuple(
            Charge(matcher.limit, scope_key(matcher.limit.per, principal), amount)
            for matcher in self._matchers
            if matcher.concerns(principal, route, server, tool)
            # Without prices money is not counted; a row of zeros would only cost a write.
            if (amount := amount_of(matcher.limit, need)) or matcher.limit.unit != "money_micros"
        )

    def scopes(self, principal: Principal) -> tuple[tuple[Limit, str], ...]:
        """The limits that may concern calls of this caller, each with the scope it falls into."""
        return tuple(
            (matcher.limit, scope_key(matcher.limit.per, principal))
            for matcher in self._matchers
            if matcher.is_for(principal)
        )


def amount_of(limit: Limit, need: Need) -> int:
    """How much of `limit` a call that is expected to take `need` asks for.

    A guessed output is cut to what the cap leaves beside the prompt: a tenant whose whole limit
    is smaller than our default must not be refused its first request.
    """
    amount = measure(limit.unit, need)
    if not need.output_is_default:
        return amount
    prompt = {"output_tokens": 0, "tokens": need.input_tokens, "money_micros": need.prompt_micros}
    if prompt.get(limit.unit, limit.cap + 1) <= limit.cap:
        return min(amount, limit.cap)
    return amount


def measure(unit: Unit, need: Need) -> int:
    """How much of `unit` is in `need`; between 0 and MAX_AMOUNT."""
    match unit:
        case "requests" | "concurrent":
            return 1
        case "input_tokens":
            amount = need.input_tokens
        case "output_tokens":
            amount = need.output_tokens
        case "tokens":
            amount = need.total_tokens
        case "money_micros":
            amount = need.money_micros
        case _:
            assert_never(unit)
    return max(0, min(amount, MAX_AMOUNT))


_ISSUED_BY: Final = "%@"
"""Stands in no escaped name, and is no `/`: how many of those a key has says what it is."""


def scope_key(per: Scope, principal: Principal) -> str:
    """The name of the counter that `principal` shares with the others of its scope.

    Two issuers may know two callers by one name: neither may use up what is the other's.
    """
    match per:
        case "global":
            return "global"
        case "tenant":
            return f"tenant:{_escaped(principal.tenant)}"
        case "principal":
            issued = _ISSUED_BY + _escaped(principal.issuer) if principal.issuer else ""
            return f"principal:{_escaped(principal.tenant)}/{_escaped(principal.name)}{issued}"
        case "key":
            who = f"{_escaped(principal.tenant)}/{_escaped(principal.name)}"
            return f"key:{who}/{_escaped(principal.key_id)}"


def scope_names(key: str) -> tuple[str, ...]:
    """The kind of a scope and the names in it, the tenant first; the reverse of `scope_key`.

    Of a principal: tenant, name, and the issuer if there is one.
    """
    kind, _, names = key.partition(":")
    parts = names.replace(_ISSUED_BY, "/").split("/")
    return (kind, *map(unquote, parts)) if names else (kind,)


def _escaped(name: str) -> str:
    # Two names must not read as one ("a/b"+"c", "a"+"b/c"), and a name out of a token may hold
    # a lone surrogate, which no store can write.
    safe = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return safe.replace("%", "%25").replace("/", "%2F").replace("\x00", "%00")


class _Matcher:
    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._tenants = _globs(limit.tenants)
        self._any_role = "*" in limit.roles
        self._roles = _globs(limit.roles)
        is_for_tools = bool(limit.servers or limit.tools)
        routes = limit.routes or (() if is_for_tools else ("*",))
        self._routes = _globs(routes) if routes else None
        self._is_for_tools = is_for_tools
        # A caller may not slip past by writing Admin_Reset for admin_reset.
        self._servers = _globs(limit.servers or ("*",), fold=True)
        self._tools = _globs(limit.tools or ("*",), fold=True)

    def is_for(self, principal: Principal) -> bool:
        if not self._tenants(principal.tenant):
            return False
        return self._any_role or any(self._roles(role) for role in principal.roles)

    def concerns(
        self, principal: Principal, route: str | None, server: str | None, tool: str | None
    ) -> bool:
        if not self.is_for(principal):
            return False
        if route is not None:
            return self._routes is not None and self._routes(route)
        return self._is_for_tools and self._servers(server or "") and self._tools(tool or "")


def _globs(patterns: Sequence[str], *, fold: bool = False) -> Callable[[str], bool]:
    if "*" in patterns:
        return lambda _: True
    folded = [_folded(pattern) if fold else pattern for pattern in patterns]
    if not folded:
        return lambda _: False
    matches = re.compile("|".join(f"(?:{fnmatch.translate(one)})" for one in folded)).match
    if fold:
        return lambda name: matches(_folded(name)) is not None
    return lambda name: matches(name) is not None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


__all__ = [
    "MAX_AMOUNT",
    "Charge",
    "Granted",
    "Ledger",
    "Limit",
    "LimitTable",
    "Need",
    "NeverFits",
    "OnStoreDown",
    "Refused",
    "Scope",
    "Standing",
    "Unit",
    "Usage",
    "amount_of",
    "measure",
    "scope_key",
    "scope_names",
]
