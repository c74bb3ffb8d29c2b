"""Does a message that was prepared for one life of a process reach no other?

Real processes; the server is nasty_tools.
"""

import pytest

from tests.wire.stdio_servers import answer_of, asked, call, children, place, tool, until
from tests.wire.test_tool_children_lives import run
from tidegate.gateway.servers.upstream import ServerFailed

pytestmark = pytest.mark.full


def test_the_generation_changes_with_every_end_and_beginning_and_pins_a_message() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            assert carrier.generation == 0
            await call(carrier, "echo")
            generation = carrier.generation
            pinned = [
                (asked(tool("echo"), session=str(generation)), "session_ended"),
                (asked(tool("echo"), life=generation), "restarted"),
            ]
            for message, _ in pinned:
                with carrier.exchange(message) as exchange:
                    assert len(await answer_of(exchange)) == 1
            with pytest.raises(ServerFailed, match="crashed"):
                await call(carrier, "die")
            assert carrier.generation != generation
            for message, reason in 2 * pinned:
                with (
                    carrier.exchange(message) as exchange,
                    pytest.raises(ServerFailed, match=reason),
                ):
                    await exchange.head()
                names = [m["params"]["name"] for m in await call(carrier, "seen", 2)]
                assert set(names) == {"seen"}

    run(body())


@pytest.mark.parametrize("reason", ["session_ended", "restarted"])
def test_a_process_that_hears_nothing_any_more_leaves_its_messages_to_no_other(reason: str) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            await call(carrier, "close stdin")
            life = carrier._life
            assert life is not None
            await until(lambda: not life.is_open)
            # Most of the time it is not over yet here, and its end is not counted.
            session, of = ("1", None) if reason == "session_ended" else (None, 1)
            message = asked(tool("echo"), session=session, life=of)
            with (
                carrier.exchange(message) as exchange,
                pytest.raises(ServerFailed, match=reason),
            ):
                await exchange.head()
            assert [m["params"]["name"] for m in await call(carrier, "seen", 2)] == ["seen"]

    run(body())


def test_whoever_takes_the_place_of_an_equal_server_is_another_one() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            first = all_of_them.carrier(place())
            await call(first, "echo")
            all_of_them.retain([])
            all_of_them.retain([place()])
            second = all_of_them.carrier(place())
            await call(second, "echo")
            assert first is not second
            assert second.generation % 2 == 1
            assert second.generation != first.generation

    run(body())
