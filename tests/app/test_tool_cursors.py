"""Can everybody page through what it may see, and nobody go on where somebody else was?"""

import asyncio
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.mcp_answers import (
    BOTH,
    ENFORCE,
    META,
    STREAM,
    answering,
    generic,
    modern,
    offering,
    run,
)
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Upstream
from tests.app.mcp_world import OFF, Asked, World, ask, events, tell, value
from tests.app.test_tool_bridge_path import Client
from tidegate import sse
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.mcp import Rule, RuleSet
from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.mcp.cursors import MOST_CHARS
from tidegate.mcp.servers import ServerAddress
from tidegate.testing.asgi import ASGIExchange

EVERYBODY = RuleSet([Rule("mcp.rules[0]", "allow", roles=("viewer", "admin", "guest"))])
INVALID = {"code": -32602, "message": "Invalid cursor"}
METHODS = [*LISTED_MEMBER]
ERAS = ["2025-03-26", "2025-11-25", "2026-07-28"]
MODERN = ERAS[-1]
HIDDEN = {"resources": "uri", "resourceTemplates": "uriTemplate", "tasks": "taskId"}


class Paged:
    """A server whose lists have three pages. Its cursors are others in every list, and for each
    time that one is asked for, if it gives them `anew`."""

    def __init__(self, *, streams: bool = False, anew: bool = False) -> None:
        self.streams = streams
        self.anew = anew
        self.given = 0

    async def __call__(self, asked: Asked) -> None:
        message = asked.message
        if "id" not in message:
            asked.head(202)
            asked.end()
            return
        member = LISTED_MEMBER[message["method"]]
        page = int((message.get("params", {}).get("cursor") or "0").split()[0])
        item = {HIDDEN.get(member, "name"): f"file:///{page}" if member in HIDDEN else f"n{page}"}
        result: dict[str, Any] = {member: [item]}
        if page < 2:
            self.given += self.anew
            result["nextCursor"] = f"{page + 1} {member} {self.given}"
        if "_meta" in message.get("params", {}):
            result |= {"resultType": "complete", "ttlMs": 5, "cacheScope": "private"}
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if self.streams:
            asked.head(content_type=STREAM)
            asked.body(sse.encode(json.dumps(reply).encode()))
            asked.end()
        else:
            asked.whole(reply)


def world_of(script: Any = None, **policy: Any) -> World:
    return World(script or Paged(), **{"rules": EVERYBODY, "hide_denied": "full", **policy})


async def page(
    world: World, method: str, *, era: str = ERAS[1], role: str = "viewer", **params: Any
) -> ASGIExchange:
    """A request for a list, as a client of that revision makes it."""
    if era == MODERN:
        message = ask(method, _meta=META, **params)
        return await world.post(message, role=role, accept=BOTH, **modern(method))
    message = ask(method, **params)
    return await world.post(message, role=role, accept=BOTH, mcp_protocol_version=era)


def told(answer: ASGIExchange) -> Any:
    """The one message of an answer, in whatever form it came."""
    (message,) = events(answer) if answer.body.startswith(b"event:") else [value(answer)]
    return message


async def given_to(world: World, method: str, role: str = "viewer") -> str:
    """The cursor of the second page."""
    cursor = told(await page(world, method, role=role))["result"]["nextCursor"]
    assert isinstance(cursor, str)
    return cursor


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("streams", [False, True])
def test_a_list_can_be_read_to_its_end(method: str, era: str, *, streams: bool) -> None:
    async def body() -> None:
        world = world_of(Paged(streams=streams))
        member, cursor, found = LISTED_MEMBER[method], {}, []
        for _ in range(3):
            result = told(await page(world, method, era=era, **cursor))["result"]
            found += result[member]
            cursor = {"cursor": result.get("nextCursor")}
        assert cursor == {"cursor": None}
        # Tasks of nobody are hidden; a page without anything leads on all the same.
        assert len(found) == (0 if method == "tasks/list" else 3)
        sent = [sent.get("params", {}).get("cursor") for sent in world.sent]
        assert sent == [None, f"1 {member} 0", f"2 {member} 0"]

    run(body)


def refused(world: World, answer: ASGIExchange, *, is_modern: bool = False) -> bool:
    """Whether a cursor was refused as the revision asks for, and the server heard of nothing."""
    assert told(answer) == {"jsonrpc": "2.0", "id": 1, "error": INVALID}
    assert answer.status == (400 if is_modern else 200)
    steps = world.records.ends[-1].snapshot().steps
    decided = [s for s in steps if s.stage == "authorize"]
    assert (decided[-1].verdict, decided[-1].values["reason"]) == ("deny", "invalid_cursor")
    return True


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("errors", ["brief", "spec"])
def test_the_cursor_of_somebody_else_is_invalid(method: str, era: str, errors: str) -> None:
    async def body() -> None:
        world = world_of(errors=errors)
        cursor = await given_to(world, method)
        world.transport.asked.clear()
        for role in ("second", "admin", "guest"):
            answer = await page(world, method, era=era, role=role, cursor=cursor)
            assert refused(world, answer, is_modern=era == MODERN)
        assert world.transport.asked == []
        assert "result" in told(await page(world, method, era=era, cursor=cursor))

    run(body)


@pytest.mark.parametrize(("given_for", "used_for"), list(itertools.permutations(METHODS, 2)))
def test_the_cursor_of_another_list_is_invalid(given_for: str, used_for: str) -> None:
    async def body() -> None:
        world = world_of()
        cursor = await given_to(world, given_for)
        world.transport.asked.clear()
        assert refused(world, await page(world, used_for, cursor=cursor))
        assert world.transport.asked == []

    run(body)


MADE_UP = ["1", "1 tools 0", "2 tools 0", " ", "-", 1, 0, True, False, [], ["1"], {}]


@pytest.mark.parametrize("cursor", MADE_UP)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("hide", ["off", "full"])
def test_a_cursor_that_nobody_gave_is_invalid(cursor: object, era: str, hide: str) -> None:
    async def body() -> None:
        world = world_of(hide_denied=hide)
        answer = await page(world, "tools/list", era=era, cursor=cursor)
        assert refused(world, answer, is_modern=era == MODERN)
        assert world.transport.asked == []

    run(body)


def test_an_altered_cursor_is_invalid_wherever_it_was_altered() -> None:
    async def body() -> None:
        world = world_of()
        cursor = await given_to(world, "tools/list")
        world.transport.asked.clear()
        for at, character in enumerate(cursor):
            altered = cursor[:at] + ("1" if character != "1" else "2") + cursor[at + 1 :]
            for each in (altered, cursor[at:] + cursor[:at], cursor[at + 1 :] or "1"):
                answer = await page(world, "tools/list", cursor=each)
                assert each == cursor or told(answer)["error"] == INVALID
        assert [sent["params"] for sent in world.sent] == [{"cursor": "1 tools 0"}]

    run(body)


@pytest.mark.parametrize("cursor", [None, ""])
def test_no_cursor_is_nobodys_and_passes_as_it_came(cursor: object) -> None:
    async def body() -> None:
        data = json.dumps({"tools": [], "nextCursor": cursor}).encode()
        raw = b'{"jsonrpc": "2.0", "id": 1, "result": ' + data + b"}"
        world = world_of(answering(raw))
        answer = await page(world, "tools/list", cursor=cursor)
        assert answer.body == raw
        assert world.sent == [ask("tools/list", cursor=cursor)]

    run(body)


ODD_CURSORS = [2, 0, True, False, {}, [], ["c"], {"c": 1}, "x" * (MOST_CHARS + 1)]


@pytest.mark.parametrize("odd", ODD_CURSORS)
@pytest.mark.parametrize("hide", ["off", "full"])
def test_a_page_whose_cursor_is_none_is_a_failure_of_the_server(odd: object, hide: str) -> None:
    """Of no use to a client, which would take the page for the last one or for a fault of ours."""

    async def body() -> None:
        for method, member in LISTED_MEMBER.items():
            raw = {"jsonrpc": "2.0", "id": 1, "result": {member: [], "nextCursor": odd}}
            world = world_of(answering(json.dumps(raw).encode()), hide_denied=hide)
            assert generic(await page(world, method))
            assert world.records.ends[0].snapshot().outcome == "gateway.upstream_failed"

    run(body)


def test_a_long_cursor_is_given_and_taken() -> None:
    async def body() -> None:
        theirs = "\u00e9" * MOST_CHARS
        raw = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": theirs}}
        world = world_of(answering(json.dumps(raw).encode()))
        cursor = await given_to(world, "tools/list")
        assert cursor == theirs
        await page(world, "tools/list", cursor=cursor)
        assert world.sent[1]["params"] == {"cursor": theirs}

    run(body)


def test_a_list_in_one_page_and_what_is_no_list_stay_the_bytes_of_the_server() -> None:
    async def body() -> None:
        for method, params, result in (
            ("tools/list", {}, b'{"tools": [], "x": 0.10, "cursor": 1, "NextCursor": "a"}'),
            ("tools/list", {}, b'{"tools": [], "x": 0.10, "nextCursor": "c=1&x=%2F \\u00e9+/="}'),
            ("tools/call", {"name": "x"}, b'{"content": [], "nextCursor": "a", "cursor": 1E2}'),
            ("prompts/get", {"name": "x", "cursor": "1"}, b'{"messages": [], "nextCursor": 7}'),
        ):
            raw = b'{"jsonrpc": "2.0", "id": 1, "result": ' + result + b"}"
            script = answering(raw) if method == "tools/list" else offering(answering(raw), "x")
            world = world_of(script)
            answer = await world.post(ask(method, **params))
            assert answer.body == raw
            assert world.sent[-1].get("params", {}) == params

    run(body)


def test_in_a_batch_each_list_has_cursors_of_its_own() -> None:
    async def body() -> None:
        world = world_of()
        first = await world.post([ask(m, id=n) for n, m in enumerate(METHODS)])
        cursors = [each["result"]["nextCursor"] for each in value(first)]
        assert len(set(cursors)) == len(METHODS)
        world.transport.asked.clear()
        asked = [ask(m, id=n, cursor=cursors[n - n % 2]) for n, m in enumerate(METHODS)]
        for role, right in (("viewer", {0, 2, 4}), ("second", set())):
            answers = value(await world.post(asked, role=role))
            assert [each["id"] for each in answers] == [0, 1, 2, 3, 4]
            assert {each["id"] for each in answers if "result" in each} == right
            assert all(each["error"] == INVALID for each in answers if each["id"] not in right)
        sent = [sent["params"]["cursor"].split()[0] for sent in world.sent]
        assert sent == ["1"] * 3

    run(body)


def test_a_list_that_wants_no_answer_takes_no_foreign_cursor_to_the_server_either() -> None:
    async def body() -> None:
        world = world_of()
        cursor = await given_to(world, "tools/list")
        world.transport.asked.clear()
        for role in ("second", "viewer"):
            answer = await world.post(tell("tools/list", cursor=cursor), role=role)
            assert answer.status == 202
        assert world.sent == [tell("tools/list", cursor=cursor)]

    run(body)


def test_the_cursor_of_a_server_is_of_no_use_at_one_in_its_place() -> None:
    async def body() -> None:
        world = world_of()
        cursor = await given_to(world, "tools/list")
        new = ServerAddress("backend", "http://elsewhere.example/mcp")
        world.policy = replace(world.policy, servers={"backend": ToolServer(new, OFF)})
        world.carriers.retain([new])
        assert refused(world, await page(world, "tools/list", cursor=cursor))

    run(body)


def test_who_may_list_nothing_learns_nothing_about_cursors() -> None:
    async def body() -> None:
        world = world_of(rules=RuleSet([Rule("mcp.rules[0]", "allow", roles=("viewer",))]))
        cursor = await given_to(world, "tools/list")
        answers = [
            told(await page(world, "tools/list", role="guest", **params))
            for params in ({}, {"cursor": cursor}, {"cursor": "2"})
        ]
        assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}] * 3

    run(body)


def test_a_cursor_that_looks_like_personal_data_is_given_back_whole() -> None:
    async def body() -> None:
        theirs = "jane.doe@example.com"
        raw = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": theirs}}
        world = world_of(answering(json.dumps(raw).encode()), masking=ENFORCE)
        cursor = await given_to(world, "tools/list")
        await page(world, "tools/list", cursor=cursor)
        assert world.sent[1]["params"] == {"cursor": theirs}

    run(body)


async def in_pages(upstream: Upstream, asked: Asked, message: Any) -> Any:
    """A server of one era with a list in three pages."""
    del upstream, asked
    if message["method"] != "prompts/list":
        return None
    number = int(message.get("params", {}).get("cursor", "0"))
    following = {"nextCursor": str(number + 1)} if number < 2 else {}
    return {"prompts": [{"name": f"n{number}"}], **following}


@pytest.mark.parametrize(("is_modern", "made"), [(True, LegacyUpstream), (False, ModernUpstream)])
def test_a_list_across_eras_is_read_to_its_end_by_its_own_client(
    made: Any, *, is_modern: bool
) -> None:
    async def body() -> None:
        upstream = made(handler=in_pages)
        client = Client(world_of(upstream), is_modern=is_modern)
        await client.begin()
        cursor: dict[str, Any] = {}
        for number in range(3):
            result = (await client.ask(ask("prompts/list", **cursor)))["result"]
            assert [each["name"] for each in result["prompts"]] == [f"n{number}"]
            if number < 2:
                cursor = {"cursor": result["nextCursor"]}
        heard = len(upstream.heard)
        for made_up in ("0", "3", cursor["cursor"] + " "):
            assert (await client.ask(ask("prompts/list", cursor=made_up)))["error"] == INVALID
        assert len(upstream.heard) == heard
        assert upstream.faults == []

    run(body)


ROLES = ["viewer", "second", "admin", "guest"]
PLACES = st.tuples(st.sampled_from(ROLES), st.sampled_from(METHODS))


@settings(max_examples=40)
@given(st.lists(PLACES, min_size=1, max_size=6), st.lists(st.tuples(PLACES, st.integers(0, 5))))
def test_a_cursor_works_exactly_where_it_was_given(
    gives: list[tuple[str, str]], uses: list[tuple[tuple[str, str], int]]
) -> None:
    async def body() -> None:
        world = world_of(Paged(anew=True))
        cursors = [(place, await given_to(world, place[1], place[0])) for place in gives]
        for (role, method), number in uses:
            place, cursor = cursors[number % len(cursors)]
            world.transport.asked.clear()
            answer = told(await page(world, method, role=role, cursor=cursor))
            assert ("result" in answer) is (place == (role, method)) is bool(world.sent)

    asyncio.run(body())
