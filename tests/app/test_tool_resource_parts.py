"""Does what comes back with a resource stay denied to whom it is denied?"""

from typing import Any

import pytest

from tests.app.federated import Federated, Server
from tests.app.mcp_answers import run
from tests.app.mcp_world import World, ask, value
from tests.unit.mcp.asking import allow, deny
from tidegate.mcp import RuleSet

RULES = RuleSet([allow(), deny(resources=("file:///secret/*",), unless_roles=("admin",))])
PARTS = [{"uri": f"file:///{name}", "text": name} for name in ("a", "secret/b", "SECRET/c", "d")]


async def folder(asked: Any) -> None:
    asked.whole({"jsonrpc": "2.0", "id": 1, "result": {"contents": PARTS}})


@pytest.mark.parametrize("hide", ["off", "list", "full"])
def test_the_parts_of_a_folder_that_are_denied_do_not_leave(hide: Any) -> None:
    async def body() -> None:
        world = World(rules=RULES, script=folder, hide_denied=hide)
        answer = value(await world.post(ask("resources/read", uri="file:///")))
        assert [part["text"] for part in answer["result"]["contents"]] == ["a", "d"]

    run(body)


def test_among_several_servers_too() -> None:
    class Folder(Server):
        async def run(self, asked: Any) -> None:
            asked.result({"resultType": "complete", "contents": PARTS})

    async def body() -> None:
        world = Federated(a=Server(), b=Folder(), rules=RULES)
        answer = value(await world.post(ask("resources/read", uri="b+file:///")))
        assert [part["uri"] for part in answer["result"]["contents"]] == [
            "b+file:///a",
            "b+file:///d",
        ]

    run(body)
