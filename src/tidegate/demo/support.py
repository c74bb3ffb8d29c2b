"""What does a support desk's MCP server look like?

Lives here: customers, refunds and their rules, on SQLite, and the two strict tools over them.
Does not live here: how tools are served (tools.server).
"""

import ctypes
import os
import sqlite3
import subprocess
import sys
import unicodedata
from decimal import Decimal
from threading import Lock
from typing import Annotated, Any

from anyio import to_thread
from pydantic import AfterValidator, Field

from tidegate.tools import ExactNumber, StrictInput, StrictTool, ToolFailure, strict_tool

_CUSTOMERS = (
    ("CUST-10001", "Jane Doe", "jane@example.com", 25_000),
    ("CUST-10002", "Luis Ortega", "luis@example.com", 120_050),
    ("CUST-10003", "Mei Lin", "mei@example.com", 0),
)
_SCHEMA = """
create table if not exists customers (
  id text primary key, name text not null, email text not null, balance_cents integer not null
    check (balance_cents >= 0)
) strict;
create table if not exists refunds (
  id integer primary key, customer text not null references customers (id),
  cents integer not null, reason text not null
) strict;
"""


class SupportStore:
    """Customers and refunds in the SQLite database `path`; the default is a private memory.

    Every method is one transaction and safe to call from any thread.
    """

    def __init__(self, path: str = ":memory:") -> None:
        self._lock = Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        self._db.executescript(_SCHEMA)
        self._db.executemany("insert or ignore into customers values (?, ?, ?, ?)", _CUSTOMERS)

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    def customer(self, customer_id: str) -> dict[str, Any] | None:
        """The record, with the balance as a decimal string; None for an unknown id."""
        with self._lock:
            row = self._db.execute(
                "select id, name, email, balance_cents from customers where id = ?", (customer_id,)
            ).fetchone()
        if row is None:
            return None
        return {"customer_id": row[0], "name": row[1], "email": row[2], "balance": _money(row[3])}

    def refund(self, customer_id: str, cents: int, reason: str) -> str:
        """Books a refund and returns the balance left; raises ToolFailure if it cannot be."""
        with self._lock:
            # The write lock comes first: two refunds must not both read the old balance.
            self._db.execute("begin immediate")
            try:
                left = self._book(customer_id, cents, reason)
            except ToolFailure:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")
        return _money(left)

    def _book(self, customer_id: str, cents: int, reason: str) -> int:
        row = self._db.execute(
            "select balance_cents from customers where id = ?", (customer_id,)
        ).fetchone()
        if row is None:
            raise ToolFailure("customer not found")
        left: int = row[0] - cents
        if left < 0:
            raise ToolFailure("the refund is larger than the customer's balance")
        self._db.execute("update customers set balance_cents = ? where id = ?", (left, customer_id))
        self._db.execute(
            "insert into refunds (customer, cents, reason) values (?, ?, ?)",
            (customer_id, cents, reason),
        )
        return left


# Separators, controls, format characters, marks that need a letter; and letters without a shape.
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"})
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def _two_places(amount: Decimal) -> Decimal:
    # By its digits: every operation on it would round a long literal first.
    _, digits, exponent = amount.as_tuple()
    places = -exponent if isinstance(exponent, int) else 0
    if places > 2 and any(digits[-(places - 2) :]):
        raise ValueError("at most two decimal places")
    return amount


def _ten_visible(reason: str) -> str:
    visible = sum(
        character not in _FILLERS and unicodedata.category(character) not in _INVISIBLE
        for character in reason
    )
    if visible < 10:
        raise ValueError("at least ten visible characters")
    return reason


CustomerId = Annotated[str, Field(pattern=r"^CUST-[0-9]{5}$", description="CUST- and five digits")]


class CustomerQuery(StrictInput):
    """Which customer."""

    customer_id: CustomerId


class RefundOrder(StrictInput):
    """How much goes back to whom, and why."""

    customer_id: CustomerId
    amount: Annotated[
        ExactNumber,
        Field(gt=0, le=10_000, description="at most two decimal places"),
        AfterValidator(_two_places),
    ]
    reason: Annotated[
        str,
        Field(min_length=10, max_length=2_000, description="at least ten visible characters"),
        AfterValidator(_ten_visible),
    ]


def support_tools(store: SupportStore, *, leak: bool = False) -> list[StrictTool[Any]]:
    """The two tools; `leak` makes a refund write to stdout in every way a program can."""

    @strict_tool
    async def get_customer_record(call: CustomerQuery) -> dict[str, Any]:
        """Look up a customer's name, e-mail address and refundable balance."""
        record = await to_thread.run_sync(store.customer, call.customer_id)
        if record is None:
            raise ToolFailure("customer not found")
        return record

    @strict_tool
    async def trigger_refund(call: RefundOrder) -> dict[str, Any]:
        """Refund part of a customer's balance."""
        if leak:
            _write_junk()
        cents = int(call.amount.scaleb(2))
        left = await to_thread.run_sync(store.refund, call.customer_id, cents, call.reason)
        return {"customer_id": call.customer_id, "refunded": _money(cents), "balance": left}

    return [get_customer_record, trigger_refund]


def _write_junk() -> None:
    """What careless code and its dependencies do; all of it must end on stderr."""
    print("junk: print without flush", end="")  # noqa: T201 - the leak that is shown
    os.write(1, b"junk: os.write\n")
    code = "print('junk: child process')"
    subprocess.run([sys.executable, "-c", code], check=False)  # noqa: S603 - our own constant
    ctypes.CDLL(None).puts(b"junk: C puts")


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
