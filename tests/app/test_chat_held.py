"""Content that nobody has seen yet: who may still answer?"""

import pytest

from tests.app.chat_upstreams import DONE, ERROR, ROLE, STOP, delta, event, payloads, streams, texts
from tests.app.chat_world import MASKED, ChatWorld, run
from tidegate.gateway.attempts import Bounds
from tidegate.transport.upstream import Failure

BACKUP = streams(ROLE + event(delta(content="from backup")) + STOP + DONE)

ENDS: dict[str, tuple[bytes, Failure | None]] = {
    "reset": (b"", Failure.RESET),
    "clean end without a finish": (b"", None),
    "error event": (ERROR, None),
    "broken JSON": (b"data: {\n\n", None),
}


@pytest.mark.parametrize(("last", "failure"), ENDS.values(), ids=ENDS)
def test_content_that_was_wholly_held_shows_nothing_so_the_backup_may_answer(
    last: bytes, failure: Failure | None
) -> None:
    async def body() -> None:
        held = [event(delta(content=piece)) for piece in ("4111", " 1111", " 11")]
        script = streams(ROLE, *held, *filter(None, [last]), then=failure)
        world = ChatWorld(primary=script, backup=BACKUP, masking=MASKED)
        exchange = await world.post(stream=True)
        assert texts(exchange.body) == {0: "from backup"}
        assert world.providers.order == ["primary", "backup"]
        assert world.records.outcomes == ["ok"]
        await world.assert_clean(ends=1)

    run(body())


def test_content_that_is_held_for_long_begins_the_answer_all_the_same() -> None:
    """What waits for the first visible text is bounded; so much of it is an answer."""

    async def body() -> None:
        held = [event(delta(content="a1")) for _ in range(40)]
        world = ChatWorld(
            primary=streams(ROLE, *held, then=Failure.RESET),
            backup=BACKUP,
            masking=MASKED,
            bounds=Bounds(1 << 23, 2_000),
        )
        exchange = await world.post(stream=True)
        assert world.providers.order == ["primary"]
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        await world.assert_clean(ends=1)

    run(body())


def test_an_answer_that_is_held_to_its_end_leaves_whole() -> None:
    async def body() -> None:
        held = [event(delta(content=piece)) for piece in ("4111 1111", " 1111 1111")]
        world = ChatWorld(primary=streams(ROLE, *held, STOP, DONE), masking=MASKED)
        exchange = await world.post(stream=True)
        assert texts(exchange.body) == {0: "[REDACTED_CARD]"}
        assert payloads(exchange.body)[-1] == "[DONE]"
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("last", [ERROR, ERROR + DONE, b"", b"data: {\n\n"])
def test_words_that_were_wholly_held_are_an_answer_that_has_begun(last: bytes) -> None:
    """Case P3-10: the client gets the word and an error event, and nothing starts anew."""

    async def body() -> None:
        script = streams(ROLE + event(delta(content="Hel")) + last)
        world = ChatWorld(primary=script, backup=BACKUP, masking=MASKED)
        exchange = await world.post(stream=True)
        *shown, end = payloads(exchange.body)
        assert "".join(c["choices"][0]["delta"].get("content", "") for c in shown) == "Hel"
        assert end["error"]["code"] == "gateway.upstream_interrupted"
        assert world.providers.order == ["primary"]
        await world.assert_clean(ends=1)

    run(body())
