"""Which limits concern a call, what they are asked for, and whose counter it is."""

import itertools
from dataclasses import replace

import pytest

from tidegate.limits.ledger import (
    MAX_AMOUNT,
    Charge,
    Limit,
    LimitTable,
    Need,
    Scope,
    Unit,
    amount_of,
    measure,
    scope_key,
)
from tidegate.policy import Principal

VERA = Principal("vera", "acme", ("viewer", "tenant"), "0a1b2c3d")
NOBODY = Principal("nobody", "globex", (), "anonymous")
NEED = Need(30, 12)


def names(table: LimitTable, principal: Principal = VERA, **call: str) -> list[str]:
    return [charge.limit.name for charge in table.charges(principal, need=NEED, **call)]


@pytest.mark.parametrize(
    ("unit", "amount"),
    [
        ("tokens", 42),
        ("input_tokens", 30),
        ("output_tokens", 12),
        ("requests", 1),
        ("concurrent", 1),
        ("money_micros", 0),
    ],
)
def test_each_unit_measures_its_own_part(unit: Unit, amount: int) -> None:
    assert measure(unit, NEED) == amount


@pytest.mark.parametrize("tokens", [-5, 10**30])
def test_a_hostile_number_stays_between_nothing_and_the_maximum(tokens: int) -> None:
    assert 0 <= measure("tokens", Need(tokens, 0)) <= MAX_AMOUNT


@pytest.mark.parametrize(
    ("unit", "need", "cap", "amount"),
    [
        ("tokens", Need(10, 1024, output_is_default=True), 100, 100),
        ("tokens", Need(100, 1024, output_is_default=True), 100, 100),
        ("tokens", Need(101, 1024, output_is_default=True), 100, 1125),
        ("tokens", Need(10, 1024, output_is_default=True), 5000, 1034),
        ("tokens", Need(10, 1024), 100, 1034),
        ("output_tokens", Need(10, 1024, output_is_default=True), 100, 100),
        ("output_tokens", Need(10, 1024), 100, 1024),
        ("input_tokens", Need(101, 1024, output_is_default=True), 100, 101),
        ("requests", Need(10, 1024, output_is_default=True), 0, 1),
    ],
)
def test_only_a_guessed_answer_gives_way_to_a_small_cap(
    unit: Unit, need: Need, cap: int, amount: int
) -> None:
    """BerriAI/litellm#29191: a cap below our default still admits a first request."""
    assert amount_of(Limit("x", unit, cap), need) == amount


def test_a_charge_names_limit_scope_and_amount() -> None:
    limit = Limit("tpm", "tokens", 1000)
    charges = LimitTable([limit]).charges(VERA, route="default", need=NEED)
    assert charges == (Charge(limit, "tenant:acme", 42),)


def test_limits_keep_the_order_of_the_file() -> None:
    limits = [Limit(name, "requests", 1) for name in ("b", "a", "c")]
    assert names(LimitTable(limits), route="r") == ["b", "a", "c"]


def test_two_limits_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="share a name"):
        LimitTable([Limit("a", "tokens", 1), Limit("a", "requests", 1)])


@pytest.mark.parametrize("cap", [-1, MAX_AMOUNT + 1])
def test_a_cap_out_of_range_is_refused(cap: int) -> None:
    with pytest.raises(ValueError, match="cap"):
        Limit("a", "tokens", cap)


@pytest.mark.parametrize("window_s", [0.0, -1.0, 1e9, float("nan")])
def test_a_window_out_of_range_is_refused(window_s: float) -> None:
    with pytest.raises(ValueError, match="window_s"):
        Limit("a", "tokens", 1, window_s)


@pytest.mark.parametrize(
    ("tenants", "roles", "principal", "matches"),
    [
        (("*",), ("*",), VERA, True),
        (("*",), ("*",), NOBODY, True),
        (("acme",), ("*",), VERA, True),
        (("ac*", "x"), ("*",), VERA, True),
        (("ACME",), ("*",), VERA, False),
        (("acm",), ("*",), VERA, False),
        (("*",), ("tenant",), VERA, True),
        (("*",), ("ten?nt",), VERA, True),
        (("*",), ("admin",), VERA, False),
        (("*",), ("tenant",), NOBODY, False),
        ((), ("*",), VERA, False),
        (("*",), (), VERA, False),
        (("globex",), ("*",), NOBODY, True),
    ],
)
def test_tenant_and_any_role_must_match(
    tenants: tuple[str, ...],
    roles: tuple[str, ...],
    principal: Principal,
    matches: bool,  # noqa: FBT001
) -> None:
    table = LimitTable([Limit("a", "requests", 1, tenants=tenants, roles=roles)])
    assert names(table, principal, route="default") == (["a"] if matches else [])


PLACES = [(), ("*",), ("files",)]


@pytest.mark.parametrize(
    ("routes", "servers", "tools"), list(itertools.product(PLACES, PLACES, PLACES))
)
def test_a_limit_concerns_the_kinds_of_call_it_speaks_of(
    routes: tuple[str, ...], servers: tuple[str, ...], tools: tuple[str, ...]
) -> None:
    table = LimitTable([Limit("a", "requests", 1, routes=routes, servers=servers, tools=tools)])
    speaks_of_tools = bool(servers or tools)
    model_call = ["a"] if routes == ("*",) or (not routes and not speaks_of_tools) else []
    tool_call = ["a"] if speaks_of_tools and "files" not in (*servers, *tools) else []
    assert names(table, route="default") == model_call
    assert names(table, server="backend", tool="read") == tool_call
    assert names(table, server="files", tool="files") == (["a"] if speaks_of_tools else [])


@pytest.mark.parametrize("written", ["admin_reset", "Admin_Reset", "ADMIN_RESET", "ａdmin_reset"])  # noqa: RUF001
def test_another_spelling_of_a_tool_does_not_slip_past_its_limit(written: str) -> None:
    table = LimitTable([Limit("a", "requests", 1, tools=("Admin_*",))])
    assert names(table, server="backend", tool=written) == ["a"]


def test_money_without_prices_asks_nothing() -> None:
    table = LimitTable([Limit("budget", "money_micros", 1)])
    assert table.charges(VERA, route="r", need=NEED) == ()
    assert table.charges(VERA, route="r", need=Need(money_micros=7))[0].amount == 7


@pytest.mark.parametrize(
    ("per", "key"),
    [
        ("global", "global"),
        ("tenant", "tenant:acme"),
        ("principal", "principal:acme/vera"),
        ("key", "key:acme/vera/0a1b2c3d"),
    ],
)
def test_the_scope_names_who_shares_a_counter(per: Scope, key: str) -> None:
    assert scope_key(per, VERA) == key


def test_callers_of_one_name_share_a_counter_only_if_one_issuer_knows_both() -> None:
    issuers = ["", "https://one.example", "https://two.example/a"]
    callers = [Principal("vera", "acme", (), f"k{at}", issuer=by) for at, by in enumerate(issuers)]
    of_each: dict[Scope, list[str]] = {
        per: [scope_key(per, caller) for caller in callers]
        for per in ("principal", "key", "tenant")
    }
    assert of_each["principal"] == [
        "principal:acme/vera",
        "principal:acme/vera%@https:%2F%2Fone.example",
        "principal:acme/vera%@https:%2F%2Ftwo.example%2Fa",
    ]
    assert len(set(of_each["key"])) == 3
    assert set(of_each["tenant"]) == {"tenant:acme"}
    another_client = replace(callers[1], client="other", key_id="k9")
    assert scope_key("principal", another_client) == of_each["principal"][1]


def test_two_principals_never_share_a_counter_by_spelling() -> None:
    # "a" + "b/b" and "a/b" + "b" read alike if nothing is escaped.
    parts = ["a", "a/b", "b", "b/b", "a%2Fb", "a%", "/", "%2F", "a\x00b", "\ud800"]
    keys = [
        scope_key("principal", Principal(name, tenant, (), "k"))
        for tenant, name in itertools.product(parts, parts)
    ]
    keys += [
        scope_key("principal", Principal(name, tenant, (), "k", issuer=issuer))
        for tenant, name, issuer in itertools.product(parts, parts, parts)
    ]
    assert len(set(keys)) == len(keys)
    assert all(key.encode() and "\x00" not in key for key in keys)
