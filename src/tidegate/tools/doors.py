"""May this HTTP request come in at all?

Pure decisions over the head of a request to a tool server: Host and Origin (a page in a user's
browser can reach a server on that machine, by DNS rebinding too), the token, the media type.
Lives here: that, and the words of each refusal. Does not live here: bodies and messages (http).
"""

import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

Headers = Iterable[tuple[bytes, bytes]]

_INVALID_REQUEST: Final = -32600
_UNAUTHENTICATED: Final = -32000
_FORBIDDEN: Final = -31003
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::([0-9]{1,5}))?")
_FIELDS: Final = re.compile(r"[A-Za-z0-9_, -]*")
_PARAMETERS: Final = frozenset({b"", b"charset=utf-8", b'charset="utf-8"'})
_USUAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Every request asks twice; an address is not parsed for what nearly all of them say."""
_CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP status and the error of JSON-RPC that goes with it; constant words."""

    status: int
    message: str
    code: int = _INVALID_REQUEST
    data: object = None
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Doors:
    """Who is let in: `hosts` and `origins` beside the obvious ones; everybody without a `token`."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    token: str | None = None

    def refusal(self, headers: Headers, server: str | None) -> Refusal | None:
        """Why not; `server` is the address that the connection reached.

        On loopback Host is a loopback name or address. Elsewhere it is any IP address, which no
        name of somebody else's can be bound to. In both places one of `hosts` will do. An Origin
        is that of the very Host, or one of `origins`.
        """
        hosts, origins, tokens = (_values(headers, name) for name in _NAMES)
        found = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if found is None:
            return Refusal(400, "The request needs exactly one Host")
        if not self._is_ours(found[1].strip("[]"), found[0], server):
            return Refusal(421, "This server is not the Host of the request")
        if origins and not self._is_known([origin.lower() for origin in origins], found[0]):
            return Refusal(403, "Requests from this Origin are not allowed", _FORBIDDEN)
        if self.token is not None and not _bears(tokens, self.token):
            return Refusal(401, "Unauthorized", _UNAUTHENTICATED, headers=_CHALLENGE)
        return None

    def shared(self, headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
        """The headers that let a page read the answer, where its Origin was let in."""
        origins = _values(headers, b"origin")
        if not origins:
            return ()
        return (
            (b"access-control-allow-origin", origins[0].encode("latin-1")),
            (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
            (b"vary", b"Origin"),
        )

    def preflight(self, headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
        """The answer to a browser's question whether a page may call."""
        asked = _values(headers, b"access-control-request-headers")
        allowed: tuple[tuple[bytes, bytes], ...] = (
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-max-age", b"600"),
        )
        if len(asked) == 1 and _FIELDS.fullmatch(asked[0]):
            allowed += ((b"access-control-allow-headers", asked[0].encode("ascii")),)
        return allowed

    def _is_ours(self, name: str, host: str, server: str | None) -> bool:
        if name in self.hosts or host in self.hosts:
            return True
        if is_loopback(server or ""):
            return is_loopback(name)
        return _address(name) is not None or name == "localhost"

    def _is_known(self, origins: list[str], host: str) -> bool:
        if len(origins) != 1:
            return False
        return origins[0] in self.origins or origins[0] in (f"http://{host}", f"https://{host}")


def media_refusal(headers: Headers, max_bytes: int) -> Refusal | None:
    """Why a body of this kind or length is not read: exactly JSON, in UTF-8, as it is."""
    types = [value for name, value in headers if name == b"content-type"]
    if len(types) > 1:
        return Refusal(400, "The request names its media type twice")
    if not types or not _is_json(types[0]):
        return Refusal(415, "The media type must be application/json")
    codings = [value for name, value in headers if name == b"content-encoding"]
    if any(coding.strip().lower() not in (b"", b"identity") for coding in codings):
        return Refusal(415, "The body must not be compressed")
    lengths = [value for name, value in headers if name == b"content-length"]
    # Twenty digits are more than any cap, and int() refuses thousands of them.
    if any(n.isdigit() and (len(n) > 19 or int(n) > max_bytes) for n in lengths):
        return TOO_LARGE
    return None


TOO_LARGE: Final = Refusal(413, "The body is too large")


def is_loopback(host: str) -> bool:
    """Whether a name or an address (lower case, no brackets) can only be this machine."""
    if host in _USUAL or host.endswith(".localhost"):
        return True  # RFC 6761 section 6.3: resolvers must answer loopback
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if not host[:1].isdigit() and ":" not in host:
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bears(values: list[str], token: str) -> bool:
    if len(values) != 1:
        return False
    scheme, _, given = values[0].partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), token.encode())


def _is_json(content_type: bytes) -> bool:
    media_type, *parameters = (part.strip().lower() for part in content_type.split(b";"))
    return media_type == b"application/json" and _PARAMETERS.issuperset(parameters)


def _values(headers: Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for name, value in headers if name == wanted]


_NAMES: Final = (b"host", b"origin", b"authorization")

__all__ = ["TOO_LARGE", "Doors", "Refusal", "is_loopback", "media_refusal"]
