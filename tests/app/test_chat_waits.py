"""How long does a client wait, to the millisecond, whatever its upstreams do?

R11: never longer than the total and 100 ms. R13: never more attempts than the route allows, counted
where they arrive. All on a virtual clock: the deadlines are real, the waiting is not.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    BANG,
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    Asked,
    Script,
    answers,
    completion,
    delta,
    event,
    fails,
    payloads,
    silent,
    streams,
    texts,
)
from tests.app.chat_world import MASKED, OFF, ChatWorld
from tests.app.test_chat_deadlines import SlowReader, serve
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.gateway.pause import pause
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.routing.plan import Deadlines
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

TIMES = Deadlines(connect_s=0.2, first_token_s=1.0, idle_s=0.5, total_s=2.6, stream_total_s=2.6)
TOTAL_S = 2.6
GRACE_S = 0.1  # R11
# A slow verdict belongs to other tests.
CALM = BreakerSettings(consecutive=1000, min_results=1000)
THREE = ("one", "two", "three")
GOOD = streams(ROLE + HEL + LO + STOP + DONE)
GOOD_WHOLE = answers(completion("Hello"))


def every(
    seconds: float,
    *first: bytes,
    then: bytes,
    kind: str = "text/event-stream",
    status: int = 200,
) -> Script:
    """The first pieces at once, then the same again and again."""

    async def run(asked: Asked) -> None:
        asked.head(status, kind)
        asked.send(*first)
        while not asked.gone.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.gone.wait(), seconds)
            asked.send(then)

    return run


def after(seconds: float, script: Script) -> Script:
    """That script, so much later."""

    async def run(asked: Asked) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.gone.wait(), seconds)
        await script(asked)

    return run


# The status of an error, and a body in drips.
ENDLESS_ERROR = every(0.05, b'{"error": "', then=b"x", kind="application/json", status=503)

FAULTS: dict[str, Script] = {
    "silence": silent,
    "a head, then silence": streams(hangs=True),
    "comments": every(0.05, then=b": still thinking\n\n"),
    "pings": every(0.05, then=b"event: ping\ndata: {}\n\n"),
    "roles": every(0.05, then=ROLE),
    "empty deltas": every(0.05, ROLE, then=event(delta(content=""))),
    "usage": every(0.05, ROLE, then=event({"choices": [], "usage": {"prompt_tokens": 1}})),
    "half an event": every(0.05, ROLE, b"data: {", then=b" "),
    "spaces": every(0.05, kind="application/json", then=b" "),
    "a document in drips": every(0.05, b'{"id":"', kind="application/json", then=b"x"),
    "an error in drips": ENDLESS_ERROR,
    "refused late": after(0.9, fails(Failure.UNREACHABLE)),
    "500 late": after(0.9, answers(ERROR_OBJECT, 500)),
    "500": answers(ERROR_OBJECT, 500),
    "503": answers(b"", 503),
    "429": answers(ERROR_OBJECT, 429, retry_after="7"),
    "refused": fails(Failure.UNREACHABLE),
    "reset": fails(Failure.RESET),
    "cut before content": streams(ROLE, then=Failure.RESET),
    "an error event": streams(ROLE, ERROR, hangs=True),
    "HTML": answers(b"<html>", kind="text/html"),
    "nothing": answers(b""),
    "{}": answers({}),
    "half a document": answers(b'{"id":"c1","choi'),
    "tokens for ever": every(0.4, ROLE, then=event(delta(content="word! "))),
    "held tokens for ever": every(0.4, ROLE, then=event(delta(content="4111"))),
    "a token, then silence": streams(ROLE, BANG, hangs=True),
    "a token, then comments": every(0.05, ROLE + BANG, then=b": still thinking\n\n"),
    "a token, then a cut": streams(ROLE, BANG, then=Failure.RESET),
}


@pytest.mark.parametrize(
    "masking", [OFF, pytest.param(MASKED, marks=pytest.mark.full)], ids=["off", "masked"]
)
@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.full), 2, pytest.param(3, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("kind", [pytest.param("plain", marks=pytest.mark.full), "stream"])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_client_waits_longer_than_its_total(
    fault: str, kind: str, count: int, masking: Any
) -> None:
    async def body() -> None:
        names = THREE[:count]
        world = ChatWorld(
            clock=clock,
            targets=names,
            deadlines=TIMES,
            breaker=CALM,
            masking=masking,
            attempts=2,
            **dict.fromkeys(names, FAULTS[fault]),
        )
        began_s = clock.monotonic_s()
        exchange = await world.post(stream=kind == "stream")
        assert clock.monotonic_s() - began_s <= TOTAL_S + GRACE_S
        # R13, for whatever the walk did: the retry at the same target counts as well.
        assert 1 <= len(world.providers.asked) <= 2
        assert exchange.status != 200 or kind == "stream"
        if exchange.status == 200:
            assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        else:
            assert error_of(exchange)["code"] == "gateway.all_providers_failed"
        # R12.
        assert world.metric("requests_total") == 1
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


class Timed:
    """Scripts that note when they were asked, in seconds since the beginning."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._began_s = clock.monotonic_s()
        self.at_s: list[float] = []

    def __call__(self, script: Script) -> Script:
        async def run(asked: Asked) -> None:
            self.at_s.append(round(self._clock.monotonic_s() - self._began_s, 6))
            await script(asked)

        return run

    @property
    def now_s(self) -> float:
        return round(self._clock.monotonic_s() - self._began_s, 6)


@pytest.mark.parametrize(
    ("total_s", "asked_at_s", "over_s"),
    [
        (2.6, [0.0, 1.0, 2.0], 2.6),
        (10.0, [0.0, 1.0, 2.0], 3.0),
        # What is left is divided, so that the first does not eat the time of the others.
        (0.9, [0.0, 0.3, 0.6], 0.9),
        (1.5, [0.0, 1.0, 1.25], 1.5),
        # Less than a useful attempt is left: 504 at once.
        (2.04, [0.0, 1.0], 2.0),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_each_attempt_gets_its_own_time_or_what_is_left(
    total_s: float, asked_at_s: list[float], over_s: float, kind: str
) -> None:
    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock,
            targets=THREE,
            deadlines=replace(TIMES, total_s=total_s, stream_total_s=total_s),
            **dict.fromkeys(THREE, timed(silent)),
        )
        exchange = await world.post(stream=kind == "stream")
        assert timed.at_s == pytest.approx(asked_at_s, abs=0.002)
        assert timed.now_s == pytest.approx(over_s, abs=0.002)
        assert exchange.status == (502 if total_s == 10.0 else 504)

    clock = ManualClock()
    run_virtual(clock, body())


def test_the_body_of_an_error_has_the_time_of_its_attempt_at_most() -> None:
    async def body() -> None:
        timed = Timed(clock)
        late = timed(after(0.7, ENDLESS_ERROR))
        world = ChatWorld(clock=clock, primary=late, backup=timed(GOOD_WHOLE), deadlines=TIMES)
        assert (await world.post()).header("x-tidegate-attempts") == (
            "primary:server_error,backup:ok"
        )
        assert timed.at_s == pytest.approx([0.0, 1.0], abs=0.002)

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("noise", ["", "comment", "role", "empty", "usage"])
def test_between_tokens_the_idle_clock_runs_from_the_last_token(noise: str) -> None:
    pieces = {
        "comment": b": still thinking\n\n",
        "role": ROLE,
        "empty": event(delta(content="")),
        "usage": event({"choices": [], "usage": {"prompt_tokens": 1}}),
    }

    async def body() -> None:
        async def script(asked: Asked) -> None:
            await after(0.3, streams(ROLE, HEL, hangs=True))(asked)

        async def noisy(asked: Asked) -> None:
            await after(0.3, every(0.05, ROLE + HEL, then=pieces[noise]))(asked)

        timed = Timed(clock)
        world = ChatWorld(clock=clock, primary=noisy if noise else script, deadlines=TIMES)
        exchange = await world.post(stream=True)
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert timed.now_s == pytest.approx(0.8, abs=0.002)
        assert world.providers.order == ["primary"]

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_stream_may_last_as_long_as_its_total_and_no_longer() -> None:
    async def body() -> None:
        timed = Timed(clock)
        word = event(delta(content="word! "))
        world = ChatWorld(clock=clock, primary=every(0.4, ROLE, then=word), deadlines=TIMES)
        exchange = await world.post(stream=True)
        assert timed.now_s == pytest.approx(TOTAL_S, abs=0.002)
        assert texts(exchange.body) == {0: "word! " * 6}
        attempt = next(step for step in world.records.steps if step.stage == "attempt")
        assert attempt.verdict == "interrupted"

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_stream_of_minutes_has_the_default_clocks() -> None:
    """10 s to the first token, 15 s between tokens, 300 s in all."""

    async def body() -> None:
        timed = Timed(clock)
        times = Deadlines()
        script = after(9.9, every(14.9, ROLE + BANG, then=event(delta(content="word! "))))
        world = ChatWorld(clock=clock, primary=script, deadlines=times)
        world.providers.bound_s = None
        reader = SlowReader()
        reader.open.set()
        await serve(world, reader.send)
        assert timed.now_s == pytest.approx(300.0, abs=0.01)
        assert texts(reader.body)[0] == "Hel!" + "word! " * 19

    clock = ManualClock()
    run_virtual(clock, body())


def held_until(clock: ManualClock, seconds: float) -> SlowReader:
    """A client that reads nothing until then."""

    class Held(SlowReader):
        async def send(self, message: Any) -> None:
            self.sent.append(message)
            if message.get("more_body") and clock.monotonic_s() - began_s < seconds:
                await pause(began_s + seconds - clock.monotonic_s())

    began_s = clock.monotonic_s()
    return Held()


async def busy(asked: Asked) -> None:
    """A token every tenth of a second."""
    await every(0.1, ROLE + BANG, then=event(delta(content="word! ")))(asked)


WHOSE: dict[str, tuple[float, Script, str, State]] = {
    # (the client reads nothing until then, the upstream, the verdict, the breaker afterwards)
    "the client lets go just before the total ends": (2.55, busy, "cancelled", State.CLOSED),
    "the client never lets go": (9.0, busy, "cancelled", State.CLOSED),
    "the client reads": (0.0, busy, "interrupted", State.OPEN),
    "the upstream gave up on a client that did not read": (
        0.6,
        streams(ROLE, BANG, then=Failure.RESET),
        "cancelled",
        State.CLOSED,
    ),
    "the upstream ended it, since the client did not read": (
        0.6,
        streams(ROLE, BANG),
        "cancelled",
        State.CLOSED,
    ),
    "the upstream broke it, whether or not the client read": (
        0.6,
        streams(ROLE, BANG, ERROR),
        "interrupted",
        State.OPEN,
    ),
    "the client was a little slow, and the upstream broke off": (
        0.4,
        streams(ROLE, BANG, then=Failure.RESET),
        "interrupted",
        State.OPEN,
    ),
    "the client was slow, then the upstream silent": (
        1.0,
        streams(ROLE, BANG, hangs=True),
        "interrupted",
        State.OPEN,
    ),
}


@pytest.mark.parametrize("case", WHOSE)
def test_only_an_upstream_that_took_the_time_is_blamed_for_it(case: str) -> None:
    """A client must not be able to take a target away from the others by not reading."""
    until_s, script, verdict, state = WHOSE[case]

    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock,
            primary=script,
            deadlines=TIMES,
            breaker=BreakerSettings(consecutive=1, open_s=60.0),
        )
        reader = held_until(clock, until_s)
        await serve(world, reader.send)
        attempt = next(step for step in world.records.steps if step.stage == "attempt")
        assert attempt.verdict == verdict
        assert world.state() is state
        assert timed.now_s <= TOTAL_S + GRACE_S
        last = payloads(reader.body)[-1]
        assert last["error"]["code"] == "gateway.upstream_interrupted"
        assert world.providers.asked[0].over
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_plain_answer_alone_has_the_total_of_plain_answers() -> None:
    async def body() -> None:
        timed = Timed(clock)
        times = replace(TIMES, total_s=1.7, stream_total_s=4.0)
        world = ChatWorld(clock=clock, primary=silent, targets=("primary",), deadlines=times)
        assert (await world.post()).status == 504
        assert timed.now_s == pytest.approx(1.7, abs=0.002)

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_connection_gets_its_own_time_within_the_attempts() -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE, deadlines=TIMES)
        assert json.loads((await world.post()).body) == completion("Hello")
        assert world.providers.asked[0].connect_s == TIMES.connect_s

    clock = ManualClock()
    run_virtual(clock, body())
