"""Is a tool looked at before a call wherever its server went and whatever was looked at before?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import run
from tests.app.mcp_world import OFF, Asked, ask, call
from tests.app.pinned import META, MODERN, Pinned, Shifty, answer_of, changed, refused, tool
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.limits.ledger import Limit
from tidegate.mcp.cursors import Whose
from tidegate.mcp.servers import ServerAddress


@pytest.mark.parametrize("first", ["list", "call"])
@pytest.mark.parametrize("how", ["moved", "restarted"])
def test_a_server_that_is_another_one_is_looked_at_before_its_first_call(
    first: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        world = Pinned()
        life = [1]
        monkeypatch.setattr(world.carriers, "life_of", lambda _place: life[0])
        if first == "list":
            assert await world.listed() == ["read", "write"]
        else:
            assert await world.calls("write") == "done"
        if how == "moved":
            new = ServerAddress("backend", "http://elsewhere.example/mcp")
            world.policy = replace(world.policy, servers={"backend": ToolServer(new, OFF, "block")})
            world.carriers.retain([new])
        else:
            life[0] = 3
        changed(world.server)
        world.server.ran.clear()
        assert refused(await world.calls("read"), "read")
        assert world.server.ran == []

    run(body)


def test_a_list_that_was_all_there_is_to_look_at_is_not_asked_for_again() -> None:
    async def body() -> None:
        world = Pinned()
        assert await world.listed() == ["read", "write"]
        assert await world.calls("read") == "done"
        assert world.server.heard == ["tools/list", "tools/call"]

    run(body)


VERAS = Whose(("", "acme", "vera", ""), "http://backend.example/mcp", "tools/list")
"""Whose a cursor is that a client kept from before."""


@pytest.mark.parametrize("cursor", ["1", "2"])
def test_whoever_asks_for_a_later_page_first_decides_nothing(cursor: str) -> None:
    async def body() -> None:
        world = Pinned(Shifty(tool("read"), tool("write"), tool("send"), page=1))
        world = Pinned(Shifty(tool("read"), tool("write"), tool("send"), page=1))
        world.traffic.relay.sessions.cursors.give(cursor, VERAS)
        assert "result" in answer_of(await world.post(ask("tools/list", cursor=cursor)))
        assert await world.listed() == ["read", "write", "send"]
        assert await world.calls("read") == "done"
        world.server.tools.append(tool("late"))
        assert await world.listed() == ["read", "write", "send"]

    run(body)


def test_news_that_come_while_the_list_is_on_its_way_have_it_looked_at_again() -> None:
    async def body() -> None:
        world = Pinned()
        assert await world.calls("read") == "done"
        world.pins.stale("backend")

        def lists(asked: Asked) -> None:
            world.server.broken = None
            world.server._list(asked)
            changed(world.server)
            world.pins.stale("backend")

        world.server.broken = lists
        assert refused(await world.calls("read"), "read")
        assert world.server.ran == ["read"]

    run(body)


@pytest.mark.parametrize("mode", ["warn", "block"])
def test_the_list_before_a_call_is_asked_for_only_once_the_intent_is_on_disk(mode: Any) -> None:
    async def body() -> None:
        world = Pinned(pin=mode)
        world.records.fails = True
        answer = await world.post(call("read"))
        assert answer.status == 503
        await world.store.marks()
        assert world.server.heard == []
        world.records.fails = False
        assert await world.calls("read") == "done"
        await until(lambda: world.server.heard.count("tools/list") == 1)

    run(body)


def test_a_list_that_fails_is_not_asked_for_by_every_call() -> None:
    async def body() -> None:
        once = Limit("calls", "requests", 1, 60.0, servers=("*",), tools=("*",))
        world = Pinned(limits=[once])
        world.server.broken = lambda asked: asked.whole({}, 503)
        for _ in range(5):
            assert "code" in answer_of(await world.post(call("read")))["error"]
        assert world.server.heard == ["tools/list"]

    run(body)


@pytest.mark.parametrize("modern", [False, True])
def test_what_one_client_adds_to_its_call_refuses_nobody_else(
    modern: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = Pinned()
        lists = world.server._list

        def strict(asked: Asked) -> None:
            meta = asked.message.get("params", {}).get("_meta", {})
            world.server.broken = None
            if "boom" in meta or "progressToken" in meta:
                error = {"code": -32602, "message": "bad _meta"}
                asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error})
            else:
                lists(asked)
            world.server.broken = strict

        world.server.broken = strict
        meta = {"boom": 1, "progressToken": 5, **(META if modern else {})}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "read"}
        message = call("read", _meta=meta)
        await world.post(message, role="second", **(headers if modern else {}))
        assert await world.calls("read", modern) == "done"

    run(body)


def test_a_list_that_is_refused_to_one_client_is_asked_for_again_for_the_next() -> None:
    async def body() -> None:
        world = Pinned()
        world.server.broken = lambda asked: asked.whole({}, 422)
        assert "code" in await world.calls("read")
        world.server.broken = None
        assert await world.calls("read") == "done"

    run(body)


def test_what_a_server_said_while_its_pins_were_off_counts_when_they_are_not() -> None:
    async def body() -> None:
        world = Pinned()
        assert await world.calls("read") == "done"
        (server,) = world.policy.servers.values()
        world.policy = replace(world.policy, servers={"backend": replace(server, pin="off")})
        changed(world.server)
        world.server.news_with_call = True
        accepted = {"accept": "text/event-stream, application/json"}
        await world.post(call("write"), **accepted)
        world.policy = replace(world.policy, servers={"backend": server})
        assert refused(await world.calls("read"), "read")

    run(body)
