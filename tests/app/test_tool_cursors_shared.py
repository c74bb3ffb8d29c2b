"""Does every process of a gateway take the cursors that another gave, and from the same client?

Two worlds stand for two processes; they share a store and the server behind them.
"""

from typing import Any

import pytest

from tests.app.mcp_world import World, ask, value
from tests.app.shelves import crew, pass_time, run
from tests.app.test_tool_cursors import INVALID, METHODS, Paged, given_to, page, told
from tidegate.gateway.tool_requests.shared_cursors import TOLD_S
from tidegate.mcp.session_papers import CURSORS


def about_cursors(asked: list[tuple[str, str]]) -> list[str]:
    return [word for word, kind in asked if kind == CURSORS.name]


async def goes_on(world: World, cursor: str, role: str = "viewer") -> bool:
    answer = told(await page(world, "tools/list", role=role, cursor=cursor))
    assert ("result" in answer) is ("error" not in answer)
    assert answer.get("error", INVALID) == INVALID
    return "result" in answer


@pytest.mark.parametrize("method", METHODS)
def test_a_list_is_read_to_its_end_in_one_process_and_another(method: str) -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor: dict[str, Any] = {}
            for world in (here.one, here.other, here.one):
                result = told(await page(world, method, **cursor))["result"]
                cursor = {"cursor": result.get("nextCursor")}
            assert cursor == {"cursor": None}

    run(body)


def test_in_a_batch_too() -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor = await given_to(here.one, "tools/list")
            asked = [ask("tools/list", id=1, cursor=cursor), ask("tools/list", id=2, cursor="1")]
            answers = value(await here.other.post(asked))
            assert ["result" in answer for answer in answers] == [True, False]

    run(body)


@pytest.mark.parametrize("role", ["second", "admin"])
def test_the_cursor_of_somebody_else_is_invalid_in_every_process(role: str) -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor = await given_to(here.one, "tools/list")
            for world in (here.other, here.one, here.more()):
                assert not await goes_on(world, cursor, role)
                assert world.sent[1 if world is here.one else 0 :] == []
                assert await goes_on(world, cursor)

    run(body)


def test_a_cursor_outlives_the_process_that_gave_it() -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor = await given_to(here.one, "tools/list")
            await here.one.traffic.relay.shared.close()
            assert await goes_on(here.more(), cursor)

    run(body)


def test_without_a_store_a_cursor_ends_with_its_process() -> None:
    async def body() -> None:
        cursor = await given_to(World(Paged()), "tools/list")
        assert not await goes_on(World(Paged()), cursor)

    run(body)


def test_the_store_is_asked_once_for_each_cursor_and_told_once() -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor = await given_to(here.one, "tools/list")
            assert about_cursors(here.store.asked) == ["put"]
            here.store.asked.clear()
            for _ in range(10):
                assert await goes_on(here.one, cursor)
                await page(here.one, "prompts/list", cursor=None)
            # The last page of one, and the first of the other list.
            assert about_cursors(here.store.asked) == ["put", "put"]
            here.store.asked.clear()
            for _ in range(10):
                assert await goes_on(here.other, cursor)
            assert about_cursors(here.store.asked) == ["get", "put"]
            here.store.asked.clear()
            await pass_time(TOLD_S)
            for _ in range(10):
                await given_to(here.one, "tools/list")
            assert about_cursors(here.store.asked) == ["put"]

    run(body)


def test_what_is_no_cursor_is_not_looked_for_and_what_nobody_was_given_is_looked_for_in_vain() -> (
    None
):
    async def body() -> None:
        async with crew(Paged()) as here:
            for odd in ("x" * 70_000, 1, ["1"], {}):
                assert told(await page(here.one, "tools/list", cursor=odd))["error"] == INVALID
            assert here.store.asked == []
            assert not await goes_on(here.one, "2 tools 0")
            assert about_cursors(here.store.asked) == ["get"]
            assert here.one.sent == []

    run(body)


def test_cursors_live_in_the_store_for_a_day_after_they_were_given_last() -> None:
    async def body() -> None:
        async with crew(Paged()) as here:
            cursor = await given_to(here.one, "tools/list")
            for _ in range(4):
                await pass_time(CURSORS.live_s / 2)
                assert await given_to(here.one, "tools/list") == cursor
            assert await goes_on(here.other, cursor)
            await pass_time(CURSORS.live_s + 1)
            assert not await goes_on(here.more(), cursor)
            assert await goes_on(here.one, cursor)

    run(body)


def test_while_the_store_is_away_lists_go_on_and_what_nobody_knows_is_503() -> None:
    async def body() -> None:
        async with crew(Paged(anew=True)) as here:
            known = await given_to(here.other, "tools/list")
            here.store.away = True
            here.store.asked.clear()
            cursor = await given_to(here.one, "tools/list")
            assert await goes_on(here.one, cursor)
            # Nobody waits for a store that is known to be away.
            assert about_cursors(here.store.asked) == ["put"]
            assert await goes_on(here.other, known)
            answer = await page(here.other, "tools/list", cursor=cursor)
            assert (answer.status, told(answer)["error"]["code"]) == (503, -31002)
            here.store.away = False
            # What is given from now on every process knows.
            assert await goes_on(here.other, await given_to(here.one, "tools/list"))

    run(body)
