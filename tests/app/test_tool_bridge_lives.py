"""Is a message that was prepared for one life of a process sent to no other?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.app.mcp_answers import run
from tests.app.mcp_world import OFF, call, echo
from tests.app.pinned import Pinned
from tests.app.piped import FakeProcess, Piped, Server, modern, polite
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.jsonrpc import Request
from tidegate.mcp.eras import LEGACY
from tidegate.mcp.servers import ServerCommand

PLACE = ServerCommand("backend", ("my-server",))


class Processes:
    """In place of Children: there is one, and a test runs it."""

    def __init__(self, process: FakeProcess) -> None:
        self.process = process

    def carrier(self, place: ServerCommand) -> FakeProcess:
        assert place == PLACE
        return self.process

    def retain(self, places: Any) -> None:
        pass

    async def close(self) -> None:
        pass


class OneProcess(Pinned):
    """The MCP path with a process behind it; `meanwhile` stands between decision and call."""

    def __init__(self, server: Server, pin: Any = "block") -> None:
        super().__init__(echo, pin=pin)
        self.process = FakeProcess(server)
        self.carriers._children = cast("Any", Processes(self.process))
        self.policy = replace(self.policy, servers={"backend": ToolServer(PLACE, OFF, pin)})
        self.carriers.retain([PLACE])
        self.meanwhile: Callable[[], None] = lambda: None
        pins = self.traffic.relay.pins
        compared = pins.calls

        async def and_meanwhile(*asked: Any) -> None:
            await compared(*asked)
            self.meanwhile()

        pins.calls = and_meanwhile  # type: ignore[method-assign]


def begun_anew(process: FakeProcess) -> None:
    process.crash()
    process.running, process.generation = True, process.generation + 1


@pytest.mark.parametrize("server", [polite, modern])
@pytest.mark.parametrize("happens", [FakeProcess.crash, begun_anew])
@pytest.mark.parametrize("client", ["modern", "older"])
def test_a_call_is_for_the_process_whose_tools_were_compared(
    server: Server, happens: Callable[[FakeProcess], None], client: str
) -> None:
    async def body() -> None:
        world = OneProcess(server)
        is_modern = client == "modern"
        assert await world.calls("echo", is_modern) == "done"
        world.meanwhile = lambda: happens(world.process)
        assert (await world.calls("echo", is_modern))["code"] == -32603
        assert world.process.told == ["echo"]
        failed = [s.values for s in world.records.ends[-1].steps if s.stage == "upstream"]
        assert [each["reason"] for each in failed] == ["restarted"]
        world.meanwhile = lambda: None
        lists = [method for _, method in world.process.heard].count("tools/list")
        assert await world.calls("echo", is_modern) == "done"
        # Compared again before it was sent.
        assert [method for _, method in world.process.heard].count("tools/list") > lists
        assert world.process.told == ["echo", "echo"]
        await world.carriers.close()

    run(body)


def test_what_no_pin_stands_for_goes_to_the_process_that_runs() -> None:
    async def body() -> None:
        world = OneProcess(polite, pin="warn")
        assert await world.calls("echo") == "done"
        world.meanwhile = world.process.crash
        assert await world.calls("echo") == "done"
        assert world.process.told == ["echo", "echo"]
        await world.carriers.close()

    run(body)


def test_a_process_that_ended_right_behind_its_handshake_has_left_no_session() -> None:
    async def fleeting(process: FakeProcess, request: Request) -> Any:
        answer = await polite(process, request)
        if request.method == "initialize" and process.generation == 1:
            begun_anew(process)
        return answer

    async def body() -> None:
        piped = Piped(fleeting)
        with pytest.raises(ServerFailed, match="session_ended"):
            await piped.say(call("echo"), LEGACY[0])
        assert (await piped.say(call("echo"), LEGACY[0])).result["content"] == []
        last = piped.process.generation
        methods = [method for life, method in piped.process.heard if life == last]
        assert methods[:2] == ["initialize", "notifications/initialized"]

    run(body)
