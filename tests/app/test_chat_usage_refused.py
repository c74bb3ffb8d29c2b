"""When does an error mean that a provider cannot report usage, and for how long?"""

import json

import pytest

from tests.app.chat_upstreams import Asked, answers
from tests.app.chat_world import ChatWorld, run
from tests.app.test_chat_usage import STREAM, obliging, refusing
from tidegate.testing.clock import ManualClock


async def quoting(asked: Asked) -> None:
    """A provider that reports when asked, and repeats in its errors what it does not like."""
    role = json.loads(asked.body)["messages"][0]["role"]
    if role == "user":
        await obliging()(asked)
    else:
        message = f"Invalid value: '{role}'. Supported values are: 'system', 'user'"
        await answers({"error": {"message": message, "type": "x"}}, 400)(asked)


def test_an_error_that_only_quotes_the_option_leaves_other_streams_reported() -> None:
    """One client must not choose how the streams of all others are counted."""

    async def body() -> None:
        world = ChatWorld(primary=quoting)
        odd = [{"role": "stream_options", "content": "hi"}]
        assert (await world.post(stream=True, messages=odd)).status == 400
        assert (await world.post(**STREAM)).status == 200
        assert b"stream_options" in world.providers.asked[-1].body
        assert not world.records.steps[-1].values["counted"]

    run(body())


@pytest.mark.parametrize("text", ["stream_options", "hello"])
def test_a_refusal_is_remembered_unless_the_client_wrote_the_word(text: str) -> None:
    async def body() -> None:
        world = ChatWorld(primary=refusing())
        await world.post(stream=True, messages=[{"role": "user", "content": "hello"}], user=text)
        before = len(world.providers.asked)
        await world.post(**STREAM)
        asked = [b"include_usage" in one.body for one in world.providers.asked[before:]]
        assert asked == ([True, False] if text == "stream_options" else [False])

    run(body())


def test_a_refusal_is_believed_for_a_while_only() -> None:
    async def body() -> None:
        clock = ManualClock()
        refuses = [True]

        async def script(asked: Asked) -> None:
            await (refusing() if refuses[0] else obliging())(asked)

        world = ChatWorld(primary=script, clock=clock)
        await world.post(**STREAM)
        refuses[0] = False
        for passed_s, asks in ((599.0, False), (1.0, True), (0.0, True)):
            clock.advance(passed_s)
            await world.post(**STREAM)
            assert (b"stream_options" in world.providers.asked[-1].body) is asks
        assert not world.records.steps[-1].values["counted"]

    run(body())
