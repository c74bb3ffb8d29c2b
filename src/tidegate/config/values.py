"""How does the tree of the file become the frozen values that the floors below use?

Lives here: one function for each of those values, no decisions. Does not live here: what the
values mean (identity, limits, mcp, providers, routing), redaction (policies), the composition
(gateway).
"""

import hashlib
from functools import partial
from pathlib import Path

from tidegate.config.models import Config
from tidegate.config.policies import effective_redaction
from tidegate.config.rulefiles import TenantFile, file_name
from tidegate.config.sections.identity import Caller, Key, Limit
from tidegate.config.sections.mcp import Allow, Deny, McpServer
from tidegate.config.sections.mcp import Rule as RuleSection
from tidegate.config.sections.routing import Breaker, Candidate, Provider, Route
from tidegate.config.sections.server import Caps
from tidegate.identity import KeyEntry, KeyTable
from tidegate.identity.jwt_claims import IssuerSettings
from tidegate.limits import ledger
from tidegate.limits.prices import Price, PriceTable
from tidegate.mcp import Rule, RuleSet, TenantRules, compile_condition
from tidegate.mcp.servers import Place, ServerAddress, ServerCommand
from tidegate.policy import Principal
from tidegate.providers import base
from tidegate.routing import BreakerSettings, Cooling, Deadlines, RouteTable, Target
from tidegate.routing import Route as RouteValue

ANONYMOUS = "anonymous"


def caps(config: Config) -> Caps:
    """Sizes and timers of the listeners."""
    return config.server.caps


def key_table(config: Config) -> KeyTable:
    """The keys as digests, and the anonymous principal if there is one."""
    entries = [
        KeyEntry(bytes.fromhex(digest), _principal(key, key_id=digest[:8]))
        for key in config.identity.keys
        if (digest := key.digest) is not None
    ]
    anonymous = config.identity.anonymous
    return KeyTable(
        entries,
        anonymous=_principal(anonymous, key_id=ANONYMOUS) if anonymous is not None else None,
    )


def callers(config: Config) -> tuple[Principal, ...]:
    """Everybody whom the file itself names: its keys in order, then the anonymous caller."""
    anonymous = config.identity.anonymous
    return (
        *(_principal(key, key_id=(key.digest or "")[:8]) for key in config.identity.keys),
        *((_principal(anonymous, key_id=ANONYMOUS),) if anonymous is not None else ()),
    )


def token_issuers(config: Config) -> tuple[IssuerSettings, ...]:
    """The accepted issuers of tokens, in the order of the file."""
    return tuple(
        IssuerSettings(
            issuer=entry.issuer,
            audience=entry.audience,
            jwks_url=entry.jwks_url,
            algorithms=entry.algorithms,
            principal_claim=entry.claims.principal,
            tenant_claim=entry.claims.tenant,
            roles_claim=entry.claims.roles,
            leeway_s=entry.leeway_s,
        )
        for entry in config.identity.jwt
    )


def allowed_roles(config: Config) -> tuple[str, ...]:
    """The roles that rules of tools allow something to by name, in the order of the file."""
    named = [role for rule in config.mcp.rules if rule.allow for role in rule.allow.roles or ()]
    return tuple(dict.fromkeys(role for role in named if not {"*", "?"} & set(role)))


def _principal(caller: Caller | Key, *, key_id: str) -> Principal:
    return Principal(caller.principal, caller.tenant, caller.roles, key_id)


def limit_table(config: Config) -> ledger.LimitTable:
    """The limits in the order of the file."""
    on_redis = config.store.url.startswith(("redis://", "rediss://"))
    return ledger.LimitTable(_limit(limit, on_redis=on_redis) for limit in config.limits)


def _limit(limit: Limit, *, on_redis: bool) -> ledger.Limit:
    shared: ledger.OnStoreDown = "local_share" if limit.unit != "money_micros" else "closed"
    return ledger.Limit(
        name=limit.name,
        unit=limit.unit,
        cap=limit.cap,
        window_s=limit.window_s,
        per=limit.per,
        tenants=limit.match.tenants,
        roles=limit.match.roles,
        routes=limit.match.routes,
        servers=limit.match.servers,
        tools=limit.match.tools,
        on_store_down=limit.on_store_down or (shared if on_redis else "closed"),
    )


def price_table(config: Config) -> PriceTable:
    """The prices; cached input without a price of its own costs as much as other input."""
    return PriceTable(
        {
            provider: {
                model: Price(
                    price.input,
                    price.output,
                    price.input if price.cached is None else price.cached,
                )
                for model, price in models.items()
            }
            for provider, models in config.prices.items()
        }
    )


def providers(config: Config) -> dict[str, base.Provider]:
    """The providers by name."""
    return {name: _provider(name, provider) for name, provider in config.providers.items()}


def _provider(name: str, provider: Provider) -> base.Provider:
    return base.Provider(
        name=name,
        base_url=provider.base_url,
        dialect=provider.dialect,
        credentials=tuple(secret.get_secret_value() for secret in provider.credentials),
        headers={key: value.get_secret_value() for key, value in provider.headers.items()},
        query={key: value.get_secret_value() for key, value in provider.query.items()},
        models=dict(provider.models),
        proxy=provider.proxy,
    )


def route_table(config: Config) -> RouteTable:
    """The routes in the order of the file.

    A candidate whose provider has several credentials becomes one target for each of them, in
    order. `Route.redaction` holds the effective Redaction section of the route.
    """
    return RouteTable(_route(config, route) for route in config.routes)


def _route(config: Config, route: Route) -> RouteValue:
    times = route.deadlines
    return RouteValue(
        name=route.name,
        model=route.model,
        tenants=route.match.tenants,
        roles=route.match.roles,
        strategy=route.strategy,
        targets=tuple(
            target for candidate in route.candidates for target in _targets(config, candidate)
        ),
        deadlines=Deadlines(
            connect_s=times.connect_s,
            first_token_s=times.first_token_s,
            idle_s=times.idle_s,
            total_s=times.total_s,
            stream_total_s=times.stream_total_s,
        ),
        attempts=route.attempts,
        default_output_tokens=route.default_output_tokens,
        cooling=Cooling(on_429_s=route.cooling.on_429_s, max_s=route.cooling.max_s),
        breaker=_breaker(route.breaker),
        failover_on_credential_error=route.failover_on_credential_error,
        redaction=effective_redaction(config.redaction, route.redaction),
    )


def _breaker(breaker: Breaker) -> BreakerSettings:
    return BreakerSettings(
        consecutive=breaker.consecutive,
        ratio=breaker.ratio,
        window_s=breaker.window_s,
        min_results=breaker.min_results,
        open_s=breaker.open_s,
        max_open_s=breaker.max_open_s,
        slow_ratio=breaker.slow_ratio,
        slow_tokens_per_s=breaker.slow_tokens_per_s,
    )


def _targets(config: Config, candidate: Candidate) -> list[Target]:
    """One target for each credential; one without a credential for an open upstream.

    They share the weight of the candidate.
    """
    credentials = config.providers[candidate.provider].credentials
    names = [
        hashlib.sha256(secret.get_secret_value().encode()).hexdigest()[:8] for secret in credentials
    ]
    return [
        Target(
            provider=candidate.provider,
            credential=index,
            upstream_model=candidate.model,
            context_tokens=candidate.context_tokens,
            weight=candidate.weight / max(1, len(names)),
            credential_id=name,
            parameters=dict(candidate.parameters),
            address=config.providers[candidate.provider].base_url,
        )
        for index, name in enumerate(names or [""])
    ]


def mcp_servers(config: Config) -> dict[str, Place]:
    """Where each MCP server is, by name, in the order of the file."""
    servers = config.mcp.servers.items()
    return {name: _place(name, server, config.folder) for name, server in servers}


def _place(name: str, server: McpServer, folder: Path) -> Place:
    if server.url is None:
        env = {key: value.get_secret_value() for key, value in server.env.items()}
        cwd = None if server.cwd is None else str(folder / server.cwd)
        return ServerCommand(name, server.command, env, cwd)
    credential = server.credential
    return ServerAddress(
        name, server.url, credential.get_secret_value() if credential is not None else None
    )


def tool_rules(config: Config) -> TenantRules:
    """The MCP rules; their roles in configuration order, then those of the keys.

    Those in files of tenants, which follow, are compiled when the first of them calls.
    """
    rules = [_rule(f"mcp.rules[{index}]", rule) for index, rule in enumerate(config.mcp.rules)]
    roles = [role for key in config.identity.keys for role in key.roles]
    own = {tenant: partial(_own, file) for tenant, file in config.rules_dir.files.items()}
    return TenantRules(RuleSet(rules, roles=roles), own)


def _own(file: TenantFile) -> list[Rule]:
    """The rules of a tenant; whose they are is decided by the name of the file alone."""
    names = rule_names(file)
    return [_rule(name, rule) for name, rule in zip(names, file.rules, strict=True)]


def rule_names(file: TenantFile) -> list[str]:
    """What the rules of a tenant are called in records: "acme.yaml:rules[0]"."""
    name = file_name(file.tenant)
    return [f"{name}:rules[{index}]" for index in range(len(file.rules))]


def _rule(name: str, rule: RuleSection) -> Rule:
    body: Allow = rule.deny or rule.allow or Allow()
    return Rule(
        id=name,
        effect="deny" if rule.deny is not None else "allow",
        roles=body.roles or ("*",),
        unless_roles=body.unless_roles if isinstance(body, Deny) else (),
        tenants=body.tenants or ("*",),
        servers=body.servers or ("*",),
        tools=body.tools,
        resources=body.resources,
        prompts=body.prompts,
        when=tuple(compile_condition(text) for text in body.when),
    )
