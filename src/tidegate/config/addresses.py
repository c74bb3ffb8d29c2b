"""Which parts of an address are secrets?

Lives here: the credentials that people write into addresses (user and password, parameters of
the query), how to find them and how to show the address without them. Does not live here: which
keys hold secrets as a whole (sections), what is said about one in the file (checks.secrets).
"""

import re
from collections.abc import Iterator

from tidegate.config.shapes import split_url

LITERAL = "(literal)"
"""What is shown in the place of a secret that stands in the file itself."""

SECRET_WORD = re.compile(r"auth|cookie|credential|key|passw|secret|sig|token", re.IGNORECASE)
"""A name that says that its value is a secret."""

# A long run of letters and digits: whatever its name, it is better not repeated.
_LIKE_A_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=.-]{16,}")
_USER = re.compile(r"(?<=://)[^/?#@]*(?=@)")
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")


def secrets_in(address: str) -> list[str]:
    """The secrets inside of an address; none for a text that is no address with a host."""
    return [text[start:end] for text, start, end in _places(address)]


def without_secrets(address: str) -> str:
    """The address with LITERAL in the place of each secret; any other text as it is."""
    shown, at = [], 0
    for _, start, end in _places(address):
        shown += [address[at:start], LITERAL]
        at = end
    return "".join([*shown, address[at:]])


def _places(address: str) -> Iterator[tuple[str, int, int]]:
    if "://" not in address or split_url(address) is None:
        return
    if (user := _USER.search(address)) is not None:
        start, end = user.span()
        colon = address.find(":", start, end)
        yield address, start if colon < 0 else colon + 1, end
    for match in _PARAMETER.finditer(address):
        name, value = match.groups()
        if value and (SECRET_WORD.search(name) or _LIKE_A_KEY.fullmatch(value)):
            yield address, *match.span(2)


__all__ = ["LITERAL", "SECRET_WORD", "secrets_in", "without_secrets"]
