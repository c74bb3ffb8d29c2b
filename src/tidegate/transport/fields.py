"""Which header fields go out with a request, and which of an answer are told?

Lives here: the fields that are ours to set, the ones that describe a connection or a coding and
end there. Does not live here: what a request says (the callers of transport).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from tidegate import __version__

# What describes one connection or one coding says nothing about the decoded body.
_NOT_PASSED_ON: Final = frozenset(
    b"connection content-encoding content-length keep-alive proxy-authenticate proxy-connection "
    b"set-cookie set-cookie2 te trailer transfer-encoding upgrade".split()
)
_OURS_TO_SET: Final = frozenset(
    name.decode() for name in (*_NOT_PASSED_ON, b"expect", b"host") if name != b"content-encoding"
)
_BY_DEFAULT: Final = {
    # A compressed event stream tends to be held back by whoever compresses it.
    "accept-encoding": ("Accept-Encoding", "identity"),
    "user-agent": ("User-Agent", f"tidegate/{__version__}"),
}


def request_fields(pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """What goes out beside Host and the framing."""
    names = [name.lower() for name, _ in pairs]
    fields = list(pairs)
    if not _OURS_TO_SET.isdisjoint(names):
        fields = [pair for pair in pairs if pair[0].lower() not in _OURS_TO_SET]
    fields += [pair for name, pair in _BY_DEFAULT.items() if name not in names]
    return fields


def response_fields(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Lower-case names; repeated ones are joined."""
    fields: dict[str, str] = {}
    for raw_name, raw_value in raw:
        lower = raw_name.lower()
        if lower in _NOT_PASSED_ON:
            continue
        name, value = lower.decode("latin-1"), raw_value.decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


__all__ = ["request_fields", "response_fields"]
