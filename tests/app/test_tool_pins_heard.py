"""Do the pins hear of a change that a server of 2026-07-28 announces while no client listens?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_world import OFF
from tests.app.pinned import CHANGED, MODES, Pinned, Shifty, changed, refused
from tidegate.gateway.pause import pause
from tidegate.gateway.pins.known import UNHEARD_S
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.mcp.pins import Mode
from tidegate.mcp.servers import ServerAddress

TOOLS = {"toolsListChanged": True}
Act = Callable[[Pinned], None]


def heard(world: Pinned) -> bool:
    (server,) = world.policy.servers.values()
    return world.carriers.is_heard(server.place)


async def listening(mode: Mode = "block", *, terminates: bool = False) -> Pinned:
    """A gateway that hears the server, whose tools are known."""
    world = Pinned(pin=mode)
    world.server.grants = TOOLS
    if terminates:
        places = [server.place for server in world.policy.servers.values()]
        world.carriers.retain([*places, ServerAddress("other", "http://other.example/mcp")])
    assert await world.calls("read", modern=True) == "done"
    if mode == "warn":
        await until(lambda: "tools/list" in world.server.heard)
    assert await world.calls("read", modern=True) == "done"
    await until(lambda: heard(world))
    assert await world.calls("read", modern=True) == "done"
    await until(lambda: world.server.heard.count("tools/list") == 2)
    assert await world.calls("read", modern=True) == "done"
    return world


@pytest.mark.parametrize("terminates", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_change_that_is_announced_to_nobody_else_is_seen_before_the_next_call(
    mode: Mode,
    terminates: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = await listening(mode, terminates=terminates)
        lists = world.server.heard.count("tools/list")
        (subscription,) = world.server.subscriptions
        assert subscription.message["params"]["notifications"] == TOOLS
        changed(world.server)
        subscription.event(CHANGED)
        await until(lambda: world.pins._of("backend").news == 2)
        told = await world.calls("read", modern=True)
        assert refused(told, "read") if mode == "block" else told == "done"
        await until(lambda: world.pins.differing() == {"backend": 1})
        assert world.server.heard.count("tools/list") == lists + 1
        assert len(world.server.subscriptions) == 1
        await world.carriers.close()

    run(body)


def test_one_that_lapses_is_asked_for_again_and_what_happened_meanwhile_is_seen() -> None:
    async def body() -> None:
        world = await listening()
        world.server.subscriptions[0].end()
        world.server.subscriptions[0].gone.set()
        await until(lambda: not heard(world))
        changed(world.server)
        await pause(1.0)
        await until(lambda: heard(world))
        assert len(world.server.subscriptions) == 2
        assert refused(await world.calls("read", modern=True), "read")
        await world.carriers.close()

    run_in_no_time(body)


@pytest.mark.parametrize(
    "grants",
    [
        None,
        {},
        *[
            pytest.param(grants, marks=pytest.mark.full)
            for grants in ({"promptsListChanged": True}, [], "all")
        ],
    ],
)
def test_a_server_that_refuses_it_is_looked_at_now_and_then(grants: Any) -> None:
    async def body() -> None:
        world = Pinned()
        world.server.grants = grants
        for _ in range(5):
            assert await world.calls("read", modern=True) == "done"
            await until(lambda: len(world.server.subscriptions) == 1)
        assert world.server.heard.count("tools/list") == 1
        changed(world.server)
        await pause(UNHEARD_S)
        assert refused(await world.calls("read", modern=True), "read")
        assert len(world.server.subscriptions) == 1
        await world.carriers.close()

    run_in_no_time(body)


def reload_to(mode: Mode) -> Act:
    def act(world: Pinned) -> None:
        (server,) = world.policy.servers.values()
        world.policy = _with(world, ToolServer(server.place, OFF, mode))
        world.carriers.retain([server.place])
        world.carriers.watch_only(world.policy.pinned_servers)

    return act


def _with(world: Pinned, server: ToolServer) -> Any:
    return replace(world.policy, servers={"backend": server})


def move(world: Pinned) -> None:
    place = ServerAddress("backend", "http://elsewhere.example/mcp")
    world.policy = _with(world, ToolServer(place, OFF, "block"))
    world.carriers.retain([place])


@pytest.mark.parametrize(
    "act",
    [
        reload_to("off"),
        move,
        lambda world: world.carriers.let_go(),
        lambda world: world.carriers.cut(),
    ],
    ids=["off", "moved", "drain", "cut"],
)
def test_it_ends_with_what_it_is_for(act: Act) -> None:
    async def body() -> None:
        world = await listening()
        act(world)
        await until(world.server.subscriptions[0].gone.is_set)
        assert not heard(world)
        assert await world.calls("write", modern=True) == "done"
        (server,) = world.policy.servers.values()
        again = 2 if server.place.key != "http://backend.example/mcp" else 1
        assert len(world.server.subscriptions) <= again
        await world.carriers.close()

    run(body)


def test_a_reload_that_changes_nothing_of_it_leaves_it_alone() -> None:
    async def body() -> None:
        world = await listening()
        reload_to("warn")(world)
        assert heard(world)
        assert len(world.server.subscriptions) == 1
        await world.carriers.close()
        assert world.server.subscriptions[0].gone.is_set()

    run(body)


@pytest.mark.parametrize("modern", [False, True])
def test_without_pins_or_without_that_revision_nothing_is_subscribed_to(
    modern: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = Pinned(Shifty(), pin="off" if modern else "block")
        world.server.grants = TOOLS
        for _ in range(3):
            assert await world.calls("read", modern) == "done"
        await world.listed(modern)
        assert world.server.subscriptions == []

    run(body)
