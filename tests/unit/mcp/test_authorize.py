"""Is every message decided by the same rules, whatever it is and however it is written?"""

from itertools import permutations, product

import pytest

from tests.unit.mcp.asking import (
    ADMIN,
    BRIEF,
    NOBODY,
    STRANGER,
    VIEWER,
    allow,
    ask,
    call,
    deny,
    tell,
)
from tidegate.jsonrpc import Call
from tidegate.mcp import Rule, RuleSet, authorize
from tidegate.mcp.authorize import Subject, is_visible, subject_of
from tidegate.policy import Allow, Deny, Principal

PRINCIPALS = [VIEWER, ADMIN, NOBODY, STRANGER]

PLAIN = ["get_status", "search.docs", "a", "A-1", "x" * 128]
ADMIN_SPELLINGS = ["admin_reset_key", "Admin_Reset_Key", "ADMIN_RESET_KEY", "admin_", "aDmIn_x"]
ODD = [
    "",
    " admin_reset_key",
    "admin_reset_key ",
    "admin_reset_key\u0000",
    "admin\u200b_reset_key",
    "admin\u00ad_reset_key",
    "\uff41dmin_reset_key",
    "\u0430dmin_reset_key",
    "admin/reset",
    "x" * 129,
    "get status",
    "get_status\n",
    "g\u00e9t",
]


@pytest.mark.parametrize(("who", "name"), list(product(PRINCIPALS, PLAIN + ADMIN_SPELLINGS + ODD)))
def test_a_call_is_allowed_by_role_and_exact_name(who: Principal, name: str) -> None:
    decision = authorize(call(name), who, BRIEF, server="backend")
    known = who in (VIEWER, ADMIN)
    if name in ODD:
        assert decision == Deny("methods", "odd_name")
    elif name in ADMIN_SPELLINGS:
        wanted = Allow("rules[1]") if who is ADMIN else Deny("rules[0]", "denied", "admin")
        assert decision == wanted
    elif known:
        assert decision == Allow("rules[1]")
    else:
        assert decision == Deny("default", "no_rule", "admin")


@pytest.mark.parametrize(("who", "name"), list(product(PRINCIPALS, PLAIN + ADMIN_SPELLINGS + ODD)))
def test_a_tool_is_visible_exactly_if_it_can_be_called(who: Principal, name: str) -> None:
    callable_ = isinstance(authorize(call(name), who, BRIEF), Allow)
    assert is_visible(Subject("tools", name), who, BRIEF) is callable_


def test_the_order_of_rules_changes_nothing() -> None:
    rules = [
        allow(tools=("*",), roles=("viewer",)),
        deny(tools=("a*",)),
        Rule("other", "allow", tools=("a1",)),
    ]
    for order in permutations(rules):
        for name in ("a1", "b"):
            decision = authorize(call(name), VIEWER, RuleSet(order))
            assert isinstance(decision, Allow) is (name == "b")


def test_without_rules_nothing_but_the_protocol_passes() -> None:
    empty = RuleSet([])
    assert authorize(call("x"), ADMIN, empty) == Deny("default", "no_rule")
    assert authorize(ask("tools/list"), ADMIN, empty) == Deny("default", "nothing_allowed")
    assert authorize(ask("ping"), ADMIN, empty) == Allow("open")


OPEN = ["initialize", "ping", "server/discover", "subscriptions/listen"]
OPEN_NOTIFICATIONS = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
]
UNKNOWN = [
    "",
    "Tools/Call",
    "tools/call ",
    "tools/call\n",
    "tools//call",
    "TOOLS/LIST",
    "tools",
    "admin/reset",
    "sampling/createMessage",
    "notifications/",
    "notifications",
    "notifications/../tools/call",
    "notifications/tools/list_changed",
    "notifications/message",
    "Notifications/initialized",
]


@pytest.mark.parametrize(("who", "method"), list(product(PRINCIPALS, OPEN)))
def test_the_protocol_is_open_to_every_principal(who: Principal, method: str) -> None:
    assert authorize(ask(method), who, RuleSet([])) == Allow("open")


@pytest.mark.parametrize(("who", "method"), list(product(PRINCIPALS, OPEN_NOTIFICATIONS)))
def test_notifications_pass_and_do_not_become_requests(who: Principal, method: str) -> None:
    assert authorize(tell(method), who, RuleSet([])) == Allow("open")
    assert authorize(ask(method), who, BRIEF) == Deny("methods", "unknown_method")


@pytest.mark.parametrize(
    "message", [ask("logging/setLevel", level="debug"), tell("notifications/vendor/reload")]
)
def test_what_changes_the_server_is_for_those_who_may_use_something_of_it(message: Call) -> None:
    assert authorize(message, VIEWER, BRIEF, server="backend") == Allow("rules[1]")
    elsewhere = RuleSet([allow(servers=("other",)), deny()])
    nothing = RuleSet([allow(tools=(), prompts=())])
    for who, rules in (
        (VIEWER, RuleSet([])),
        (VIEWER, elsewhere),
        (VIEWER, nothing),
        (STRANGER, BRIEF),
    ):
        decision = authorize(message, who, rules, server="backend")
        assert decision == Deny("methods", "unknown_method")


@pytest.mark.parametrize("method", UNKNOWN)
@pytest.mark.parametrize("send", [ask, tell])
def test_a_method_is_matched_exactly(method: str, send: object) -> None:
    message: Call = send(method, name="get_status")  # type: ignore[operator]
    assert authorize(message, ADMIN, BRIEF) == Deny("methods", "unknown_method")


def test_a_call_without_an_id_is_judged_like_any_other() -> None:
    assert isinstance(authorize(tell("tools/call", name="admin_x"), VIEWER, BRIEF), Deny)
    assert isinstance(authorize(tell("tools/call", name="admin_x"), ADMIN, BRIEF), Allow)


@pytest.mark.parametrize(
    "message",
    [
        ask("tools/call"),
        call(None),
        call(1),
        call(["get_status"]),
        call("get_status", "text"),
        call("get_status", [1]),
        ask("prompts/get", uri="x"),
        ask("resources/read", name="x"),
        ask("resources/subscribe"),
        ask("completion/complete"),
        ask("completion/complete", ref="x"),
        ask("completion/complete", ref={"type": "ref/tool", "name": "get_status"}),
        ask("completion/complete", ref={"type": "ref/resource", "name": "x"}),
        ask("completion/complete", ref={"type": "ref/prompt", "uri": "x"}),
        ask("tasks/get"),
        ask("tasks/cancel", taskId=1),
    ],
)
def test_a_message_that_does_not_say_what_it_wants_is_refused(message: Call) -> None:
    assert authorize(message, ADMIN, BRIEF) == Deny("methods", "invalid_params")


LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"]


@pytest.mark.parametrize("method", LISTS)
def test_a_list_is_open_to_whoever_may_use_something_of_its_kind(method: str) -> None:
    kind = {"prompts/list": "prompts"}.get(method, "resources")
    kind = "tools" if method in ("tools/list", "tasks/list") else kind
    rules = RuleSet([allow(roles=("viewer",), servers=("one",), **{kind: ("x",)})])
    assert authorize(ask(method), VIEWER, rules, server="one") == Allow("allow")
    refused = Deny("default", "nothing_allowed")
    assert authorize(ask(method), VIEWER, rules, server="two") == refused
    assert authorize(ask(method), ADMIN, rules, server="one") == refused
    other = "prompts/list" if kind != "prompts" else "tools/list"
    assert authorize(ask(other), VIEWER, rules, server="one") == refused


KINDS = {
    "tools": (ask("tools/call", name="a1"), "a1", "a*"),
    "prompts": (ask("prompts/get", name="a1"), "a1", "a*"),
    "resources": (ask("resources/read", uri="a:1"), "a:1", "a:*"),
}


@pytest.mark.parametrize(("ruled", "asked"), list(product(KINDS, repeat=2)))
def test_a_rule_speaks_only_of_the_kinds_it_names(ruled: str, asked: str) -> None:
    message, _, _ = KINDS[asked]
    pattern = KINDS[ruled][2]
    granted = RuleSet([allow(**{ruled: (pattern,)})])
    assert isinstance(authorize(message, VIEWER, granted), Allow) is (ruled == asked)
    denied = RuleSet([allow(), deny(**{ruled: (pattern,)})])
    assert isinstance(authorize(message, VIEWER, denied), Deny) is (ruled == asked)


def test_a_rule_that_names_no_kind_speaks_of_all() -> None:
    for message, _, _ in KINDS.values():
        assert isinstance(authorize(message, VIEWER, RuleSet([allow()])), Allow)
        assert isinstance(authorize(message, VIEWER, RuleSet([allow(), deny()])), Deny)
    assert isinstance(authorize(call("x"), VIEWER, RuleSet([allow(tools=())])), Deny)


@pytest.mark.parametrize("part", ["roles", "tenants", "servers"])
@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_every_part_of_a_rule_must_match(part: str, effect: str) -> None:
    right = {"roles": "view*", "tenants": "ac?e", "servers": "one"}[part]
    for pattern, matches in ((right, True), ("else", False), ("*", True), (right.upper(), False)):
        rule = Rule("r", effect, **{part: (pattern,)})  # type: ignore[arg-type]
        rules = RuleSet([rule] if effect == "allow" else [allow(), rule])
        allowed = isinstance(authorize(call("x"), VIEWER, rules, server="one"), Allow)
        assert allowed is (matches if effect == "allow" else not matches)


def test_a_principal_with_a_sparing_role_escapes_a_deny() -> None:
    rules = RuleSet([allow(), deny(unless_roles=("adm*",))])
    both = Principal("x", "acme", ("viewer", "admin"), "k")
    assert isinstance(authorize(call("x"), both, rules), Allow)
    assert isinstance(authorize(call("x"), VIEWER, rules), Deny)


@pytest.mark.parametrize(
    ("rules", "role"),
    [
        (BRIEF, "admin"),
        (RuleSet([allow(roles=("b", "a"))]), "b"),
        (RuleSet([allow(roles=("*",), tenants=("elsewhere",))]), None),
        (RuleSet([deny(unless_roles=("root",)), allow(roles=("op", "root"))]), "root"),
        (RuleSet([allow(roles=("ops-*",))], roles=("dev", "ops-1")), "ops-1"),
        (RuleSet([deny(tools=("admin_*",)), allow()]), None),
    ],
)
def test_the_role_that_would_do_is_the_first_in_configuration_order(
    rules: RuleSet, role: str | None
) -> None:
    decision = authorize(call("admin_x"), VIEWER, rules)
    assert isinstance(decision, Deny)
    assert decision.required_role == role


REFUND = RuleSet([allow(tools=("refund",), when=("amount <= 500",))])


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ({"amount": 500}, True),
        ({"amount": 5e2}, True),
        ({"amount": -0.0}, True),
        ({"amount": 500.0000000001}, False),
        ({"amount": "500"}, False),
        ({"amount": True}, False),
        ({"amount": None}, False),
        ({"Amount": 1}, False),
        ({"amount": 1, "Amount": 9000}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_condition_of_an_allow_must_be_met(arguments: object, *, allowed: bool) -> None:
    decision = authorize(call("refund", arguments), VIEWER, REFUND)
    assert isinstance(decision, Allow) is allowed


def test_a_condition_of_a_deny_counts_in_doubt() -> None:
    rules = RuleSet([allow(), deny(tools=("refund",), when=("amount > 500",))])
    for arguments, allowed in (({"amount": 500}, True), ({"amount": 501}, False), ({}, False)):
        assert isinstance(authorize(call("refund", arguments), VIEWER, rules), Allow) is allowed


def test_what_can_be_called_with_some_arguments_is_visible() -> None:
    assert is_visible(Subject("tools", "refund"), VIEWER, REFUND)
    rules = RuleSet([allow(), deny(tools=("refund",), when=("amount > 500",))])
    assert is_visible(Subject("tools", "refund"), VIEWER, rules)
    assert not is_visible(Subject("tools", "refund"), VIEWER, RuleSet([allow(), deny()]))


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("greet", True),
        ("say hello", True),
        ("admin_x", False),
        ("ADMIN_x", False),
        ("\uff41dmin_x", False),
        ("ad\u00admin_x", False),
        (" greet", False),
        ("greet\n", False),
        ("", False),
        ("x" * 257, False),
    ],
)
def test_a_prompt_is_judged_by_its_name(name: str, *, allowed: bool) -> None:
    rules = RuleSet([allow(), deny(prompts=("admin_*",))])
    decision = authorize(ask("prompts/get", name=name), VIEWER, rules)
    assert isinstance(decision, Allow) is allowed


@pytest.mark.parametrize(
    ("ref", "allowed"),
    [
        ({"type": "ref/prompt", "name": "greet"}, True),
        ({"type": "ref/prompt", "name": "admin_x"}, False),
        ({"type": "ref/resource", "uri": "file:///data/a"}, True),
        ({"type": "ref/resource", "uri": "file:///data/{name}"}, True),
        ({"type": "ref/resource", "uri": "file:///{path}"}, True),
        ({"type": "ref/resource", "uri": "file:///etc/{name}"}, False),
        ({"type": "ref/resource", "uri": "file:///data/secret/{name}"}, False),
    ],
)
def test_a_completion_follows_what_it_completes(ref: object, *, allowed: bool) -> None:
    rules = RuleSet(
        [
            allow(resources=("file:///data/*",)),
            allow(prompts=("*",), when=("x == 1",)),
            deny(resources=("file:///data/secret*",), prompts=("admin_*",)),
        ]
    )
    assert (
        isinstance(authorize(ask("completion/complete", ref=ref), VIEWER, rules), Allow) is allowed
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/update", "tasks/cancel"])
def test_a_task_follows_the_tool_that_began_it(method: str) -> None:
    message = ask(method, taskId="t")
    assert authorize(message, VIEWER, BRIEF, task_tool="get_status") == Allow("rules[1]")
    unknown = authorize(message, VIEWER, BRIEF, task_tool=None)
    assert unknown == Deny("methods", "unknown_task")
    assert authorize(message, VIEWER, BRIEF, task_tool="admin_x") == Deny(
        "rules[0]", "unknown_task"
    )


def test_the_subject_is_what_the_message_names() -> None:
    assert subject_of(call("x")) == Subject("tools", "x")
    assert subject_of(ask("resources/read", uri="a:b")) == Subject("resources", "a:b")
    assert subject_of(ask("ping")) is None


def test_the_record_gets_the_operands_of_the_rule() -> None:
    assert REFUND.operands("allow", {"amount": 7, "secret": "x"}) == {"amount": 7}
    assert REFUND.operands("other", {"amount": 7}) == {}
