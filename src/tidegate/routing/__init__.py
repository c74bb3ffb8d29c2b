"""Which provider serves a request, and what happens when it does not?"""

from tidegate.routing.breaker import Breaker, BreakerSettings, Permit, State, Verdict
from tidegate.routing.failover import Failover, GiveUp, Step, Try
from tidegate.routing.order import ordered
from tidegate.routing.outcome import (
    TAXONOMY,
    Handling,
    Onward,
    Outcome,
    Trips,
    classify,
    retry_after_s,
)
from tidegate.routing.plan import Cooling, Deadlines, Route, RouteTable, Strategy, Target
from tidegate.routing.retry_after import scarce_for_s
from tidegate.routing.targets import Targets, TargetSnapshot, TargetState

__all__ = [
    "TAXONOMY",
    "Breaker",
    "BreakerSettings",
    "Cooling",
    "Deadlines",
    "Failover",
    "GiveUp",
    "Handling",
    "Onward",
    "Outcome",
    "Permit",
    "Route",
    "RouteTable",
    "State",
    "Step",
    "Strategy",
    "Target",
    "TargetSnapshot",
    "TargetState",
    "Targets",
    "Trips",
    "Try",
    "Verdict",
    "classify",
    "ordered",
    "retry_after_s",
    "scarce_for_s",
]
