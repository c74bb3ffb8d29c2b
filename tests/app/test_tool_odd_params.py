"""Is a member of another type than the protocol's an error of its client, never one of ours?"""

from itertools import product
from typing import Any

import pytest

from tests.app.federated import Federated, Server
from tests.app.mcp_answers import MODERN, run
from tests.app.mcp_world import World, ask, tell
from tests.unit.mcp.asking import allow, deny
from tidegate.mcp import RuleSet

ODD: list[Any] = [None, True, 0, -1.5, "", "x", [], [[]], {}, {"": {}}, ["x"], {"name": []}]
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list")
MEMBERS: dict[str, dict[str, Any]] = {
    **{method: {"cursor": "c"} for method in LISTS},
    "tools/call": {"name": "get_status", "arguments": {"a": 1}, "task": {"ttl": 1}},
    "prompts/get": {"name": "p", "arguments": {"a": "b"}},
    "resources/read": {"uri": "file:///a"},
    "resources/subscribe": {"uri": "file:///a"},
    "resources/unsubscribe": {"uri": "file:///a"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": "v"},
        "context": {"arguments": {}},
    },
    "logging/setLevel": {"level": "info"},
    "tasks/get": {"taskId": "t"},
    "tasks/cancel": {"taskId": "t"},
    "tasks/result": {"taskId": "t"},
    "tasks/update": {"taskId": "t", "inputResponses": {}},
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
    "server/discover": {},
    "ping": {},
}
NOTES: dict[str, dict[str, Any]] = {
    "notifications/cancelled": {"requestId": 1, "reason": "r"},
    "notifications/progress": {"progressToken": 1, "progress": 1, "message": "m"},
    "notifications/initialized": {},
    "notifications/tasks/status": {"taskId": "t", "status": "s"},
}
META = {"progressToken": 1, "io.modelcontextprotocol/clientInfo": {}, "traceparent": "x"}
RULES = RuleSet([allow(), deny(tools=("admin_*",), when=("args.a == 2",))])


def spoiled(members: dict[str, Any]) -> list[dict[str, Any]]:
    """The params with one member, or one within it, of each other type."""
    found = []
    for name, value in members.items():
        found += [{**members, name: odd} for odd in ODD]
        if isinstance(value, dict):
            found += [
                {**members, name: {**value, inner: odd}} for inner, odd in product(value, ODD)
            ]
    metas = [*ODD, *({**META, name: odd} for name, odd in product(META, ODD))]
    return [*found, *({**members, "_meta": meta} for meta in metas)]


def single() -> Any:
    return World(rules=RULES, hide_denied="full")


def several() -> Any:
    return Federated(a=Server(), b=Server(), rules=RULES)


@pytest.mark.parametrize("method", [*MEMBERS, *NOTES])
@pytest.mark.parametrize("make", [single, several])
def test_no_type_of_a_member_is_an_error_of_ours(method: str, make: Any) -> None:
    async def body() -> None:
        world = make()
        for params in spoiled({**MEMBERS, **NOTES}[method]):
            say = tell if method in NOTES else ask
            for headers in ({}, {"mcp_protocol_version": MODERN, "mcp_method": method}):
                answer = await world.post(say(method, **params), **headers)
                assert answer.status < 500, (params, answer.body)
                assert b"gateway.internal" not in answer.body, (params, answer.body)

    run(body)
