"""An answer whose every choice is finished is whole, however its provider ends it."""

from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ERROR,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    delta,
    event,
    payloads,
    streams,
    texts,
)
from tests.app.chat_world import MASKED, OFF, ChatWorld
from tests.app.test_chat_waits import TIMES, Timed, every
from tests.app.virtual import run_virtual
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

COMMENT = b": still here\n\n"
ENDS: dict[str, Script] = {
    "silence": streams(ROLE, HEL, LO, STOP, hangs=True),
    "comments for ever": every(0.05, ROLE + HEL + LO + STOP, then=COMMENT),
    "pings for ever": every(0.05, ROLE + HEL + LO + STOP, then=event({"type": "ping"})),
    "usage, then silence": streams(ROLE, HEL, LO, STOP, USAGE, hangs=True),
    "a reset": streams(ROLE, HEL, LO, STOP, then=Failure.RESET),
    "broken framing": streams(ROLE, HEL, LO, STOP, then=Failure.MALFORMED),
    "half an end mark": streams(ROLE, HEL, LO, STOP, DONE[:9], hangs=True),
    "garbage": streams(ROLE, HEL, LO, STOP, b"data: {garbage\n\n"),
    "garbage in the same read": streams(ROLE + HEL + LO + STOP + b"data: 7\n\n" + DONE),
    "a clean end": streams(ROLE, HEL, LO, STOP),
}


@pytest.mark.parametrize("masking", [OFF, MASKED], ids=["off", "masked"])
@pytest.mark.parametrize("end", ENDS)
def test_after_the_last_finish_reason_only_form_can_be_missing(end: str, masking: Any) -> None:
    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock,
            primary=ENDS[end],
            masking=masking,
            deadlines=TIMES,
            breaker=BreakerSettings(consecutive=1),
        )
        exchange = await world.post(stream=True)
        assert texts(exchange.body) == {0: "Hello"}
        assert payloads(exchange.body)[-1] == "[DONE]"
        assert exchange.body.count(b"[DONE]") == 1
        assert timed.now_s <= TIMES.idle_s + 0.01
        assert world.records.outcomes == ["ok"]
        assert world.state() is State.CLOSED
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


TWO = ROLE + HEL + event(delta(1, content="Hal")) + STOP
BOTH = TWO + event(delta(1, finish="stop"))


@pytest.mark.parametrize(
    ("count", "script", "whole"),
    [
        (2, streams(BOTH, hangs=True), True),
        (2, streams(TWO, hangs=True), False),
        # The second has not even begun: nobody can know that it will not.
        (2, streams(ROLE + HEL + STOP, hangs=True), False),
        (2, streams(ROLE + HEL + STOP, then=Failure.RESET), False),
        # A number that a provider may read in its own way promises nothing.
        ("1", streams(ROLE + HEL + STOP, hangs=True), False),
        (1.0, streams(ROLE + HEL + STOP, hangs=True), False),
        (True, streams(ROLE + HEL + STOP, hangs=True), False),
        (None, streams(ROLE + HEL + STOP, hangs=True), True),
        (1, streams(ROLE + HEL, hangs=True), False),
        (1, streams(ROLE + HEL + STOP + ERROR, hangs=True), False),
    ],
)
def test_every_choice_that_was_asked_for_has_to_be_finished(
    count: object,
    script: Script,
    whole: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=script, deadlines=TIMES)
        exchange = await world.post(stream=True, n=count)
        assert (payloads(exchange.body)[-1] == "[DONE]") is whole
        assert world.records.outcomes == ["ok" if whole else "gateway.upstream_interrupted"]
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_finish_reason_alone_is_an_answer_that_ends_so_too() -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=streams(ROLE, STOP, hangs=True), deadlines=TIMES)
        exchange = await world.post(stream=True)
        assert (exchange.status, payloads(exchange.body)[-1]) == (200, "[DONE]")

    clock = ManualClock()
    run_virtual(clock, body())
