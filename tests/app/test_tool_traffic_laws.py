"""Does the path as a whole keep the laws of the decision: what is sent, run, listed and said?"""

import asyncio
import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.mcp_world import Asked, World, ask, call, echo, value
from tests.app.virtual import run_timeless
from tests.unit.mcp.test_authorize_laws import RULES
from tidegate.mcp import Rule, RuleSet, TenantRules

TOOLS = ["get_status", "get_secret", "admin_reset", "a"]
PROMPTS = ["greet", "admin_greet"]
URIS = ["file:///data/a", "file:///data/secret/b", "db://x/1"]
LISTS = {
    "tools/list": {"tools": [{"name": name} for name in TOOLS]},
    "prompts/list": {"prompts": [{"name": name} for name in PROMPTS]},
    "resources/list": {"resources": [{"uri": uri, "name": uri} for uri in URIS]},
}
ALL_BUT = RuleSet(
    [
        Rule("deny", "deny", tools=("get_secret",), prompts=("secret",), resources=("db://s/*",)),
        Rule("allow", "allow"),
    ]
)


def executing(log: list[str]) -> Any:
    """A server that lists everything and does whatever it is told."""

    async def script(asked: Asked) -> None:
        method, params = asked.message["method"], asked.message.get("params", {})
        if method in LISTS:
            asked.result(LISTS[method])
            return
        named = params.get("ref", params)
        log.append(f"{method} {named.get('name') or named.get('uri')}")
        await echo(asked)

    return script


def completed(kind: str, name: str) -> Any:
    ref = {"type": "ref/prompt", "name": name}
    if kind == "resources":
        ref = {"type": "ref/resource", "uri": name}
    argument = {"name": "x", "value": "y"}
    return ask("completion/complete", ref=ref, argument=argument)


USES = {
    "tools": [call],
    "prompts": [lambda name: ask("prompts/get", name=name), lambda n: completed("prompts", n)],
    "resources": [
        lambda uri: ask("resources/read", uri=uri),
        lambda uri: ask("resources/subscribe", uri=uri),
        lambda uri: completed("resources", uri),
    ],
}


@settings(max_examples=40, deadline=None)
@given(RULES, st.sampled_from(["viewer", "admin", "guest"]), st.sampled_from(["list", "full"]))
@pytest.mark.full
def test_whatever_is_listed_can_be_used_in_every_way_and_nothing_else_can(
    rules: list[Rule], role: str, hide: str
) -> None:
    rules = [rule for rule in rules if not rule.when]

    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=RuleSet(rules), hide_denied=hide)
        for kind, uses in USES.items():
            key = "uri" if kind == "resources" else "name"
            answer = value(await world.post(ask(f"{kind}/list"), role=role))
            listed = {item[key] for item in answer["result"][kind]}
            for item in LISTS[f"{kind}/list"][kind]:
                for use in uses:
                    log.clear()
                    got = value(await world.post(use(item[key]), role=role))
                    assert ("result" in got) is bool(log) is (item[key] in listed)

    asyncio.run(body())


FULL_WIDTH = "".join(chr(ord(c) + 0xFEE0) for c in "get_secret")
SPELLED = {
    "case": "GET_Secret",
    "full width": FULL_WIDTH,
    "one full width letter": "\uff47et_secret",
    "zero width space": "get_\u200bsecret",
    "zero width joiner": "get\u200d_secret",
    "word joiner": "\u2060get_secret",
    "byte order mark": "\ufeffget_secret",
    "variation selector": "get_secret\ufe0f",
    "soft hyphen": "get_sec\u00adret",
    "long s": "get_\u017fecret",
    "mathematical letters": "get_\U0001d42cecret",
    "combining mark": "get_secret\u0301",
    "other script": "g\u0435t_secret",
    "right to left": "\u202eget_secret",
    "blank before": " get_secret",
    "blank behind": "get_secret ",
    "line end": "get_secret\n",
    "zero": "get_secret\u0000",
    "percent": "get%5Fsecret",
    "path": "./get_secret",
}


@pytest.mark.parametrize("way", SPELLED)
def test_no_spelling_of_a_denied_tool_is_run(way: str) -> None:
    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=ALL_BUT, hide_denied="full")
        for message in (call(SPELLED[way]), [call(SPELLED[way])]):
            for text in (json.dumps(message), json.dumps(message, ensure_ascii=False)):
                got = value(await world.post(text.encode()))
                assert "error" in (got[0] if isinstance(got, list) else got)
        assert log == []

    asyncio.run(body())


_CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}'
RAW = {
    "escapes in the name": _CALL % r'{"name":"\u0067et_\u0073ecret"}',
    "escapes in the member": _CALL % r'{"n\u0061me":"get_secret"}',
    "the member twice": _CALL % '{"name":"a","name":"get_secret"}',
    "the member twice, denied first": _CALL % '{"name":"get_secret","name":"a"}',
    "the member twice by an escape": _CALL % r'{"name":"a","n\u0061me":"get_secret"}',
    "the params twice": (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},'
        '"params":{"name":"get_secret"}}'
    ),
    "the method twice": (
        '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",'
        '"params":{"name":"get_secret"}}'
    ),
    "the method with an escape": (
        r'{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall","params":{"name":"get_secret"}}'
    ),
    "the method in other letters": (
        '{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"get_secret"}}'
    ),
    "a prompt": (
        '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"\\uff53ecret"}}'
    ),
}
URI = '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"%s"}}'
RAW |= {
    uri: URI % uri
    for uri in (
        "db://s/1",
        "DB://S/1",
        "db://%73/1",
        "db://s/%31",
        "db://a/../s/1",
        "db://a/%2e%2e/s/1",
        "db://s%2F1",
        "db://s//1",
        "db://s/./1",
        "db://s/1?x",
        "db://s/1#x",
        "\\uff44b://s/1",
        "db://\\uff53/1",
        "db://s\\u200b/1",
        "db:\\\\\\\\s\\\\1",
        "db://s/%2531",
        " db://s/1",
    )
}


@pytest.mark.parametrize("way", RAW)
def test_no_way_to_write_a_body_runs_what_is_denied(way: str) -> None:
    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=ALL_BUT, hide_denied="full")
        got = await world.post(RAW[way].encode())
        # What reaches the server says what it is in plain: it is not the denied thing.
        assert [one for one in log if "secret" in one or one.endswith("//s/1")] == []
        assert "error" in value(got)

    asyncio.run(body())


NAMED = {
    "tools/call": call,
    "prompts/get": lambda name: ask("prompts/get", name=name),
    "resources/read": lambda name: ask("resources/read", uri=f"db://{name}"),
    "resources/subscribe": lambda name: ask("resources/subscribe", uri=f"db://{name}"),
    "resources/unsubscribe": lambda name: ask("resources/unsubscribe", uri=f"db://{name}"),
    "completion of a prompt": lambda name: completed("prompts", name),
    "completion of a resource": lambda name: completed("resources", f"db://{name}"),
    "tasks/get": lambda name: ask("tasks/get", taskId=name),
    "tasks/result": lambda name: ask("tasks/result", taskId=name),
    "tasks/cancel": lambda name: ask("tasks/cancel", taskId=name),
}
SOME = RuleSet(
    [
        Rule("open", "allow", tools=("open",), prompts=("open",), resources=("db://open",)),
        Rule("admins", "allow", roles=("admin",)),
    ]
)


@pytest.mark.parametrize("errors", ["brief", "spec"])
@pytest.mark.parametrize("method", NAMED)
def test_a_hidden_thing_is_answered_like_one_that_does_not_exist(method: str, errors: str) -> None:
    """Byte for byte, by the same functions in the same order, and the server hears of neither.

    What names a resource names it as it was asked for.
    """

    async def body() -> None:
        log: list[str] = []
        world = World(executing(log), rules=SOME, hide_denied="full", errors=errors)
        seen = []
        for name in ("warmup", "denied", "absent"):
            steps: list[str] = []
            sys.setprofile(
                lambda frame, event, _, steps=steps: (
                    steps.append(frame.f_code.co_qualname)
                    if event == "call" and "tidegate/mcp/" in frame.f_code.co_filename
                    else None
                )
            )
            try:
                answer = await world.post(NAMED[method](name))
            finally:
                sys.setprofile(None)
            headers = [pair for pair in answer.headers if "request-id" not in pair[0]]
            told = answer.body.replace(f'"db://{name}"'.encode(), b"its URI")
            same_length = [pair for pair in headers if pair[0] != "content-length"]
            assert len(headers) == len(same_length) + 1
            seen.append((answer.status, same_length, told, steps))
        assert seen[1] == seen[2]
        assert "authorize" in seen[1][3]
        assert b"denied" not in seen[1][2]
        assert log == []

    run_timeless(body())


def test_a_tenants_own_rules_count_for_its_callers_in_calls_and_lists() -> None:
    async def body() -> None:
        log: list[str] = []
        own = [Rule("other.yaml:rules[0]", "allow", tools=("a",))]
        rules = TenantRules(
            RuleSet([Rule("m", "deny", tools=("admin_*",))]), {"other": lambda: own}
        )
        world = World(executing(log), rules=rules, hide_denied="full")
        listed = value(await world.post(ask("tools/list"), role="guest"))
        assert listed["result"]["tools"] == [{"name": "a"}]
        assert "result" in value(await world.post(call("a"), role="guest"))
        assert value(await world.post(ask("tools/list")))["result"]["tools"] == []
        assert "error" in value(await world.post(call("a")))
        assert log == ["tools/call a"]
        (step,) = [s for s in world.records.ends[1].snapshot().steps if s.stage == "authorize"]
        assert step.rule == "other.yaml:rules[0]"

    asyncio.run(body())
