"""Do two processes with one balance, killed at any moment, pay every order exactly once?

Real servers on pipes, in one folder. The test knows every order and every answer, fills the
balance up from outside, and at the end the file must agree with it to the cent.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.wire.test_task1_stdio import HELLO, READY, WAIT_S, call, environment, lines
from tidegate.demo import support_store
from tidegate.demo.support_store import SupportStore
from tidegate.tools import ToolFailure

CUSTOMER, START_CENTS = "CUST-10001", 25_000


@dataclass(frozen=True)
class Order:
    key: str
    cents: int

    @property
    def line(self) -> bytes:
        arguments = {
            "customer_id": CUSTOMER,
            "amount": self.cents / 100,
            "reason": f"refund of {self.cents} cents",
            "refund_id": self.key,
        }
        return lines(call(self.key, "trigger_refund", arguments))

    def asked_of(self, store: SupportStore) -> dict[str, Any] | None:
        """The receipt, asked for once more without a server; None if it is refused."""
        order = support_store.Order(CUSTOMER, self.cents, f"refund of {self.cents} cents", self.key)
        try:
            booked = store.refund(order)
        except ToolFailure:
            return None
        return receipt(booked.cents, booked.left_cents)


def receipt(cents: int, left_cents: int) -> dict[str, Any]:
    return {
        "customer_id": CUSTOMER,
        "refunded": f"{cents / 100:.2f}",
        "balance": f"{left_cents / 100:.2f}",
    }


class Desk:
    """One server process; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self) -> None:
        with (self._folder / "stderr.txt").open("ab") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tidegate", "mcp", "serve"),
                cwd=self._folder,
                env=environment(unbuffered=False),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.write(lines(HELLO, READY))
        assert (await self.answer())["id"] == "hello"

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            read: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return read

    async def kill(self) -> list[dict[str, Any]]:
        """What it had answered before it was killed, whole lines."""
        self.process.kill()
        return await self._rest()

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert await self._rest() == []
        assert self.process.returncode == 0

    async def _rest(self) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            rest = await self.process.stdout.read()
            await self.process.wait()
        return [json.loads(line) for line in rest.split(b"\n")[:-1]]


@dataclass
class Race:
    """Two desks over one file, and what the test knows about it."""

    folder: Path
    desks: tuple[Desk, Desk]
    random: Random
    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    replayed: int = 0
    topped_cents: int = 0
    wins: Counter[int] = field(default_factory=Counter)

    def order(self, cents: int) -> Order:
        made = Order(f"key-{len(self.orders)}", cents)
        self.orders[made.key] = made
        return made

    def note(self, answer: dict[str, Any]) -> bool:
        """Whether it was paid; a receipt that was given once is the receipt for ever."""
        result, key = answer["result"], answer["id"]
        if result.get("isError"):
            assert "larger than the customer's balance" in result["content"][0]["text"]
            assert key not in self.receipts
            return False
        first = self.receipts.setdefault(key, result["structuredContent"])
        assert result["structuredContent"] == first
        assert first["refunded"] == f"{self.orders[key].cents / 100:.2f}"
        self.replayed += "_meta" in result
        return True

    def fill_up_to(self, cents: int) -> None:
        """The balance becomes `cents`; nobody is asked meanwhile."""
        with sqlite3.connect(self.folder / "tidegate-support.db", timeout=WAIT_S) as books:
            (there,) = books.execute(
                "select balance_cents from customers where id = ?", (CUSTOMER,)
            ).fetchone()
            books.execute("update customers set balance_cents = ? where id = ?", (cents, CUSTOMER))
        books.close()
        self.topped_cents += cents - there

    async def contest(self) -> None:
        """Both want more than half: one is paid."""
        self.fill_up_to(100)
        first = self.random.randrange(2)
        orders = [self.order(60), self.order(60)]
        for at in (first, 1 - first):
            self.desks[at].write(orders[at].line)
        paid = [self.note(await desk.answer()) for desk in self.desks]
        assert sum(paid) == 1
        self.wins[paid.index(True)] += 1

    async def one_order_twice(self) -> None:
        """The client asks both desks the same: it is paid once, and both say so."""
        self.fill_up_to(100)
        order, before = self.order(60), self.replayed
        for desk in self.desks:
            desk.write(order.line)
        assert [self.note(await desk.answer()) for desk in self.desks] == [True, True]
        assert self.replayed == before + 1

    async def killed(self) -> None:
        """One desk is killed somewhere in its orders; all that it did not answer is asked again."""
        self.fill_up_to(200)
        shares: Sequence[list[Order]] = [
            [self.order(self.random.choice((20, 30, 50))) for _ in range(6)] for _ in self.desks
        ]
        for desk, share in zip(self.desks, shares, strict=True):
            desk.write(b"".join(order.line for order in share))
        victim, other = self.random.sample((0, 1), 2)
        answers = [await self.desks[victim].answer() for _ in range(self.random.randrange(4))]
        answers += await self.desks[victim].kill()
        answers += [await self.desks[other].answer() for _ in shares[other]]
        for answer in answers:
            self.note(answer)
        await self.desks[victim].start()
        answered = {answer["id"] for answer in answers}
        for order in shares[victim]:
            if order.key not in answered or order.key in self.receipts:
                # Unknown, or paid: asking again must not pay again.
                self.desks[victim].write(order.line)
                self.note(await self.desks[victim].answer())

    def balance_agrees(self) -> None:
        books = sqlite3.connect(self.folder / "tidegate-support.db")
        rows = books.execute("select refund_id, cents, left_cents from refunds").fetchall()
        (left,) = books.execute(
            "select balance_cents from customers where id = ?", (CUSTOMER,)
        ).fetchone()
        assert books.execute("pragma integrity_check").fetchall() == [("ok",)]
        books.close()
        assert {key: receipt(cents, after) for key, cents, after in rows} == self.receipts
        assert len(rows) == len(self.receipts)
        assert left >= 0
        assert min(after for _, _, after in rows) >= 0
        assert left + sum(cents for _, cents, _ in rows) == START_CENTS + self.topped_cents


@asynccontextmanager
async def two_desks(folder: Path) -> AsyncIterator[tuple[Desk, Desk]]:
    desks = Desk(folder), Desk(folder)
    try:
        # Both find no file, and make it.
        await asyncio.gather(*(desk.start() for desk in desks))
        yield desks
        await asyncio.gather(*(desk.end() for desk in desks if desk.process.returncode is None))
    finally:
        for desk in desks:
            if desk.process.returncode is None:
                await desk.kill()


@pytest.mark.full
def test_two_processes_race_one_balance_and_die_and_the_file_is_right(tmp_path: Path) -> None:
    async def body() -> None:
        async with two_desks(tmp_path) as desks:
            race = Race(tmp_path, desks, Random(7))  # noqa: S311 - a game, to be played again
            for _ in range(8):
                await race.contest()
            await race.one_order_twice()
            orders = [race.order(20) for _ in range(10)]
            race.fill_up_to(100)
            for desk in desks:
                desk.write(b"".join(order.line for order in orders))
            race.note(await desks[0].answer())
            for answer in await desks[0].kill() + await desks[1].kill():
                race.note(answer)
        store = SupportStore(str(tmp_path / "tidegate-support.db"))
        paid = set()
        for order in orders:
            again = order.asked_of(store)
            if again is not None:
                paid.add(order.key)
                assert race.receipts.setdefault(order.key, again) == again
        store.close()
        assert len(paid) == 5
        race.balance_agrees()

    asyncio.run(body())


@pytest.mark.full
def test_two_processes_race_one_balance_a_thousand_times_and_are_killed(tmp_path: Path) -> None:
    async def body() -> None:
        async with two_desks(tmp_path) as desks:
            race = Race(tmp_path, desks, Random(1_000))  # noqa: S311 - a game, to be played again
            for number in range(1_000):
                await (race.one_order_twice() if number % 5 == 4 else race.contest())
                if number % 25 == 24:
                    await race.killed()
        race.balance_agrees()
        assert race.replayed >= 200
        assert set(race.wins) == {0, 1}, "a race that one side always wins is none"

    asyncio.run(body())
