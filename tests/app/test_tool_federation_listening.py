"""Does one subscription hear of every server what its caller may hear, and nothing else?"""

import asyncio
from typing import Any

import pytest

from tests.app.federated import META, Federated, Server, dead, heard, modern, silent, until
from tests.app.mcp_answers import generic
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, ask, events
from tests.unit.mcp.asking import allow, deny
from tidegate.mcp import RuleSet

EVERYTHING = RuleSet([allow()])
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ACK = "notifications/subscriptions/acknowledged"
STREAM = "text/event-stream"


def listen(id: object = 9, **wanted: Any) -> Any:  # noqa: A002
    return ask("subscriptions/listen", id=id, notifications=wanted, _meta=META)


HEADERS = {**modern("subscriptions/listen"), "accept": "application/json, text/event-stream"}


class Telling(Server):
    """A server whose subscriptions the test speaks on."""

    def __init__(self, **grants: Any) -> None:
        super().__init__()
        self.open: list[Asked] = []
        self.grants = grants or None

    async def listen(self, asked: Asked) -> None:
        asked.head(200, STREAM)
        wanted = asked.message["params"]["notifications"]
        grants = wanted if self.grants is None else self.grants
        asked.event(heard(asked, ACK, notifications=grants))
        self.open.append(asked)
        await asked.gone.wait()

    def tell(self, method: str, **params: Any) -> None:
        asked = self.open[-1]
        asked.event(heard(asked, method, **params))

    def finish(self) -> None:
        """The end of the subscription, as the server means it."""
        asked = self.open[-1]
        done = {"resultType": "complete", "_meta": {SUBSCRIPTION: asked.message["id"]}}
        asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": done})
        asked.end()


def said(exchange: Any) -> list[Any]:
    return events(exchange) if exchange.body else []


async def hear(exchange: Any, count: int) -> None:
    """Read until so many messages have come."""
    while len(said(exchange)) < count:
        assert await exchange.chunk()


def note(method: str, id: object = 9, **params: Any) -> Any:  # noqa: A002
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: id}}}


def updated(uri: str) -> Any:
    return note("notifications/resources/updated", uri=uri)


@pytest.mark.parametrize("subscription", [9, "nine"])
def test_one_acknowledgment_stands_for_all_and_then_each_server_is_heard(
    subscription: object,
) -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        message = listen(
            subscription, toolsListChanged=True, resourceSubscriptions=["b+file:///a", "a+x:y"]
        )
        exchange = world.exchange(message, **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            a.tell("notifications/tools/list_changed")
            b.tell("notifications/resources/updated", uri="file:///a")
            await hear(exchange, 3)
            ack, *rest = said(exchange)
            assert ack == note(
                ACK,
                subscription,
                notifications={
                    "toolsListChanged": True,
                    "resourceSubscriptions": ["b+file:///a", "a+x:y"],
                },
            )
            assert sorted(each["method"] for each in rest) == [
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            ]
            for each in rest:
                assert each["params"]["_meta"] == {SUBSCRIPTION: subscription}
                assert each["params"].get("uri", "b+file:///a") == "b+file:///a"
            await exchange.disconnect()
        await world.over()
        assert world.to("a")[-1]["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["x:y"],
        }
        assert world.to("b")[-1]["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["file:///a"],
        }
        assert all(asked.gone.is_set() for asked in (*a.open, *b.open))
        assert len(world.traffic.relay.calls) == 0

    run(body)


def test_nothing_is_heard_before_the_acknowledgment_that_stands_for_all() -> None:
    async def body() -> None:
        gate = asyncio.Event()

        class Late(Telling):
            async def listen(self, asked: Asked) -> None:
                await gate.wait()
                await super().listen(asked)

        a, b = Telling(), Late()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        exchange = world.exchange(listen(toolsListChanged=True), **HEADERS)
        async with exchange:
            await until(lambda: a.open)
            a.tell("notifications/tools/list_changed")
            for _ in range(100):
                await asyncio.sleep(0)  # noqa: TID251 - turns of the loop, no time
            gate.set()
            await hear(exchange, 2)
            assert [each["method"] for each in said(exchange)] == [
                ACK,
                "notifications/tools/list_changed",
            ]
            await exchange.disconnect()
        await world.over()

    run(body)


def test_what_may_not_be_read_is_not_subscribed_to_and_not_acknowledged() -> None:
    """mcp.md E3, case 45."""

    async def body() -> None:
        a, b = Telling(), Telling()
        rules = RuleSet([deny(resources=("db://secret*",)), allow(servers=("a",))])
        world = Federated(a=a, b=b, rules=rules)
        uris = ["a+db://secret/1", "b+db://open", "nobody+x:y", "db://open", "a+db://open"]
        exchange = world.exchange(
            listen(promptsListChanged=True, resourceSubscriptions=uris), **HEADERS
        )
        async with exchange:
            await hear(exchange, 1)
            (ack,) = said(exchange)
            assert ack["params"]["notifications"] == {
                "promptsListChanged": True,
                "resourceSubscriptions": ["a+db://open"],
            }
            await exchange.disconnect()
        assert world.to("b") == []
        assert world.to("a")[-1]["params"]["notifications"]["resourceSubscriptions"] == [
            "db://open"
        ]

    run(body)


def test_changes_of_a_list_are_heard_only_from_where_something_of_it_may_be_used() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        rules = RuleSet([allow(servers=("a",), tools=("*",)), allow(servers=("b",))])
        world = Federated(a=a, b=b, rules=rules)
        wanted = {"promptsListChanged": True, "toolsListChanged": True}
        exchange = world.exchange(listen(**wanted), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            await exchange.disconnect()
        assert world.to("a")[-1]["params"]["notifications"] == {"toolsListChanged": True}
        assert world.to("b")[-1]["params"]["notifications"] == wanted

    run(body)


def test_a_server_tells_nothing_of_a_hidden_resource() -> None:
    async def body() -> None:
        a = Telling()
        rules = RuleSet([deny(resources=("db://secret*",)), allow()])
        world = Federated(a=a, b=Telling(), rules=rules, hide_denied="full")
        exchange = world.exchange(listen(resourceSubscriptions=["a+db://open"]), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            a.tell("notifications/resources/updated", uri="db://secret/1")
            a.tell("notifications/resources/updated", uri="db://open")
            await hear(exchange, 2)
            assert said(exchange)[1] == updated("a+db://open")
            await exchange.disconnect()

    run(body)


@pytest.mark.parametrize("wanted", [{}, {"resourceSubscriptions": ["b+db://x"]}])
def test_a_subscription_to_nothing_is_acknowledged_and_lasts(wanted: Any) -> None:
    async def body() -> None:
        world = Federated(a=Telling(), b=Telling(), rules=RuleSet([allow(servers=("a",))]))
        exchange = world.exchange(listen(**wanted), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            assert said(exchange) == [note(ACK, notifications={})]
            assert not exchange.ended
            await exchange.disconnect()
        assert world.transport.asked == []

    run(body)


@pytest.mark.parametrize("broken", [dead, silent])
def test_a_server_that_does_not_acknowledge_is_named_and_left_out(broken: Any) -> None:
    async def body() -> None:
        a = Telling()
        world = Federated(a=a, b=broken, rules=EVERYTHING)
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["b+x:y"]}
        exchange = world.exchange(listen(**wanted), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            (ack,) = said(exchange)
            assert ack["params"]["notifications"] == {"toolsListChanged": True}
            assert ack["params"]["_meta"] == {SUBSCRIPTION: 9, "tidegate/unavailable": ["b"]}
            a.tell("notifications/tools/list_changed")
            await hear(exchange, 2)
            await exchange.disconnect()
        await world.over()
        assert ("missing", "b") in world.steps("federation")

    run(body)


def test_when_every_server_is_dead_the_client_gets_the_one_error() -> None:
    async def body() -> None:
        world = Federated(a=dead, b=dead, rules=EVERYTHING)
        answer = await world.post(listen(1, toolsListChanged=True), **HEADERS)
        assert generic(answer)

    run(body)


def test_a_server_that_knows_no_subscriptions_is_neither_missing_nor_heard() -> None:
    async def body() -> None:
        class Deaf(Server):
            async def listen(self, asked: Asked) -> None:
                error = {"code": -32601, "message": "Method not found"}
                asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}, 404)

        a = Telling()
        world = Federated(a=a, b=Deaf(), rules=EVERYTHING)
        exchange = world.exchange(listen(toolsListChanged=True), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            (ack,) = said(exchange)
            assert ack["params"]["_meta"] == {SUBSCRIPTION: 9}
            a.tell("notifications/tools/list_changed")
            await hear(exchange, 2)
            await exchange.disconnect()

    asyncio.run(body())  # part of it runs in a thread


def test_a_stream_that_breaks_ends_the_subscription_so_that_nothing_is_lost_unheard() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        exchange = world.exchange(listen(toolsListChanged=True), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            b.open[0].fail()
            await exchange.read()
        last = said(exchange)[-1]
        assert (last["id"], last["error"]["code"]) == (9, -32603)
        assert a.open[0].gone.is_set()

    run(body)


def test_a_server_that_ends_its_part_leaves_the_others_and_the_last_one_ends_it() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        exchange = world.exchange(listen(toolsListChanged=True), **HEADERS)
        async with exchange:
            await hear(exchange, 1)
            done = {"resultType": "complete", "_meta": {SUBSCRIPTION: 9}}
            a.finish()
            b.tell("notifications/tools/list_changed")
            await hear(exchange, 2)
            assert not exchange.ended
            b.finish()
            await exchange.read()
        assert said(exchange)[-1] == {"jsonrpc": "2.0", "id": 9, "result": done}
        assert world.records.ends[-1].snapshot().outcome == "ok"

    asyncio.run(body())  # part of it runs in a thread


@pytest.mark.parametrize(
    "wanted", [None, [], {"resourceSubscriptions": "x"}, {"resourceSubscriptions": [1]}]
)
def test_a_subscription_that_does_not_fit_is_malformed(wanted: Any) -> None:
    async def body() -> None:
        world = Federated(a=Telling(), b=Telling(), rules=EVERYTHING)
        message = ask("subscriptions/listen", notifications=wanted, _meta=META)
        answer = await world.post(message, **HEADERS)
        assert answer.status == 400
        assert world.transport.asked == []

    run(body)
