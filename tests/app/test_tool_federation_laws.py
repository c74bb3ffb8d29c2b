"""Does the path over several servers keep the laws of the decision?"""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.federated import Federated, Server, dead, html, until
from tests.app.mcp_world import ask, call, value
from tests.app.virtual import run_timeless
from tests.unit.mcp.test_authorize_laws import RULES
from tidegate.mcp import Rule, RuleSet
from tidegate.mcp.federation import Federation, clashes

NAMES = st.lists(
    st.from_regex(r"[ab][ab_]{0,3}", fullmatch=True), min_size=2, max_size=3, unique=True
).filter(lambda names: not list(clashes(names)))
TOOLS = ["get_status", "get_secret", "admin_reset", "a", "b__get_status", "_a"]
PROMPTS = ["greet", "admin_greet"]
URIS = ["file:///data/a", "file:///data/secret/b", "db://x/1"]


def rules_for(rules: list[Rule], servers: Any) -> RuleSet:
    """Rules without conditions, each for some of the servers."""
    plain = [rule for rule in rules if not rule.when]
    named = [
        Rule(
            f"r{number}",
            rule.effect,
            roles=rule.roles,
            unless_roles=rule.unless_roles,
            tenants=rule.tenants,
            servers=servers[number % len(servers)],
            tools=rule.tools,
            resources=rule.resources,
            prompts=rule.prompts,
        )
        for number, rule in enumerate(plain)
    ]
    return RuleSet(named)


def servers_of(names: list[str]) -> dict[str, Server]:
    return {
        name: Server(tools=TOOLS, prompts=PROMPTS, resources=URIS, resourceTemplates=[])
        for name in names
    }


USES = {
    "tools": [call],
    "prompts": [lambda name: ask("prompts/get", name=name)],
    "resources": [lambda uri: ask("resources/read", uri=uri)],
}
SERVERS = st.sampled_from([("*",), ("a*",), ("b*",)])


@settings(max_examples=30, deadline=None)
@given(
    NAMES,
    RULES,
    st.lists(SERVERS, min_size=1, max_size=3),
    st.sampled_from(["viewer", "admin", "guest"]),
    st.sampled_from(["list", "full"]),
)
@pytest.mark.full
def test_whatever_is_listed_can_be_used_at_its_server_and_nothing_else_can(
    names: list[str], rules: list[Rule], of: list[Any], role: str, hide: str
) -> None:
    async def body() -> None:
        servers = servers_of(names)
        world = Federated(**servers, rules=rules_for(rules, of), hide_denied=hide)
        table = Federation(names)
        for kind, uses in USES.items():
            key = "uri" if kind == "resources" else "name"
            own = {"tools": TOOLS, "prompts": PROMPTS, "resources": URIS}[kind]
            answer = value(await world.post(ask(f"{kind}/list"), role=role))
            listed = {item[key] for item in answer["result"][kind]}
            shown = {
                (table.shown_uri(s, o) if kind == "resources" else f"{s}__{o}"): (s, o)
                for s in names
                for o in own
            }
            assert listed <= shown.keys()
            for name, (server, own_name) in shown.items():
                for use in uses:
                    for each in servers.values():
                        each.ran.clear()
                    got = value(await world.post(use(name), role=role))
                    ran = [(s, line.split(" ", 1)[1]) for s, e in servers.items() for line in e.ran]
                    assert ran == ([(server, own_name)] if name in listed else [])
                    assert ("result" in got) is (name in listed)

    run_timeless(body())


@settings(max_examples=60, deadline=None)
@given(
    NAMES, st.text("ab_.-+: \u200b\uff41A", max_size=14), st.sampled_from(["", "a", "get_status"])
)
@pytest.mark.full
def test_whatever_a_client_writes_runs_one_known_tool_of_one_server_or_nothing(
    names: list[str], start: str, end: str
) -> None:
    async def body() -> None:
        servers = servers_of(names)
        allowed = RuleSet([Rule("r", "allow", servers=(names[0],), tools=("a", "get_status"))])
        world = Federated(**servers, rules=allowed, hide_denied="full")
        for written in (start + end, f"{start}__{end}", f"{names[0]}__{start}{end}"):
            for each in servers.values():
                each.ran.clear()
            message = call(written)
            await world.post(message, mcp_protocol_version="2025-11-25")
            ran = [(s, line) for s, e in servers.items() for line in e.ran]
            fine = {f"{names[0]}__a": "a", f"{names[0]}__get_status": "get_status"}
            expected = [(names[0], f"tools/call {fine[written]}")] if written in fine else []
            assert ran == expected

    run_timeless(body())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["live", "dead", "html", "empty"]), min_size=2, max_size=5),
    st.sampled_from(["tools", "prompts", "resources"]),
)
@pytest.mark.full
def test_a_list_is_that_of_the_servers_that_answer_whoever_else_does_not(
    states: list[str], kind: str
) -> None:
    async def body() -> None:
        made: dict[str, Any] = {}
        for number, state in enumerate(states):
            live = Server(**({kind: []} if state == "empty" else {}))
            made[f"s{number}"] = {"dead": dead, "html": html}.get(state, live)
        world = Federated(**made, rules=RuleSet([Rule("r", "allow")]))
        answer = value(await world.post(ask(f"{kind}/list")))
        broken = [f"s{n}" for n, state in enumerate(states) if state in ("dead", "html")]
        if len(broken) == len(states):
            assert answer["error"]["code"] == -32603
            return
        result = answer["result"]
        key = "uri" if kind == "resources" else "name"
        table = Federation(list(made))
        expected = [
            table.shown_uri(name, own) if kind == "resources" else f"{name}__{own}"
            for name, server in made.items()
            if isinstance(server, Server)
            for own in server.things[kind]
        ]
        assert [item[key] for item in result[kind]] == expected
        assert result.get("_meta", {}).get("tidegate/unavailable", []) == broken
        await world.over()

    run_timeless(body())


@pytest.mark.full
def test_many_clients_with_one_id_at_many_servers_get_their_own_answers() -> None:
    async def body() -> None:
        class Echoing(Server):
            async def run(self, asked: Any) -> None:
                await gate.wait()
                asked.result({"echo": asked.message["params"]["arguments"], "content": []})

        gate = asyncio.Event()
        servers = {name: Echoing() for name in ("a", "b", "c")}
        world = Federated(**servers, rules=RuleSet([Rule("r", "allow")]))
        sent = [(n, name) for n in range(10) for name in servers]
        exchanges = [world.exchange(call(f"{name}__get_status", {"n": n})) for n, name in sent]
        tasks = [asyncio.create_task(_read(exchange)) for exchange in exchanges]
        await until(lambda: sum(len(each.ran) for each in servers.values()) == len(sent))
        gate.set()
        await asyncio.gather(*tasks)
        for (n, _), exchange in zip(sent, exchanges, strict=True):
            answer = value(exchange)
            assert (answer["id"], answer["result"]["echo"]) == (1, {"n": n})
        for name in servers:
            ids = [m["id"] for m in world.to(name)]
            assert len(set(map(repr, ids))) == len(ids)

    run_timeless(body())


async def _read(exchange: Any) -> None:
    async with exchange:
        await exchange.read()
