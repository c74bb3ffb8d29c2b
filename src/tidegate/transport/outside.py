"""What does a server outside answer to one GET, if it really is outside?

For documents that the gateway fetches on its own account, such as the keys of an issuer. The name
is resolved once, its addresses are judged, and the connection goes to one of those and nowhere
else: no second answer of the name server, no redirect, no proxy of the environment can lead it
into the network behind the gateway. Lives here: that, and bounds of size and time. Does not live
here: what a document means, who asks and how often (identity).
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tidegate.transport.connecting import connecting, make_socket

MOST_BYTES = 262_144
DEADLINE_S = 5.0
_READ_BYTES = 16_384
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NotFetched(Exception):
    """No document came; `reason` is a word of ours."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


LookUp = Callable[[str, int, socket.AddressFamily], Awaitable[list[tuple[Any, ...]]]]
"""The addresses of a name, as getaddrinfo gives them."""


async def look_up(host: str, port: int, family: socket.AddressFamily) -> list[tuple[Any, ...]]:
    """Ask the name service of this machine."""
    found: list[tuple[Any, ...]] = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
    )
    return found


async def fetch_outside(
    address: str,
    *,
    deadline_s: float = DEADLINE_S,
    most_bytes: int = MOST_BYTES,
    names: LookUp = look_up,
) -> bytes:
    """The body of a 200 to a GET of `address`; raises NotFetched.

    An address with a loopback host (localhost, or such a literal) may lead to loopback only; any
    other one must be https and may lead to global addresses only.
    """
    url = URL(address)
    host = url.host or ""
    inside = names_loopback(host)
    if url.scheme != "https" and not (inside and url.scheme == "http"):
        raise NotFetched("clear_text")
    if _is_literal(host) and not may_reach(host, loopback=inside):
        raise NotFetched("address_not_allowed")
    try:
        with connecting(asyncio.get_running_loop()):
            async with asyncio.timeout(deadline_s):
                return await _get(url, _Resolver(names, loopback=inside), most_bytes)
    except NotFetched:
        raise
    except TimeoutError:
        reason = "too_slow"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason = "address_not_allowed" if _was_refused(error) else "no_connection"
    raise NotFetched(reason)


async def _get(url: URL, resolver: AbstractResolver, most_bytes: int) -> bytes:
    connector = aiohttp.TCPConnector(
        resolver=resolver, use_dns_cache=False, force_close=True, socket_factory=make_socket
    )
    async with (
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            skip_auto_headers=("User-Agent",),
        ) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        if response.status != 200:
            raise NotFetched(f"status_{response.status}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise NotFetched("content_coding")
        body = bytearray()
        async for chunk in response.content.iter_chunked(_READ_BYTES):
            body += chunk
            if len(body) > most_bytes:
                raise NotFetched("too_large")
        return bytes(body)


def names_loopback(host: str) -> bool:
    """Whether `host` says by itself that it is this machine."""
    return host.lower() == "localhost" or (_is_literal(host) and may_reach(host, loopback=True))


def may_reach(address: str, *, loopback: bool) -> bool:
    """Whether a connection to this address is allowed: to loopback only, or to the world only.

    Private, link-local, shared, reserved and multicast addresses are neither, however they are
    wrapped into IPv6.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found in _NAT64:
            found = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        elif found.sixtofour is not None or found.teredo is not None:
            return False
    if loopback:
        return found.is_loopback
    return found.is_global and not found.is_multicast


class _Refused(OSError):
    """No address of the name is allowed."""


def _was_refused(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, _Refused):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Resolver(AbstractResolver):
    """The allowed addresses of a name, which the connection is then made to."""

    def __init__(self, names: LookUp, *, loopback: bool) -> None:
        self._names, self._loopback = names, loopback

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Of AbstractResolver."""
        found = await self._names(host, port, family)
        allowed = [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, place in found
            if may_reach(str(place[0]), loopback=self._loopback)
        ]
        if not allowed:
            raise _Refused("no address of this name is allowed")
        return allowed

    async def close(self) -> None:
        """Of AbstractResolver: nothing is held."""


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


__all__ = ["NotFetched", "fetch_outside", "may_reach", "names_loopback"]
