"""Is an empty cursor the end of a list, or its beginning, wherever one is read?"""

from typing import Any

import pytest

from tests.app.federated import OLD, Federated
from tests.app.mcp_answers import META, modern
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, World, ask
from tests.app.offered import ALL_BUT, UNKNOWN, Roster, methods, told, told_of
from tests.app.pinned import MODES
from tidegate.mcp.pins import Mode


class Ending(Roster):
    """A server whose last page names an empty place behind it."""

    def _say(self, asked: Asked, said: Any, status: int = 200) -> None:
        if "tools" in said.get("result", {}):
            said = {"result": {"nextCursor": "", **said["result"]}}
        super()._say(asked, said, status)


@pytest.mark.parametrize("pin", MODES)
def test_a_list_that_ends_so_is_read_to_its_end(pin: Mode) -> None:
    async def body() -> None:
        server = Ending("a", "b", "c")
        server.page = 2
        world = World(server, rules=ALL_BUT, hide_denied="full", pin=pin)
        assert await told_of(world, "c") == "done"
        assert await told_of(world, "d") == UNKNOWN
        assert methods(server.log) == ["tools/list", "tools/list", "tools/call"]
        await world.pins.close()

    run(body)


def test_the_part_of_a_server_that_ends_so_is_in_the_list_of_several() -> None:
    async def body() -> None:
        world = Federated(a=Ending("x"), b=Roster("y"), rules=ALL_BUT)
        listed = told(await world.post(ask("tools/list"), **OLD))["result"]
        assert [each["name"] for each in listed["tools"]] == ["a__x", "b__y"]
        assert "_meta" not in listed
        await world.over()

    run(body)


@pytest.mark.parametrize("cursor", [None, ""])
def test_an_empty_cursor_begins_the_list_of_several_anew(cursor: object) -> None:
    async def body() -> None:
        world = Federated(a=Roster("x"), b=Roster("y"), rules=ALL_BUT)
        listed = told(await world.post(ask("tools/list", cursor=cursor), **OLD))["result"]
        assert [each["name"] for each in listed["tools"]] == ["a__x", "b__y"]
        new = ask("tools/list", cursor=cursor, _meta=META)
        listed = told(await world.post(new, **modern("tools/list")))["result"]
        assert [each["name"] for each in listed["tools"]] == ["a__x", "b__y"]
        await world.over()

    run(body)


def test_a_page_that_ends_so_is_whole_for_the_pins() -> None:
    """What is not in it is gone: the client's own list was the check."""

    async def body() -> None:
        server = Ending("a", "b")
        world = World(server, rules=ALL_BUT, hide_denied="off", pin="block")
        await world.post(ask("tools/list"))
        assert await told_of(world, "a") == "done"
        assert methods(server.log) == ["tools/list", "tools/call"]
        await world.pins.close()

    run(body)
