"""Public bug reports of other gateways about failover, run against the whole path.

Entries 30 to 34, 36 and 37 of the list; 35, 38, 45 and 47 are in test_chat_reports_health, 50 in
test_chat_no_fallback. Time is virtual, so that an outage of minutes takes none.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    BANG,
    CANARY,
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
    delta,
    event,
    fails,
    payloads,
    silent,
    streams,
    texts,
)
from tests.app.chat_world import MASKED, ChatWorld
from tests.app.test_chat_waits import TIMES, Timed
from tests.app.test_front import error_of
from tests.app.virtual import VirtualLoop, run_virtual
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

pytestmark = pytest.mark.full

SIXTY = [event(delta(content=f"word{n} ")) for n in range(60)]
GOOD = streams(ROLE, *SIXTY, STOP, USAGE, DONE)
WHOLE = "".join(f"word{n} " for n in range(60))
GOOD_WHOLE = answers(completion("Hello"))
PATIENT = replace(TIMES, stream_total_s=4.5)


def named(name: str, data: Mapping[str, object]) -> bytes:
    """An event with a name."""
    return f"event: {name}\n".encode() + event(data)


CREATED = named(
    "response.created",
    {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}},
)
STARTED = named(
    "message_start", {"type": "message_start", "message": {"role": "assistant", "content": []}}
)
PING = named("ping", {"type": "ping"})
FAILED = named(
    "response.failed",
    {"type": "response.failed", "response": {"error": {"code": "server_error", "message": CANARY}}},
)
QUOTA = named(
    "error", {"type": "error", "code": "insufficient_quota", "message": f"no credit at {CANARY}"}
)

STARTS_BADLY: dict[str, tuple[Script, str]] = {
    "an error as the first event": (streams(ERROR, hangs=True), "server_error"),
    "an error as the second event": (streams(ROLE, ERROR, hangs=True), "server_error"),
    "an error in the same read": (streams(ROLE + ERROR + DONE, hangs=True), "server_error"),
    "429 at the opening": (answers(ERROR_OBJECT, 429), "rate_limited"),
    "429 as an event": (streams(event({"error": {"code": 429}}), hangs=True), "rate_limited"),
    "response.failed": (streams(CREATED, FAILED, hangs=True), "server_error"),
    "response.failed without a name": (
        streams(event({"type": "response.failed", "response": {"error": {"code": "x"}}})),
        "server_error",
    ),
    "a clean end before anything": (streams(CREATED, STARTED, PING), "interrupted"),
    "a finish invented by nobody": (streams(ROLE, DONE), "malformed"),
}


@pytest.mark.parametrize("case", STARTS_BADLY)
def test_030_a_stream_that_starts_badly_is_answered_by_the_backup(case: str) -> None:
    """Entry 30, BerriAI/litellm #40404, #28216, #6957, #5512, #36768, #25843."""
    script, outcome = STARTS_BADLY[case]

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=script, backup=GOOD, deadlines=PATIENT)
        exchange = await world.post(stream=True)
        assert exchange.status == 200
        assert exchange.header("x-tidegate-attempts") == f"primary:{outcome},backup:ok"
        assert texts(exchange.body) == {0: WHOLE}
        assert exchange.body.count(b"[DONE]") == 1
        assert CANARY.encode() not in exchange.body
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 503])
def test_031_a_stream_that_is_refused_is_no_200(status: int) -> None:
    """Entry 31, mlflow/mlflow #25262."""

    async def body() -> None:
        refused = answers(ERROR_OBJECT, status)
        world = ChatWorld(clock=clock, primary=refused, backup=refused, deadlines=PATIENT)
        exchange = await world.post(stream=True)
        assert exchange.status in (400, 502)
        assert exchange.header("content-type") == "application/json"
        assert set(error_of(exchange)) == {"type", "code", "message", "request_id"}

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("first", [CREATED, STARTED, PING, CREATED + STARTED + PING + ROLE])
@pytest.mark.parametrize("cut", [False, True], ids=["one read", "byte by byte"])
def test_032_an_event_without_content_does_not_begin_the_answer(first: bytes, *, cut: bool) -> None:
    """Entry 32, maximhq/bifrost #5395."""

    async def body() -> None:
        pieces = [bytes([byte]) for byte in first + QUOTA] if cut else [first + QUOTA]
        world = ChatWorld(clock=clock, primary=streams(*pieces), backup=GOOD, deadlines=PATIENT)
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-attempts") == "primary:quota,backup:ok"
        assert texts(exchange.body) == {0: WHOLE}

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_033_an_upstream_that_says_nothing_is_left_at_its_deadline(kind: str) -> None:
    """Entry 33, maximhq/bifrost #7034: the backup is asked within 50 ms of the deadline."""

    async def body() -> None:
        timed = Timed(clock)
        backup = timed(GOOD if kind == "stream" else GOOD_WHOLE)
        world = ChatWorld(clock=clock, primary=silent, backup=backup, deadlines=PATIENT)
        exchange = await world.post(stream=kind == "stream")
        assert exchange.header("x-tidegate-attempts") == "primary:timeout,backup:ok"
        assert TIMES.first_token_s <= timed.at_s[0] <= TIMES.first_token_s + 0.05
        assert timed.now_s <= TIMES.first_token_s + 0.05
        # Nor is the time of the silent one the backup's.
        assert world.metric("first_byte_seconds_sum", provider="backup") < 0.05
        assert world.providers.asked[0].gone.is_set()

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize(
    "failures",
    [
        (streams(ROLE, ERROR), answers(b"<html>"), silent),
        (fails(Failure.RESET), streams(ROLE, then=Failure.RESET), answers(ERROR_OBJECT, 503)),
        (streams(ROLE, DONE), answers(ERROR_OBJECT, 429), streams(CREATED, FAILED)),
    ],
)
def test_034_what_one_attempt_left_behind_does_not_meet_the_next(
    failures: tuple[Script, Script, Script],
) -> None:
    """Entry 34, maximhq/bifrost #4788, PR #4911."""

    async def body() -> None:
        names = ("one", "two", "three", "four")
        world = ChatWorld(
            clock=clock,
            targets=names,
            deadlines=PATIENT,
            attempts=4,
            **dict(zip(names, (*failures, GOOD), strict=True)),
        )
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-provider") == "four"
        assert texts(exchange.body) == {0: WHOLE}
        assert payloads(exchange.body)[-1] == "[DONE]"
        assert (await world.usage()).used == 43
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


CUT = SIXTY[:40]
CUTS: dict[str, Script] = {
    "a clean end": streams(ROLE, *CUT),
    "a reset": streams(ROLE, *CUT, then=Failure.RESET),
    "half an event": streams(ROLE, *CUT, SIXTY[40][:9]),
    "an error": streams(ROLE, *CUT, ERROR),
    "a stall": streams(ROLE, *CUT, hangs=True),
}


@pytest.mark.parametrize("case", CUTS)
def test_036_half_an_answer_never_looks_like_a_whole_one(case: str) -> None:
    """Entry 36, Portkey-AI/gateway #1797, BerriAI/litellm #42085."""

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=CUTS[case], backup=GOOD, deadlines=PATIENT)
        exchange = await world.post(stream=True)
        *before, last = payloads(exchange.body)
        assert last["error"]["code"] == "gateway.upstream_interrupted"
        assert b"[DONE]" not in exchange.body
        assert b'"stop"' not in exchange.body
        assert "".join(c["delta"].get("content") or "" for p in before for c in p["choices"]) == (
            "".join(f"word{n} " for n in range(40))
        )
        assert world.providers.order == ["primary"]
        assert world.records.outcomes == ["gateway.upstream_interrupted"]

    clock = ManualClock()
    run_virtual(clock, body())


def test_037_after_a_429_in_the_middle_nothing_goes_on() -> None:
    """Entry 37, BerriAI/litellm #26015: no timer, no task, no turn of the loop is left."""

    async def body() -> None:
        limited = event({"error": {"code": 429, "message": CANARY}})
        world = ChatWorld(
            clock=clock,
            primary=[streams(ROLE, BANG, limited, hangs=True), GOOD],
            targets=("primary",),
            deadlines=PATIENT,
        )
        exchange = await world.post(stream=True)
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        await world.assert_clean(ends=1)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        assert [timer for timer in loop._scheduled if not timer.cancelled()] == []
        assert texts((await world.post(stream=True)).body) == {0: WHOLE}

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("stranger", [PING, STARTED, CREATED, event({}), event({"id": "c1"})])
def test_events_that_are_none_of_the_dialect_do_not_reach_the_client(stranger: bytes) -> None:
    """Clients of this dialect look for choices in every event."""

    async def body() -> None:
        script = streams(ROLE, stranger, HEL + stranger, LO, STOP + stranger, DONE)
        world = ChatWorld(clock=clock, primary=script, deadlines=PATIENT)
        exchange = await world.post(stream=True)
        assert exchange.body == ROLE + HEL + LO + STOP + DONE

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("masking", [MASKED, None], ids=["masked", "off"])
def test_an_error_in_somebodys_own_words_ends_a_stream_that_had_begun(masking: Any) -> None:
    async def body() -> None:
        given = {} if masking is None else {"masking": masking}
        for words in ({"detail": CANARY}, {"message": CANARY}, {"errors": [{"message": CANARY}]}):
            script = streams(ROLE, BANG, event(words), DONE)
            world = ChatWorld(clock=clock, primary=script, backup=GOOD, **given)
            exchange = await world.post(stream=True)
            assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
            assert CANARY.encode() not in exchange.body
            assert b"[DONE]" not in exchange.body

    clock = ManualClock()
    run_virtual(clock, body())
