"""What a client learns about its limits, and that it is true.

Entries 6, 8, 17 and 26 of the list of public bugs in accounting: BerriAI/litellm PR #31952 (an
estimate that fails takes the whole limit), #13898 (a 429 that names a limit nobody set),
envoyproxy/ai-gateway #2394, #1754, #1169 (a limit that bites on the next request only),
BerriAI/litellm #27823, PR #30098, #4695 (no time to come back at when all targets rest).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ERROR_OBJECT,
    HEL,
    ROLE,
    STOP,
    Asked,
    answers,
    completion,
    event,
    streams,
)
from tests.app.chat_world import LIMIT, ChatWorld, run
from tests.app.test_front import error_of
from tidegate.limits import MemoryLedger
from tidegate.limits.ledger import Charge, Granted, Limit, NeverFits, Refused
from tidegate.routing.plan import Cooling
from tidegate.testing.asgi import ASGIExchange
from tidegate.testing.clock import ManualClock

REQUESTS = Limit("per-minute", "requests", 3)
TOKENS = Limit("tokens", "tokens", 1_000)
HELLO = answers(completion("hello"))
PROVIDERS_OWN = {
    "x_ratelimit_remaining_tokens": "7",
    "x_ratelimit_limit_requests": "8",
    "x_ratelimit_reset_requests": "9s",
    "anthropic_ratelimit_tokens_remaining": "6",
    "ratelimit": '"tpm";r=5;t=4',
}


def shown(exchange: ASGIExchange) -> dict[str, str]:
    """The rate limit headers of an answer, by the rest of their names."""
    prefix = "x-ratelimit-"
    names = [name for name, _ in exchange.headers if "ratelimit" in name]
    assert len(set(names)) == len(names)
    assert all(name.startswith(prefix) for name in names)
    return {name.removeprefix(prefix): exchange.header(name) or "" for name in names}


@pytest.mark.parametrize("kind", ["plain", "stream", "upstream error", "caller error"])
def test_each_answer_that_passed_limits_shows_where_they_stand(kind: str) -> None:
    async def body() -> None:
        scripts = {
            "plain": answers(completion("hello"), **PROVIDERS_OWN),
            "stream": streams(ROLE, HEL, STOP, DONE),
            "upstream error": answers(ERROR_OBJECT, 500, **PROVIDERS_OWN),
            "caller error": answers(ERROR_OBJECT, 400, **PROVIDERS_OWN),
        }
        world = ChatWorld(
            clock=ManualClock(),
            primary=scripts[kind],
            limits=(REQUESTS, TOKENS),
            targets=("primary",),
        )
        exchange = await world.post(stream=kind == "stream", max_tokens=100)
        found = shown(exchange)
        reserved = next(s for s in world.records.steps if s.verdict == "reserved").values["tokens"]
        assert found == {
            "limit-requests": "3",
            "remaining-requests": "2",
            "reset-requests": found["reset-requests"],
            "limit-tokens": "1000",
            "remaining-tokens": str(1000 - reserved),
            "reset-tokens": found["reset-tokens"],
        }
        # The window, and at most the bucket that this request fell into.
        assert found["reset-tokens"] in ("1m0.25s", "1m0s") or found["reset-tokens"] < "1m0.25s"
        assert exchange.header("x-tidegate-limiter") is None

    run(body())


def test_a_refusal_shows_them_too_and_counts_nothing_of_itself() -> None:
    async def body() -> None:
        clock = ManualClock()
        world = ChatWorld(clock=clock, primary=HELLO, limits=(REQUESTS, TOKENS))
        for _ in range(3):
            await world.post()
            await world.charging.drain(1)
            clock.advance(2.0)
        refused = await world.post()
        assert refused.status == 429
        found = shown(refused)
        assert (found["remaining-requests"], found["limit-requests"]) == ("0", "3")
        assert found["remaining-tokens"] == str(1000 - 3 * 43)
        assert found["reset-requests"].removesuffix("s").partition(".")[0] in ("58", "57")
        assert refused.header("x-should-retry") == "true"

    run(body())


@pytest.mark.parametrize("why", ["no key", "never fits", "no limits"])
def test_what_no_limit_was_asked_about_shows_none(why: str) -> None:
    async def body() -> None:
        limits = () if why == "no limits" else (TOKENS,)
        world = ChatWorld(primary=answers(completion("hello"), **PROVIDERS_OWN), limits=limits)
        fields: dict[str, Any] = {"key": None} if why == "no key" else {}
        if why == "never fits":
            fields = {"max_tokens": 5000}
        exchange = await world.post(**fields)
        assert exchange.status == {"no key": 401, "never fits": 413, "no limits": 200}[why]
        assert shown(exchange) == {}

    run(body())


class Degraded(MemoryLedger):
    """A ledger that decides without its store."""

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        verdict = await super().reserve(reservation_id, owner, charges, lease_s=lease_s)
        return verdict if isinstance(verdict, NeverFits) else replace(verdict, degraded=True)


def test_an_answer_under_a_limiter_without_its_store_says_so() -> None:
    async def body() -> None:
        clock = ManualClock()
        one = replace(REQUESTS, cap=1)
        world = ChatWorld(clock=clock, ledger=Degraded(clock), primary=HELLO, limits=(one,))
        served, refused = await world.post(), await world.post()
        assert (served.status, refused.status) == (200, 429)
        for exchange in (served, refused):
            assert exchange.header("x-tidegate-limiter") == "degraded"

    run(body())


def test_a_request_larger_than_its_limit_never_leaves_and_what_remains_moves_at_once() -> None:
    """Entry 17, envoyproxy/ai-gateway #2394, #1754, #1169."""

    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            await go.wait()
            await HELLO(asked)

        world = ChatWorld(primary=script, limits=(TOKENS,))
        assert (await world.post(max_tokens=1200)).status == 413
        assert world.providers.asked == []
        first = asyncio.ensure_future(world.post(max_tokens=600))
        await world.providers.until(1)
        # While the first still runs: what it may take is not there any more.
        over = await world.post(max_tokens=600)
        assert over.status == 429
        assert int(shown(over)["remaining-tokens"]) < 400
        go.set()
        assert (await first).status == 200
        assert (await world.usage(TOKENS)).free == 1000 - 43
        after = await world.post(max_tokens=600)
        assert 1000 - 43 - 600 - 20 < int(shown(after)["remaining-tokens"]) < 1000 - 43 - 600

    run(body())


@pytest.mark.parametrize("stream", [False, True])
def test_four_thousand_tokens_asked_for_settle_at_the_forty_three_used(*, stream: bool) -> None:
    async def body() -> None:
        usage = completion("hello")["usage"]
        report = event({"choices": [], "usage": usage})
        script = streams(ROLE, HEL, STOP, report, DONE) if stream else HELLO
        world = ChatWorld(primary=script)
        exchange = await world.post(max_tokens=4000, stream=stream)
        assert exchange.status == 200
        assert 50_000 - 4_020 < int(shown(exchange)["remaining-tokens"]) < 50_000 - 4_000
        found = await world.usage(LIMIT)
        assert (found.used, found.reserved, found.free) == (43, 0, 50_000 - 43)
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": None}],
        [{"role": "user"}],
        [None, 7, "x"],
        [{"role": "user", "content": [{"type": "text"}, 5, None]}],
        [{"content": "\ud800"}],
    ],
)
def test_a_prompt_of_odd_shape_takes_its_own_room_and_not_all_of_it(messages: object) -> None:
    """Entry 6, BerriAI/litellm PR #31952."""

    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            await go.wait()
            await HELLO(asked)

        world = ChatWorld(primary=script, limits=(TOKENS,))
        if messages == [{"content": "\ud800"}]:
            assert (await world.post(messages=messages)).status == 400
            return
        asked = [asyncio.ensure_future(world.post(messages=messages)) for _ in range(2)]
        await world.providers.until(2)
        go.set()
        assert [one.status for one in await asyncio.gather(*asked)] == [200, 200]

    run(body())


def test_a_refusal_names_the_limit_its_scope_and_the_numbers() -> None:
    """Entry 8, BerriAI/litellm #13898.

    The error has exactly its four members, so the message carries them, and the record has each
    under its name.
    """

    async def body() -> None:
        world = ChatWorld(
            primary=HELLO, limits=(replace(TOKENS, name="tokens-of-acme", per="principal"),)
        )
        await world.post()
        refused = await world.post(max_tokens=990)
        assert refused.status == 429
        error = error_of(refused)
        assert set(error) == {"type", "code", "message", "request_id"}
        deny = world.records.steps[-1]
        requested = deny.values["requested"]
        assert error["message"] == (
            f"Limit 'tokens-of-acme' (per principal): 43 of 1000 used, {requested} requested."
        )
        assert (deny.stage, deny.verdict) == ("limits", "deny")
        wait_ms = refused.header("retry-after-ms")
        assert deny.values == {
            "limit": "tokens-of-acme",
            "scope": "principal",
            "cap": 1000,
            "used": 43,
            "requested": requested,
            "retry_after_s": deny.values["retry_after_s"],
        }
        assert int(wait_ms or 0) == pytest.approx(deny.values["retry_after_s"] * 1000, abs=1)

    run(body())


def test_a_refusal_for_ever_names_the_limit_and_gives_no_time() -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO, limits=(TOKENS,))
        refused = await world.post(max_tokens=5000)
        assert refused.status == 413
        assert "'tokens'" in error_of(refused)["message"]
        assert "1000" in error_of(refused)["message"]
        assert refused.header("retry-after") is refused.header("retry-after-ms") is None
        assert refused.header("x-should-retry") == "false"
        deny = world.records.steps[-1].values
        assert {k: v for k, v in deny.items() if v is not None and k != "requested"} == {
            "limit": "tokens",
            "scope": "tenant",
            "cap": 1000,
        }

    run(body())


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_when_all_targets_rest_the_time_to_come_back_is_true(share: float) -> None:
    """Entry 26, BerriAI/litellm #27823, PR #30098, #4695."""

    async def body() -> None:
        clock = ManualClock()
        busy, soon = answers(b"", 429, retry_after="40"), answers(b"", 429, retry_after="30")
        world = ChatWorld(clock=clock, primary=[busy, HELLO], backup=[soon, HELLO])
        world.policy = replace(
            world.policy,
            routes=type(world.policy.routes)([replace(world.route, cooling=Cooling(on_429_s=5.0))]),
        )
        refused = await world.post()
        assert refused.status == 503
        assert error_of(refused)["code"] == "gateway.all_providers_failed"
        assert refused.header("x-should-retry") == "true"
        wait_s = int(refused.header("retry-after-ms") or 0) / 1000
        assert wait_s == pytest.approx(30.0)
        clock.advance(wait_s * share)
        again = await world.post()
        assert again.status == (200 if share == 1.0 else 503)
        assert again.header("x-tidegate-provider") == ("backup" if share == 1.0 else None)

    run(body())


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_the_time_of_a_429_is_true(share: float) -> None:
    async def body() -> None:
        clock = ManualClock()
        world = ChatWorld(clock=clock, primary=HELLO, limits=(replace(TOKENS, cap=200),))
        await world.post(max_tokens=150)
        await world.charging.drain(1)
        clock.advance(7.0)
        refused = await world.post(max_tokens=170)
        assert refused.status == 429
        clock.advance(int(refused.header("retry-after-ms") or 0) / 1000 * share)
        assert (await world.post(max_tokens=170)).status == (200 if share == 1.0 else 429)

    run(body())


def test_what_the_provider_was_asked_is_learned_for_the_next_estimate() -> None:
    async def body() -> None:
        text = "plain words of a prompt that is long enough " * 20
        messages = [{"role": "user", "content": text}]
        usage = {"prompt_tokens": 600, "completion_tokens": 3, "total_tokens": 603}
        world = ChatWorld(primary=answers(completion("hello", usage=usage)), limits=(LIMIT,))
        reserved = []
        for _ in range(30):
            await world.post(messages=messages)
            step = next(step for step in world.records.steps if step.verdict == "reserved")
            reserved.append(step.values["tokens"] - 100)
        assert reserved[0] < 300
        assert reserved == sorted(reserved)
        assert 600 <= reserved[-1] <= 600 * 1.12
        assert world.records.steps[2].values["factor"] > 2
        # Another model, another tokenizer.
        await world.post(messages=messages, model="other")
        assert world.records.steps[2].values["tokens"] - 100 == reserved[0]

    run(body())


def test_what_was_learned_makes_a_request_wait_and_never_impossible() -> None:
    async def body() -> None:
        text = "plain words of a prompt that is long enough " * 20
        messages = [{"role": "user", "content": text}]
        usage = {"prompt_tokens": 800, "completion_tokens": 3, "total_tokens": 803}
        limit = Limit("tokens", "tokens", 900)
        world = ChatWorld(
            clock=(clock := ManualClock()),
            primary=answers(completion("hello", usage=usage)),
            limits=(limit,),
        )
        for _ in range(12):
            assert (await world.post(messages=messages, max_tokens=50)).status == 200
            await world.charging.drain(1)
            clock.advance(61.0)
        assert (await world.post(messages=messages * 2, max_tokens=50)).status == 200

    run(body())


def test_events_of_a_provider_that_reports_at_every_step_settle_at_the_last() -> None:
    async def body() -> None:
        pieces = [ROLE]
        for count in range(1, 21):
            usage = {"prompt_tokens": 12, "completion_tokens": count, "total_tokens": 12 + count}
            choice = {"index": 0, "delta": {"content": "a "}, "finish_reason": None}
            pieces.append(event({"choices": [choice], "usage": usage}))
        world = ChatWorld(primary=streams(*pieces, STOP, DONE))
        exchange = await world.post(stream=True)
        assert b"usage" not in exchange.body
        assert (await world.usage()).used == 32

    run(body())
