"""Money is reserved before the call, settled at the price of who served, and never for failures.

Entries 5, 15 and 16 of the list of public bugs in accounting: BerriAI/litellm PRs #29191 and
#29193 (a guessed output larger than the cap), #26672 (a budget enforced after the fact), PR
#37734 (a partial stream priced at nothing).
"""

import asyncio
from dataclasses import replace

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    Asked,
    answers,
    completion,
    event,
    silent,
    streams,
)
from tests.app.chat_world import OFF, PRINCIPAL, ChatWorld
from tests.app.test_front import error_of
from tests.app.virtual import run_timeless as run
from tidegate.limits.ledger import Limit, scope_key
from tidegate.limits.prices import Price
from tidegate.routing.plan import Deadlines
from tidegate.transport.upstream import Failure

# A micro-unit a token, and ten.
CHEAP, DEAR = Price(1_000_000, 1_000_000, 500_000), Price(10_000_000, 10_000_000, 5_000_000)
PRICES = {"primary": {"*": CHEAP}, "backup": {"*": DEAR}}
BUDGET = Limit("budget", "money_micros", 10_000, window_s=86_400.0)
QUICK = Deadlines(first_token_s=0.08, idle_s=0.08, total_s=2.0, stream_total_s=2.0)


def world(**options: object) -> ChatWorld:
    settings = {"limits": (BUDGET,), "prices": PRICES, "masking": OFF} | options
    return ChatWorld(**settings)  # type: ignore[arg-type]


def test_twenty_calls_of_four_mills_on_a_budget_of_ten_are_two() -> None:
    """Entry 15, BerriAI/litellm #26672."""

    async def body() -> None:
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            await go.wait()
            usage = {"prompt_tokens": 5, "completion_tokens": 3_990}
            await answers(completion("hello", usage=usage))(asked)

        # About 0.004 each: an estimated prompt and 3,990 tokens of answer, a micro-unit a token.
        made = world(primary=script, targets=("primary",))
        asked = [asyncio.ensure_future(made.post(max_tokens=3_990)) for _ in range(20)]
        await made.providers.until(2)
        go.set()
        statuses = sorted(one.status for one in await asyncio.gather(*asked))
        assert statuses == [200, 200] + [429] * 18
        assert len(made.providers.asked) == 2
        assert (await made.usage(BUDGET)).used == 2 * 3_995
        await made.assert_clean(ends=20)

    run(body())


@pytest.mark.parametrize("how", ["the client leaves", "the provider breaks off"])
def test_a_part_of_a_stream_is_not_free(how: str) -> None:
    """Entry 16, BerriAI/litellm PR #37734."""

    async def body() -> None:
        cut = how == "the provider breaks off"
        script = streams(ROLE, HEL, LO, then=Failure.RESET if cut else None, hangs=not cut)
        made = world(primary=script)
        async with made.exchange(stream=True) as exchange:
            while b"lo" not in exchange.body:
                assert await exchange.chunk()
            if cut:
                await exchange.read()
            else:
                await exchange.disconnect()
        used = (await made.usage(BUDGET)).used
        assert used > 0
        settled = made.records.steps[-1].values
        assert settled["money_micros"] == used == made.metric("cost_micros_total", tenant="acme")
        assert used == settled["input_tokens"] + settled["output_tokens"]
        assert settled["counted"] is True
        await made.assert_clean(ends=1)

    run(body())


def test_the_worst_price_is_reserved_and_that_of_who_served_is_paid() -> None:
    async def body() -> None:
        limits = (replace(BUDGET, cap=2_000),)
        served = answers(completion("hello"))
        made = world(primary=served, backup=served, limits=limits)
        exchange = await made.post(max_tokens=150)
        assert exchange.status == 200
        reserved = next(step for step in made.records.steps if step.verdict == "reserved")
        tokens = reserved.values["tokens"]
        assert reserved.values["money_micros"] == tokens * 10
        assert (await made.usage(limits[0])).used == 43
        # 10 * (prompt + 200) is more than a budget of 2,000 ever holds.
        refused = await made.post(max_tokens=200)
        assert (refused.status, error_of(refused)["code"]) == (413, "gateway.request_exceeds_limit")
        assert "budget" in error_of(refused)["message"]

    run(body())


def test_after_a_failover_the_backups_price_is_paid_and_the_failed_attempt_is_free() -> None:
    async def body() -> None:
        made = world(
            primary=answers(ERROR_OBJECT, 500),
            backup=answers(completion("hello")),
        )
        await made.post()
        assert (await made.usage(BUDGET)).used == 430
        assert made.metric("cost_micros_total", tenant="acme") == 430
        assert made.metric("abandoned_tokens_total") == 0
        await made.assert_clean(ends=1)

    run(body())


def test_what_an_abandoned_attempt_took_is_the_operators_and_not_the_tenants() -> None:
    async def body() -> None:
        made = world(
            primary=silent, backup=answers(completion("hello")), deadlines=QUICK, max_in_flight=5
        )
        exchange = await made.post(messages=[{"role": "user", "content": "many words " * 50}])
        assert exchange.header("x-tidegate-attempts") == "primary:timeout,backup:ok"
        assert (await made.usage(BUDGET)).used == 430
        late, good = [step for step in made.records.steps if step.stage == "attempt"]
        assert late.values["abandoned_tokens"] > 100
        assert late.values["abandoned_micros"] == late.values["abandoned_tokens"]
        assert good.values["abandoned_tokens"] is None
        abandoned = made.metric("abandoned_cost_micros_total", provider="primary")
        assert abandoned == late.values["abandoned_micros"]
        assert made.metric("abandoned_tokens_total", provider="backup") == 0
        assert made.metric("cost_micros_total") == 430

    run(body())


@pytest.mark.parametrize(
    "script",
    [
        streams(ROLE, event({"choices": [], "usage": {"prompt_tokens": 77}}), then=Failure.RESET),
        streams(ROLE, event({"choices": [], "usage": {"prompt_tokens": 77}}), event(ERROR_OBJECT)),
    ],
    ids=["cut", "error event"],
)
def test_a_stream_that_broke_before_its_content_is_the_operators(script: object) -> None:
    async def body() -> None:
        made = world(primary=script, backup=streams(ROLE, HEL, event({"choices": [{"index": 0,
            "delta": {}, "finish_reason": "stop"}]}), DONE))  # fmt: skip
        assert (await made.post(stream=True)).status == 200
        assert made.metric("abandoned_tokens_total", provider="primary") == 77
        assert made.metric("abandoned_cost_micros_total", provider="primary") == 77
        await made.assert_clean(ends=1)

    run(body())


def test_cached_tokens_have_a_price_of_their_own() -> None:
    async def body() -> None:
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 60},
        }
        made = world(primary=answers(completion("hello", usage=usage)))
        await made.post()
        assert (await made.usage(BUDGET)).used == 40 + 30 + 10

    run(body())


def test_the_model_that_is_priced_is_the_one_that_is_sent() -> None:
    async def body() -> None:
        prices = {"primary": {"*": DEAR, "small": CHEAP}}
        made = world(
            primary=answers(completion("hello")),
            prices=prices,
            targets=("primary",),
            models={"m": "small"},
        )
        await made.post()
        assert (await made.usage(BUDGET)).used == 43
        await made.post(model="other")
        assert (await made.usage(BUDGET)).used == 43 + 430

    run(body())


def test_an_answer_without_a_maximum_is_admitted_on_a_small_budget() -> None:
    """Entry 5, BerriAI/litellm PRs #29191 and #29193, for money and for tokens."""

    async def body() -> None:
        small = (replace(BUDGET, cap=100), Limit("few", "tokens", 100))
        made = world(primary=answers(completion("hello")), limits=small, targets=("primary",))
        exchange = await made.post(max_tokens=None)
        assert exchange.status == 200
        assert [(await made.usage(limit)).used for limit in small] == [43, 43]
        # While the first runs its guess takes all there is: the second waits for the truth.
        await made.assert_clean(ends=1)

    run(body())


def test_without_a_price_money_is_neither_counted_nor_shown() -> None:
    async def body() -> None:
        made = world(primary=answers(completion("hello")), limits=(), prices={})
        await made.post()
        steps = [step for step in made.records.steps if step.stage == "limits"]
        assert all(step.values.get("money_micros") is None for step in steps)
        assert made.metric("cost_micros_total") == 0

    run(body())


def test_a_limit_on_money_admits_nothing_whose_price_is_not_known() -> None:
    async def body() -> None:
        prices = {"primary": {"*": CHEAP}}
        made = world(primary=answers(completion("hello")), prices=prices)
        assert (await made.post()).status == 413
        assert made.providers.asked == []

    run(body())


def test_who_is_refused_for_money_is_told_when_it_fits() -> None:
    async def body() -> None:
        made = world(primary=answers(completion("hello")), limits=(replace(BUDGET, cap=1_500),))
        assert (await made.post(max_tokens=100)).status == 200
        used = await made.ledger.usage(made.policy.limits.limits[0], scope_key("tenant", PRINCIPAL))
        assert used.used == 43
        refused = await made.post(max_tokens=144)
        assert refused.status == 429
        message = error_of(refused)["message"]
        assert "'budget' (per tenant): 43 of 1500 used" in message
        assert int(refused.header("retry-after") or 0) > 86_000

    run(body())
