"""What do the log and the metrics say of a tool that is not what it was?

Lives here: these lines and numbers. Does not live here: what a difference is (mcp.pins), when it
is seen (checked).
"""

import logging
from typing import Final

from tidegate.gateway.metrics import Metrics
from tidegate.mcp.pins import Event, Observed

logger = logging.getLogger(__name__)

_MOST_LINES: Final = 20
_STATES: Final = frozenset({"changed", "new", "flagged"})


def tell(observed: Observed, server: str, metrics: Metrics) -> None:
    """A line for every tool that is not what it was, and a number for all of them."""
    told = [event for event in observed.events if event.state != "pinned"]
    for event in observed.events:
        metrics.tool_pin(server=server, state=event.state)
    for event in told[:_MOST_LINES]:
        level = logging.WARNING if event.state in _STATES else logging.INFO
        extra = {"server": server, "tool": event.tool, "reason": event.state}
        logger.log(level, "tool_definition_differs", extra=extra | _problem(event))
    if len(told) > _MOST_LINES:
        more = len(told) - _MOST_LINES
        logger.warning("tool_definitions_differ", extra={"server": server, "suppressed": more})
    if (count := observed.book.left_out) > 0:
        logger.warning("tool_pins_full", extra={"server": server, "count": count})


def _problem(event: Event) -> dict[str, str]:
    """Words of ours: which members differ, and what is flagged in which."""
    parts = []
    if event.members:
        parts.append(f"differs in {', '.join(event.members)}")
    parts += [f"{flag.kind} in {flag.member}" for flag in event.flags]
    return {"problem": "; ".join(parts)} if parts else {}


__all__ = ["tell"]
