"""When lists are looked at, what one process knows of the store, and what if either is away."""

import asyncio
import logging
from typing import Any

import pytest

from tests.logged import logged
from tests.unit.gateway.pins_world import LOGGER, MODES, Server, Store, World, run, tools
from tidegate.errors import StoreUnavailable
from tidegate.gateway.pins.checked import FRESH_S
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.pins import Mode, Verdicts


@pytest.mark.parametrize("mode", MODES)
def test_the_first_call_after_a_start_is_preceded_by_one_list(mode: Mode) -> None:
    async def body(world: World) -> None:
        if mode == "warn":
            assert (await world.call(mode=mode)).word("read") == "unchecked"
            await world.idle()
        for _ in range(5):
            assert (await world.call(mode=mode)).word("read") == ""
        assert world.server.asked == 1
        after_a_restart = world.beside()
        world.server.shown = tools(read="second", write="first")
        if mode == "warn":
            await after_a_restart.call(mode=mode)
            await after_a_restart.idle()
        verdicts = await after_a_restart.call(mode=mode)
        assert verdicts.word("read") == "changed"
        assert verdicts.refuses("read") is (mode == "block")
        assert not verdicts.refuses("write")
        assert world.server.asked == 2

    run(body)


def test_a_whole_list_that_passed_counts_as_a_check_and_a_page_does_not() -> None:
    async def body(world: World) -> None:
        await world.judge(tools(read="first"), following="2")
        await world.judge(tools(write="first"), page="2")
        await world.call()
        assert world.server.asked == 1
        other = world.beside()
        await other.judge(tools(read="first", write="first"))
        await other.call()
        assert world.server.asked == 1

    run(body)


@pytest.mark.parametrize("mode", MODES)
def test_news_of_changed_tools_has_the_list_looked_at_before_the_next_call(mode: Mode) -> None:
    async def body(world: World) -> None:
        await world.call(mode=mode)
        await world.idle()
        world.server.shown = tools(read="second", write="first")
        assert not (await world.call(mode=mode)).refuses("read")
        world.pins.stale("files")
        if mode == "warn":
            assert (await world.call(mode=mode)).word("read") == "unchecked"
            await world.idle()
        assert (await world.call(mode=mode)).word("read") == "changed"
        assert (await world.call("write", mode=mode)).word("write") == ""
        assert world.server.asked == 2

    run(body)


def test_in_warn_no_call_waits_for_a_list_or_the_store() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        world.server.gate = world.store.gate = asyncio.Event()
        for _ in range(3):
            found = await world.call(mode="warn")
            assert (found.word("read"), found.refuses("read")) == ("unchecked", False)
        world.server.gate.set()
        await world.idle()
        assert world.server.asked == 1
        assert (await world.call(mode="warn")).word("read") == ""
        world.store.gate = asyncio.Event()
        world.clock.advance(FRESH_S)
        assert (await world.call(mode="warn")).word("read") == ""
        world.store.gate.set()
        await world.idle()

    run(body)


def test_a_list_that_was_asked_for_before_the_news_is_not_enough() -> None:
    async def body(world: World) -> None:
        gate = world.server.gate = asyncio.Event()
        first = asyncio.create_task(world.call())
        while not world.server.asked:
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        world.server.shown = tools(read="second", write="first")
        world.pins.stale("files")
        second = asyncio.create_task(world.call())
        await asyncio.sleep(0)  # noqa: TID251 - as above
        gate.set()
        assert not (await first).refuses("write")
        assert (await second).refuses("read")
        assert world.server.asked == 2

    run(body)


def test_calls_at_the_same_time_share_one_list_and_one_that_leaves_takes_it_from_nobody() -> None:
    async def body(world: World) -> None:
        gate = world.server.gate = asyncio.Event()
        calls = [asyncio.create_task(world.call()) for _ in range(20)]
        while not world.server.asked:
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        calls[0].cancel()
        await asyncio.sleep(0)  # noqa: TID251 - as above
        gate.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert all(isinstance(one, Verdicts) and not one.refuses("read") for one in found[1:])
        assert world.server.asked == 1

    run(body)


@pytest.mark.parametrize("how", ["call", "list"])
def test_an_approval_by_another_process_holds_for_the_next_call_and_list(how: str) -> None:
    async def body(world: World) -> None:
        await world.call()
        changed = tools(read="second", write="first")
        assert (await world.judge(changed)).refuses("read")
        assert (await world.call()).refuses("read")
        await world.approve("read")
        if how == "call":
            assert not (await world.call()).refuses("read")
        else:
            assert not (await world.judge(changed)).refuses("read")
        assert world.server.asked == 1

    run(body)


def test_a_change_that_one_process_saw_holds_in_all_within_a_second() -> None:
    async def body(world: World) -> None:
        other = world.beside()
        for one in (world, other):
            await one.call()
        await world.judge(tools(read="second", write="first"))
        other.clock.advance(FRESH_S)
        assert (await other.call()).refuses("read")
        assert not (await other.call("write")).refuses("write")

    run(body)


def test_the_store_is_not_asked_more_than_once_a_second_while_all_is_well() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        before = world.store.looks
        for _ in range(50):
            await world.call()
        assert world.store.looks == before
        world.clock.advance(FRESH_S)
        await asyncio.gather(*(world.call() for _ in range(20)))
        assert world.store.looks == before + 1
        assert world.store.reads == 0

    run(body)


def test_looks_that_must_be_new_are_shared_by_those_who_wait() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        await world.judge(tools(read="second", write="first"))
        before, gate = world.store.looks, asyncio.Event()
        world.store.gate = gate
        calls = [asyncio.create_task(world.call()) for _ in range(30)]
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        gate.set()
        assert all(verdicts.refuses("read") for verdicts in await asyncio.gather(*calls))
        assert world.store.looks - before <= 2

    run(body)


def test_first_uses_by_several_processes_at_once_make_one_book() -> None:
    async def body(world: World) -> None:
        crew = [world, *(world.beside() for _ in range(7))]
        found = await asyncio.gather(*(one.call() for one in crew))
        assert not any(verdicts.refuses("read") for verdicts in found)
        kept = await world.store.read("files")
        assert kept is not None
        assert kept.book.turn == 1
        assert set(kept.book.pins) == {"read", "write"}

    run(body)


@pytest.mark.parametrize("when", ["at first", "later"])
def test_without_the_store_block_refuses_and_warn_passes_and_says_so(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        if when == "later":
            await world.call()
            world.clock.advance(FRESH_S)
        world.store.fails = True
        for mode, ask in ((mode, ask) for mode in MODES for ask in (world.call, world.judge)):
            shown: Any = world.server.shown if ask == world.judge else "read"
            if mode == "block":
                with pytest.raises(StoreUnavailable):
                    await ask(shown, mode=mode)
            else:
                assert not (await ask(shown, mode=mode)).refuses("read")
        world.store.fails = False
        world.clock.advance(FRESH_S)
        world.pins.stale("files")
        assert not (await world.call()).refuses("read")

    with caplog.at_level(logging.INFO, LOGGER):
        run(body)
    said = logged(caplog, LOGGER)
    assert said.count("tool_pins_store_failed") == said.count("tool_pins_store_serves_again") == 1
    assert "tool_pins_unchecked" in said


def test_while_the_store_is_away_warn_still_tells_what_it_knows() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        world.store.fails = True
        verdicts = await world.judge(tools(read="second", write="first"), mode="warn")
        assert (verdicts.word("read"), verdicts.word("write")) == ("changed", "unchecked")

    run(body)


@pytest.mark.parametrize("mode", MODES)
def test_without_its_list_block_refuses_the_call_and_warn_passes_it(mode: Mode) -> None:
    async def body(world: World) -> None:
        world.server.error = ServerFailed("reset")
        if mode == "block":
            for _ in range(3):
                with pytest.raises(ServerFailed, match="reset"):
                    await world.call(mode=mode)
            assert world.server.asked == 1  # however many calls there are
            world.clock.advance(2.0)
            with pytest.raises(ServerFailed, match="reset"):
                await world.call(mode=mode)
            assert world.server.asked == 2
        else:
            for _ in range(3):
                assert (await world.call(mode=mode)).word("read") == "unchecked"
                await world.idle()
            assert world.server.asked == 1  # and again after a while only
            world.clock.advance(60.0)
            await world.call(mode=mode)
            await world.idle()
            assert world.server.asked == 2
            assert world.counted("unchecked") == 2
        world.clock.advance(60.0)
        world.server.error = None
        if mode == "warn":
            await world.call(mode=mode)
            await world.idle()
        assert (await world.call(mode=mode)).word("read") == ""

    run(body)


def test_a_store_that_lost_everything_gets_back_what_is_known() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        world.store.lose()
        evil = World(world.store, Server(tools(read="second")), world.clock)
        world.clock.advance(FRESH_S)
        await world.call()
        assert (await evil.call()).refuses("read")

    run(body)


def test_a_store_that_begins_anew_elsewhere_is_mended_by_whoever_knows_more() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        await world.judge(tools(read="second", write="first"))
        await world.approve("read")
        await world.call()
        world.store.lose()
        evil = World(world.store, Server(tools(read="third", write="first")), world.clock)
        assert not (await evil.call()).refuses("read")  # for this second it is the first use
        world.clock.advance(FRESH_S)
        await world.call()
        evil.clock.advance(FRESH_S)
        evil.pins.stale("files")
        assert (await evil.call()).refuses("read")

    run(body)


def test_names_of_other_servers_are_compared_if_they_are_configured() -> None:
    async def body(world: World) -> None:
        world.names = ("files", "mail", "post")
        await world.judge(tools(send_mail="first"))
        mail = await world.pins.judge("mail", "block", tools(send_rnail="x"))
        assert mail.word("send_rnail") == "flagged"
        post = await world.pins.judge("post", "block", tools(send_mail="x"))
        assert post.word("send_mail") == ""

    run(body)


def test_what_differs_is_known_from_the_start_and_a_store_that_is_away_stops_nobody() -> None:
    async def body(world: World) -> None:
        assert isinstance(world.store, Store)
        await world.call()
        await world.judge(tools(read="second", write="first"))
        later = world.beside()
        assert later.pins.differing() == {"files": 0}
        world.store.fails = True
        await later.pins.open()
        world.store.fails = False
        await later.pins.open()
        assert later.pins.differing() == {"files": 1}
        assert world.server.asked == 1

    run(body)


def test_closing_ends_what_runs() -> None:
    async def body(world: World) -> None:
        world.server.gate = asyncio.Event()
        call = asyncio.create_task(world.call())
        while not world.server.asked:
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        await world.pins.close()
        with pytest.raises(asyncio.CancelledError):
            await call

    run(body)
