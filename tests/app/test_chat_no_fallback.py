"""Who wants no other target gets none, in any phase of a request."""

from dataclasses import replace

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
    USAGE,
    Script,
    answers,
    completion,
    fails,
    payloads,
    silent,
    streams,
)
from tests.app.chat_world import ChatWorld
from tests.app.test_chat_again import PATIENT
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.routing.breaker import BreakerSettings
from tidegate.routing.plan import Cooling, Target
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

pytestmark = pytest.mark.full

GOOD = streams(ROLE + HEL + LO + STOP + USAGE + DONE)
GOOD_WHOLE = answers(completion("Hello"))

OFF_HEADER = [("x-tidegate-fallback", "off")]
TOO_LONG = answers({"error": {"code": "context_length_exceeded"}}, 400)

PHASES: dict[str, tuple[Script, int, str]] = {
    # (what the one target does, the status, the word in the header)
    "refused": (fails(Failure.UNREACHABLE), 502, "unreachable"),
    "reset": (fails(Failure.RESET), 502, "unreachable"),
    "500": (answers(ERROR_OBJECT, 500), 502, "server_error"),
    "429": (answers(ERROR_OBJECT, 429, retry_after="9"), 503, "rate_limited"),
    "401": (answers(ERROR_OBJECT, 401), 502, "credential"),
    "404": (answers(ERROR_OBJECT, 404), 502, "not_found"),
    "too long": (TOO_LONG, 400, "context_too_long"),
    "a head, then silence": (streams(hangs=True), 504, "timeout"),
    "silence": (silent, 504, "timeout"),
    "an error event first": (streams(ERROR), 502, "server_error"),
    "an error after the role": (streams(ROLE, ERROR), 502, "server_error"),
    "a cut before content": (streams(ROLE, then=Failure.RESET), 502, "unreachable"),
    "nothing": (streams(DONE), 502, "malformed"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_who_wants_no_fallback_gets_none_in_any_phase(phase: str) -> None:
    """Entry 50, BerriAI/litellm #19077."""
    script, status, outcome = PHASES[phase]

    async def body() -> None:
        world = ChatWorld(
            clock=clock,
            primary=script,
            backup=GOOD,
            targets=(
                Target("primary", credential_id="a", context_tokens=100),
                Target("backup", credential_id="b", context_tokens=100_000),
            ),
            deadlines=replace(PATIENT, stream_total_s=1.5),
            failover_on_credential_error=True,
            route={"cooling": Cooling()},
        )
        exchange = await world.post(stream=True, headers=OFF_HEADER)
        assert exchange.status == status
        assert exchange.header("x-tidegate-attempts") == f"primary:{outcome}"
        # Nobody else was asked, so the client's own policy of retries is as good as any.
        useless = outcome in ("context_too_long", "credential")
        rests = "true" if status == 503 else None
        assert exchange.header("x-should-retry") == ("false" if useless else rests)
        assert world.providers.order == ["primary"]
        match = next(step for step in world.records.steps if step.stage == "route")
        assert match.values["fallback"] is False
        # For the next one, and with the word "on", all is as ever.
        served = await world.post(stream=True, headers=[("x-tidegate-fallback", "on")])
        assert (served.status, served.header("x-tidegate-provider")) == (200, "backup")
        await world.assert_clean(ends=2)

    clock = ManualClock()
    run_virtual(clock, body())


def test_after_the_first_content_nothing_changes_without_fallbacks() -> None:
    """Entry 50, BerriAI/litellm #19077."""

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=streams(ROLE, BANG, ERROR), backup=GOOD)
        exchange = await world.post(stream=True, headers=OFF_HEADER)
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert world.providers.order == ["primary"]

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("strategy", ["priority", "weighted"])
@pytest.mark.parametrize("why", ["open", "cooling"])
def test_without_fallbacks_a_first_candidate_that_rests_is_waited_for(
    why: str, strategy: str
) -> None:
    async def body() -> None:
        bad = answers(ERROR_OBJECT, 503 if why == "open" else 429, retry_after="9")
        world = ChatWorld(
            clock=clock,
            primary=bad,
            backup=GOOD_WHOLE,
            breaker=BreakerSettings(consecutive=1, open_s=60.0),
            route={"strategy": strategy, "cooling": Cooling()},
        )
        while not world.providers.order.count("primary"):
            await world.post()
        exchange = await world.post(headers=OFF_HEADER)
        if strategy == "priority":
            assert exchange.status == 503
            assert exchange.header("x-tidegate-attempts") == f"primary:{why}"
            assert int(exchange.header("retry-after") or 0) >= 9
        else:
            # There is no first one here: what is picked is no fallback.
            assert exchange.header("x-tidegate-provider") == "backup"

    clock = ManualClock()
    run_virtual(clock, body())


def test_without_fallbacks_another_key_of_the_same_candidate_will_do() -> None:
    async def body() -> None:
        first, second = (Target("primary", n, credential_id=str(n)) for n in (0, 1))
        other = Target("backup", credential_id="b")
        world = ChatWorld(
            clock=clock,
            primary=[answers(ERROR_OBJECT, 429, retry_after="9"), GOOD_WHOLE],
            backup=GOOD_WHOLE,
            targets=(first, second, other),
            route={"cooling": Cooling()},
        )
        known = dict(world.policy.providers)
        known["primary"] = replace(known["primary"], credentials=("one", "two"))
        world.policy = replace(world.policy, providers=known)
        assert (await world.post(headers=OFF_HEADER)).status == 502
        exchange = await world.post(headers=OFF_HEADER)
        assert exchange.header("x-tidegate-attempts") == "primary:cooling,primary:ok"

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize(
    "given", [["maybe"], [""], ["on", "off"], ["off, on"], ["0"], ["\u00f6ff"]]
)
def test_a_wish_that_is_neither_on_nor_off_is_refused_before_anybody_is_asked(
    given: list[str],
) -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE)
        wishes = [("x-tidegate-fallback", value) for value in given]
        exchange = await world.post(headers=wishes)
        assert (exchange.status, error_of(exchange)["code"]) == (400, "gateway.invalid_request")
        assert "x-tidegate-fallback" in error_of(exchange)["message"]
        assert world.providers.asked == []
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("given", [["off"], [" OFF "], ["off", "off"], ["on"], ["On", "on"]])
def test_a_wish_may_be_spelled_in_any_case_and_never_reaches_a_provider(given: list[str]) -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE)
        wishes = [("x-tidegate-fallback", value) for value in given]
        assert (await world.post(headers=wishes)).status == 200
        assert "x-tidegate-fallback" not in world.providers.asked[0].headers
        assert b"fallback" not in world.providers.asked[0].body

    clock = ManualClock()
    run_virtual(clock, body())
