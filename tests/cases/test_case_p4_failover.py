"""Does the router do what the cases of pillar 4 say when providers fail, over real sockets?

One function for each case, named by its id; tests.casebook calls and cites them.
"""
# ruff: noqa: N802 - the id of a case has capitals

import asyncio
import json
from collections.abc import Sequence

import pytest

from tests.casebook import answers, behaviors
from tests.casebook.client import ask_with_sdk, read
from tests.casebook.seen import WIDEN, Exchange, check, equal, short
from tests.casebook.upstreams import Answerer, Conversation
from tests.casebook.waiting import passing
from tests.casebook.world import World, lacks, play, provider_key, within
from tidegate.testing.sockets import RawClient, request_bytes

pytestmark = pytest.mark.full
# A breaker that only failures in a row can open.
IN_A_ROW = {"ratio": 1.0, "min_results": 1000}


def served_by(exchange: Exchange, provider: str, what: str) -> None:
    check(exchange.status == 200, f"{what}: status {exchange.status} {short(exchange.text)}")
    check(not exchange.chat.errors, f"{what}: {short(exchange.chat.errors)}")
    name = exchange.header("x-tidegate-provider")
    check(name == provider, f"{what}: served by {name}")


def test_case_P4_10() -> None:
    async def body() -> None:
        async with World() as world:
            ways: list[tuple[str, Answerer, bool]] = [
                ("before the head", behaviors.hang, True),
                ("mid-stream", behaviors.deltas(["one two "], end="hangs"), True),
                ("non-stream", half_an_answer, False),
            ]
            for what, answerer, stream in ways:
                world.behave("primary", answerer)
                await leave(world, what, stream=stream)
            check(not world.calls("backup"), f"{len(world.calls('backup'))} calls of the backup")
            got = await world.metric(
                "tidegate_attempts_total",
                lambda value: value >= 3,
                provider="primary",
                result="cancelled",
            )
            total = world.gateway.metric("tidegate_attempts_total")
            check(got == total == 3, f"{got:g} of {total:g} attempts count as cancelled")
            check(await world.breaker() == "closed", f"breaker {await world.breaker()}")

    play(body)


async def half_an_answer(conversation: Conversation) -> None:
    data = json.dumps(answers.completion("half")).encode()
    await conversation.head(200, [("Content-Type", "application/json")], length=len(data))
    await conversation.send(data[:30])
    await conversation.until_gone()


async def leave(world: World, what: str, *, stream: bool) -> None:
    """Ask, wait until the upstream is at it, close; the upstream must see its own end."""
    before = len(world.calls("primary"))
    request = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    sent = world.sent("/v1/chat/completions", request)
    async with await RawClient.connect("127.0.0.1", world.gateway.port) as client:
        await client.send(request_bytes("POST", sent.path, headers=sent.headers, body=sent.body))
        await world.upstreams.until(lambda: len(world.calls("primary")) > before)
        if what == "mid-stream":
            await client.head()
            await client.chunk()
    call = world.calls("primary")[-1]
    left_s = asyncio.get_running_loop().time()
    await within(9.0, f"{what}: the upstream's end", gone(world))
    took_s = (call.gone_s or 0.0) - left_s
    check(took_s < 3.0 * WIDEN, f"{what}: closed after {took_s:.1f} s")


async def gone(world: World) -> None:
    await world.upstreams.until(lambda: world.calls("primary")[-1].gone_s is not None)


def test_case_P4_18() -> None:
    async def body() -> None:
        await asyncio.gather(obeys_retry_after(), counts_neither_way())

    play(body)


async def obeys_retry_after() -> None:
    async with World(route={"breaker": {"consecutive": 3, **IN_A_ROW}}) as world:
        world.behave("primary", "429 with Retry-After 30")
        for at in range(1, 6):
            served_by(await world.chat(), "backup", f"request {at}")
        asked = len(world.calls("primary"))
        check(asked <= 2, f"primary was asked {asked} times within its Retry-After")


async def counts_neither_way() -> None:
    route = {"breaker": {"consecutive": 3, "open_s": 60, **IN_A_ROW}, "cooling": {"on_429_s": 0}}
    async with World(route=route) as world:
        world.behave("primary", "429")
        for at in range(1, 6):
            served_by(await world.chat(), "backup", f"429 number {at}")
        check(await world.breaker() == "closed", "429 opened the breaker")
        check(len(world.calls("primary")) == 5, f"primary got {len(world.calls('primary'))}")
        world.behave("primary", "alternates 500 and 429")
        for at in range(1, 6):
            served_by(await world.chat(), "backup", f"alternating number {at}")
        check(await world.breaker() == "open", "three 500 apart from 429 did not open the breaker")
        served_by(await world.chat(), "backup", "with the breaker open")
        check(len(world.calls("primary")) == 10, f"primary got {len(world.calls('primary'))}")


def test_case_P4_19() -> None:
    async def body() -> None:
        async with World(route={"breaker": {"consecutive": 3, "open_s": 60}}) as world:
            world.behave("primary", "400 context_length_exceeded")
            for at in range(1, 11):
                exchange = await world.chat()
                check(exchange.status == 400, f"request {at}: status {exchange.status}")
                check(world.reached() == at, f"request {at}: {world.reached()} upstream calls")
            check(await world.breaker() == "closed", f"breaker {await world.breaker()}")
            world.behave("primary", "ok")
            served_by(await world.chat(), "primary", "the good request")
            check(world.reached() == 11, f"{world.reached()} upstream requests")

    play(body)


def test_case_P4_20() -> None:
    async def body() -> None:
        breaker = {"consecutive": 1, "open_s": 0.5, **IN_A_ROW}
        route = {"breaker": breaker, "deadlines": {"first_token_s": 6.0}}
        async with World(route=route) as world:
            world.behave("primary", "500")
            served_by(await world.chat(), "backup", "the request that opens the breaker")
            check(await world.breaker() == "open", f"breaker {await world.breaker()}")
            await world.metric("tidegate_breaker_state", lambda v: v == 1.0, provider="primary")
            world.behave("primary", behaviors.hang)
            exchanges = await world.chats(50)
            for exchange in exchanges:
                served_by(exchange, "backup", "one of fifty")
            probes = len(world.calls("primary")) - 1
            check(probes == 1, f"primary saw {probes} requests")
            times_s = sorted(exchange.ended_s - exchange.started_s for exchange in exchanges)
            check(times_s[48] < 5.9, f"the 49th answer took {times_s[48]:.2f} s")
            check(times_s[49] >= 5.9, f"the probe took only {times_s[49]:.2f} s")

    play(body)


def test_case_P4_22() -> None:
    async def body() -> None:
        none = [
            '200 with "choices": []',
            '200 with {"error":{"message":"x"}}',
            "200 text/html",
            "200 with empty body",
            "200 with cut JSON",
        ]
        route = {"breaker": {"consecutive": 5, "open_s": 0.5, **IN_A_ROW}}
        async with World(route=route) as world:
            for words in none:
                check(await world.breaker() == "closed", f"before {words!r}: not closed")
                world.behave("primary", words)
                served_by(await world.chat(), "backup", words)
            check(await world.breaker() != "closed", "the breaker counted no failures")
            await world.metric("tidegate_breaker_state", lambda v: v == 1.0, provider="primary")
            world.behave("primary", '200 with content "" and finish_reason "content_filter"')
            last = await world.chat()
            served_by(last, "primary", "content_filter")
            choice = last.json["choices"][0]
            equal(choice["finish_reason"], "content_filter", "finish_reason")
            equal(choice["message"]["content"], "", "content")
            check(await world.breaker() == "closed", "the answer did not count as one")

    play(body)


def test_case_P4_23() -> None:
    async def body() -> None:
        async with World(route={"breaker": {"consecutive": 100, **IN_A_ROW}}) as world:
            slow_backup = behaviors.after(0.3, behaviors.deltas(["from ", "backup "], every_s=0.1))
            world.behave("backup", slow_backup)
            for words in (
                '200, first event {"error":…}',
                "200 text/event-stream, closes without an event",
                "comments only for 1 s, then an error event",
            ):
                world.behave("primary", words)
                exchange = await world.chat(stream=True)
                served_by(exchange, "backup", words)
                equal(exchange.chat.text(), "from backup ", f"{words}: text")
                lacks(["org-4417", "still working", "error"], exchange.text, words)
                first_s = world.calls("backup")[-1].writes[0][0]
                check(exchange.head_s >= first_s, f"{words}: the head came before the first chunk")

    play(body)


def test_case_P4_24() -> None:
    async def body() -> None:
        async with World(limit="100000 tokens / 60 s") as world:
            world.behave("primary", "sends 3 deltas, then closes the socket")
            request = {
                "model": "m",
                "stream": True,
                "max_tokens": 5000,
                "messages": [{"role": "user", "content": "hi"}],
            }
            (exchange,) = await ask_with_sdk(world.gateway.port, world.key(), request)
            equal(exchange.sdk_text, "one two three ", "text of the SDK")
            raised = [kind.__name__ for kind in type(exchange.client_error).__mro__]
            check("APIError" in raised, f"the SDK raised {raised[0]}")
            interrupted(exchange)
            check(not world.calls("backup"), "backup was started")
            check(world.reached() == 1, f"{world.reached()} upstream requests")
            settled = await world.settled()
            check(3 <= settled <= 60, f"{settled} tokens settled for three short deltas")

    play(body)


def interrupted(exchange: Exchange) -> None:
    errors = exchange.chat.errors
    check(len(errors) == 1, f"{len(errors)} error events")
    error = errors[0]["error"]
    check(str(error["code"]).startswith("gateway."), f"code {error['code']}")
    equal(error["request_id"], exchange.header("x-request-id"), "request_id")
    check(exchange.chat.done == 0, "a [DONE]")
    check(not exchange.chat.finishes(), f"finish reasons {exchange.chat.finishes()}")


SILENCE_S = 6.0
SILENT = (
    "accepts TCP and says nothing",
    "sends one header byte per second",
    "sends the JSON body one byte per second",
)


def test_case_P4_26() -> None:
    async def body() -> None:
        breaker = {"consecutive": 1000, **IN_A_ROW}
        route = {"deadlines": {"first_token_s": SILENCE_S}, "breaker": breaker}
        async with World(route=route) as world:
            world.behave("primary", behaviors.in_turn(*map(behaviors.behavior, SILENT)))
            await in_time(world, await world.chats(3))
            before = world.gateway.open_files()
            await in_time(world, await world.chats(100))
            still = [call for call in world.calls("primary") if call.gone_s is None]
            check(not still, f"{len(still)} sockets of the primary are still open")
            running = await world.metric("tidegate_requests_in_flight", lambda v: v == 0)
            check(running == 0, f"{running:g} requests in flight")
            # What stays open are kept-alive sockets to the backup, and those are counted.
            pooled = world.upstreams.open_connections
            left = world.gateway.open_files() - before
            check(left <= pooled + 5, f"{left} more descriptors, {pooled} of them pooled")

    play(body)


async def in_time(world: World, exchanges: Sequence[Exchange]) -> None:
    for exchange in exchanges:
        served_by(exchange, "backup", "a silent primary")
        took_s = exchange.ended_s - exchange.started_s
        check(-0.1 <= took_s - SILENCE_S <= 3.0 * WIDEN, f"backup's answer after {took_s:.2f} s")
    calls = world.calls("primary")
    # An upstream sees its end a moment after the client has its answer.
    await world.upstreams.until(lambda: all(call.gone_s is not None for call in calls))
    for call in calls:
        held_s = (call.gone_s or 0.0) - call.at_s
        check(
            -0.5 <= held_s - SILENCE_S <= 3.0 * WIDEN,
            f"primary's socket closed after {held_s:.2f} s",
        )


def test_case_P4_28() -> None:
    async def body() -> None:
        await asyncio.gather(shares_the_budget(waits_s=0.0), shares_the_budget(waits_s=4.0))

    play(body)


async def shares_the_budget(*, waits_s: float) -> None:
    """`waits_s`: the body of the request comes that late, which counts against the request."""
    route = {"deadlines": {"total_s": 12.0, "first_token_s": 10.0}}
    async with World(route=route) as world:
        world.behave("primary", behaviors.hang)
        world.behave("backup", "needs 0.5 s")
        sent = world.sent(
            "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        )
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        async with await RawClient.connect("127.0.0.1", world.gateway.port) as client:
            data = request_bytes("POST", sent.path, headers=sent.headers, body=sent.body)
            await client.send(data[:-10])
            await passing(waits_s)
            await client.send(data[-10:])
            exchange = Exchange(sent)
            await within(60.0, "the answer", read(client, exchange))
        took_s = loop.time() - started_s
        check(exchange.status == 200, f"waiting {waits_s} s: status {exchange.status}")
        check(len(world.calls("backup")) == 1, "backup was not tried")
        check(took_s < 15.0, f"waiting {waits_s} s: answer after {took_s:.1f} s")


def test_case_P4_36() -> None:
    async def body() -> None:
        async with World() as world:
            world.behave("primary", "503")
            client = [
                ("OpenAI-Organization", "org-of-the-client"),
                ("X-Api-Key", "key-of-the-client"),
                ("Cookie", "sid=of-the-client"),
            ]
            served_by(await world.chat(headers=client), "backup", "the request")
            for name in ("primary", "backup"):
                calls = world.calls(name)
                check(len(calls) == 1, f"{name} got {len(calls)} requests")
                sent = [v for n, v in calls[0].headers if n.lower() == "authorization"]
                equal(sent, [f"Bearer {provider_key(name)}"], f"{name}'s Authorization")
                heads = "\n".join(f"{n}: {v}" for n, v in calls[0].headers).lower()
                lacks(["of-the-client", "openai-organization", "x-api-key"], heads, name)
                lacks([world.key()], heads, name)

    play(body)
