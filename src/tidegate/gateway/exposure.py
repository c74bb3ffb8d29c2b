"""May this request reach this listener at all, and which other pages may read the answer?

Pure decisions over Host and Origin: a page of a foreign site in a user's browser can send
requests to a loopback listener (DNS rebinding), and must not get past here. Lives here: that,
and the CORS headers. Does not live here: who the caller is (identity), the sockets (server).
"""

import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tidegate.errors import Forbidden, InvalidRequest, Misdirected, TidegateError
from tidegate.gateway.respond import Header

_ALLOWED_METHODS = b"GET, POST, DELETE"
_EXPOSED = (
    b"x-request-id, x-tidegate-provider, x-tidegate-attempts, x-tidegate-limiter, retry-after, "
    b"retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "
    b"x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    b"x-ratelimit-reset-tokens, mcp-session-id, www-authenticate"
)
# Parsing an address takes 20 us, and nearly all requests come with one of these.
_USUAL = frozenset({"localhost", "127.0.0.1", "::1"})
_PREFLIGHT_AGE_S = b"600"
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(:[0-9]{1,5})?")
_NO_HOST = "The request needs exactly one Host, and it must be a name or an address."
_TOKEN = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~, "
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request may go on; `headers` belong on its answer, whatever that is.

    `preflight` says that the request is a CORS question, and those headers are its answer.
    """

    headers: tuple[Header, ...] = ()
    preflight: bool = False


_ADMITTED = Admitted()
_MOST_USUAL = 64


class Exposure:
    """The rules of one listener.

    On a loopback listener only loopback names and addresses are a valid Host (any port), unless
    `allowed_hosts` names more. Elsewhere `allowed_hosts` decides; empty means any. An Origin is
    valid if it is the listener's own (the same host and port as Host) or in `allowed_origins`;
    no Origin at all is no browser. Host names are compared without case and without the port.
    """

    def __init__(
        self,
        *,
        loopback: bool,
        allowed_hosts: Collection[str] = (),
        allowed_origins: Collection[str] = (),
    ) -> None:
        self._loopback = loopback
        self._hosts = frozenset(_name(host.lower()) for host in allowed_hosts)
        self._origins = frozenset(origin.lower() for origin in allowed_origins)
        self._seen: dict[bytes, str] = {}  # what clients send as Host, and is good

    def judge(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Admitted:
        """Raises Misdirected (421) for a foreign Host, Forbidden (403) for a foreign Origin.

        A Host that is none at all is InvalidRequest (400). Source: RFC 9112 section 3.2.
        """
        hosts: list[bytes] = []
        origins: list[str] = []
        asked = b""
        is_question = False
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value.decode("latin-1").strip().lower())
            elif name == b"access-control-request-method":
                is_question = True
            elif name == b"access-control-request-headers":
                asked = value
        host = self._seen.get(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            host = self._our_host(hosts)
        if not origins:
            return _ADMITTED
        if len(origins) != 1 or not self._is_allowed_origin(origins[0], host):
            raise Forbidden("origin")
        allowed = _allow(origins[0])
        if method == "OPTIONS" and is_question:
            return Admitted(allowed + _preflight(asked), preflight=True)
        return Admitted((*allowed, (b"access-control-expose-headers", _EXPOSED)))

    def refusal(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> TidegateError | None:
        """`judge` as a value: the error, or None."""
        try:
            self.judge(method, headers)
        except TidegateError as error:
            return error
        return None

    def _our_host(self, sent: list[bytes]) -> str:
        host = self._one_host([each.decode("latin-1").strip().lower() for each in sent])
        if not self._is_our_host(host):
            raise Misdirected
        if len(sent) == 1 and len(self._seen) < _MOST_USUAL:
            self._seen[sent[0]] = host
        return host

    def _one_host(self, hosts: list[str]) -> str:
        if not hosts and not self._loopback and not self._hosts:
            return ""  # HTTP/1.0, as the health checks of load balancers speak it
        if len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
            raise InvalidRequest("host", public=_NO_HOST)
        return hosts[0]

    def _is_our_host(self, host: str) -> bool:
        name = _name(host)
        if name in self._hosts:
            return True
        if self._loopback:
            return is_loopback_name(name)
        return not self._hosts

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if origin in self._origins:
            return True
        return bool(host) and origin in (f"http://{host}", f"https://{host}")


def is_loopback_name(name: str) -> bool:
    """Whether `name` (no port, lower case, IPv6 without brackets) can only be this machine."""
    if name in _USUAL or name.endswith(".localhost"):
        return True  # RFC 6761 section 6.3: resolvers must answer loopback
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """The name or address in `host[:port]`, IPv6 without brackets; a bare IPv6 address as it is."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.partition(":")
    return host if ":" in port else name


def _allow(origin: str) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"Origin"),
    )


def _preflight(asked: bytes) -> tuple[Header, ...]:
    headers: list[Header] = [
        (b"access-control-allow-methods", _ALLOWED_METHODS),
        (b"access-control-max-age", _PREFLIGHT_AGE_S),
    ]
    if asked and _TOKEN.issuperset(asked):
        headers.append((b"access-control-allow-headers", asked))
    return tuple(headers)
