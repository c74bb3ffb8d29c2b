"""What is done about a list that the gateway asks for itself and does not get?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_streams import begin
from tests.app.mcp_world import World, call
from tests.app.offered import ALL_BUT, Roster, told, told_of, world_of
from tests.logged import lines
from tidegate.mcp.page_walk import MOST_BYTES
from tidegate.mcp.pins import Mode


def seen(world: World) -> dict[str, Any]:
    """What the step of the record says of the server that failed."""
    end = world.records.ends[-1].snapshot()
    (step,) = [each for each in end.steps if each.stage == "upstream"]
    assert step.verdict == "failed"
    return dict(step.values)


def logged(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """Lines of the log without the numbers of requests."""
    said = lines(caplog, "tidegate.gateway.tool_requests")
    return [(each.levelname, each.getMessage(), each.__dict__.get("status")) for each in said]


@pytest.mark.parametrize("status", [401, 403, 302, 429, 500, 502])
def test_a_status_is_told_as_if_the_call_had_been_sent(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        steps, said = [], []
        for hide in ("full", "off"):
            world, _ = world_of()
            world.policy = replace(world.policy, hide_denied=hide)
            world.transport.script = lambda asked: answered(asked, status)
            caplog.clear()
            await told_of(world, "a")
            steps.append(seen(world))
            said.append(logged(caplog))
        assert steps[0] == steps[1]
        assert steps[0]["status"] == status
        assert said[0] == said[1]
        refused = ("ERROR", "mcp_credential_refused", status)
        assert (refused in said[0]) == (status in (401, 403))

    run(body)


async def answered(asked: Any, status: int) -> None:
    asked.whole({"error": "unauthorized"}, status)


def test_a_refused_credential_is_told_of_by_a_look_of_the_pins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        world, _ = world_of(pin="block")
        world.policy = replace(world.policy, hide_denied="off")
        world.transport.script = lambda asked: answered(asked, 401)
        assert (await told_of(world, "a"))["code"] == -32603
        assert ("ERROR", "mcp_credential_refused", 401) in logged(caplog)
        await world.pins.close()

    run(body)


@pytest.mark.parametrize(("hide", "pin"), [("full", "off"), ("off", "block"), ("off", "off")])
def test_a_session_that_its_server_has_ended_is_over_for_its_client(hide: str, pin: Mode) -> None:
    async def body() -> None:
        world, _ = world_of(pin=pin)
        world.policy = replace(world.policy, hide_denied=hide)
        session = await begin(world)
        assert len(world.traffic.relay.sessions) == 1
        world.transport.script = ended
        head = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
        for sent in (1, 0):  # of what is over nobody is asked
            world.transport.asked.clear()
            answer = await world.post(call("a"), **head)
            assert (answer.status, told(answer)["error"]) == (404, OVER)
            assert len(world.transport.asked) == sent
        assert len(world.traffic.relay.sessions) == 0
        await world.pins.close()

    run(body)


OVER = {"code": -32600, "message": "Session not found"}


async def ended(asked: Any) -> None:
    asked.whole({"jsonrpc": "2.0", "id": None, "error": OVER}, 404)


class Endless(Roster):
    """A list without an end, in pages of a megabyte."""

    def _list(self, asked: Any, params: Any) -> None:
        page = int(params.get("cursor", 0))
        tool = {"name": f"t{page}", "description": "x" * 1_000_000, "inputSchema": {}}
        self._say(asked, {"result": {"tools": [tool], "nextCursor": str(page + 1)}})


@pytest.mark.parametrize(("hide", "pin"), [("full", "off"), ("off", "block")])
def test_a_list_is_read_up_to_some_bytes(hide: str, pin: Mode) -> None:
    async def body() -> None:
        server = Endless()
        world = World(server, rules=ALL_BUT, hide_denied=hide, pin=pin)
        assert (await told_of(world, "t0"))["code"] == -32603
        assert server.lists == 1 + MOST_BYTES // 1_000_000
        if hide == "full":
            assert seen(world)["reason"] == "too_large"
        await world.pins.close()

    asyncio.run(body())  # part of it runs in a thread
