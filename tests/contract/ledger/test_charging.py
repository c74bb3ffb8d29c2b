"""Exactly one end for every reservation, whatever happens to the request that made it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import EACH_KIND, SCOPE, one, run, tokens
from tidegate.errors import RateLimited, RequestExceedsLimit, StoreUnavailable
from tidegate.gateway.charge import Charging, new_owner
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, NeverFits, Refused, Usage
from tidegate.testing.clock import ManualClock

LIMIT = tokens(100)
ASKED = one(LIMIT, 60)
Event = tuple[str, str, Need | None]


class ScriptedLedger:
    """Takes its time over each call, and writes down what really happened."""

    def __init__(self, *, pauses: int = 2, fails: bool = False) -> None:
        self.events: list[Event] = []
        self.held: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self._pauses = pauses
        self._fails = fails

    degraded = False
    clock_ahead_s = 0.0

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        await self._work()
        # Like every ledger: cancelled before this line nothing is held.
        self.held.add(reservation_id)
        return Granted(reservation_id)

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        return await self._end("settle", reservation_id, need)

    async def release(self, reservation_id: str, owner: str) -> bool:
        return await self._end("release", reservation_id, None)

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        raise NotImplementedError

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        raise NotImplementedError

    async def _end(self, how: str, reservation_id: str, need: Need | None) -> bool:
        await self._work()
        if self._fails:
            raise StoreUnavailable
        self.events.append((how, reservation_id, need))
        self.held.discard(reservation_id)
        return True

    async def _work(self) -> None:
        for _ in range(self._pauses):
            await pause()
        await self.gate.wait()


async def pause() -> None:
    """Let the loop turn once."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


async def served(charging: Charging, passed: list[str]) -> None:
    """A request: something before its commit, something after it."""
    async with charging.reserved("r", ASKED, 30.0) as charge:
        passed.append("reserved")
        await pause()
        charge.commit()
        passed.append("committed")
        charge.use(Need(10, 1))
        await pause()
        charge.use(Need(10, 33))
        passed.append("finished")


async def cancelled_after(
    turns: int, again_after: int | None, request: Coroutine[object, object, None]
) -> bool:
    """Run `request`, cancel it after `turns` turns of the loop (and once more); was it cut?"""
    task = asyncio.ensure_future(request)
    for _ in range(turns):
        await pause()
    task.cancel()
    if again_after is not None:
        for _ in range(again_after):
            await pause()
        task.cancel()
    await asyncio.wait((task,))
    return task.cancelled()


@pytest.mark.parametrize("again_after", [None, 0, 1, 2, 3])
def test_a_request_cancelled_at_any_await_ends_its_reservation_once(
    again_after: int | None,
) -> None:
    async def body() -> None:
        outcomes = set()
        for turns in range(14):
            ledger, passed = ScriptedLedger(), list[str]()
            charging = Charging(ledger, "me")
            was_cut = await cancelled_after(turns, again_after, served(charging, passed))
            assert await charging.drain(1.0) == 0
            assert ledger.held == set()
            assert ledger.events == expected(passed)
            outcomes.add((was_cut, len(passed)))
        # The sweep met a cut before the reservation, between each pair of steps, and none.
        assert {(True, 0), (True, 1), (True, 2), (False, 3)} <= outcomes

    def expected(passed: list[str]) -> list[Event]:
        if not passed:
            return []
        if "committed" not in passed:
            return [("release", "r", None)]
        return [("settle", "r", Need(10, 33 if "finished" in passed else 1))]

    asyncio.run(body())


def test_the_settlement_outlives_a_request_cancelled_twice_while_it_waits_for_it() -> None:
    async def body() -> None:
        ledger = ScriptedLedger(pauses=0)
        charging = Charging(ledger, "me")

        async def request() -> None:
            async with charging.reserved("r", ASKED, 30.0) as charge:
                charge.commit()
                charge.use(Need(10, 33))
                ledger.gate.clear()

        task = asyncio.ensure_future(request())
        while not charging.pending:
            await pause()
        for _ in range(2):
            task.cancel()
            await pause()
        assert task.cancelled()
        assert (charging.pending, ledger.events) == (1, [])
        ledger.gate.set()
        assert await charging.drain(1.0) == 0
        assert ledger.events == [("settle", "r", Need(10, 33))]

    asyncio.run(body())


def test_a_failure_before_commit_is_released_and_after_it_settled() -> None:
    async def failing(charging: Charging, commits: bool) -> None:  # noqa: FBT001
        async with charging.reserved("r", ASKED, 30.0) as charge:
            if commits:
                charge.commit()
                charge.use(Need(1, 2))
            raise LookupError

    async def body() -> None:
        ledger = ScriptedLedger()
        charging = Charging(ledger, "me")
        for commits in (False, True):
            with pytest.raises(LookupError):
                await failing(charging, commits)
        assert ledger.events == [("release", "r", None), ("settle", "r", Need(1, 2))]
        assert (charging.settled, charging.released, charging.unconfirmed) == (1, 1, 0)

    asyncio.run(body())


def test_a_committed_request_of_unknown_usage_stands_at_its_estimate() -> None:
    async def body() -> None:
        ledger = ScriptedLedger()
        charging = Charging(ledger, "me")
        async with charging.reserved("r", ASKED, 30.0) as charge:
            charge.commit()
        assert ledger.events == [("settle", "r", None)]

    asyncio.run(body())


def test_without_limits_the_store_is_not_asked() -> None:
    async def body() -> None:
        ledger = ScriptedLedger()
        async with Charging(ledger, "me").reserved("r", (), 30.0) as charge:
            charge.commit()
        assert (ledger.events, ledger.held) == ([], set())

    asyncio.run(body())


def test_a_store_that_fails_at_the_end_does_not_fail_the_request() -> None:
    async def body() -> None:
        charging = Charging(ScriptedLedger(fails=True), "me")
        for commits in (False, True):
            async with charging.reserved("r", ASKED, 30.0) as charge:
                if commits:
                    charge.commit()
        assert (charging.unconfirmed, charging.settled, charging.released) == (2, 0, 0)

    asyncio.run(body())


def test_a_slow_store_holds_neither_the_request_nor_the_shutdown() -> None:
    async def body() -> None:
        ledger = ScriptedLedger()
        charging = Charging(ledger, "me")
        async with charging.reserved("r", ASKED, 30.0):
            ledger.gate.clear()
        assert charging.pending == 1
        assert await charging.drain(0.01) == 1
        ledger.gate.set()
        assert await charging.drain(1.0) == 0

    asyncio.run(body())


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_refusal_names_the_limit_and_its_numbers(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm#13898: limit, scope, size, used and requested, of the limit that refused."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        charging = Charging(ledger, new_owner())
        async with charging.reserved("a", ASKED, 30.0):
            with pytest.raises(RateLimited) as caught:
                async with charging.reserved("b", ASKED, 30.0):
                    raise AssertionError("never entered")
            with pytest.raises(RequestExceedsLimit) as never:
                async with charging.reserved("c", one(LIMIT, 101), 30.0):
                    raise AssertionError("never entered")
        error = caught.value
        assert (error.limit, error.scope, error.cap, error.used, error.requested) == (
            "tokens",
            "tenant",
            100,
            60,
            60,
        )
        assert error.retry_after_s == 60.25
        assert (never.value.limit, never.value.cap, never.value.requested) == ("tokens", 100, 101)
        assert (await ledger.usage(LIMIT, SCOPE)).free == 100

    run(kind, tmp_path, body)


@pytest.mark.parametrize("kind", EACH_KIND)
def test_after_a_request_its_client_finds_the_books_settled(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        charging = Charging(ledger, new_owner())
        for turn in range(3):
            async with charging.reserved(f"r{turn}", ASKED, 30.0) as charge:
                charge.commit()
                charge.use(Need(10, 3))
        assert await ledger.usage(LIMIT, SCOPE) == Usage(39, 0, 61, 60.25)

    run(kind, tmp_path, body)


def test_each_boot_has_an_owner_of_its_own() -> None:
    make: Callable[[], str] = new_owner
    assert len({make() for _ in range(100)}) == 100
