"""What do the steps of one request add to the numbers?

Lives here: the translation of a finished trail into counters, so that metrics and records cannot
tell two stories. Does not live here: the counters (metrics), what ended the request (accounting).
"""

from collections.abc import Iterable, Mapping

from tidegate.gateway.metrics import Metrics
from tidegate.records.entries import Step

_DIRECTIONS: Mapping[str, str] = {
    "redact_request": "request",
    "redact_response": "response",
    "redact_arguments": "tool_arguments",
    "redact_result": "tool_results",
}
_COUNTED = frozenset(
    {"attempt", "authorize", "federation", "listing", "pin", "limits", *_DIRECTIONS}
)


def tally(steps: Iterable[Step], tenant: str, metrics: Metrics) -> None:
    """Count each step that has a counter. Cost: O(steps)."""
    for step in steps:
        if step.stage in _COUNTED:
            _count(step, tenant, metrics)


def _count(step: Step, tenant: str, metrics: Metrics) -> None:
    match step.stage, step.verdict:
        case "attempt", result:
            provider = _word(step, "provider")
            metrics.attempt(provider=provider, result=result)
            metrics.abandoned(
                provider=provider,
                tokens=_number(step, "abandoned_tokens"),
                micros=_number(step, "abandoned_micros"),
            )
        case "authorize", decision:
            metrics.tool_decision(server=_word(step, "server"), decision=decision, rule=step.rule)
        case "federation", "missing":
            metrics.tool_part_missing(server=_word(step, "server"), part="all")
        case "listing", "left_out":
            server, count = _word(step, "server"), _number(step, "count")
            metrics.tool_part_missing(server=server, part="names", amount=count)
        case "pin", ("warn" | "deny") as decision:
            metrics.pin_decision(server=_word(step, "server"), decision=decision)
        case "limits", "deny":
            metrics.limit_rejected(tenant=tenant, limit=_word(step, "limit"))
        case "limits", "settle":
            metrics.tokens(tenant=tenant, kind="input", amount=_number(step, "input_tokens"))
            metrics.tokens(tenant=tenant, kind="output", amount=_number(step, "output_tokens"))
            metrics.cost(tenant=tenant, micros=_number(step, "money_micros"))
        case stage, _ if stage in _DIRECTIONS:
            metrics.redacted(direction=_DIRECTIONS[stage], found=step.found)
            metrics.unscanned(direction=_DIRECTIONS[stage], amount=_number(step, "unscanned"))
        case _:
            pass


def _word(step: Step, name: str) -> str:
    value = step.values.get(name)
    return value if isinstance(value, str) else ""


def _number(step: Step, name: str) -> int:
    value = step.values.get(name)
    return value if isinstance(value, int) else 0


__all__ = ["tally"]
