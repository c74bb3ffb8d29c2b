"""Over random policies, principals and spellings: is what is listed what can be called?"""

import asyncio
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.mcp_world import Asked, World, ask, call, echo, tell, value
from tidegate.mcp import Rule, RuleSet, compile_condition

TOOLS = ["get_status", "get_secret", "admin_reset", "Admin_Reset", "a", "search.docs"]
DISGUISED = [
    *TOOLS,
    " get_secret",
    "GET_SECRET",
    "get_\u200bsecret",
    "\uff47et_secret",
    "g\u0435t_secret",
    "admin_reset\u0000",
    "",
]
GLOBS = ["*", "get_*", "*secret*", "admin_*", "ADMIN_*", "a", "*.docs", "g?t_*", "none"]
ROLES = ["viewer", "admin", "guest"]


def some(*values: str) -> Any:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


@st.composite
def rule(draw: Any, *, conditions: bool) -> Rule:
    when: tuple[Any, ...] = ()
    if conditions and draw(st.booleans()):
        text = draw(st.sampled_from(["x <= 1", "x > 1", "r in ['eu']", "x == null"]))
        when = (compile_condition(text),)
    return Rule(
        f"rule{draw(st.integers(0, 99))}",
        draw(st.sampled_from(["allow", "deny"])),
        roles=draw(some("*", *ROLES)),
        unless_roles=draw(st.just(()) | some(*ROLES)),
        tenants=draw(st.sampled_from([("*",), ("acme",), ("other",)])),
        tools=draw(st.none() | some(*GLOBS)),
        prompts=draw(st.none() | st.just(("*",))),
        when=when,
    )


def plainly_allowed(rules: list[Rule], role: str, tenant: str, name: str) -> bool:
    """The rules once more, written as simply as can be, for plain ASCII names."""

    def speaks(each: Rule, *, careless: bool) -> bool:
        if role in each.unless_roles or not ({"*", role} & set(each.roles)):
            return False
        if not ({"*", tenant} & set(each.tenants)):
            return False
        globs = each.tools
        if globs is None:
            globs = ("*",) if each.prompts is None and each.resources is None else ()
        if careless:
            return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)
        return any(fnmatchcase(name, glob) for glob in globs)

    denied = any(speaks(each, careless=True) for each in rules if each.effect == "deny")
    return not denied and any(
        speaks(each, careless=False) for each in rules if each.effect == "allow"
    )


def executing(log: list[str]) -> Any:
    """A server that lists every tool and runs whatever it is told, however it is told."""

    async def script(asked: Asked) -> None:
        message = asked.message
        if message["method"] == "tools/call":
            log.append(message["params"]["name"])
        if message["method"] == "tools/list":
            asked.result({"tools": [{"name": name} for name in TOOLS]})
        else:
            await echo(asked)

    return script


TENANT = {"viewer": "acme", "admin": "acme", "guest": "other"}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(rule(conditions=False), max_size=4),
    st.sampled_from(ROLES),
    st.sampled_from(["list", "full"]),
)
@pytest.mark.full
def test_what_is_listed_is_what_can_be_called(rules: list[Rule], role: str, hide: str) -> None:
    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=RuleSet(rules), hide_denied=hide)
        answer = value(await world.post(ask("tools/list"), role=role))
        listed = {tool["name"] for tool in answer["result"]["tools"]}
        answers = value(await world.post([call(n, id=i) for i, n in enumerate(TOOLS)], role=role))
        callable_ = {TOOLS[a["id"]] for a in answers if "result" in a}
        wanted = {n for n in TOOLS if plainly_allowed(rules, role, TENANT[role], n)}
        assert listed == callable_ == set(log) == wanted

    asyncio.run(body())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(rule(conditions=True), max_size=4),
    st.sampled_from(ROLES),
    st.lists(
        st.tuples(
            st.sampled_from(DISGUISED),
            st.sampled_from([{}, {"x": 0}, {"x": 5}, {"x": None}, {"x": 0, "X": 9}, {"r": "EU"}]),
            st.sampled_from(["call", "notification", "batch"]),
        ),
        max_size=6,
    ),
)
def test_no_denied_call_appears_in_the_log_of_the_server(
    rules: list[Rule], role: str, calls: list[tuple[str, Any, str]]
) -> None:
    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=RuleSet(rules))
        tenant = TENANT[role]
        for name, arguments, form in calls:
            log.clear()
            message = call(name, arguments)
            if form == "notification":
                message = tell("tools/call", name=name, arguments=arguments)
            answer = await world.post([message] if form == "batch" else message, role=role)
            if form == "notification":
                assert answer.body == b""
            else:
                (got,) = value(answer) if form == "batch" else [value(answer)]
                assert ("result" in got) is bool(log)
            if log:
                assert log == [name]
                # Conditions only take away from allows and denies that stand without them.
                allowing = [each for each in rules if each.effect == "allow"]
                assert plainly_allowed(allowing, role, tenant, name)
                certain = [each for each in rules if each.effect == "deny" and not each.when]
                assert plainly_allowed([*allowing, *certain], role, tenant, name)

    asyncio.run(body())
