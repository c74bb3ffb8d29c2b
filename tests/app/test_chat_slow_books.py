"""A store that is slow to end a reservation holds nobody beyond the total (R11)."""

import pytest

from tests.app.chat_upstreams import answers, completion, silent
from tests.app.chat_world import ChatWorld
from tests.app.test_chat_waits import GRACE_S, TIMES, TOTAL_S, Timed
from tests.app.virtual import run_virtual
from tidegate.gateway.pause import pause
from tidegate.limits import MemoryLedger
from tidegate.limits.ledger import Need
from tidegate.testing.clock import ManualClock


class SlowEnds(MemoryLedger):
    """Reserves at once; every end takes two seconds."""

    async def settle(self, reservation_id: str, owner: str, used: Need | None) -> None:
        await pause(2.0)
        await super().settle(reservation_id, owner, used)

    async def release(self, reservation_id: str, owner: str) -> None:
        await pause(2.0)
        await super().release(reservation_id, owner)


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_a_slow_release_does_not_hold_an_error_beyond_the_total(kind: str) -> None:
    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock,
            ledger=SlowEnds(clock),
            primary=silent,
            targets=("primary",),
            deadlines=TIMES,
        )
        exchange = await world.post(stream=kind == "stream")
        assert exchange.status in (502, 504)
        assert timed.now_s <= TOTAL_S + GRACE_S
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


def test_a_slow_settlement_does_not_hold_the_answer() -> None:
    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock, ledger=SlowEnds(clock), primary=answers(completion("x")), deadlines=TIMES
        )
        async with world.exchange() as exchange:
            assert await exchange.chunk()
            assert timed.now_s == 0.0
            await exchange.read()
        assert (await world.usage()).used == 43

    clock = ManualClock()
    run_virtual(clock, body())
