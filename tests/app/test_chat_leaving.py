"""A client that leaves: whenever it does, nothing is left behind and nobody is blamed."""

import asyncio
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    BANG,
    DONE,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    answers,
    completion,
    silent,
    streams,
)
from tests.app.chat_world import LIMIT, MASKED, PATH, ChatWorld, request, run
from tests.app.stepping import cancel_at
from tests.app.test_chat_bodies import streamed, whole, world_of
from tests.app.test_front import JSON, KEYED
from tidegate.limits.sqlite import SQLiteLedger
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import STREAM_HEAD, ScriptedUpstream, chunk_bytes, steps
from tidegate.transport.upstream import Failure

BACKUP = answers(completion("from backup"))
BEFORE: dict[str, tuple[Script, bool]] = {
    "before the head of a stream": (silent, True),
    "after the head, before content": (streams(ROLE, hangs=True), True),
    "a plain answer in work": (silent, False),
}


@pytest.mark.parametrize(("script", "streaming"), BEFORE.values(), ids=BEFORE)
def test_leaving_before_anything_left_costs_no_tokens_and_tries_nobody_else(
    script: Script,
    streaming: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=script, backup=BACKUP)
        async with world.exchange(stream=streaming) as exchange:
            asked = await world.providers.until(1)
            await exchange.disconnect()
        assert asked.gone.is_set()
        assert exchange.status == 0
        assert world.providers.order == ["primary"]
        assert (await world.usage()).used == 0
        assert world.charging.settled == 1  # as a request: who always leaves is limited as well
        assert world.records.outcomes == ["cancelled"]
        assert world.records.ends[0].snapshot().status == 0
        assert world.metric("attempts_total", provider="primary", result="cancelled") == 1
        assert world.metric("requests_total", outcome="cancelled", route="default") == 1
        await world.assert_clean(ends=1)

    run(body())


def test_leaving_during_the_second_attempt_is_noted_against_that_one() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(ERROR_OBJECT, 500), backup=silent)
        async with world.exchange() as exchange:
            await world.providers.until(2)
            await exchange.disconnect()
        attempts = [step for step in world.records.steps if step.stage == "attempt"]
        assert [(a.values["provider"], a.verdict, a.values["status"]) for a in attempts] == [
            ("primary", "server_error", 500),
            ("backup", "cancelled", None),
        ]

    run(body())


def test_leaving_in_the_middle_is_settled_by_what_was_delivered() -> None:
    async def body() -> None:
        world = ChatWorld(primary=streams(ROLE, HEL, LO, hangs=True), backup=BACKUP)
        async with world.exchange(stream=True) as exchange:
            while b"lo" not in exchange.body:
                await exchange.chunk()
            await exchange.disconnect()
        assert world.providers.asked[0].gone.is_set()
        used = (await world.usage()).used
        assert 5 < used < 12  # the prompt and a few tokens: neither nothing nor the 100 reserved
        assert world.charging.settled == 1
        assert world.records.outcomes == ["cancelled"]
        assert world.records.ends[0].snapshot().status == 200
        attempt, settled = world.records.steps[-2:]
        assert (attempt.verdict, attempt.values["status"]) == ("cancelled", 200)
        assert settled.verdict == "settle"
        assert world.metric("tokens_total", tenant="acme") == used
        await world.assert_clean(ends=1)

    run(body())


def test_leaving_while_the_body_is_sent_reads_no_more_of_it() -> None:
    async def body() -> None:
        world = ChatWorld(primary=BACKUP)
        headers = [KEYED, JSON]
        async with world.client.exchange("POST", PATH, headers=headers, body=None) as exchange:
            exchange.feed(b'{"model":')
            await world.post(b"{")
            assert world.gate.held_bytes == 9
            await exchange.disconnect()
        assert world.records.outcomes == ["gateway.invalid_request", "cancelled"]
        await world.assert_clean(ends=2)

    run(body())


def test_clients_that_leave_never_open_the_breaker_nor_close_it() -> None:
    async def body() -> None:
        breaker = BreakerSettings(consecutive=2, open_s=60.0)
        scripts = [answers(ERROR_OBJECT, 500), silent, silent, answers(ERROR_OBJECT, 500)]
        world = ChatWorld(primary=scripts, backup=BACKUP, breaker=breaker)
        await world.post()
        for number in (3, 4):
            async with world.exchange() as exchange:
                await world.providers.until(number)
                await exchange.disconnect()
        assert world.state() is State.CLOSED
        await world.post()
        assert world.state() is State.OPEN

    run(body())


KINDS: dict[str, tuple[dict[str, Any], dict[str, Script]]] = {
    "plain": ({}, {"primary": answers(completion("hello"))}),
    "stream": ({"stream": True}, {"primary": streams(ROLE, HEL, LO, STOP, USAGE, DONE)}),
    "failover": (
        {"stream": True},
        {
            "primary": streams(ROLE, then=Failure.RESET),
            "backup": streams(ROLE, HEL, LO, STOP, USAGE, DONE),
        },
    ),
    "cut": (
        {"stream": True},
        {"primary": streams(ROLE, BANG, LO, then=Failure.RESET)},
    ),
    "refused": ({}, {"primary": answers(ERROR_OBJECT, 400)}),
    "all failed": ({}, {"primary": answers(b"", 500), "backup": answers(b"", 500)}),
    "malformed body": ({"messages": []}, {}),
}


async def turn() -> None:
    """One suspension."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: future.done() or future.set_result(None))
    await future


async def left_at(
    world: ChatWorld, fields: dict[str, Any], at: int, times: int = 1
) -> tuple[bool, list[Any]]:
    """Whether the request got to that suspension, and the messages its client was handed."""
    handed: list[Any] = []

    async def send(message: Any) -> None:
        # As a socket whose buffer is full: each send suspends once.
        handed.append(message)
        await turn()

    data = request(**fields)
    parts = [(data[:20], True), (data[20:], False)]

    async def receive() -> Any:
        await turn()
        chunk, more = parts.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": more}

    scope = world.exchange(**fields)._scope
    hit = await cancel_at(world.front(scope, receive, send), at, times=times)
    return hit, handed


@pytest.mark.parametrize("times", [1, 2, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_at_any_await_of_the_path_leaves_nothing_behind(kind: str, times: int) -> None:
    async def body() -> None:
        fields, scripts = KINDS[kind]
        at, hit = 0, True
        outcomes = set()
        while hit:
            at += 1
            world = ChatWorld(masking=MASKED, **scripts)
            hit, handed = await left_at(world, fields, at, times)
            assert len(world.records.ends) == len(world.records.begun) == 1
            await world.assert_clean(ends=1)
            (outcome,) = world.records.outcomes
            outcomes.add(outcome)
            assert world.charging.settled + world.charging.released <= 1
            # The tenant pays from the moment in which the answer begins to leave; for a plain
            # answer from the moment in which the provider begins it.
            began = bool(handed) and handed[0]["status"] == 200
            attempts = [step for step in world.records.steps if step.stage == "attempt"]
            begun = bool(attempts) and attempts[-1].values["status"] == 200
            pays = began or (begun and kind == "plain")
            assert ((await world.usage(LIMIT)).used > 0) == pays
            whole = began and len(handed) > 1 and not handed[-1].get("more_body", False)
            assert not hit or outcome == "cancelled" or whole or not began
            assert world.state_or_none() in (None, State.CLOSED)
        assert at > 4
        assert "cancelled" in outcomes
        assert len(outcomes) == 2

    run(body())


def test_leaving_at_any_await_with_sockets_and_a_database(tmp_path: Any) -> None:
    async def body() -> None:
        from tidegate.clock import SystemClock  # noqa: PLC0415 - only here

        ledger = SQLiteLedger(tmp_path / "limits.db", SystemClock(), wait_s=WAIT_S)
        await ledger.open()
        for script, fields in (
            (whole(completion("hello")), {}),
            (streamed(ROLE + HEL + LO + STOP + USAGE + DONE, cut=400), {"stream": True}),
        ):
            async with world_of([script], ledger=ledger) as (world, upstream, _):
                at, hit = 0, True
                while hit:
                    at += 1
                    hit, _handed = await left_at(world, fields, at)
                    await world.assert_clean(ends=at)
                    transport: Any = world.transport
                    await upstream.until(
                        lambda u=upstream, t=transport: u.open_connections == t.idle_connections
                    )
                assert at > 4
        await ledger.close()

    run(body())


@pytest.mark.parametrize("how", ["before the head", "mid-stream", "plain"])
def test_the_upstreams_socket_is_closed_at_once(how: str) -> None:
    async def body() -> None:
        gate = asyncio.Event()
        scripts = {
            "before the head": steps(gate),
            "mid-stream": steps(STREAM_HEAD, chunk_bytes(ROLE + HEL), gate),
            "plain": steps(gate),
        }
        async with ScriptedUpstream(scripts[how]) as upstream, world_of([]) as (world, _, _two):
            provider = world.policy.providers["primary"]
            object.__setattr__(provider, "base_url", f"{upstream.url}/v1")
            async with world.exchange(stream=how != "plain") as exchange:
                await upstream.until(lambda: len(upstream.requests) == 1)
                if how == "mid-stream":
                    await exchange.chunk()
                await exchange.disconnect()
            await upstream.until(lambda: upstream.open_connections == 0)
            transport: Any = world.transport
            assert transport.idle_connections == 0
            await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("begun", [True, False])
def test_our_own_cut_at_the_drain_limit_is_no_fault_of_the_target(*, begun: bool) -> None:
    async def body() -> None:
        script = streams(ROLE, HEL, hangs=True) if begun else silent
        world = ChatWorld(primary=script)
        async with world.exchange(stream=True) as exchange:
            if begun:
                await exchange.chunk()
            else:
                await world.providers.until(1)
            world.inboxes.cut()
            await exchange.read()
        code = "gateway.upstream_interrupted" if begun else "gateway.overloaded"
        assert world.records.outcomes == [code]
        attempt = next(s for s in world.records.steps if s.stage == "attempt")
        assert attempt.verdict == "cancelled"
        assert world.state() is State.CLOSED
        await world.assert_clean(ends=1)

    run(body())
