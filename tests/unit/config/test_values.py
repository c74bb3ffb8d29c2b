import hashlib

import pytest

from tests.unit.config.corpus import ENVIRON, VALID, load
from tidegate.config import Config, load_config, load_config_text, values
from tidegate.config.policies import Policies, effective_redaction, server_redaction
from tidegate.errors import Unauthenticated
from tidegate.limits import Limit
from tidegate.limits.prices import Price
from tidegate.mcp import Rule
from tidegate.mcp.servers import ServerAddress, ServerCommand
from tidegate.policy import Principal
from tidegate.providers import Provider
from tidegate.routing import BreakerSettings, Cooling, Deadlines, Route, Target


def config_of(text: str) -> Config:
    return load_config_text(text, ENVIRON)


def test_every_valid_file_can_be_converted() -> None:
    for path in VALID:
        config = load(path)
        values.key_table(config)
        values.limit_table(config)
        values.providers(config)
        values.route_table(config)
        values.tool_rules(config)
        values.mcp_servers(config)
        policies = Policies(config.deny_files, hash_key=b"k")
        for server in config.mcp.servers:
            policies.of(server_redaction(config, server))


def test_the_demo_keys_name_their_principals() -> None:
    table = values.key_table(load_config(None, {}))
    assert table.find([b"Bearer viewer-token-xyz"]) == Principal(
        "viewer", "demo", ("viewer",), hashlib.sha256(b"viewer-token-xyz").hexdigest()[:8]
    )
    with pytest.raises(Unauthenticated):
        table.find([])


def test_keys_by_value_and_by_digest_are_found_alike() -> None:
    digest = hashlib.sha256(b"vera-key-0123456789").hexdigest().upper()
    table = values.key_table(
        config_of(
            "identity:\n"
            "  anonymous: { principal: guest, tenant: demo, roles: [viewer] }\n"
            "  keys:\n"
            "    - { key: '${env:ACME_KEY}', principal: acme, tenant: a, roles: [x, y] }\n"
            f"    - {{ sha256: {digest}, principal: vera }}\n"
        )
    )
    assert table.find([b"Bearer " + ENVIRON["ACME_KEY"].encode()]).roles == ("x", "y")
    assert table.find([b"bearer vera-key-0123456789"]).name == "vera"
    assert table.find([]) == Principal("guest", "demo", ("viewer",), "anonymous")


def test_a_limit_keeps_apart_what_counts_model_calls_and_tool_calls() -> None:
    config = config_of(
        "mcp: { servers: { b: { url: 'http://127.0.0.1:1/mcp' } } }\n"
        "limits:\n"
        "  - { name: a, tokens: 5, match: { roles: [tenant] } }\n"
        "  - { name: b, requests: 6, per: key, window_s: 3600, match: { servers: [b] } }\n"
        "  - { name: c, concurrent: 7, per: global, on_store_down: open }\n"
    )
    assert values.limit_table(config).limits == (
        Limit("a", "tokens", 5, roles=("tenant",)),
        Limit("b", "requests", 6, window_s=3600.0, per="key", servers=("b",)),
        Limit("c", "concurrent", 7, per="global", on_store_down="open"),
    )


def test_without_a_word_a_limit_on_redis_falls_back_to_a_local_share_except_for_money() -> None:
    config = config_of(
        "store: { url: 'redis://127.0.0.1:6379/0' }\n"
        "limits:\n"
        "  - { name: a, tokens: 5 }\n"
        "  - { name: b, money_micros: 5 }\n"
        "  - { name: c, requests: 5, on_store_down: closed }\n"
    )
    fallbacks = [limit.on_store_down for limit in values.limit_table(config).limits]
    assert fallbacks == ["local_share", "closed", "closed"]


def test_a_provider_carries_its_secrets_in_plain_and_hides_them_in_its_repr() -> None:
    config = config_of(
        "providers:\n"
        "  p:\n"
        "    base_url: https://api.example/v1\n"
        "    credentials: ['${env:PRIMARY_KEY}']\n"
        "    headers: { X-Key: 'v1 ${env:BACKUP_KEY}' }\n"
        "    query: { region: '${env:REGION}' }\n"
        "    models: { fast: small-5 }\n"
        "    proxy: http://proxy.example:3128\n"
    )
    provider = values.providers(config)["p"]
    assert provider == Provider(
        name="p",
        base_url="https://api.example/v1",
        credentials=(ENVIRON["PRIMARY_KEY"],),
        headers={"X-Key": f"v1 {ENVIRON['BACKUP_KEY']}"},
        query={"region": "eu"},
        models={"fast": "small-5"},
        proxy="http://proxy.example:3128",
    )
    assert ENVIRON["PRIMARY_KEY"] not in repr(provider)


def test_a_candidate_becomes_one_target_for_each_credential() -> None:
    config = config_of(
        "providers:\n"
        "  a:\n"
        "    base_url: https://a.example/v1\n"
        "    credentials: ['${env:PRIMARY_KEY}', '${env:BACKUP_KEY}']\n"
        "  b: { base_url: 'http://127.0.0.1:1/v1' }\n"
        "routes:\n"
        "  - name: r\n"
        "    model: 'gpt-*'\n"
        "    match: { tenants: [acme], roles: ['t*'] }\n"
        "    candidates:\n"
        "      - { provider: a, context_tokens: 8000 }\n"
        "      - { provider: b, model: m, weight: 3, parameters: { top_p: 0.2, user: null } }\n"
        "    deadlines: { first_token_s: 3 }\n"
        "    attempts: 2\n"
        "    cooling: { on_429_s: 0 }\n"
        "    breaker: { consecutive: 9, open_s: 2.5, slow_ratio: 0.6, slow_tokens_per_s: 4 }\n"
        "    failover_on_credential_error: true\n"
    )
    (route,) = values.route_table(config).routes
    first, second = (
        hashlib.sha256(ENVIRON[name].encode()).hexdigest()[:8]
        for name in ("PRIMARY_KEY", "BACKUP_KEY")
    )
    assert route.targets == (
        Target("a", 0, context_tokens=8000, weight=0.5, credential_id=first),
        Target("a", 1, context_tokens=8000, weight=0.5, credential_id=second),
        Target("b", 0, "m", weight=3, parameters={"top_p": 0.2, "user": None}),
    )
    assert (route.name, route.model, route.tenants, route.roles) == (
        "r",
        "gpt-*",
        ("acme",),
        ("t*",),
    )
    assert route.deadlines == Deadlines(first_token_s=3.0)
    assert route.cooling == Cooling(on_429_s=0.0)
    assert (route.breaker.consecutive, route.breaker.open_s) == (9, 2.5)
    assert (route.breaker.slow_ratio, route.breaker.slow_tokens_per_s) == (0.6, 4.0)
    assert (route.attempts, route.failover_on_credential_error) == (2, True)


def test_an_override_replaces_single_keys_and_adds_detectors() -> None:
    config = config_of(
        "providers: { p: { base_url: 'http://127.0.0.1:1/v1' } }\n"
        "redaction:\n"
        "  request: enforce\n"
        "  allow: [a@example.com]\n"
        "  detectors: { jwt: { action: block }, email: { action: off } }\n"
        "  custom: [{ kind: A, regex: a }, { kind: B, regex: b }]\n"
        "routes:\n"
        "  - name: r\n"
        "    candidates: [{ provider: p }]\n"
        "    redaction:\n"
        "      response: off\n"
        "      allow: []\n"
        "      detectors: { email: { action: mask } }\n"
        "      custom: [{ kind: B, regex: bb }, { kind: C, regex: c }]\n"
    )
    override = config.routes[0].redaction
    merged = effective_redaction(config.redaction, override)
    assert (merged.request, merged.response, merged.allow) == ("enforce", "off", ())
    assert {name: d.action for name, d in merged.detectors.items()} == {
        "jwt": "block",
        "email": "mask",
    }
    assert [(c.kind, c.regex) for c in merged.custom] == [("A", "a"), ("B", "bb"), ("C", "c")]
    assert values.route_table(config).routes[0].redaction == merged


def test_a_policy_follows_preset_actions_and_allowed_values() -> None:
    config = config_of(
        "redaction:\n"
        "  preset: code\n"
        "  allow: ['*@example.com']\n"
        "  detectors: { email: { action: mask }, jwt: { action: block }, ssn: { action: off } }\n"
    )
    policy = Policies({}, hash_key=b"k").of(config.redaction).everybody
    assert policy.redact("bob@example.com, eve@example.net").text == (
        "bob@example.com, [REDACTED_EMAIL]"
    )
    assert policy.actions["jwt"] == "block"
    assert "ssn" not in policy.actions


def test_rules_keep_absent_kinds_apart_from_empty_ones() -> None:
    config = config_of(
        "identity: { keys: [{ key: '${env:ACME_KEY}', principal: acme, roles: [zeta, viewer] }] }\n"
        "mcp:\n"
        "  rules:\n"
        "    - { deny: { tools: ['admin_*'], unless_roles: [admin] } }\n"
        "    - { allow: { roles: [viewer], tenants: [acme], prompts: [], when: ['a < 5'] } }\n"
        "    - { allow: {} }\n"
    )
    rules = values.tool_rules(config).everybody
    deny, allow, anything = (rule.rule for rule in (*rules.denies, *rules.allows))
    assert deny == Rule("mcp.rules[0]", "deny", unless_roles=("admin",), tools=("admin_*",))
    assert (allow.id, allow.roles, allow.tenants) == ("mcp.rules[1]", ("viewer",), ("acme",))
    assert (allow.tools, allow.resources, allow.prompts) == (None, None, ())
    assert [condition.text for condition in allow.when] == ["a < 5"]
    assert anything == Rule("mcp.rules[2]", "allow")
    assert rules.roles == ("admin", "viewer", "zeta")


def test_mcp_servers_are_an_address_or_a_command_in_the_order_of_the_file() -> None:
    config = config_of(
        "mcp:\n"
        "  servers:\n"
        '    files: { command: [npx, server], env: { LEVEL: "3" }, cwd: /srv }\n'
        "    b: { url: 'http://127.0.0.1:1/mcp', credential: '${env:BACKEND_TOKEN}' }\n"
        "    c: { url: 'https://tools.example/mcp', redaction: { tool_results: off } }\n"
    )
    assert list(values.mcp_servers(config)) == ["files", "b", "c"]
    assert values.mcp_servers(config) == {
        "files": ServerCommand("files", ("npx", "server"), {"LEVEL": "3"}, "/srv"),
        "b": ServerAddress("b", "http://127.0.0.1:1/mcp", ENVIRON["BACKEND_TOKEN"]),
        "c": ServerAddress("c", "https://tools.example/mcp", None),
    }
    assert server_redaction(config, "c").tool_results == "off"
    assert server_redaction(config, "b").tool_results == "enforce"


def test_caps_are_those_of_the_file() -> None:
    config = config_of("server: { caps: { header_bytes: 4096 } }\n")
    assert values.caps(config).header_bytes == 4096
    assert values.caps(config).llm_body_bytes == 33_554_432


def test_cached_input_without_a_price_costs_as_much_as_other_input() -> None:
    prices = values.price_table(
        config_of(
            "providers: { p: { base_url: 'http://127.0.0.1:1/v1' } }\n"
            "prices:\n"
            "  p:\n"
            "    a: { input: 2000, output: 3000 }\n"
            "    b: { input: 2000, output: 3000, cached: 0 }\n"
        )
    )
    assert prices.of("p", "a") == Price(2000, 3000, 2000)
    assert prices.of("p", "b") == Price(2000, 3000, 0)
    assert prices.of("p", "c") is None


def test_the_callers_of_the_file_are_its_keys_and_the_anonymous_one() -> None:
    digest = hashlib.sha256(b"vera").hexdigest()
    config = config_of(
        "identity:\n"
        "  anonymous: { principal: guest, tenant: demo }\n"
        "  keys:\n"
        f"    - {{ sha256: {digest}, principal: vera, tenant: a, roles: [x] }}\n"
    )
    assert values.callers(config) == (
        Principal("vera", "a", ("x",), digest[:8]),
        Principal("guest", "demo", (), "anonymous"),
    )


def test_a_route_that_says_nothing_has_the_defaults_of_the_router() -> None:
    config = config_of(
        "providers: { p: { base_url: 'http://127.0.0.1:1/v1' } }\n"
        "routes: [{ name: r, candidates: [{ provider: p }] }]\n"
    )
    (route,) = values.route_table(config).routes
    plain = Route("r", (Target("p"),))
    assert route.breaker == BreakerSettings() == plain.breaker
    assert (route.deadlines, route.cooling) == (Deadlines(), Cooling())
    assert (route.strategy, route.attempts) == (plain.strategy, plain.attempts)
    assert route.targets == plain.targets
    assert route.targets[0].address == "http://127.0.0.1:1/v1"
