"""May we connect to this URL, and with this token?

Lives here: https, or http to this machine alone; nothing secret in the URL; a token that fits
into a header. Does not live here: the connection (connect).
"""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")
_URL: Final = re.compile(r"[\x21-\x7e]{1,8192}")


class BadEndpoint(ValueError):
    """Why not, in our own words; nothing of a token is among them."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server is, and the token for it."""

    url: str
    token: str | None = field(default=None, repr=False)


def endpoint(url: str, token: str | None, *, insecure: bool = False) -> Endpoint:
    """The endpoint of `url`; an empty `token` is none. `insecure` permits http to anybody.

    Raises BadEndpoint.
    """
    if _URL.fullmatch(url) is None:
        raise BadEndpoint("a URL has no blanks and only ASCII characters")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadEndpoint("this is not a URL") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadEndpoint("write the whole URL, as in https://mcp.example.com/mcp")
    if "@" in parts.netloc:
        raise BadEndpoint("no user or password in the URL; a token belongs into TIDEGATE_TOKEN")
    if parts.fragment:
        raise BadEndpoint("a fragment (#...) is not sent to a server")
    if parts.scheme == "http" and not insecure and not _is_this_machine(host):
        raise BadEndpoint("http to another machine is read by anybody: use https, or --insecure")
    if token and _TOKEN.fullmatch(token) is None:
        raise BadEndpoint("TIDEGATE_TOKEN holds a blank or a character that no header may hold")
    return Endpoint(url, token or None)


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


__all__ = ["BadEndpoint", "Endpoint", "endpoint"]
