"""What do the steps of one request add to the numbers?

Lives here: the translation of a finished trail into counters, so that metrics and records cannot
tell two stories. Does not live here: the counters (metrics), what ended the request (accounting).
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tidegate.gateway.metrics import Metrics
from tidegate.records.entries import Step

_DIRECTIONS: Mapping[str, str] = {
    "redact_request": "request",
    "redact_response": "response",
    "redact_arguments": "tool_arguments",
    "redact_result": "tool_results",
}


def tally(steps: Iterable[Step], tenant: str, metrics: Metrics) -> None:
    """Count each step that has a counter. Cost: O(steps)."""
    for step in steps:
        count = _COUNTS.get(step.stage)
        if count is not None:
            count(step, tenant, metrics)


def _attempt(step: Step, _tenant: str, metrics: Metrics) -> None:
    provider = _word(step, "provider")
    metrics.attempt(provider=provider, result=step.verdict)
    metrics.abandoned(
        provider=provider,
        tokens=_number(step, "abandoned_tokens"),
        micros=_number(step, "abandoned_micros"),
    )


def _authorize(step: Step, _tenant: str, metrics: Metrics) -> None:
    metrics.tool_decision(server=_word(step, "server"), decision=step.verdict, rule=step.rule)


def _federation(step: Step, _tenant: str, metrics: Metrics) -> None:
    if step.verdict == "missing":
        metrics.tool_part_missing(server=_word(step, "server"), part="all")


def _listing(step: Step, _tenant: str, metrics: Metrics) -> None:
    if step.verdict == "left_out":
        server, count = _word(step, "server"), _number(step, "count")
        metrics.tool_part_missing(server=server, part="names", amount=count)


def _pin(step: Step, _tenant: str, metrics: Metrics) -> None:
    if step.verdict in ("warn", "deny"):
        metrics.pin_decision(server=_word(step, "server"), decision=step.verdict)


def _limits(step: Step, tenant: str, metrics: Metrics) -> None:
    match step.verdict:
        case "deny":
            metrics.limit_rejected(tenant=tenant, limit=_word(step, "limit"))
        case "settle":
            metrics.tokens(tenant=tenant, kind="input", amount=_number(step, "input_tokens"))
            metrics.tokens(tenant=tenant, kind="output", amount=_number(step, "output_tokens"))
            metrics.cost(tenant=tenant, micros=_number(step, "money_micros"))
        case _:
            pass


def _redaction(step: Step, _tenant: str, metrics: Metrics) -> None:
    direction = _DIRECTIONS[step.stage]
    metrics.redacted(direction=direction, found=step.found)
    metrics.unscanned(direction=direction, amount=_number(step, "unscanned"))


_COUNTS: Mapping[str, Callable[[Step, str, Metrics], None]] = MappingProxyType(
    {
        "attempt": _attempt,
        "authorize": _authorize,
        "federation": _federation,
        "limits": _limits,
        "listing": _listing,
        "pin": _pin,
        **dict.fromkeys(_DIRECTIONS, _redaction),
    }
)


def _word(step: Step, name: str) -> str:
    value = step.values.get(name)
    return value if isinstance(value, str) else ""


def _number(step: Step, name: str) -> int:
    value = step.values.get(name)
    return value if isinstance(value, int) else 0


__all__ = ["tally"]
