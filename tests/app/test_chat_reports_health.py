"""Public bug reports of other gateways about what a target's failures lead to.

Entries 35, 38, 44, 45 and 47 of the list, run against the whole path in virtual time.
"""

import asyncio
from dataclasses import replace

import pytest

from tests.app.chat_upstreams import (
    BANG,
    DONE,
    LO,
    ROLE,
    STOP,
    Asked,
    Script,
    answers,
    payloads,
)
from tests.app.chat_world import ChatWorld
from tests.app.test_chat_reports import CUTS, GOOD, GOOD_WHOLE, PATIENT, SIXTY
from tests.app.test_chat_waits import CALM, FAULTS, TIMES, every
from tests.app.virtual import run_virtual
from tidegate.gateway.pause import pause
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.testing.clock import ManualClock


def trickle(tokens: int, every_s: float) -> Script:
    """The first token at once, then one after the other."""

    async def run(asked: Asked) -> None:
        asked.head()
        asked.send(ROLE, *SIXTY[:1])
        for piece in SIXTY[1:tokens]:
            await pause(every_s)
            asked.send(piece)
        asked.send(STOP + DONE)
        asked.end()

    return run


@pytest.mark.parametrize(
    ("tokens", "every_s", "slow"),
    [(25, 0.5, True), (25, 0.1, False), (10, 0.5, False)],
    ids=["2 tokens/s", "10 tokens/s", "too few to tell"],
)
def test_035_a_trickle_is_noticed_although_every_answer_is_whole(
    tokens: int,
    every_s: float,
    slow: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """Entry 35, maximhq/bifrost #6472: two tokens a second open the target after five calls."""

    async def body() -> None:
        world = ChatWorld(
            clock=clock,
            primary=trickle(tokens, every_s),
            backup=GOOD,
            deadlines=replace(TIMES, idle_s=2.0, stream_total_s=60.0),
            breaker=BreakerSettings(slow_tokens_per_s=5.0, window_s=120.0, open_s=60.0),
        )
        world.providers.bound_s = None
        for _ in range(5):
            assert world.state_or_none() in (None, State.CLOSED)
            exchange = await world.post(stream=True)
            # The running answer is not cut for it.
            assert exchange.header("x-tidegate-provider") == "primary"
            assert payloads(exchange.body)[-1] == "[DONE]"
        assert world.state() is (State.OPEN if slow else State.CLOSED)
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-provider") == ("backup" if slow else "primary")

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize(
    ("count", "attempts"),
    [
        (2, 3),
        *(
            pytest.param(count, attempts, marks=pytest.mark.full)
            for count in (1, 2, 4)
            for attempts in (1, 2, 3, 5)
        ),
    ],
)
def test_038_attempts_do_not_multiply(count: int, attempts: int) -> None:
    """Entry 38, BerriAI/litellm #19985: counted where they arrive, for faults of every kind."""

    async def body() -> None:
        names = ("one", "two", "three", "four")[:count]
        kinds = ("silence", "500", "refused", "429", "an error event", "nothing", "503", "reset")
        scripts = [FAULTS[kind] for kind in kinds]
        for turn in range(len(kinds)):
            given = {
                name: [scripts[(turn + n) % len(kinds)], scripts[(turn + 2 * n + 1) % len(kinds)]]
                for n, name in enumerate(names)
            }
            for stream in (True, False):
                world = ChatWorld(
                    clock=clock,
                    targets=names,
                    attempts=attempts,
                    deadlines=TIMES,
                    breaker=CALM,
                    **given,
                )
                assert (await world.post(stream=stream)).status in (502, 503, 504)
                assert len(world.providers.asked) <= min(attempts, max(count, 2))
                told = [step for step in world.records.steps if step.stage == "attempt"]
                assert len(told) == len(world.providers.asked)

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize(
    "case",
    ["a clean end", *(pytest.param(case, marks=pytest.mark.full) for case in CUTS)],
)
def test_045_streams_that_always_break_in_the_middle_open_the_breaker(case: str) -> None:
    """Entry 45, ferro-labs/ai-gateway #136: what counts is how a stream ends."""

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=CUTS[case], backup=GOOD, deadlines=PATIENT)
        for _ in range(5):
            assert world.state_or_none() in (None, State.CLOSED)
            exchange = await world.post(stream=True)
            assert exchange.header("x-tidegate-attempts") == "primary:ok"
        assert world.state() is State.OPEN
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-attempts") == "primary:open,backup:ok"

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_047_an_open_target_is_not_called(kind: str) -> None:
    """Entry 47, Portkey-AI/gateway #1289."""

    async def body() -> None:
        good = GOOD if kind == "stream" else GOOD_WHOLE
        world = ChatWorld(
            clock=clock,
            primary=[answers(b"", 503)] * 5 + [good],
            backup=good,
            breaker=BreakerSettings(open_s=5.0),
        )
        for _ in range(5):
            await world.post(stream=kind == "stream")
        assert world.state() is State.OPEN
        before = len(world.providers.asked)
        for _ in range(10):
            exchange = await world.post(stream=kind == "stream")
            assert exchange.header("x-tidegate-attempts") == "primary:open,backup:ok"
        assert world.providers.order[before:] == ["backup"] * 10
        clock.advance(6.1)
        exchange = await world.post(stream=kind == "stream")
        assert exchange.header("x-tidegate-attempts") == "primary:ok"
        assert world.state() is State.CLOSED

    clock = ManualClock()
    run_virtual(clock, body())


def test_047_all_open_is_a_503_with_the_time_of_the_first_return_and_no_call() -> None:
    """Entry 47, Portkey-AI/gateway #1289: nothing is bypassed when all are open."""

    async def body() -> None:
        world = ChatWorld(
            clock=clock,
            primary=answers(b"", 503),
            backup=answers(b"", 503),
            breaker=BreakerSettings(consecutive=1, open_s=5.0),
        )
        await world.post()
        before = len(world.providers.asked)
        exchange = await world.post()
        assert (exchange.status, len(world.providers.asked)) == (503, before)
        # A fifth to either side, so that not everybody comes back at the same instant.
        assert 4000 <= int(exchange.header("retry-after-ms") or 0) <= 6000
        assert exchange.header("x-should-retry") == "true"

    clock = ManualClock()
    run_virtual(clock, body())


def test_late_results_of_an_earlier_time_neither_open_nor_close() -> None:
    """Entry 44, ray-project/ray #65068: a stream that began before the outage ends after it."""

    async def body() -> None:
        go = asyncio.Event()

        async def long(asked: Asked) -> None:
            asked.head()
            asked.send(ROLE + BANG)
            await go.wait()
            asked.send(LO + STOP + DONE)
            asked.end()

        world = ChatWorld(
            clock=clock,
            primary=[long] + [answers(b"", 503)] * 5,
            backup=GOOD,
            deadlines=replace(TIMES, idle_s=4.0, stream_total_s=4.5),
        )
        async with world.exchange(stream=True) as first:
            await first.chunk()
            for _ in range(5):
                await world.post()
            assert world.state() is State.OPEN
            go.set()
            await first.read()
        assert payloads(first.body)[-1] == "[DONE]"
        assert world.state() is State.OPEN

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_trickle_of_comments_is_no_trickle_of_tokens() -> None:
    """Entry 35 the other way round: what is no token neither keeps a stream alive nor counts."""

    async def body() -> None:
        world = ChatWorld(
            clock=clock,
            primary=every(0.05, ROLE + BANG, then=b": thinking\n\n"),
            deadlines=PATIENT,
        )
        assert (await world.post(stream=True)).status == 200
        attempt = next(step for step in world.records.steps if step.stage == "attempt")
        assert attempt.verdict == "interrupted"

    clock = ManualClock()
    run_virtual(clock, body())
