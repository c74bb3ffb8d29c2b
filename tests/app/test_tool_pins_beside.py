"""What else the pins of tools meet on the path: rules, limits, batches, failures, other servers."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import Federated, until
from tests.app.mcp_answers import run
from tests.app.mcp_world import DENIED, Asked, ask, call, tell, value
from tests.app.pinned import META, MODERN, MODES, Pinned, Shifty, answer_of, changed, refused, tool
from tidegate.errors import StoreUnavailable
from tidegate.gateway.servers.carrier import Carrier
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.limits.ledger import Limit
from tidegate.mcp.answers import GENERIC_MESSAGE
from tidegate.mcp.pin_store import MemoryPins
from tidegate.mcp.pins import Mode
from tidegate.mcp.servers import Place, ServerAddress


def test_with_pins_off_nobody_asks_and_nothing_is_kept() -> None:
    async def body() -> None:
        world = Pinned(pin="off")
        await world.listed()
        changed(world.server)
        assert await world.calls("read") == "done"
        assert world.server.heard == ["tools/list", "tools/call"]
        assert await world.store.marks() == {}
        assert world.steps() == []

    run(body)


def test_a_refused_tool_is_unknown_where_what_is_denied_is_hidden() -> None:
    async def body() -> None:
        world = Pinned(hide_denied="full")
        await world.listed()
        changed(world.server)
        await world.listed()
        told = [await world.calls(name) for name in ("read", "never_was")]
        assert told[0] == told[1] == {"code": -32601, "message": "Unknown tool"}
        assert world.server.ran == []

    run(body)


def test_the_spec_profile_says_forbidden() -> None:
    async def body() -> None:
        world = Pinned(errors="spec")
        await world.listed()
        changed(world.server)
        await world.listed()
        answer = await world.post(call("read"))
        assert answer.status == 403
        assert value(answer)["error"]["data"] == {"reason": "tool_denied", "tool": "read"}

    run(body)


def test_what_the_rules_deny_is_not_looked_at_and_a_refused_call_is_free() -> None:
    async def body() -> None:
        once = Limit("calls", "requests", 1, 60.0, servers=("*",), tools=("*",))
        world = Pinned(limits=[once])
        assert value(await world.post(call("admin_reset_key"))) == DENIED
        assert world.server.heard == []
        await world.listed()
        changed(world.server)
        await world.listed()
        for _ in range(3):
            assert refused(await world.calls("read"), "read")
        assert await world.calls("write") == "done"
        assert (await world.calls("write"))["code"] == -31000
        assert world.server.ran == ["write"]

    run(body)


def test_of_a_batch_only_the_changed_tool_is_refused_and_nobody_hears_of_a_notification() -> None:
    async def body() -> None:
        world = Pinned()
        await world.listed()
        changed(world.server)
        batch = [
            call("read", id=1),
            call("write", id="1"),
            tell("tools/call", name="read"),
            call("read", id=2),
        ]
        world.pins.stale("backend")
        answer = value(await world.post(batch))
        assert [(each["id"], "result" in each) for each in answer] == [
            (1, False),
            ("1", True),
            (2, False),
        ]
        assert world.server.ran == ["write"]

    run(body)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("broken", ["status", "lost", "nonsense", "refused"])
def test_a_server_whose_list_cannot_be_had(mode: Mode, broken: str) -> None:
    async def body() -> None:
        def answers(asked: Asked) -> None:
            error = {"code": -32000, "message": "db-3.internal is down"}
            match broken:
                case "status":
                    asked.whole({}, 503)
                case "lost":
                    asked.fail()
                case "nonsense":
                    asked.whole({"tools": []})
                case _:
                    asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error})

        world = Pinned(pin=mode)
        world.server.broken = answers
        told = await world.calls("read")
        if mode == "warn":
            assert told == "done"
            await until(lambda: world.steps() == [("warn", "pin_unchecked")])
        else:
            assert told["code"] == -32603
            assert told["message"] == GENERIC_MESSAGE
            assert world.server.ran == []
        world.server.broken = None
        world.pins.stale("backend")
        assert await world.calls("read") == "done"

    run(body)


def test_a_server_without_tools_has_an_empty_list() -> None:
    async def body() -> None:
        def unknown(asked: Asked) -> None:
            error = {"code": -32601, "message": "Method not found"}
            asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}, 404)

        world = Pinned()
        world.server.broken = unknown
        assert refused(await world.calls("read"), "read")
        assert world.server.ran == []

    run(body)


class Away(MemoryPins):
    """A store that cannot be reached."""

    async def marks(self) -> dict[str, int]:
        raise StoreUnavailable("away")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("body", [call("read"), ask("tools/list")])
def test_without_the_store_block_answers_that_it_cannot_know(mode: Mode, body: Any) -> None:
    async def main() -> None:
        world = Pinned(pin=mode, store=Away())
        told = answer_of(await world.post(body))
        if mode == "warn":
            assert "result" in told
        else:
            assert told["error"]["code"] != -32001
            assert "result" not in told
            assert world.server.ran == []

    run(main)


def test_a_reload_that_blocks_refuses_what_was_only_noted_before() -> None:
    async def body() -> None:
        world = Pinned(pin="warn")
        await world.listed()
        changed(world.server)
        await world.listed()
        assert await world.calls("read") == "done"
        (server,) = world.policy.servers.values()
        world.policy = replace(world.policy, servers={"backend": replace(server, pin="block")})
        assert refused(await world.calls("read"), "read")

    run(body)


def test_another_address_under_the_name_of_a_server_is_looked_at_before_a_call() -> None:
    async def body() -> None:
        world = Pinned()
        await world.calls("write")
        (server,) = world.policy.servers.values()
        place = ServerAddress("backend", "http://elsewhere.example/mcp")
        world.policy = replace(world.policy, servers={"backend": replace(server, place=place)})
        changed(world.server)
        assert refused(await world.calls("read"), "read")
        assert await world.calls("write") == "done"
        assert world.server.heard.count("tools/list") == 2

    run(body)


class Lives:
    """The ways to a process that is started anew when `life` says so."""

    def __init__(self, carriers: Carriers) -> None:
        self.life = 0
        self._carriers = carriers

    def of(self, place: Place) -> Carrier:
        self.life = self.life or 1  # whoever asks starts it
        return self._carriers.of(place)

    def life_of(self, _place: Place) -> int:
        return self.life

    def watch(self, place: Place) -> None:
        self._carriers.watch(place)

    def is_heard(self, _place: Place) -> bool:
        return True


def test_a_process_that_was_started_anew_is_looked_at_before_the_next_call() -> None:
    async def body() -> None:
        world = Pinned()
        lives = Lives(world.carriers)
        relay = world.traffic.relay
        relay.pins = PinGate(world.pins, lives, relay.shared)  # type: ignore[arg-type]
        for _ in range(2):
            assert await world.calls("write") == "done"
        assert world.server.heard.count("tools/list") == 1
        changed(world.server)
        lives.life += 2
        assert refused(await world.calls("read"), "read")
        assert await world.calls("write") == "done"
        assert world.server.heard.count("tools/list") == 2

    run(body)


def test_several_processes_on_one_store_agree() -> None:
    async def body() -> None:
        world = Pinned()
        other = world.again()
        assert await asyncio.gather(world.calls("read"), other.calls("read")) == ["done", "done"]
        changed(world.server)
        await world.listed()
        other.pins.stale("backend")
        assert refused(await other.calls("read"), "read")
        await world.approve("read")
        assert [await one.calls("read") for one in (world, other)] == ["done", "done"]

    run(body)


def test_tools_of_several_servers_are_pinned_under_their_own_names() -> None:
    async def body() -> None:
        a, b = Shifty(tool("read"), tool("send_mail")), Shifty(tool("read"), tool("send_rnail"))
        world = Federated(a=a, b=b)
        servers = {
            name: replace(server, pin="block") for name, server in world.policy.servers.items()
        }
        world.policy = replace(world.policy, servers=servers)
        meta = {"mcp_protocol_version": MODERN}

        async def listed() -> set[str]:
            answer = await world.post(
                ask("tools/list", _meta=META), **meta, mcp_method="tools/list"
            )
            return {each["name"] for each in value(answer)["result"]["tools"]}

        async def calls(name: str) -> Any:
            headers = {**meta, "mcp_method": "tools/call", "mcp_name": name}
            return value(await world.post(call(name, _meta=META), **headers))

        first = await listed()
        assert {"a__read", "b__read"} < first
        # Which of the two was there first is chance; the other one looks like it.
        assert len(first & {"a__send_mail", "b__send_rnail"}) == 1
        b.tools[0] = tool("read", "second")
        assert {"a__read", "b__read"} & await listed() == {"a__read"}
        denied = await calls("b__read")
        assert denied["error"]["data"]["tool"] == "b__read"
        assert "result" in await calls("a__read")
        assert (a.ran, b.ran) == (["read"], [])

    run(body)
