"""Over random rules and principals: does the decision keep its laws?"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.jsonrpc import Request
from tidegate.mcp import Rule, RuleSet, TenantRules, authorize, compile_condition
from tidegate.mcp.authorize import Subject, is_visible
from tidegate.mcp.dry_run import message_of, weigh
from tidegate.policy import Allow, Decision, Principal

TOOLS = ("get_status", "get_secret", "admin_reset", "Admin_Reset", "a")
URIS = ("file:///data/a", "file:///data/secret/b", "db://x/1")
PROMPTS = ("greet", "admin_greet")
ROLES = ("viewer", "admin", "guest")
METHODS = {
    "tools/call": TOOLS,
    "prompts/get": PROMPTS,
    "resources/read": URIS,
    "resources/subscribe": URIS,
    "completion/complete": (*PROMPTS, *URIS),
}


def some(*values: str) -> Any:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


@st.composite
def rules_of_all(draw: Any) -> Rule:
    text = draw(st.sampled_from(["", "x <= 1", "x > 1", "r in ['eu']"]))
    return Rule(
        "",
        draw(st.sampled_from(["allow", "deny"])),
        roles=draw(some("*", *ROLES)),
        unless_roles=draw(st.just(()) | some(*ROLES)),
        tenants=draw(some("*", "acme", "other")),
        servers=draw(some("*", "backend")),
        tools=draw(st.none() | some("*", "get_*", "*secret*", "ADMIN_*", "a")),
        resources=draw(st.none() | some("*", "file:///data/*", "file:///data/secret/*", "db:*")),
        prompts=draw(st.none() | some("*", "admin_*")),
        when=(compile_condition(text),) if text else (),
    )


def numbered(rules: list[Rule], prefix: str) -> list[Rule]:
    return [replace(rule, id=f"{prefix}{index}") for index, rule in enumerate(rules)]


RULES = st.lists(rules_of_all(), max_size=5).map(lambda rules: numbered(rules, "rule"))
PRINCIPALS = st.builds(
    Principal,
    st.just("p"),
    st.sampled_from(["acme", "other"]),
    some(*ROLES) | st.just(()),
    st.just("k"),
)
ARGUMENTS = st.sampled_from([{}, {"x": 0}, {"x": 5}, {"x": "0"}, {"r": "EU"}, {"x": 0, "X": 9}])


def messages(arguments: dict[str, Any]) -> Iterator[Request]:
    for method, names in METHODS.items():
        for name in names:
            given = arguments if method in ("tools/call", "prompts/get") else None
            message = message_of(method, name, given)
            assert isinstance(message, Request)
            yield message


def allowed(decision: Decision) -> bool:
    return isinstance(decision, Allow)


@settings(max_examples=40, deadline=None)
@given(RULES, RULES, PRINCIPALS, ARGUMENTS, st.randoms(use_true_random=False))
@pytest.mark.full
def test_order_is_irrelevant_and_more_rules_only_add_or_only_take_away(
    rules: list[Rule], more: list[Rule], who: Principal, arguments: dict[str, Any], chance: Any
) -> None:
    """An allow never takes away, a deny never adds, and a deny that is met is the last word."""
    order = list(rules)
    chance.shuffle(order)
    plain, shuffled = RuleSet(rules, roles=ROLES), RuleSet(order, roles=ROLES)
    opened = RuleSet([*rules, *(rule for rule in more if rule.effect == "allow")])
    closed = RuleSet([*rules, *(rule for rule in more if rule.effect == "deny")])
    only_denies = RuleSet([*(r for r in rules if r.effect == "deny"), Rule("all", "allow")])
    for message in messages(arguments):
        verdict = authorize(message, who, plain, server="backend")
        again = authorize(message, who, shuffled, server="backend")
        assert type(verdict) is type(again)
        assert getattr(verdict, "reason", "") == getattr(again, "reason", "")
        if allowed(verdict):
            assert allowed(authorize(message, who, opened, server="backend"))
            assert allowed(authorize(message, who, only_denies, server="backend"))
        else:
            assert not allowed(authorize(message, who, closed, server="backend"))


@settings(max_examples=40, deadline=None)
@given(RULES, RULES, PRINCIPALS, ARGUMENTS)
@pytest.mark.full
def test_rules_of_a_tenant_are_as_if_they_stood_in_the_list_for_it_alone(
    main: list[Rule], own: list[Rule], who: Principal, arguments: dict[str, Any]
) -> None:
    # What a tenant's file cannot say at all is left out: the patterns of other tenants.
    own = [replace(rule, tenants=("*",)) for rule in numbered(own, "own")]
    beside = TenantRules(RuleSet(main, roles=ROLES), {"acme": lambda: own})
    together = RuleSet([*main, *(replace(rule, tenants=("acme",)) for rule in own)])
    for message in messages(arguments):
        verdict = authorize(message, who, beside.of(who.tenant), server="backend")
        wanted = authorize(message, who, together, server="backend")
        assert (type(verdict), verdict.rule) == (type(wanted), wanted.rule)


@settings(max_examples=12, deadline=None)
@given(RULES, PRINCIPALS, ARGUMENTS)
def test_what_is_listed_is_what_some_arguments_can_call_and_what_is_weighed_decides(
    rules: list[Rule], who: Principal, arguments: dict[str, Any]
) -> None:
    compiled = RuleSet(rules, roles=ROLES)
    for message in messages(arguments):
        verdict = authorize(message, who, compiled, server="backend")
        name = (message.params or {}).get("name") or (message.params or {}).get("uri")
        kind: Any = message.method.partition("/")[0]
        if kind == "completion":
            ref: Any = (message.params or {})["ref"]
            kind = "prompts" if ref["type"] == "ref/prompt" else "resources"
            name = ref.get("name") or ref.get("uri")
        visible = is_visible(Subject(kind, str(name)), who, compiled, server="backend")
        # With other arguments it may be more, without any condition it is the same.
        exact = kind == "resources" or message.method == "completion/complete"
        assert visible >= allowed(verdict)
        if exact or not any(rule.when for rule in rules):
            assert visible == allowed(verdict)
        weighed = weigh(message, who, compiled, server="backend", task_tool=None)
        met = [each for each in weighed if each.applies]
        denies = [each.rule for each in met if each.effect == "deny"]
        deciding = (denies or [each.rule for each in met] or ["default"])[0]
        assert verdict.rule == deciding
        assert allowed(verdict) == bool(met and not denies)
