"""May this call be made now, and who has used how much?

Lives here: limits, their arithmetic, and the stores of reservations. Does not live here: when a
request reserves and settles (gateway.charge).
"""

from tidegate.limits.ledger import (
    Charge,
    Granted,
    Ledger,
    Limit,
    LimitTable,
    Need,
    NeverFits,
    Refused,
    Standing,
    Usage,
)
from tidegate.limits.memory import MemoryLedger
from tidegate.limits.sqlite import SQLiteLedger

__all__ = [
    "Charge",
    "Granted",
    "Ledger",
    "Limit",
    "LimitTable",
    "MemoryLedger",
    "Need",
    "NeverFits",
    "Refused",
    "SQLiteLedger",
    "Standing",
    "Usage",
]
