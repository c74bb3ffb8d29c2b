"""How many tokens does a provider say it has used?

Lives here: a report of usage, believed as far as it is sane. Does not live here: where in an
answer it stands (openai.py), what it costs (gateway.quote).
"""

from collections.abc import Mapping
from math import ceil

import msgspec

from tidegate.providers.base import Usage

# No model reads or writes as much in one call: a larger figure is none.
_MAX_TOKENS = 20_000_000


class _Refusal(msgspec.Struct):
    usage: object = None


_decoder = msgspec.json.Decoder(_Refusal)


def reported_usage(body: bytes) -> Usage | None:
    """The report beside an error object; None if there is none, or `body` is no JSON object."""
    if b'"usage"' not in body:
        return None
    try:
        return read_usage(_decoder.decode(body).usage)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_usage(value: object) -> Usage | None:
    """None when nothing usable was reported; all zero counts as nothing.

    What a total has beyond its parts is output: some providers leave thoughts out of
    `completion_tokens`, and bill them. A prompt without a figure of its own is None, unless the
    total shows it: no prompt is free. A total alone stays undivided; beside parts that are no
    figures it is none either. Fractions are rounded up; what is negative or beyond all reason is
    no figure.
    """
    if not isinstance(value, dict):
        return None
    prompt = _count(value.get("prompt_tokens"))
    completion = _count(value.get("completion_tokens"))
    stated = _count(value.get("total_tokens"))
    if not prompt and completion and stated > completion:
        prompt = stated - completion
    total = max(stated, prompt + completion)
    if not total or _has_odd_parts(value):
        return None
    if not prompt:
        return Usage(None, completion, total)
    return Usage(prompt, total - prompt, total, min(_cached(value), prompt))


def _has_odd_parts(usage: Mapping[str, object]) -> bool:
    """Whether both parts count as nothing, and not because they were left out or zero."""
    parts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    return not any(map(_count, parts)) and any(part not in (None, 0) for part in parts)


def _cached(usage: Mapping[str, object]) -> int:
    """Prompt tokens read from a cache, by either of the two names in use."""
    details = usage.get("prompt_tokens_details")
    named = details.get("cached_tokens") if isinstance(details, dict) else None
    return _count(named) or _count(usage.get("prompt_cache_hit_tokens"))


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return ceil(value) if 0 <= value <= _MAX_TOKENS else 0


__all__ = ["read_usage", "reported_usage"]
