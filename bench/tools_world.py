"""What do the two tools of bench_tools.py do, whoever serves them?"""

from typing import Any

CUSTOMER = "^CUST-[0-9]{5}$"
RECORD: dict[str, Any] = {
    "customer_id": "CUST-00042",
    "name": "Ada Example",
    "tier": "gold",
    "balance": 120.5,
    "orders": [{"id": f"ORD-{n:04d}", "total": 19.99 + n} for n in range(3)],
}


def record(customer_id: str) -> dict[str, Any]:
    """What is known of a customer."""
    return {**RECORD, "customer_id": customer_id}


def refund(customer_id: str, amount: float) -> dict[str, Any]:
    """The receipt of a refund."""
    return {"customer_id": customer_id, "refunded": amount, "status": "done"}
