"""Who pays for a failure? The table "failure x client result x tenant charge", row by row.

A row says what the client gets, what the tenant is charged in tokens, what is noted for the
operator, and what it says about the health of the targets. Every row also ends exactly once: one
entry of the record, one count, one settlement or release (R12).
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.app.billing_table import BILLED, GOOD, GOOD_WHOLE, REPORT, TABLE, TOKENS, Row
from tests.app.chat_upstreams import (
    ERROR,
    ERROR_OBJECT,
    ROLE,
    Script,
    answers,
    completion,
    event,
    payloads,
    silent,
    streams,
)
from tests.app.chat_world import OFF, PRINCIPAL, ChatWorld
from tests.app.test_chat_limits import Degraded
from tests.app.test_chat_order import Down
from tests.app.test_chat_waits import TIMES
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.limits.ledger import Need
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure


def world_of(name: str, row: Row, clock: ManualClock) -> ChatWorld:
    options: dict[str, Any] = {"deadlines": TIMES, "masking": OFF, "limits": (TOKENS,)}
    if name == "store slow > 250 ms":
        options["ledger"] = Degraded(clock)
    world = ChatWorld(clock=clock, **(options | dict(row.options)), **row.scripts)
    if name == "store down":
        world.charging._ledger = Down(clock)
    if name == "our bug":
        world.policy = replace(world.policy, providers={})
    return world


@pytest.mark.parametrize("name", TABLE)
def test_each_row_of_the_table_of_charges(name: str) -> None:
    row = TABLE[name]

    async def body() -> None:
        world = world_of(name, row, clock)
        before = 0
        if name == "limit exceeded, fits later":
            assert (await world.post()).status == 200
            before = BILLED
        async with world.exchange(**row.fields) as exchange:
            if row.leave is None:
                await exchange.read()
            else:
                await row.leave(world, exchange)
        assert exchange.status == row.status
        assert {n: exchange.header(n) for n in row.headers} == row.headers
        assert world.records.outcomes[-1] == row.code
        told = payloads(exchange.body)[-1] if row.status == 200 and row.fields else None
        if row.status not in (0, 200):
            assert error_of(exchange)["code"] == row.code
        elif isinstance(told, dict) and row.code != "cancelled":
            assert told["error"]["code"] == row.code
        used = (await world.usage(world.policy.limits.limits[0])).used - before
        assert used in row.charged if isinstance(row.charged, range) else used == row.charged
        if not before:
            assert verdicts(world).items() >= row.verdicts.items()
        assert world.metric("abandoned_tokens_total") == row.abandoned
        settled = [step.values for step in world.records.steps if step.verdict == "settle"]
        assert [bool(step["counted"]) for step in settled] == [bool(row.counted)] * len(settled)
        assert world.metric("requests_total") == len(world.records.ends) == 1 + bool(before)
        if name != "store down":
            await world.assert_clean(ends=1 + bool(before))

    clock = ManualClock()
    run_virtual(clock, body())


def verdicts(world: ChatWorld) -> dict[str, tuple[int, int]]:
    """Successes and failures of each target."""
    seen = world.targets.snapshot(world.clock.monotonic_s())
    return {one.provider: (one.successes, one.failures) for one in seen}


def test_a_gateway_that_was_killed_leaves_a_lease_that_ends_at_its_estimate() -> None:
    """The row "gateway kill -9 mid-stream"; a late settlement corrects it."""

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=GOOD_WHOLE, limits=(TOKENS,))
        charges = world.policy.limits.charges(PRINCIPAL, route="default", need=Need(5, 100))
        await world.ledger.reserve("killed", "boot", charges, lease_s=30.0)
        clock.advance(31.0)
        await world.post()
        assert (await world.usage(TOKENS)).used == 105 + BILLED
        await world.ledger.settle("killed", "boot", Need(5, 2))
        assert (await world.usage(TOKENS)).used == 7 + BILLED

    clock = ManualClock()
    run_virtual(clock, body())


def test_no_attempt_but_the_one_that_served_is_ever_billed() -> None:
    """R13: three targets, a failure of each kind before the one that answers."""
    failures: list[Script] = [
        answers(ERROR_OBJECT, 500),
        answers(ERROR_OBJECT | REPORT, 503),
        streams(ROLE, event({"choices": [], **REPORT}), then=Failure.RESET),
        streams(ROLE, event({"choices": [], **REPORT}), ERROR),
        answers(completion("x", choices=[])),
        answers(ERROR_OBJECT | REPORT, 429),
        silent,
    ]

    async def body() -> None:
        for first in failures:
            for second in failures[:2]:
                world = ChatWorld(
                    clock=clock,
                    targets=("one", "two", "three"),
                    one=first,
                    two=second,
                    three=GOOD,
                    deadlines=replace(TIMES, stream_total_s=4.0),
                    limits=(TOKENS,),
                )
                exchange = await world.post(stream=True)
                assert exchange.header("x-tidegate-provider") == "three"
                assert len(world.providers.asked) == 3
                assert (await world.usage(TOKENS)).used == BILLED
                await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())
