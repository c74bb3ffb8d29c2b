"""How is a connection that was kept asked once more?

For each exchange aiohttp builds a request, a response and a writer, which costs more than all the
rest of it. What they found out about an address when it was first asked stays true: later
requests are one write to a socket of aiohttp's pool, and their answers come out of its parser.
Lives here: that. Does not live here: the first exchange and when to send again (aiohttp_client),
the pool (pool).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.http import RawResponseMessage
from multidict import CIMultiDictProxy

from tidegate.transport.fields import request_fields
from tidegate.transport.upstream import UpstreamRequest

_MOST_KNOWN: Final = 256
_UPGRADE: Final = 101
_WITHOUT_LENGTH: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """How aiohttp's parser is set up: bytes of a read, a line, a field; fields of a head."""

    read_bytes: int
    line_bytes: int
    field_bytes: int
    fields: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer and where its body comes from.

    `close`: how aiohttp is told that nothing more is wanted of an answer that it found.
    """

    status: int
    headers: CIMultiDictProxy[str]
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: aiohttp.StreamReader
    close: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    key: ConnectionKey
    target: str
    host: str


class Heads(Protocol):
    """A socket's side of what its parser found."""

    def next_head(self) -> tuple[RawResponseMessage, aiohttp.StreamReader] | None:
        """The next head that was read, and its body; None if there is none yet."""


class Addresses:
    """What is known of each URL that was asked before; bounded."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def learn(self, url: str, request: ClientRequest) -> None:
        """Remember how aiohttp asks for `url`; not through a proxy, nor with a password in it."""
        if url in self._known or request.proxy is not None or "@" in url:
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.pop(next(iter(self._known)))
        host = request.headers["Host"]
        self._known[url] = _Known(request.connection_key, request.url.raw_path_qs, host)

    def key_of(self, request: UpstreamRequest) -> ConnectionKey | None:
        """Under which the pool keeps connections for it; None if it is not known."""
        known = self._known.get(request.url)
        return None if known is None or request.proxy is not None else known.key

    def head(self, request: UpstreamRequest) -> bytes | None:
        """The bytes before the body; None for what must not be sent like this."""
        known = self._known.get(request.url)
        if known is None or request.method == "HEAD":  # whose answer has no body, whatever it says
            return None
        lines = [f"{request.method} {known.target} HTTP/1.1\r\nHost: {known.host}"]
        lines += [f"{name}: {value}" for name, value in request_fields(request.headers)]
        if request.body or request.method not in _WITHOUT_LENGTH:
            lines.append(f"Content-Length: {len(request.body)}")
        text = "\r\n".join(lines)
        # Each of ours has one, and the first of them two lines.
        breaks = len(lines)
        if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
            return None  # aiohttp says what is wrong with it
        return f"{text}\r\n\r\n".encode("ascii") if text.isascii() else None


def ask(socket: ResponseHandler, data: bytes, bounds: Bounds) -> None:
    """Send `data`; the answer comes out of the parser of the socket."""
    if socket.transport is None:
        raise RuntimeError("a socket out of the pool is connected")
    socket.set_response_params(
        read_until_eof=True,
        auto_decompress=False,
        read_bufsize=bounds.read_bytes,
        max_line_size=bounds.line_bytes,
        max_field_size=bounds.field_bytes,
        max_headers=bounds.fields,
    )
    socket.transport.write(data)


def answer_of(heads: Heads) -> Answer | None:
    """The answer to what was asked, once its head is there."""
    while (found := heads.next_head()) is not None:
        message, content = found
        if message.code >= 200 or message.code == _UPGRADE:
            return Answer(message.code, message.headers, message.raw_headers, content)
    return None


def caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether one of this kind stands behind `error`."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__
    return found is not None


__all__ = ["Addresses", "Answer", "Bounds", "Heads", "answer_of", "ask", "caused_by"]
