"""Do limits hold what the cases of pillar 4 say, over real sockets?

One function for each case, named by its id; tests.casebook calls and cites them.
"""
# ruff: noqa: N802 - the id of a case has capitals

import asyncio
import sqlite3
import statistics
from contextlib import closing
from pathlib import Path

import pytest

from tests.casebook import answers, behaviors
from tests.casebook.client import ask, ask_with_sdk
from tests.casebook.seen import WIDEN, Exchange, check, equal, short
from tests.casebook.upstreams import Answerer, Conversation
from tests.casebook.waiting import passing
from tests.casebook.world import World, play, statuses, used_of, within

pytestmark = pytest.mark.full
WORDS_5000 = "gateway limits count prompts too " * 800


def held(release: asyncio.Event, then: Answerer = behaviors.ok) -> Answerer:
    """Answers when released, so that nothing is settled before."""

    async def answer(conversation: Conversation) -> None:
        await release.wait()
        await then(conversation)

    return answer


async def refused_first(asked: list["asyncio.Task[Exchange]"], count: int) -> list[Exchange]:
    """The first `count` answers; the others still wait at the upstream."""
    found: list[Exchange] = []
    for next_one in asyncio.as_completed(asked):
        found.append(await within(60.0, f"{count} refusals", next_one))
        if len(found) == count:
            break
    return found


def refused_alike(exchanges: list[Exchange], status: int, world: World) -> None:
    equal([e.status for e in exchanges], [status] * len(exchanges), "statuses")
    check(len({e.error_code for e in exchanges}) == 1, f"codes {[e.error_code for e in exchanges]}")
    check(world.reached() == 0, f"{world.reached()} requests reached the upstream")


def test_case_P4_01() -> None:
    async def body() -> None:
        async with World(providers=["primary"], limit="10000 tokens / 60 s") as world:
            release = asyncio.Event()
            world.behave("primary", held(release))
            asked = [asyncio.ensure_future(world.chat(max_tokens=990)) for _ in range(50)]
            refused = await refused_first(asked, 40)
            equal(statuses(refused), {429: 40}, "statuses while ten are held")
            await world.upstreams.until(lambda: world.reached() >= 10)
            check(world.reached() == 10, f"{world.reached()} reached the upstream")
            release.set()
            equal(statuses(await asyncio.gather(*asked)), {200: 10, 429: 40}, "statuses")
            check(world.reached() == 10, f"{world.reached()} reached the upstream")

    play(body)


def test_case_P4_02() -> None:
    async def body() -> None:
        async with World(limit="100 tokens / 60 s") as world:
            both = await world.chat(max_tokens=1, max_completion_tokens=10000)
            one = await world.chat(max_completion_tokens=10000)
            refused_alike([both, one], 413, world)

    play(body)


def test_case_P4_04() -> None:
    async def body() -> None:
        async with World(limit="1000 tokens / 60 s") as world:
            exchange = await world.chat(n=20, max_tokens=100)
            refused_alike([exchange], 413, world)
            message = exchange.json["error"]["message"]
            numbers = [int(word) for word in message.replace(",", " ").split() if word.isdigit()]
            check(any(2000 <= number < 2100 for number in numbers), short(message))

    play(body)


def test_case_P4_05() -> None:
    async def body() -> None:
        async with World(limit="1000 tokens / 60 s") as world:
            prompt = await world.chat(text=WORDS_5000, max_tokens=1)
            function = {"name": "f", "description": WORDS_5000, "parameters": {"type": "object"}}
            tools = await world.chat(
                max_tokens=1, tools=[{"type": "function", "function": function}]
            )
            refused_alike([prompt, tools], 413, world)
            fits = await world.chat(max_tokens=1)
            check(fits.status == 200, f"a small request: status {fits.status}")

    play(body)


def test_case_P4_06() -> None:
    async def body() -> None:
        async with World(providers=["primary"], limit="5000 tokens / 60 s") as world:
            release = asyncio.Event()
            usage = {"prompt_tokens": 20, "completion_tokens": 180, "total_tokens": 200}
            world.behave("primary", held(release, behaviors.says("ok", usage=usage)))
            asked = [asyncio.ensure_future(world.chat()) for _ in range(20)]
            await refused_first(asked, 16)
            await world.upstreams.until(lambda: world.reached() >= 1)
            check(1 <= world.reached() <= 4, f"{world.reached()} ran at once")
            release.set()
            served = statuses(await asyncio.gather(*asked)).get(200, 0)
            settled = await world.settled(200 * served)
            check(settled == 200 * served, f"{settled} tokens settled for {served} answers")
            shown = (world.gateway.run("check", "--show")).lower()
            check("default_output" in shown, "no key of the configuration names the default")

    play(body)


def test_case_P4_08() -> None:
    async def body() -> None:
        async with World(providers=["primary"], limit="1000 tokens / 60 s") as world:
            world.behave("primary", with_usage)
            first = await world.chat(stream=True, max_tokens=900)
            check(first.status == 200, f"first: status {first.status} {short(first.text)}")
            once = await world.settled()
            check(27 <= once <= 33, f"{once} tokens after a stream with usage 30")
            world.behave("primary", behaviors.deltas(["word "] * 40))
            second = await world.chat(stream=True, max_tokens=900)
            check(second.status == 200, f"second: status {second.status} {short(second.text)}")
            twice = await world.settled(once + 1) - once
            check(20 <= twice <= 80, f"{twice} tokens for 40 deltas without usage")
            over = await world.chat(max_tokens=980)
            check(over.status == 429, f"status {over.status}")
            used, _ = used_of(over)
            check(abs(used - once - twice) <= 2, f"{used} in the window, {once + twice} settled")

    play(body)


async def with_usage(conversation: Conversation) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    last = answers.chunk({}, finish="stop") | {"choices": [], "usage": usage}
    stream = answers.stream(["thirty"], done=False) + answers.event(last) + b"data: [DONE]\n\n"
    await behaviors.play(conversation, stream, streamed=True)


def test_case_P4_11() -> None:
    async def body() -> None:
        config = {"limits": [{"name": "slots", "per": "tenant", "concurrent": 2}]}
        async with World(providers=["primary"], config=config) as world:
            ends = [asyncio.Event() for _ in range(2)]
            world.behave("primary", behaviors.in_turn(*(held_open(end) for end in ends)))
            streams = [asyncio.ensure_future(world.chat(stream=True)) for _ in range(2)]
            await world.upstreams.until(lambda: world.reached() == 2)
            third = await world.chat(stream=True)
            check(third.status == 429, f"third: status {third.status}")
            ends[0].set()
            await asyncio.wait(streams, return_when=asyncio.FIRST_COMPLETED)
            world.behave("primary", "sends 3 deltas, then closes the socket")
            again = await world.chat(stream=True)
            check(again.status == 200, f"after one ended: status {again.status}")
            # That stream crashed: its slot is free again, for one whose client will leave.
            world.behave("primary", behaviors.hang)
            leaving = asyncio.ensure_future(world.chat(stream=True))
            await world.upstreams.until(lambda: world.reached() == 4)
            leaving.cancel()
            await world.upstreams.until(lambda: world.calls("primary")[-1].gone_s is not None)
            world.behave("primary", "ok")
            last = await accepted(world)
            check(last.status == 200, f"after a cancelled one: status {last.status}")
            ends[1].set()
            await asyncio.gather(streams[0], streams[1])

    play(body)


async def accepted(world: World) -> Exchange:
    """The slot is freed by a task of its own, which may come a moment after the socket's end."""
    exchange = await world.chat(stream=True)
    for _ in range(40):
        if exchange.status != 429:
            break
        await passing(0.05)
        exchange = await world.chat(stream=True)
    return exchange


def held_open(end: asyncio.Event) -> Answerer:
    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [("Content-Type", "text/event-stream")], length=None)
        await conversation.piece(answers.event(answers.chunk({"content": "begun "})))
        await end.wait()
        await conversation.piece(answers.stream(["ended"]))
        await conversation.end()

    return answer


def test_case_P4_12() -> None:
    async def body() -> None:
        async with World(limit="50000 tokens / 60 s") as world:
            exchange = await world.chat(max_tokens=60000)
            refused_alike([exchange], 413, world)
            check(exchange.header("retry-after") is None, "a Retry-After")
            message = exchange.json["error"]["message"]
            check("case-limit" in message and "50000" in message, short(message))
            check("600" in message, f"no estimate in {short(message)}")
            took_s = exchange.ended_s - exchange.started_s
            check(took_s < 1.0 * WIDEN, f"answered after {took_s:.1f} s")

    play(body)


def test_case_P4_13() -> None:
    async def body() -> None:
        await asyncio.gather(shape_of_a_429(), obeying_it())

    play(body)


async def shape_of_a_429() -> None:
    async with World(providers=["primary"], limit="100 tokens / 60 s") as world:
        await use_up(world)
        await passing(10.0)
        exchange = await world.chat(max_tokens=45)
        check(exchange.status == 429, f"status {exchange.status}: {short(exchange.text)}")
        error = exchange.json["error"]
        check(error.get("type") == "rate_limit_error", f"type {error.get('type')}")
        check(error.get("code") == "gateway.rate_limited", f"code {error.get('code')}")
        after = exchange.header("retry-after") or ""
        check(after.isdigit() and 45 <= int(after) <= 51, f"Retry-After: {after or 'none'}")
        check(world.reached() == 1, f"{world.reached()} requests reached the upstream")


async def obeying_it() -> None:
    async with World(providers=["primary"], limit="100 tokens / 5 s") as world:
        await use_up(world)
        request = {"model": "m", "max_tokens": 45, "messages": [{"role": "user", "content": "hi"}]}
        port, key = world.gateway.port, world.key()
        tries = await ask_with_sdk(port, key, request, retries=1)
        equal([one.status for one in tries], [429, 200], "statuses of the SDK's tries")
        check(tries[-1].client_error is None, f"the SDK raised {tries[-1].client_error}")


async def use_up(world: World) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 90, "total_tokens": 100}
    world.behave("primary", behaviors.says("ok", usage=usage))
    first = await world.chat(max_tokens=90)
    check(first.status == 200, f"first: status {first.status} {short(first.text)}")
    await world.settled(100)


def test_case_P4_15() -> None:
    async def body() -> None:
        wait_s = 8.0
        config = {"store": {"url": "sqlite:///ledger.db", "wait_s": wait_s}}
        limit = "1000000 tokens / 60 s"
        async with World(providers=["primary"], limit=limit, config=config) as world:
            await world.chat(max_tokens=10)
            file = world.gateway.folder / "ledger.db"
            with closing(lock(file)) as writer:
                asked = asyncio.gather(*(world.chat(max_tokens=10) for _ in range(20)))
                await passing(2.0)
                writer.execute("rollback")
                short_lock = await within(60.0, "20 answers", asked)
            check(set(statuses(short_lock)) <= {200, 429}, f"2 s: {statuses(short_lock)}")
            reached = world.reached()
            with closing(lock(file)):
                asked = asyncio.gather(*(world.chat(max_tokens=10) for _ in range(20)))
                usual_s = await health_while(world, asked)
                long_lock = await within(wait_s * WIDEN, "20 answers", asked)
            equal(statuses(long_lock), {503: 20}, "30 s: statuses")
            codes = {exchange.error_code for exchange in long_lock}
            equal(sorted(map(str, codes)), ["gateway.store_unavailable"], "30 s: codes")
            took_s = max(exchange.ended_s - exchange.started_s for exchange in long_lock)
            check(took_s < wait_s * WIDEN, f"503 after {took_s:.1f} s")
            check(world.reached() == reached, "the upstream was called")
            check(usual_s < 0.1 * WIDEN, f"/healthz took {usual_s:.2f} s")

    play(body)


def lock(file: Path) -> sqlite3.Connection:
    """This process holds the write lock of the gateway's ledger."""
    writer = sqlite3.connect(file, timeout=5.0, isolation_level=None)
    writer.execute("begin immediate")
    return writer


async def health_while(world: World, asked: "asyncio.Future[list[Exchange]]") -> float:
    """What /healthz takes in the first second of a locked store: half of them take no longer.

    Not the slowest: the machine may stand still for a moment. A loop that waits for the lock
    answers nobody meanwhile.
    """
    sent = world.sent("/healthz", None, method="GET")
    took_s = []
    for _ in range(10):
        exchange = await ask(world.gateway.admin_port, sent)
        check(exchange.status == 200, f"/healthz: status {exchange.status}")
        took_s.append(exchange.ended_s - exchange.started_s)
        if asked.done():
            break
        await passing(0.1)
    return statistics.median(took_s)
