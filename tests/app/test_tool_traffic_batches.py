"""Are batches split, intents recorded first, and limits charged for what really runs?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.app.mcp_world import (
    CREDENTIAL,
    DENIED,
    Asked,
    World,
    ask,
    call,
    echo,
    served_by,
    tell,
    value,
)
from tests.app.virtual import run_timeless
from tidegate.demo.mcp_backend import McpBackend
from tidegate.gateway.charge import Charging
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.limits import MemoryLedger
from tidegate.limits.ledger import Limit

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def run(body: Any) -> None:
    run_timeless(body())


def batch_ids(answer: Any) -> list[tuple[type, Any, int | None]]:
    return [(type(each["id"]), each["id"], each.get("error", {}).get("code")) for each in answer]


def test_a_batch_is_decided_element_by_element_in_order() -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        world = World(served_by(backend))
        batch = [
            call("get_status", id=1),
            call("admin_reset_key", id="1"),
            tell("notifications/initialized"),
            tell("tools/call", name="admin_delete_tenant"),
            call("search_docs", id=2),
            ask("x/y", id=3),
        ]
        for headers in ({}, {"mcp_protocol_version": "2025-03-26"}):
            answer = await world.post(batch, **headers)
            assert answer.status == 200
            assert batch_ids(value(answer)) == [
                (int, 1, None),
                (str, "1", -32001),
                (int, 2, None),
                (int, 3, -32601),
            ]
        assert backend.log == ["get_status", "search_docs"] * 2
        assert [type(message) for message in world.sent] == [dict] * 6

    run(body)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])
def test_later_revisions_have_no_batches(version: str) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post([call("get_status")], mcp_protocol_version=version)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32600)
        assert world.sent == []

    run(body)


@pytest.mark.parametrize(
    "batch",
    [
        [call("get_status", id=1), call("get_status", id=1)],
        [ask("initialize"), call("get_status", id=2)],
        [call("get_status", id=n) for n in range(101)],
        [call("get_status"), call("get_status", id=2, _meta=META)],
        [call("get_status"), [call("get_status", id=2)]],
        [call("get_status"), {"jsonrpc": "2.0", "id": None, "method": "ping"}],
    ],
)
def test_a_batch_that_cannot_be_split_is_refused_whole(batch: Any) -> None:
    async def body() -> None:
        world = World()
        answer = await world.post(batch)
        assert (answer.status, value(answer)["error"]["code"]) == (400, -32600)
        assert world.sent == []

    run(body)


def test_a_batch_of_notifications_gets_202_and_the_denied_ones_stay() -> None:
    async def body() -> None:
        world = World()
        batch = [
            tell("notifications/progress", progressToken=1),
            tell("tools/call", name="admin_x"),
            tell("notifications/roots/list_changed"),
        ]
        answer = await world.post(batch)
        assert (answer.status, answer.body) == (202, b"")
        assert world.sent == [batch[0], batch[2]]

    run(body)


def test_the_intent_is_recorded_before_anything_leaves_and_the_end_once() -> None:
    async def body() -> None:
        world = World()

        async def script(asked: Asked) -> None:
            world.records.order.append("upstream")
            await echo(asked)

        world.transport.script = script
        await world.post(call("get_status"))
        assert world.records.order == ["intent", "upstream", "end"]
        (trail,) = world.records.ends
        snapshot = trail.snapshot()
        assert (snapshot.outcome, snapshot.status, snapshot.surface) == ("ok", 200, "mcp")
        steps = [(step.stage, step.verdict, step.rule) for step in snapshot.steps]
        assert ("authorize", "allow", "mcp.rules[1]") in steps

    run(body)


def test_without_a_record_nothing_leaves() -> None:
    async def body() -> None:
        world = World()
        world.records.fails = True
        answer = await world.post(call("get_status", id="a"))
        assert answer.status == 503
        assert answer.header("retry-after") == "1"
        assert (value(answer)["id"], value(answer)["error"]["code"]) == ("a", -31002)
        assert world.sent == []
        assert value(await world.post(call("admin_reset_key"))) == DENIED

    run(body)


def limit(**parts: Any) -> Limit:
    values: dict[str, Any] = {"servers": ("*",), "tools": ("get_*",), **parts}
    return Limit("calls", "requests", cap=2, window_s=60.0, per="principal", **values)


def test_calls_beyond_their_limit_are_refused_and_denied_ones_are_free() -> None:
    async def body() -> None:
        world = World(limits=[limit(tools=("get_*", "admin_*"))])
        for _ in range(5):
            assert value(await world.post(call("admin_reset_key"))) == DENIED
        for _ in range(2):
            assert "result" in value(await world.post(call("get_status")))
        answer = await world.post(call("get_status"))
        error = value(answer)["error"]
        assert (answer.status, error["code"]) == (200, -31000)
        assert 0 < error["data"]["retryAfterMs"] <= 61_000
        denied = world.records.ends[-1].snapshot().steps[-1]
        assert (denied.stage, denied.verdict) == ("limits", "deny")
        wait_s = denied.values["retry_after_s"]
        assert denied.values == {"limit": "calls", "scope": "principal", "cap": 2, "used": 2,
                                 "requested": 1, "retry_after_s": wait_s}  # fmt: skip
        assert "x-ratelimit" not in repr(answer.headers)
        assert "result" in value(await world.post(call("search_docs")))
        assert "result" in value(await world.post(call("get_status"), role="second"))
        assert len(world.sent) == 4

    run(body)


def test_a_batch_is_cut_where_its_limit_ends() -> None:
    async def body() -> None:
        world = World(limits=[limit()])
        answer = await world.post([call("get_status", id=n) for n in range(4)])
        codes = [each.get("error", {}).get("code") for each in value(answer)]
        assert codes == [None, None, -31000, -31000]
        assert len(world.sent) == 2

    run(body)


def test_a_lease_lasts_as_long_as_the_batch_that_holds_it_may() -> None:
    seen: list[float] = []

    class Leases(MemoryLedger):
        async def reserve(self, *args: Any, lease_s: float) -> Any:
            seen.append(lease_s)
            return await super().reserve(*args, lease_s=lease_s)

    async def body() -> None:
        world = World(limits=[limit()], times=ToolTimes(total_s=100.0))
        world.traffic._charging = Charging(Leases(world.clock), "test")
        await world.post(call("get_status"))
        # They run one after the other.
        await world.post([ask("tools/list", id=7), *(call("get_status", id=n) for n in range(2))])
        assert seen == [130.0, 330.0, 330.0]

    run(body)


@pytest.mark.parametrize("degraded", [True, False])
def test_a_limiter_without_its_store_says_so_once(*, degraded: bool) -> None:
    class WithoutStore(MemoryLedger):
        async def reserve(self, *args: Any, lease_s: float) -> Any:
            verdict = await super().reserve(*args, lease_s=lease_s)
            return replace(verdict, degraded=degraded)

    async def body() -> None:
        world = World(limits=[limit()])
        world.traffic._charging = Charging(WithoutStore(world.clock), "test")
        answer = await world.post([call("get_status", id=n) for n in range(3)])
        said = [value for name, value in answer.headers if name == "x-tidegate-limiter"]
        assert said == (["degraded"] if degraded else [])

    run(body)


def test_a_notification_beyond_its_limit_is_dropped() -> None:
    async def body() -> None:
        world = World(limits=[limit()])
        for _ in range(4):
            assert (await world.post(tell("tools/call", name="get_status"))).status == 202
        assert len(world.sent) == 2

    run(body)


def test_the_spec_profile_refuses_with_statuses() -> None:
    async def body() -> None:
        world = World(limits=[limit()], errors="spec")
        for _ in range(2):
            await world.post(call("get_status"))
        limited = await world.post(call("get_status"))
        assert (limited.status, value(limited)["error"]["code"]) == (429, -31000)
        assert int(limited.header("retry-after") or 0) > 0
        denied = await world.post(call("admin_reset_key"))
        assert (denied.status, value(denied)["error"]["code"]) == (403, -31003)
        challenge = 'Bearer error="insufficient_scope", scope="admin"'
        assert denied.header("www-authenticate") == challenge

    run(body)
