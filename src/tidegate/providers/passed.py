"""Which headers of a provider may a client see?

Lives here: the names, and what a value must look like. Everything else stays here: headers name
hosts, organizations, regions and accounts, and limits that are the operator's. Times to wait are
computed anew (gateway.respond), ids are our own.
"""

import re
from collections.abc import Mapping

# A name alone would let any text through.
_PASSED: Mapping[str, re.Pattern[str]] = {
    "openai-processing-ms": re.compile(r"[0-9]{1,9}"),
    "openai-version": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
}


def passed_headers(headers: Mapping[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    """Those of `headers` (lower-case names) that may go on, with values of their known form."""
    return tuple(
        (name.encode("ascii"), value.encode("ascii"))
        for name, form in _PASSED.items()
        if (value := headers.get(name)) is not None and form.fullmatch(value)
    )


__all__ = ["passed_headers"]
