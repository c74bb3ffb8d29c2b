"""Do others have their turn while a large request is judged?"""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.app.mcp_answers import META, modern
from tests.app.mcp_world import World, ask, call, value
from tests.unit.mcp.asking import allow, deny
from tidegate.gateway import tool_traffic
from tidegate.mcp import RuleSet

JUDGE = tool_traffic.judge
TURNS = 20


def in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_between_two_messages_of_a_batch_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def judge(*asked: Any) -> Any:
        order.append("judged")
        return JUDGE(*asked)

    async def body() -> None:
        world, loop = World(), asyncio.get_running_loop()

        def turn() -> None:
            if order.count("judged") < TURNS:
                order.append("other")
                loop.call_soon(turn)

        loop.call_soon(turn)
        answer = await world.post([call("get_status", id=number) for number in range(TURNS)])
        assert [each["id"] for each in value(answer)] == list(range(TURNS))

    monkeypatch.setattr(tool_traffic, "judge", judge)
    asyncio.run(body())
    assert order.count("judged") == TURNS
    assert ("judged", "judged") not in pairwise(order)


def listen(uris: list[str]) -> Any:
    wish = {"resourceSubscriptions": uris}
    return ask("subscriptions/listen", notifications=wish, _meta=META)


def test_a_subscription_is_judged_beside_the_loop_and_with_too_many_resources_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[bool] = []

    def judge(*asked: Any) -> Any:
        threads.append(in_loop())
        return JUDGE(*asked)

    async def body() -> None:
        world = World(rules=RuleSet([allow(), deny(resources=("file:///secret/*",))]))
        head = modern("subscriptions/listen")
        for uri, most in (("file:///secret/a;b", 300), ("file:///a", 1_001)):
            answer = await world.post(listen([uri] * most), **head)
            if uri == "file:///a":
                assert value(answer)["error"]["code"] == -32602
        assert [each["params"]["notifications"] for each in world.sent] == [
            {"resourceSubscriptions": []}
        ]

    monkeypatch.setattr(tool_traffic, "judge", judge)
    asyncio.run(body())
    assert threads == [False, False]
