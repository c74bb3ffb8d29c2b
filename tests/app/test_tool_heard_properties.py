"""Over random rules and principals: is what may be read all that is heard of and completed?"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.mcp_answers import META, STREAM, modern, run
from tests.app.mcp_streams import StreamingServer, begin, event, heard, listen, updated, values
from tests.app.mcp_world import Asked, World, ask, echo, value
from tests.app.test_tool_traffic_properties import ROLES, some
from tidegate.mcp import Rule, RuleSet

URIS = ["test://open/a", "test://open/b", "test://secret/a", "file:///c"]
PROMPTS = ["greet", "secret_greet", "other"]
URI_GLOBS = ["*", "test://*", "test://open/*", "*secret*", "file:///c", "none"]
PROMPT_GLOBS = ["*", "*greet", "secret_*", "other", "none"]
LISTS = {
    f"notifications/{kind}/list_changed": f"{kind}/list"
    for kind in ("tools", "prompts", "resources")
}
CHANGES = [{"jsonrpc": "2.0", "method": method} for method in LISTS]
LAST = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "last"}}


@st.composite
def rule(draw: Any) -> Rule:
    return Rule(
        f"rule{draw(st.integers(0, 99))}",
        draw(st.sampled_from(["allow", "allow", "deny"])),
        roles=draw(some("*", *ROLES)),
        tenants=draw(st.sampled_from([("*",), ("acme",), ("other",)])),
        tools=draw(st.none() | st.just(("*",))),
        resources=draw(st.none() | some(*URI_GLOBS)),
        prompts=draw(st.none() | some(*PROMPT_GLOBS)),
    )


class Reads(StreamingServer):
    """Notes every resource and prompt that it was asked for, and tells of all resources."""

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[str, set[str]] = {}

    async def __call__(self, asked: Asked) -> None:
        if asked.method != "POST" or "id" not in asked.message:
            await super().__call__(asked)
            return
        method, params = asked.message["method"], asked.message.get("params", {})
        used = self.used.setdefault(method, set())
        if method == "subscriptions/listen":
            wish = params["notifications"]
            used.update(wish.get("resourceSubscriptions", []))
            asked.head(200, STREAM)
            said = {"notifications": wish, "_meta": {}}
            acknowledged = "notifications/subscriptions/acknowledged"
            asked.event({"jsonrpc": "2.0", "method": acknowledged, "params": said})
            for news in (*map(updated, URIS), *CHANGES):
                asked.event(news)
            asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
            asked.end()
        elif method == "completion/complete":
            used.add(params["ref"].get("uri") or params["ref"]["name"])
            asked.result({"completion": {"values": []}})
        elif "uri" in params or "name" in params:
            used.add(params.get("uri") or params["name"])
            await echo(asked)
        else:
            await super().__call__(asked)


def heard_of(said: list[Any]) -> set[str]:
    """The resources that messages tell of, and the lists that changed."""
    told = {each["params"]["uri"] for each in said if each.get("method", "").endswith("/updated")}
    return told | {LISTS[each["method"]] for each in said if each.get("method") in LISTS}


async def subscription(world: World, role: str) -> set[str]:
    """What a client of 2026-07-28 hears of."""
    wish = {"resourceSubscriptions": URIS}
    message = ask("subscriptions/listen", _meta=META, notifications=wish)
    answer = await world.post(message, role=role, accept=STREAM, **modern("subscriptions/listen"))
    if not answer.body.startswith((b"data", b"event", b"id")):
        return set()
    return heard_of(values(answer))


async def stream(world: World, server: Reads, role: str) -> set[str]:
    """What a client of an older revision hears of."""
    session = await begin(world, role)
    async with listen(world, session, role=role) as mine:
        asked = await server.arrival()
        for news in (*map(updated, URIS), *CHANGES, LAST):
            event(asked, news)
        while not heard(mine) or values(mine)[-1] != LAST:
            assert await mine.chunk() != b""
    return heard_of(values(mine))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(rule(), max_size=4), st.sampled_from(ROLES), st.sampled_from(["off", "list", "full"])
)
@pytest.mark.full
def test_what_is_heard_subscribed_and_completed_is_what_may_be_read(
    rules: list[Rule], role: str, hide: str
) -> None:
    async def body() -> None:
        server = Reads()
        world = World(server, rules=RuleSet(rules), hide_denied=hide)

        async def each(method: str, *params: Any) -> set[str]:
            server.used.pop(method, None)
            for one in params:
                answer = await world.post(ask(method, **one), role=role)
                assert answer.status == 200, value(answer)
            return server.used.get(method, set())

        readable = await each("resources/read", *({"uri": uri} for uri in URIS))
        usable = await each("prompts/get", *({"name": name} for name in PROMPTS))
        argument = {"name": "x", "value": ""}
        refs = [{"type": "ref/resource", "uri": uri} for uri in URIS]
        completed = await each(
            "completion/complete", *({"ref": ref, "argument": argument} for ref in refs)
        )
        assert completed == readable
        refs = [{"type": "ref/prompt", "name": name} for name in PROMPTS]
        completed = await each(
            "completion/complete", *({"ref": ref, "argument": argument} for ref in refs)
        )
        assert completed == usable
        assert await each("resources/subscribe", *({"uri": uri} for uri in URIS)) == readable
        for method in LISTS.values():
            await world.post(ask(method), role=role)
        listed = server.used.keys() & LISTS.values()
        # With "off" names are no secret: whatever a server tells of them is passed on.
        told = listed | (set(URIS) if hide == "off" else readable)
        assert await subscription(world, role) == told
        assert server.used.get("subscriptions/listen", set()) == readable
        if listed:
            assert await stream(world, server, role) == told
        await world.carriers.close()

    run(body)
