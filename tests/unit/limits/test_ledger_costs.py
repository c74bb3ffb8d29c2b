"""What a decision costs in the file, counted in steps of SQLite's machine: no clock, no noise."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tidegate.limits import Charge, Granted, Limit, Need, Refused, books
from tidegate.limits.ledger import MAX_AMOUNT
from tidegate.limits.sqlite_rows import SQLiteRows

pytestmark = pytest.mark.full

S = 1_000_000
START_US = 1_700_000_000 * S
LEASE_US = 600 * S
WIDE = Limit("tokens", "tokens", MAX_AMOUNT)


class Books:
    """One file in memory; each call is a transaction, as if it came alone."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.rows = SQLiteRows(db)
        self.now_us = START_US
        db.execute("BEGIN")
        self.rows.create()
        db.execute("COMMIT")

    def reserve(self, one_id: str, *charges: Charge) -> object:
        return self._in_one(
            lambda: books.reserve(
                self.rows, (one_id, "me"), charges, now_us=self.now_us, lease_us=LEASE_US
            )
        )

    def settle(self, one_id: str, need: Need | None = None) -> object:
        return self._in_one(lambda: books.settle(self.rows, one_id, "me", need))

    def steps(self, call: Callable[[], object]) -> int:
        """Instructions of SQLite's virtual machine that `call` needs."""
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        self._db.set_progress_handler(step, 1)
        call()
        self._db.set_progress_handler(None, 1)
        return count

    def _in_one(self, run: Callable[[], object]) -> object:
        self._db.execute("BEGIN IMMEDIATE")
        self.rows.begin()
        result = run()
        self.rows.finish(self.now_us)
        self._db.execute("COMMIT")
        return result


@contextmanager
def opened() -> Iterator[Books]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        yield Books(db)


def cost_beside(live: int, amount: int = 1, cap: int = MAX_AMOUNT) -> tuple[int, int, int]:
    """Steps of a grant, a refusal and a settlement beside `live` reservations of one tenant."""
    limit = Limit("tokens", "tokens", cap)
    full = Limit("full", "tokens", max(1, live))
    with opened() as ledger:
        for place in range(live):
            both = (Charge(limit, "tenant:a", 1), Charge(full, "tenant:a", 1))
            assert isinstance(ledger.reserve(f"live-{place}", *both), Granted)
            ledger.now_us += 59 * S // max(live, 240)
        ledger.reserve("first", Charge(limit, "tenant:a", amount))
        ledger.settle("first")
        wanted = Charge(limit, "tenant:a", amount)
        grant = ledger.steps(lambda: ledger.reserve("one", wanted))
        end = ledger.steps(lambda: ledger.settle("one", Need(1, 1)))
        refusals = (Charge(full, "tenant:a", 1), wanted)
        verdict = ledger.reserve("no", *refusals) if live else None
        assert live == 0 or isinstance(verdict, Refused)
        refusal = ledger.steps(lambda: ledger.reserve("no", *refusals)) if live else 0
    return grant, end, refusal


def test_a_decision_costs_the_same_however_much_is_live() -> None:
    """R7. No sum over requests: 3,000 live reservations in 240 buckets cost what none do."""
    grant, end, _ = cost_beside(0)
    busy_grant, busy_end, refusal = cost_beside(3_000)
    assert busy_grant <= 1.5 * grant
    assert busy_end <= 1.5 * end
    assert refusal <= 1.5 * busy_grant


@pytest.mark.full
def test_a_decision_costs_the_same_beside_twenty_thousand_live_ones() -> None:
    """R7; beside a hundred thousand it is measured by bench/bench_limits.py."""
    grant, end, _ = cost_beside(0)
    busy_grant, busy_end, refusal = cost_beside(20_000)
    assert busy_grant <= 1.5 * grant
    assert busy_end <= 1.5 * end
    assert refusal <= 1.5 * busy_grant


def test_ten_thousand_tokens_cost_what_one_token_does() -> None:
    """alisaifee/limits #268: a limit of a million tokens is no million rows."""
    assert cost_beside(200, amount=10_000, cap=1_000_000) == cost_beside(
        200, amount=1, cap=1_000_000
    )


def test_idle_tenants_cost_the_active_one_nothing() -> None:
    """maximhq/bifrost #4851: no reset path walks over all limits."""

    def cost(idle: int) -> int:
        with opened() as ledger:
            for tenant in range(idle):
                ledger.reserve(f"idle-{tenant}", Charge(WIDE, f"tenant:{tenant}", 1))
                ledger.settle(f"idle-{tenant}")
            ledger.now_us += 30 * S
            ledger.reserve("first", Charge(WIDE, "tenant:active", 1))
            return ledger.steps(lambda: ledger.reserve("one", Charge(WIDE, "tenant:active", 1)))

    assert cost(2_000) <= 1.2 * cost(0)


def test_the_first_request_after_a_burst_does_not_pay_for_all_of_it() -> None:
    """What a burst leaves is one row a quarter of a second, and dead leases in portions."""
    with opened() as ledger:
        ledger.reserve("warm", Charge(WIDE, "tenant:a", 1))
        usual = ledger.steps(lambda: ledger.reserve("usual", Charge(WIDE, "tenant:a", 1)))
        for place in range(5_000):
            ledger.reserve(f"burst-{place}", Charge(WIDE, "tenant:a", 1))
            ledger.now_us += 10_000
        ledger.now_us += LEASE_US
        after = ledger.steps(lambda: ledger.reserve("after", Charge(WIDE, "tenant:a", 1)))
        # At most 64 leases and 241 buckets of work, whatever the burst was.
        assert after <= usual + 64 * 3 * usual + 241 * 40
