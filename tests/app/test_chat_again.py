"""When is the same target asked a second time, after how long, and who can stop it?"""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    answers,
    completion,
    fails,
    silent,
    streams,
)
from tests.app.chat_world import ChatWorld
from tests.app.test_chat_leaving import left_at
from tests.app.test_chat_waits import CALM, TIMES, Timed, after
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.routing.breaker import State
from tidegate.routing.plan import Cooling, Target
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

pytestmark = pytest.mark.full

GOOD = streams(ROLE + HEL + LO + STOP + USAGE + DONE)
GOOD_WHOLE = answers(completion("Hello"))
FAULT = answers(ERROR_OBJECT, 500)
ALONE = ("primary",)
PASSING: dict[str, tuple[Script, str]] = {
    "500": (FAULT, "server_error"),
    "refused": (fails(Failure.UNREACHABLE), "unreachable"),
    "reset before a head": (fails(Failure.RESET), "unreachable"),
    "reset after a head": (streams(ROLE, then=Failure.RESET), "unreachable"),
    "500 within a second": (after(0.9, FAULT), "server_error"),
}
LASTING: dict[str, tuple[Script, str]] = {
    "500 after a second": (after(1.0, FAULT), "server_error"),
    "502": (answers(ERROR_OBJECT, 502), "server_error"),
    "503": (answers(ERROR_OBJECT, 503), "server_error"),
    "529": (answers(ERROR_OBJECT, 529), "server_error"),
    "429": (answers(ERROR_OBJECT, 429), "rate_limited"),
    "400": (answers(ERROR_OBJECT, 400), "rejected"),
    "401": (answers(ERROR_OBJECT, 401), "credential"),
    "404": (answers(ERROR_OBJECT, 404), "not_found"),
    "408": (answers(ERROR_OBJECT, 408), "transient"),
    "500 that means too long": (
        answers({"error": {"code": "context_length_exceeded"}}, 500),
        "context_too_long",
    ),
    "500 that means refused": (
        answers({"error": {"code": "content_filter"}}, 500),
        "content_filter",
    ),
    "an error in a 200": (answers(ERROR_OBJECT), "server_error"),
    "an error event": (streams(ROLE, ERROR), "server_error"),
    "not HTTP": (fails(Failure.MALFORMED), "malformed"),
    "cut without a word": (streams(ROLE), "interrupted"),
    "late": (silent, "timeout"),
}
PATIENT = replace(TIMES, first_token_s=1.5)


def world_of(clock: ManualClock, *scripts: Script, **options: Any) -> ChatWorld:
    settings: dict[str, Any] = {"targets": ALONE, "deadlines": PATIENT, "breaker": CALM} | options
    return ChatWorld(clock=clock, primary=list(scripts), **settings)


def virtually(clock: ManualClock, body: Awaitable[None]) -> None:
    run_virtual(clock, body)  # type: ignore[arg-type]


async def turns(count: int = 20) -> None:
    """Turns of the loop, and no time."""

    async def nothing() -> None:
        """One of them."""

    for _ in range(count):
        await asyncio.wait([asyncio.ensure_future(nothing())])


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("fault", PASSING)
def test_what_may_pass_is_asked_once_more_after_a_moment(fault: str, kind: str) -> None:
    script, outcome = PASSING[fault]

    async def body() -> None:
        timed = Timed(clock)
        good = timed(GOOD if kind == "stream" else GOOD_WHOLE)
        world = world_of(clock, script, good)
        exchange = await world.post(stream=kind == "stream")
        assert exchange.status == 200
        assert exchange.header("x-tidegate-attempts") == f"primary:{outcome},primary:ok"
        failed_at_s = 0.9 if "within" in fault else 0.0
        assert failed_at_s < timed.at_s[0] < failed_at_s + 0.2
        # The failed attempt is nobody's bill.
        assert (await world.usage()).used == 43
        assert world.metric("abandoned_tokens_total") == (fault == "reset after a head") * 5
        attempts = [step.verdict for step in world.records.steps if step.stage == "attempt"]
        assert attempts == [outcome, "ok"]
        await world.assert_clean(ends=1)

    clock = ManualClock()
    virtually(clock, body())


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("fault", LASTING)
def test_what_lasts_or_was_slow_is_not_asked_again(fault: str, kind: str) -> None:
    script, outcome = LASTING[fault]

    async def body() -> None:
        world = world_of(clock, script, GOOD if kind == "stream" else GOOD_WHOLE)
        exchange = await world.post(stream=kind == "stream")
        assert exchange.status != 200
        told = exchange.header("x-tidegate-attempts") or ""
        assert told == f"primary:{outcome}" or kind == "plain"
        assert len(world.providers.asked) == 1
        await world.assert_clean(ends=1)

    clock = ManualClock()
    virtually(clock, body())


def test_a_second_failure_is_the_last() -> None:
    async def body() -> None:
        world = world_of(clock, FAULT, attempts=5)
        exchange = await world.post()
        assert (exchange.status, error_of(exchange)["code"]) == (
            502,
            "gateway.all_providers_failed",
        )
        assert exchange.header("x-tidegate-attempts") == "primary:server_error,primary:server_error"
        assert len(world.providers.asked) == 2
        assert (await world.usage()).used == 0

    clock = ManualClock()
    virtually(clock, body())


@pytest.mark.parametrize("attempts", [1, 2])
def test_the_second_call_is_an_attempt_like_any_other(attempts: int) -> None:
    async def body() -> None:
        world = world_of(clock, FAULT, GOOD_WHOLE, attempts=attempts)
        assert (await world.post()).status == (200 if attempts == 2 else 502)
        assert len(world.providers.asked) == attempts

    clock = ManualClock()
    virtually(clock, body())


def test_another_target_that_can_be_called_goes_first() -> None:
    async def body() -> None:
        world = world_of(clock, FAULT, targets=("primary", "backup"), backup=GOOD_WHOLE)
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:server_error,backup:ok"

    clock = ManualClock()
    virtually(clock, body())


def test_a_target_that_rests_is_no_other_target() -> None:
    async def body() -> None:
        busy = answers(ERROR_OBJECT, 429, retry_after="30")
        world = world_of(
            clock,
            answers(ERROR_OBJECT, 503),
            FAULT,
            GOOD_WHOLE,
            targets=("primary", "backup"),
            backup=busy,
            route={"cooling": Cooling()},
        )
        await world.post()
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:server_error,primary:ok"
        assert world.providers.order == ["primary", "backup", "primary", "primary"]

    clock = ManualClock()
    virtually(clock, body())


def test_an_outage_is_not_doubled_by_second_calls() -> None:
    """The budget: three in ten seconds, however many requests fail."""

    async def body() -> None:
        world = world_of(clock, FAULT)
        for _ in range(100):
            await world.post()
        # Three while the floor lasts, ten that were saved, and what 10 s brought back since.
        assert 100 < len(world.providers.asked) <= 100 + 16
        clock.advance(600.0)
        before = len(world.providers.asked)
        await world.post()
        assert len(world.providers.asked) == before + 2

    clock = ManualClock()
    virtually(clock, body())


def test_the_moment_is_drawn_from_the_one_source_of_chance() -> None:
    pauses: dict[int, list[float]] = {}

    async def body(seed: int) -> None:
        timed = Timed(clock)
        world = world_of(clock, FAULT, timed(GOOD_WHOLE), seed=seed)
        await world.post()
        pauses.setdefault(seed, []).extend(timed.at_s)

    for seed in (1, 2, 3, 1, 2, 3):
        clock = ManualClock()
        virtually(clock, body(seed))
    assert all(first == again for first, again in pauses.values())
    assert len({first for first, _ in pauses.values()}) == 3
    assert all(0.0 <= pause < 0.2 for pair in pauses.values() for pause in pair)


@pytest.mark.parametrize("how", ["the client leaves", "the gateway drains"])
def test_who_ends_the_request_in_between_has_asked_nobody_again(how: str) -> None:
    async def body() -> None:
        world = world_of(clock, FAULT, GOOD_WHOLE)
        leaves = how == "the client leaves"
        async with world.exchange() as exchange:
            asked = await world.providers.until(1)
            while not asked.over:
                await turns(1)
            await turns()
            if leaves:
                await exchange.disconnect()
            else:
                world.inboxes.cut()
                await exchange.read()
        assert len(world.providers.asked) == 1
        assert exchange.status == (0 if leaves else 503)
        assert world.records.outcomes == ["cancelled" if leaves else "gateway.overloaded"]
        attempts = [step.verdict for step in world.records.steps if step.stage == "attempt"]
        assert attempts == ["server_error"]
        assert world.metric("abandoned_tokens_total") == 0
        assert (await world.usage()).used == 0
        assert world.charging.settled == leaves  # as a request: who always leaves is limited too
        assert world.state() is State.CLOSED
        await world.assert_clean(ends=1)

    clock = ManualClock()
    virtually(clock, body())


def test_without_time_for_it_there_is_no_second_call() -> None:
    async def body() -> None:
        short = replace(PATIENT, total_s=0.9, stream_total_s=0.9)
        world = world_of(clock, after(0.7, FAULT), GOOD_WHOLE, deadlines=short)
        assert (await world.post()).status == 502
        assert len(world.providers.asked) == 1

    clock = ManualClock()
    virtually(clock, body())


def test_the_probe_of_a_target_that_was_left_alone_is_one_call() -> None:
    async def body() -> None:
        breaker = replace(CALM, consecutive=2, open_s=5.0)
        world = world_of(
            clock, answers(ERROR_OBJECT, 503), answers(b"", 503), FAULT, breaker=breaker
        )
        await world.post()
        await world.post()
        assert world.state() is State.OPEN
        clock.advance(6.1)
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:server_error"
        assert len(world.providers.asked) == 3
        assert world.state() is State.OPEN

    clock = ManualClock()
    virtually(clock, body())


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_leaving_at_any_await_around_the_second_call_leaves_nothing_behind(kind: str) -> None:
    async def body() -> None:
        at, hit = 0, True
        asked_counts = set()
        while hit:
            at += 1
            world = world_of(clock, FAULT, GOOD if kind == "stream" else GOOD_WHOLE)
            hit, _ = await left_at(world, {"stream": kind == "stream"}, at)
            before = len(world.providers.asked)
            await world.assert_clean(ends=1)
            clock.advance(1.0)
            await turns()
            assert len(world.providers.asked) == before
            asked_counts.add(before)
            (outcome,) = world.records.outcomes
            assert outcome in ("cancelled", "ok")
            told = [step for step in world.records.steps if step.stage == "attempt"]
            assert len(told) == before
        assert asked_counts == {0, 1, 2}

    clock = ManualClock()
    virtually(clock, body())


def test_a_prompt_too_long_is_not_asked_again_while_the_larger_target_rests() -> None:
    async def body() -> None:
        too_long = answers({"error": {"code": "context_length_exceeded"}}, 500)
        world = world_of(
            clock,
            answers(ERROR_OBJECT, 503),
            too_long,
            targets=(
                Target("primary", credential_id="a", context_tokens=100),
                Target("backup", credential_id="b", context_tokens=1000),
            ),
            backup=answers(ERROR_OBJECT, 429, retry_after="30"),
            route={"cooling": Cooling()},
        )
        await world.post()
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:context_too_long,backup:cooling"
        assert world.providers.order == ["primary", "backup", "primary"]

    clock = ManualClock()
    virtually(clock, body())


@pytest.mark.parametrize("why", ["one target", "one attempt", "no fallback wished"])
def test_a_plain_answer_that_nobody_else_can_give_has_all_the_time(why: str) -> None:
    async def body() -> None:
        world = ChatWorld(
            clock=clock,
            primary=after(2.0, GOOD_WHOLE),
            backup=GOOD_WHOLE,
            deadlines=TIMES,
            targets=ALONE if why == "one target" else ("primary", "backup"),
            attempts=1 if why == "one attempt" else 3,
        )
        wishes = [("x-tidegate-fallback", "off")] if why == "no fallback wished" else []
        exchange = await world.post(headers=wishes)
        assert exchange.header("x-tidegate-attempts") == "primary:ok"

    clock = ManualClock()
    virtually(clock, body())
