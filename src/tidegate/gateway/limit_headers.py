"""What does a client learn about its limits from the headers of an answer?

Lives here: the six `x-ratelimit-*` headers in the form that clients of the OpenAI dialect read,
and the mark of a limiter without its store. Does not live here: the numbers (limits), when to
come back after a refusal (respond).

    x-ratelimit-limit-tokens: 50000       the cap of the tightest limit on tokens
    x-ratelimit-remaining-tokens: 48890   what it leaves, this request counted at its estimate
    x-ratelimit-reset-tokens: 1m0.25s     when nothing of it will be used any more

Limits on requests fill the other three. A limit on money or on concurrent requests has no such
header. A provider's own figures speak of the operator's account and are never passed on.
"""

from collections.abc import Sequence
from math import ceil

from tidegate.gateway.respond import Header
from tidegate.limits.ledger import Standing, Unit

DEGRADED: Header = (b"x-tidegate-limiter", b"degraded")

_FAMILIES: tuple[tuple[bytes, frozenset[Unit]], ...] = (
    (b"requests", frozenset({"requests"})),
    (b"tokens", frozenset({"tokens", "input_tokens", "output_tokens"})),
)


def limit_headers(standings: Sequence[Standing], *, degraded: bool = False) -> list[Header]:
    """The headers for an answer to whom these limits apply; none for a family without a limit.

    The tightest limit of a family is the one with the least left; of those with equally much
    the one that takes longest to reset. Cost: O(limits).
    """
    headers: list[Header] = []
    for family, units in _FAMILIES:
        mine = [standing for standing in standings if standing.limit.unit in units]
        if not mine:
            continue
        tightest = min(mine, key=lambda standing: (standing.free, -standing.reset_s))
        headers += (
            (b"x-ratelimit-limit-" + family, b"%d" % tightest.limit.cap),
            (b"x-ratelimit-remaining-" + family, b"%d" % tightest.free),
            (b"x-ratelimit-reset-" + family, duration(tightest.reset_s).encode("ascii")),
        )
    if degraded:
        headers.append(DEGRADED)
    return headers


def duration(seconds: float) -> str:
    """`seconds` as `120ms`, `1s`, `6m0s` or `1h0m0.25s`; milliseconds rounded up, never less.

    Source: the OpenAI API reference, rate-limit headers; the form is that of Go's durations.
    """
    total_ms = max(0, ceil(seconds * 1000))
    if 0 < total_ms < 1000:
        return f"{total_ms}ms"
    minutes, rest_ms = divmod(total_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


__all__ = ["DEGRADED", "duration", "limit_headers"]
