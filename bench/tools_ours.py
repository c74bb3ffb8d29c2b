"""Which two tools are measured by bench_tools.py, as anybody would write them with the kit?"""

from typing import Any

from pydantic import Field

from bench.tools_world import CUSTOMER, record, refund
from tidegate.tools import StrictInput, ToolServer, strict_tool
from tidegate.tools.strict import ExactNumber


class Who(StrictInput):
    """Whose record."""

    customer_id: str = Field(pattern=CUSTOMER)


class Refund(StrictInput):
    """How much to whom, and why."""

    customer_id: str = Field(pattern=CUSTOMER)
    amount: ExactNumber = Field(gt=0, le=10000)
    reason: str = Field(min_length=10)


@strict_tool
async def get_customer_record(call: Who) -> dict[str, Any]:
    """The record of a customer."""
    return record(call.customer_id)


@strict_tool
async def trigger_refund(call: Refund) -> dict[str, Any]:
    """Pays back."""
    return refund(call.customer_id, float(call.amount))


server = ToolServer([get_customer_record, trigger_refund], name="bench", errors="spec")
