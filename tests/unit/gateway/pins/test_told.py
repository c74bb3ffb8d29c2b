"""What is said and counted of tools that are not what was approved?"""

import logging

import pytest

from tests.logged import lines, logged
from tests.unit.gateway.pins_world import TOLD, World, run, tools


def test_each_difference_is_one_line_and_one_count_however_often_it_is_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        await world.call()
        hidden = "the new\u200b words"
        for _ in range(3):
            await world.judge(tools(read=hidden, extra="x"), mode="warn")
        assert world.counted("pinned") == 2
        assert world.counted("changed") == world.counted("new") == world.counted("gone") == 1
        assert world.pins.differing() == {"files": 2}

    with caplog.at_level(logging.INFO, TOLD):
        run(body)
    said = [
        (record.levelname, record.__dict__["tool"], record.__dict__["reason"])
        for record in lines(caplog, TOLD)
        if record.getMessage() == "tool_definition_differs"
    ]
    assert sorted(said) == [
        ("INFO", "write", "gone"),
        ("WARNING", "extra", "new"),
        ("WARNING", "read", "changed"),
    ]
    (changed,) = [one for one in lines(caplog, TOLD) if one.__dict__.get("reason") == "changed"]
    assert changed.__dict__["problem"] == "differs in description; invisible in description"


def test_a_list_of_many_differences_is_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        await world.call()
        many = {f"tool{number}": "x" for number in range(300)}
        await world.judge(tools(read="first", write="first", **many))

    with caplog.at_level(logging.INFO, TOLD):
        run(body)
    assert len(lines(caplog, TOLD)) < 30
    assert "tool_definitions_differ" in logged(caplog, TOLD)
