"""For how long does an upstream ask us to stay away?

Lives here: every header form in which providers say it. Does not live here: what we do with
the answer (failover.py). Sources: RFC 9110 sections 5.6.7 and 10.2.3, the rate-limit headers of
the providers, the RateLimit header draft of the IETF.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

MIN_S = 0.5
MAX_S = 600.0
_SCARCE = 0.02
_UNNAMED_S = 5.0

# As many digits as somebody cares to send: an absurd wait means "very long", not "none".
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|us|µs|ns|s|m|h|d))+")
_PIECE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|s|m|h|d)")
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HTTP_DATES = (
    # IMF-fixdate, RFC 850 (two-digit year), asctime
    re.compile(r"[a-z]{3}, (?P<d>[0-9]{2}) (?P<b>[a-z]{3}) (?P<y>[0-9]{4}) (?P<t>[0-9:]{8}) gmt"),
    re.compile(r"[a-z]{6,9}, (?P<d>[0-9]{2})-(?P<b>[a-z]{3})-(?P<y>[0-9]{2}) (?P<t>[0-9:]{8}) gmt"),
    re.compile(r"[a-z]{3} (?P<b>[a-z]{3}) (?P<d>[ 0-9][0-9]) (?P<t>[0-9:]{8}) (?P<y>[0-9]{4})"),
)
_FIELD_RESET = re.compile(r"(?:^|[;,\s])(?:reset|t)=([0-9]+)")


def retry_after_s(
    headers: Mapping[str, str], now_s: float, *, max_s: float = MAX_S
) -> float | None:
    """Seconds to wait, between 0.5 and `max_s`; None when the upstream names no usable time.

    `headers` have lower-case names. `now_s` is the wall clock (Unix seconds): some forms are
    dates. `retry-after-ms` wins over `retry-after`, and both over the reset headers. Zero,
    negative, past and unreadable values count as absent. Among reset headers those count whose
    `remaining` is 0, the longest of them; with none at 0, the shortest of all.
    """
    wait = _milliseconds(headers.get("retry-after-ms"))
    if wait is None:
        wait = _seconds(headers.get("retry-after"), now_s)
    if wait is None:
        wait = _reset(headers, now_s)
    return None if wait is None else min(max(wait, MIN_S), max_s)


def scarce_for_s(headers: Mapping[str, str], now_s: float) -> float:
    """For how long, in seconds, the answer's headers promise (almost) no further room; 0.0 = room.

    Read from `x-ratelimit-remaining-requests` and `-tokens` with their `limit` and `reset` twins,
    on good answers too. Scarce is nothing left, or at most 2 % of a limit that is named. The
    longest wait counts, between 0.5 s and `MAX_S`; 5 s where the reset is not named.
    """
    waits = [0.0]
    for kind in ("requests", "tokens"):
        left = _plain_number(headers.get(f"x-ratelimit-remaining-{kind}"))
        limit = _plain_number(headers.get(f"x-ratelimit-limit-{kind}"))
        if left is not None and left <= _SCARCE * (limit or 0.0):
            wait = _seconds(headers.get(f"x-ratelimit-reset-{kind}"), now_s)
            waits.append(_UNNAMED_S if wait is None else min(max(wait, MIN_S), MAX_S))
    return max(waits)


def _plain_number(value: str | None) -> float | None:
    if value is None or _NUMBER.fullmatch(value.strip()) is None:
        return None
    return float(value)


def _milliseconds(value: str | None) -> float | None:
    milliseconds = _plain_number(value)
    return milliseconds / 1000.0 if milliseconds else None


def _seconds(value: str | None, now_s: float) -> float | None:
    """Seconds from a number, a Unix time in s or ms, a duration or a date; None if not > 0."""
    if value is None:
        return None
    text = value.strip().lower()
    if _NUMBER.fullmatch(text) is not None:
        wait = float(text)
        if wait >= 1e11:
            wait = wait / 1000.0 - now_s
        elif wait >= 1e9:
            wait -= now_s
    elif _DURATION.fullmatch(text) is not None:
        wait = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    else:
        at_s = _date(text)
        wait = 0.0 if at_s is None else at_s - now_s
    return wait if wait > 0.0 else None


def _date(text: str) -> float | None:
    for form in _HTTP_DATES:
        match = form.fullmatch(text)
        if match is not None:
            return _http_date(match)
    if not 20 <= len(text) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def _http_date(match: re.Match[str]) -> float | None:
    year = int(match["y"])
    if year < 100:
        # RFC 9110 5.6.7: a date more than 50 years ahead means the past century; a wait never
        # lies there, so this century is the only useful reading.
        year += 2000
    try:
        hour, minute, second = (int(part) for part in match["t"].split(":"))
        month = _MONTHS.index(match["b"]) + 1
        moment = datetime(year, month, int(match["d"]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp()


def _reset(headers: Mapping[str, str], now_s: float) -> float | None:
    spent: list[float] = []
    others: list[float] = []
    for wait, remaining in _resets(headers, now_s):
        if wait is not None:
            (spent if remaining is not None and remaining.strip() == "0" else others).append(wait)
    if spent:
        return max(spent)
    return min(others) if others else None


def _resets(headers: Mapping[str, str], now_s: float) -> Iterator[tuple[float | None, str | None]]:
    """Each reset header's wait with the text of its `remaining` twin."""
    for name, value in headers.items():
        if "ratelimit" not in name:
            continue
        if "reset" in name:
            yield _seconds(value, now_s), headers.get(name.replace("reset", "remaining"))
        elif name == "ratelimit":
            match = _FIELD_RESET.search(value.lower())
            if match is not None:
                yield _seconds(match[1], now_s), None


__all__ = ["retry_after_s", "scarce_for_s"]
