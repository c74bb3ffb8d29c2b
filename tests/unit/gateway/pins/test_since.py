"""Does a comparison count only for the server that was compared, as it was when it was asked?"""

import asyncio

import pytest

from tests.unit.gateway.pins_world import MODES, Server, Store, World, run, tools
from tidegate.errors import StoreUnavailable
from tidegate.gateway.pins.checked import FRESH_S
from tidegate.gateway.pins.known import UNHEARD_S, Where
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.pins import Mode

LIVES = range(5)


@pytest.mark.parametrize("began", LIVES)
@pytest.mark.parametrize("now", LIVES)
@pytest.mark.parametrize("moved", [False, True])
def test_an_answer_is_of_the_one_that_was_there_all_the_time_or_was_started_for_it(
    began: int,
    now: int,
    moved: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    there = Where("elsewhere" if moved else "here", now)
    stays = began == now or (began, now) in ((0, 1), (2, 3))
    assert Where("here", began).until(there) == (there if stays and not moved else None)


@pytest.mark.parametrize("at", [Where("elsewhere"), Where("here", 3), Where("here", 2)])
@pytest.mark.parametrize("first", ["list", "call"])
def test_another_place_or_life_is_looked_at_whatever_was_looked_at_before(
    at: Where, first: str
) -> None:
    async def body(world: World) -> None:
        world.server.at = Where("here", 1)
        if first == "list":
            await world.judge(world.server.shown)
        else:
            await world.call()
        asked = world.server.asked
        assert not (await world.call()).refuses("read")
        assert world.server.asked == asked
        world.server.at = at
        world.server.shown = tools(read="second", write="first")
        assert (await world.call()).refuses("read")
        assert world.server.asked == asked + 1

    run(body)


def test_a_list_of_a_process_that_was_replaced_meanwhile_is_not_one_of_the_new_one() -> None:
    async def body(world: World) -> None:
        world.server.at = Where("here", 1)
        since = world.pins.since("files", world.server.at)
        await world.pins.judge(
            "files", "block", world.server.shown, since=since, where=Where("here", 3)
        )
        world.server.at = Where("here", 3)
        world.server.shown = tools(read="second", write="first")
        assert (await world.call()).refuses("read")

    run(body)


def test_a_list_that_was_sent_before_the_news_does_not_count_as_one_after_it() -> None:
    async def body(world: World) -> None:
        since = world.pins.since("files", world.server.at)
        world.pins.stale("files")
        await world.pins.judge(
            "files", "block", world.server.shown, since=since, where=world.server.at
        )
        world.server.shown = tools(read="second", write="first")
        assert (await world.call()).refuses("read")

    run(body)


class Restless(Server):
    """A server of which something happens `often` while it lists its tools."""

    often = 0

    async def __call__(self) -> list[object]:
        shown = await super().__call__()
        if self.asked <= self.often:
            self.shown = tools(read=f"after {self.asked}", write="first")
            self.happens()
        return shown

    def happens(self) -> None:
        self.at = Where("here", self.at.life + 2)


@pytest.mark.parametrize("what", ["news", "restart"])
def test_whatever_happens_while_the_list_is_on_its_way_has_it_looked_at_again(what: str) -> None:
    async def body(world: World) -> None:
        assert isinstance(world.server, Restless)
        await world.judge(world.server.shown)
        if what == "news":
            world.server.happens = lambda: world.pins.stale("files")  # type: ignore[method-assign]
        world.server.often = 1
        world.pins.stale("files")
        assert (await world.call()).refuses("read")
        assert world.server.asked == 2

    run(body, World(server=Restless(tools(read="first", write="first"), at=Where("here", 1))))


def test_a_server_that_never_comes_to_rest_is_refused_in_the_end() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.server, Restless)
        world.server.often = 1_000
        with pytest.raises(ServerFailed, match="unchecked"):
            await world.call()
        assert world.server.asked == 3

    run(body, World(server=Restless(tools(read="first"), at=Where("here", 1))))


def test_a_process_that_is_replaced_while_a_call_waits_for_the_store_is_looked_at() -> None:
    async def body(world: World) -> None:
        world.server.at = Where("here", 1)
        await world.call()
        world.clock.advance(60.0)
        gate = world.store.gate = asyncio.Event()  # type: ignore[attr-defined]
        waiting = asyncio.create_task(world.call())
        while world.pins._looking is None or world.pins._looking.done():
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        world.server.at = Where("here", 3)
        world.server.shown = tools(read="second", write="first")
        gate.set()
        assert (await waiting).refuses("read")

    run(body)


@pytest.mark.parametrize("pages", [["2"], ["3", "2"], ["9"]])
def test_pages_that_do_not_follow_from_the_first_one_settle_nothing(pages: list[str]) -> None:
    following = {None: "2", "2": "3", "3": None}
    shown = {None: tools(a="first"), "2": tools(b="first"), "3": tools(c="first"), "9": tools(d="")}

    async def body(world: World) -> None:
        async def page(cursor: str | None) -> list[str]:
            after = following.get(cursor)
            verdicts = await world.judge(shown[cursor], page=cursor, following=after)
            return [name for name in "abcd" if not verdicts.word(name)]

        for cursor in pages:
            await page(cursor)
        for first, cursor in enumerate([None, "2", "3"]):
            assert set("abc"[: first + 1]) <= set(await page(cursor))
        late = await world.judge(tools(late="x"), page="2", following="3")
        assert late.refuses("late")

    run(body)


def test_nobody_who_hears_of_changes_has_the_list_looked_at_now_and_then() -> None:
    async def body(world: World) -> None:
        world.server.heard = False
        await world.call()
        world.clock.advance(UNHEARD_S - 1.0)
        await world.call()
        assert world.server.asked == 1
        world.clock.advance(1.0)
        world.server.shown = tools(read="second", write="first")
        assert (await world.call()).refuses("read")
        assert world.server.asked == 2
        world.server.heard = True
        world.clock.advance(10 * UNHEARD_S)
        await world.call("write")
        assert world.server.asked == 2

    run(body)


def test_in_warn_nothing_is_asked_for_again_without_news() -> None:
    async def body(world: World) -> None:
        world.server.heard = False
        await world.call(mode="warn")
        await world.idle()
        world.clock.advance(10 * UNHEARD_S)
        assert (await world.call(mode="warn")).word("read") == ""
        await world.idle()
        assert world.server.asked == 1

    run(body)


def test_the_session_of_another_client_that_ended_refuses_nobody_else() -> None:
    async def body(world: World) -> None:
        gate = world.server.gate = asyncio.Event()
        world.server.error = ServerFailed("session_ended")
        calls = [asyncio.create_task(world.call()) for _ in range(2)]
        while not world.server.asked:
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        await asyncio.sleep(0)  # noqa: TID251 - as above
        gate.set()
        await asyncio.wait(calls[:1])
        world.server.error = None
        with pytest.raises(ServerFailed, match="session_ended"):
            await calls[0]
        assert not (await calls[1]).refuses("read")

    run(body)


def test_while_a_failed_list_rests_every_call_hears_of_the_same_failure() -> None:
    async def body(world: World) -> None:
        world.server.error = StoreUnavailable("away")
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await world.call()
        assert world.server.asked == 1
        world.pins.stale("files")
        world.server.error = None
        assert not (await world.call()).refuses("read")

    run(body)


async def told(world: World) -> None:
    """Wait until the others on the store may know what this one heard."""
    before = (await world.store.marks())["files"]
    while (await world.store.marks())["files"] == before:
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time


@pytest.mark.parametrize("mode", MODES)
def test_what_one_process_heard_is_looked_at_by_all_within_a_second(mode: Mode) -> None:
    async def body(world: World) -> None:
        other = world.beside()
        for each in (world, other):
            await each.call(mode=mode)
            await each.idle()
        world.server.shown = tools(read="second", write="first")
        world.pins.stale("files")
        await told(world)
        other.clock.advance(FRESH_S)
        asked = world.server.asked
        for _ in range(3):
            found = await other.call(mode=mode)
            await other.idle()
        assert found.refuses("read") is (mode == "block")
        assert found.word("read") == "changed"
        assert world.server.asked == asked + 1
        await other.pins.close()

    run(body)


def test_what_is_news_for_one_process_alone_is_told_to_nobody() -> None:
    async def body(world: World) -> None:
        await world.call()
        marks = await world.store.marks()
        world.pins.stale("files", announced=False)
        await world.call()
        assert world.server.asked == 2
        assert await world.store.marks() == marks

    run(body)


def test_of_a_server_without_pins_nobody_is_told() -> None:
    async def body(world: World) -> None:
        await world.call()
        marks = await world.store.marks()
        world.names = ()
        world.pins.stale("files")
        assert world.pins._known["files"].telling is None
        world.names = ("files",)
        await world.call()
        assert world.server.asked == 2
        assert await world.store.marks() == marks

    run(body)


def test_a_server_that_never_stops_talking_has_the_store_written_once_a_second() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        (book,) = [(await world.store.read("files"))]
        assert book is not None
        for _ in range(50):
            world.pins.stale("files")
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        kept = await world.store.read("files")
        assert kept is not None
        assert kept.book.heard == book.book.heard + 1

    run(body)


def test_without_a_store_what_was_heard_holds_here() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        world.store.fails = True
        world.pins.stale("files")
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        world.store.fails = False
        world.clock.advance(60.0)
        world.server.shown = tools(read="second", write="first")
        assert (await world.call()).refuses("read")

    run(body)
