"""What may a client or an operator wish for one request, and what reaches the provider of it?"""

import json
from collections import Counter
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
    USAGE,
    Script,
    answers,
    completion,
    fails,
    payloads,
    silent,
    streams,
)
from tests.app.chat_world import ChatWorld, request
from tests.app.test_chat_again import PATIENT
from tests.app.test_chat_waits import CALM, after
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.limits.ledger import Limit
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.routing.plan import Cooling, Target
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

OFF_HEADER = [("x-tidegate-fallback", "off")]
GOOD = streams(ROLE + HEL + LO + STOP + USAGE + DONE)
GOOD_WHOLE = answers(completion("Hello"))
TOO_LONG = answers({"error": {"code": "context_length_exceeded"}}, 400)

PHASES: dict[str, tuple[Script, int, str]] = {
    # (what the one target does, the status, the word in the header)
    "refused": (fails(Failure.UNREACHABLE), 502, "unreachable"),
    "reset": (fails(Failure.RESET), 502, "unreachable"),
    "500": (answers(ERROR_OBJECT, 500), 502, "server_error"),
    "429": (answers(ERROR_OBJECT, 429, retry_after="9"), 502, "rate_limited"),
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
        assert exchange.header("x-should-retry") == ("false" if useless else None)
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


def test_without_fallbacks_the_first_target_that_can_be_called_is_asked() -> None:
    async def body() -> None:
        breaker = BreakerSettings(consecutive=1, open_s=60.0)
        world = ChatWorld(
            clock=clock, primary=answers(b"", 503), backup=GOOD_WHOLE, breaker=breaker
        )
        await world.post()
        assert world.state() is State.OPEN
        exchange = await world.post(headers=OFF_HEADER)
        assert exchange.header("x-tidegate-attempts") == "primary:open,backup:ok"

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


def test_each_target_gets_its_own_model_and_parameters_and_the_rest_as_it_was() -> None:
    async def body() -> None:
        targets = (
            Target(
                "primary",
                credential_id="a",
                upstream_model="small",
                parameters={"temperature": 0.2, "max_tokens": 512, "logit_bias": None},
            ),
            Target("backup", credential_id="b"),
        )
        world = ChatWorld(
            clock=clock, primary=answers(b"", 503), backup=GOOD_WHOLE, targets=targets
        )
        sent = (
            b'{ "model":"m", "x_future" : [1.0, 1e2, "\\u00e9"],\n "temperature":1 ,'
            b'"max_completion_tokens":40, "logit_bias":{"5":1}, "messages":'
            b'[{"role":"user","content":"hi"}] }'
        )
        assert (await world.post(sent)).status == 200
        assert world.providers.asked[0].body == (
            b'{"max_tokens":512, "model":"small", "x_future" : [1.0, 1e2, "\\u00e9"],\n '
            b'"temperature":0.2, "messages":[{"role":"user","content":"hi"}] }'
        )
        assert world.providers.asked[1].body == sent

    clock = ManualClock()
    run_virtual(clock, body())


def test_what_an_operator_sets_is_reserved_and_what_was_used_is_paid() -> None:
    async def body() -> None:
        tokens = Limit("tokens", "tokens", 600)
        longer = Target("primary", credential_id="a", parameters={"max_tokens": 512})
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE, targets=(longer,), limits=(tokens,))
        assert (await world.post(max_tokens=10)).status == 200
        reserved = next(step for step in world.records.steps if step.verdict == "reserved")
        assert reserved.values["tokens"] == 512 + 5
        assert (await world.usage(tokens)).used == 43
        longest = replace(longer, parameters={"max_tokens": 700})
        small = ChatWorld(clock=clock, primary=GOOD_WHOLE, targets=(longest,), limits=(tokens,))
        refused = await small.post(max_tokens=10)
        assert error_of(refused)["code"] == "gateway.request_exceeds_limit"

    clock = ManualClock()
    run_virtual(clock, body())


def test_weights_are_shares_and_the_other_target_is_still_there() -> None:
    async def body() -> None:
        targets = (
            Target("primary", credential_id="a", weight=3),
            Target("backup", credential_id="b", weight=1),
        )
        world = ChatWorld(
            clock=clock,
            primary=GOOD_WHOLE,
            backup=GOOD_WHOLE,
            targets=targets,
            route={"strategy": "weighted"},
        )
        first = Counter([(await world.post()).header("x-tidegate-provider") for _ in range(60)])
        # Three sigma of 60 draws at three to one are 10.
        assert 35 <= first["primary"] <= 55
        assert first["primary"] + first["backup"] == 60
        broken = replace(world.route, breaker=CALM)
        world = ChatWorld(
            clock=clock,
            primary=answers(b"", 503),
            backup=GOOD_WHOLE,
            targets=targets,
            breaker=broken.breaker,
            route={"strategy": "weighted"},
        )
        assert {(await world.post()).status for _ in range(20)} == {200}

    clock = ManualClock()
    run_virtual(clock, body())


@pytest.mark.parametrize("kind", [pytest.param("plain", marks=pytest.mark.full), "stream"])
def test_least_latency_follows_a_target_that_became_slow(kind: str) -> None:
    async def body() -> None:
        good = GOOD if kind == "stream" else GOOD_WHOLE
        primary = [after(0.1, good)] * 30 + [after(0.9, good)] * 100
        world = ChatWorld(
            clock=clock,
            primary=primary,
            backup=after(0.3, good),
            deadlines=PATIENT,
            route={"strategy": "least_latency"},
        )
        served: list[str | None] = []
        for _ in range(80):
            exchange = await world.post(stream=kind == "stream")
            served.append(exchange.header("x-tidegate-provider"))
        assert served[2:25].count("primary") >= 20
        slowed = next(n for n in range(80) if served[: n + 1].count("primary") == 31)
        # It is seen with the first slow answers; after that the target is only looked at.
        assert served[slowed + 3 : slowed + 40].count("backup") >= 30

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_long_prompt_goes_first_where_it_fits() -> None:
    async def body() -> None:
        targets = (
            Target("primary", credential_id="a", context_tokens=100),
            Target("backup", credential_id="b", context_tokens=100_000),
        )
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE, backup=GOOD_WHOLE, targets=targets)
        assert (await world.post()).header("x-tidegate-provider") == "primary"
        long = [{"role": "user", "content": "many words " * 200}]
        assert (await world.post(messages=long)).header("x-tidegate-provider") == "backup"
        # An estimate drops nobody.
        world.providers.scripts["backup"] = [answers(b"", 503)]
        exchange = await world.post(messages=long)
        assert exchange.header("x-tidegate-attempts") == "backup:server_error,primary:ok"

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_key_that_says_it_has_no_room_goes_behind_its_equals() -> None:
    async def body() -> None:
        room = {
            "x_ratelimit_remaining_requests": "0",
            "x_ratelimit_limit_requests": "500",
            "x_ratelimit_reset_requests": "20s",
        }
        full = answers(completion("Hello"), **room)
        targets = (Target("primary", 0, credential_id="a"), Target("primary", 1, credential_id="b"))
        world = ChatWorld(clock=clock, primary=[full, GOOD_WHOLE], targets=targets)
        keys = ("key one", "key two")
        known = {"primary": replace(world.policy.providers["primary"], credentials=keys)}
        world.policy = replace(world.policy, providers=known)

        async def key() -> str:
            assert (await world.post()).status == 200
            return world.providers.asked[-1].headers["authorization"].removeprefix("Bearer ")

        assert [await key() for _ in range(3)] == ["key one", "key two", "key two"]
        clock.advance(21.0)
        assert await key() == "key one"

    clock = ManualClock()
    run_virtual(clock, body())


SHOWN = {"openai-processing-ms": "123", "openai-version": "2020-10-01"}
HIDDEN: dict[str, str] = {
    "openai-organization": "canary-org",
    "openai-model": "canary-model",
    "openai-project": "canary-project",
    "x-request-id": "canary-id",
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-remaining-tokens": "canary",
    "ratelimit": "canary",
    "retry-after": "17",
    "server": "canary-host",
    "via": "1.1 canary-host",
    "x-upstream-host": "canary-host",
    "x-served-by": "canary-host",
    "cf-ray": "canary",
    "set-cookie": "canary=1",
    "location": "http://canary.example",
    "x-tidegate-provider": "canary",
    "x-tidegate-attempts": "canary",
    "x-should-retry": "canary",
    "access-control-allow-origin": "*",
}


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("status", [200, 400, 429, 500])
def test_of_a_providers_headers_two_pass_and_only_in_their_known_form(
    status: int, kind: str
) -> None:
    async def body() -> None:
        more = {name.replace("-", "_"): value for name, value in (SHOWN | HIDDEN).items()}
        kind_of = "text/event-stream" if kind == "stream" and status == 200 else "application/json"
        good = HELLO_STREAM if kind == "stream" else json.dumps(completion("x")).encode()
        content = good if status == 200 else b"{}"
        world = ChatWorld(
            clock=clock,
            primary=answers(content, status, kind_of, **more),
            targets=("primary",),
            limits=(),
        )
        exchange = await world.post(stream=kind == "stream")
        names = dict(exchange.headers)
        assert {n: v for n, v in names.items() if n in SHOWN} == (SHOWN if status == 200 else {})
        ours = {"x-request-id", "retry-after", "x-should-retry"}
        ours |= {"x-tidegate-provider", "x-tidegate-attempts"}
        assert names.keys() & HIDDEN.keys() <= ours
        assert "canary" not in repr(exchange.headers)
        assert names.get("retry-after") == ("17" if status == 429 else None)

    clock = ManualClock()
    run_virtual(clock, body())


HELLO_STREAM = ROLE + HEL + LO + STOP + DONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("openai-processing-ms", "12 at canary-host"),
        ("openai-processing-ms", "1234567890"),
        ("openai-processing-ms", "12\n"),
        ("openai-processing-ms", "\u0661"),
        ("openai-version", "canary"),
        ("openai-version", "2020-10-01-canary"),
    ],
)
def test_a_value_of_another_form_does_not_pass(name: str, value: str) -> None:
    async def body() -> None:
        more: dict[str, Any] = {name.replace("-", "_"): value}
        world = ChatWorld(clock=clock, primary=answers(completion("x"), **more))
        assert (await world.post()).header(name) is None

    clock = ManualClock()
    run_virtual(clock, body())


def test_without_any_wish_the_bytes_sent_are_those_received() -> None:
    async def body() -> None:
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE)
        await world.post(x_future=[1])
        assert world.providers.asked[0].body == request(x_future=[1])

    clock = ManualClock()
    run_virtual(clock, body())
