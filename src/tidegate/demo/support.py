"""What does a support desk's MCP server look like?

Lives here: the rules of valid calls, and the two strict tools over a store. Does not live here:
the money (support_store), how tools are served (tools.server).
"""

import ctypes
import os
import subprocess
import sys
import unicodedata
from decimal import Decimal
from typing import Annotated, Any

from anyio import to_thread
from pydantic import AfterValidator, Field

from tidegate.demo.support_store import Order, SupportStore
from tidegate.tools import (
    ExactNumber,
    StrictInput,
    StrictOutput,
    StrictTool,
    ToolFailure,
    ToolResult,
    strict_tool,
)

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


# Published beside the rule that is enforced, of which it is the part that a pattern can say in
# every dialect: no caller's library knows what each character looks like.
_UNSEEN = (
    r"\x00-\x20\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff"
)
_TEN_SEEN = f"^(?:[{_UNSEEN}]*[^{_UNSEEN}]){{10}}"

# The length is said beside the pattern for callers whose `$` also stands before a last newline.
CustomerId = Annotated[
    str, Field(pattern=r"^CUST-[0-9]{5}$", max_length=10, description="CUST- and five digits")
]
Money = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]{2}$", description="two decimal places")]


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


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
        Field(
            min_length=10,
            max_length=2_000,
            description="at least ten visible characters",
            json_schema_extra={"pattern": _TEN_SEEN},
        ),
        AfterValidator(_ten_visible),
    ]
    # Left out or a key: a null would be a key that got lost on its way.
    refund_id: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9_-]{1,64}$",
            description="of your choice; a call that is repeated with it pays once",
            json_schema_extra=_without_default,
        ),
    ] = ""


class CustomerRecord(StrictOutput):
    """One customer, and what can still be refunded."""

    customer_id: CustomerId
    name: str
    email: str
    balance: Money


class RefundReceipt(StrictOutput):
    """What was refunded, and what is left of the balance right after it."""

    customer_id: CustomerId
    refunded: Money
    balance: Money


REPLAYED = "tidegate/replayed"
"""In the `_meta` of a result: true if an earlier call with the same refund_id did the work."""


def support_tools(store: SupportStore, *, leak: bool = False) -> list[StrictTool[Any]]:
    """The two tools; `leak` makes a refund write to stdout in every way a program can."""

    @strict_tool(annotations={"readOnly": True})
    async def get_customer_record(call: CustomerQuery) -> CustomerRecord:
        """Look up a customer's name, e-mail address and refundable balance."""
        found = await to_thread.run_sync(store.customer, call.customer_id)
        if found is None:
            raise ToolFailure("customer not found")
        return CustomerRecord(
            customer_id=found.customer_id,
            name=found.name,
            email=found.email,
            balance=_money(found.balance_cents),
        )

    @strict_tool(output=RefundReceipt, annotations={"destructive": True, "idempotent": False})
    async def trigger_refund(call: RefundOrder) -> ToolResult:
        """Refund part of a customer's balance."""
        if leak:
            _write_junk()
        order = Order(
            call.customer_id, int(call.amount.scaleb(2)), call.reason, call.refund_id or None
        )
        booked = await to_thread.run_sync(store.refund, order)
        receipt = RefundReceipt(
            customer_id=order.customer_id,
            refunded=_money(booked.cents),
            balance=_money(booked.left_cents),
        )
        return ToolResult(receipt, {REPLAYED: True} if booked.replayed else {})

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


__all__ = [
    "REPLAYED",
    "CustomerQuery",
    "CustomerRecord",
    "RefundOrder",
    "RefundReceipt",
    "SupportStore",
    "support_tools",
]
