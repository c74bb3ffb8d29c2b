"""What is one attempt at an upstream, whoever speaks HTTP for us?

One attempt: request bytes go in; status, headers and body bytes are pushed out as they come;
it can be paused, resumed and aborted. Lives here: those words and nothing that runs. Does not
live here: sockets (aiohttp_client.py, later a client of our own), deadlines and the awaitable
side (inbox.py), what an answer means (routing.outcome).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Failure(StrEnum):
    """Why an attempt ended without a whole message. Constant words; no text of an upstream."""

    UNREACHABLE = "unreachable"
    """No connection within `connect_s`: name, route, refusal, TLS, proxy."""
    RESET = "reset"
    """The connection was lost before the message ended."""
    MALFORMED = "malformed"
    """Not HTTP, a broken frame, an unknown or broken content coding."""
    TOO_LARGE = "too_large"
    """A response head beyond the bound."""
    TIMEOUT = "timeout"
    """The deadline that was armed passed (set by the inbox, never by a transport)."""
    DRAINING = "draining"
    """We are leaving and cut it ourselves (set by the inboxes, never by a transport)."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """What is sent. `url` is absolute; framing headers (Host, Content-Length) are the transport's.

    `proxy` is an http:// URL or None. `replayable` says that sending the same bytes twice does
    no harm beyond cost (a completion: true; a tool call: false). Only then may a transport send
    again, once, when a kept-alive socket turns out to be dead before any byte of an answer.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    proxy: str | None = field(default=None, repr=False)
    replayable: bool = False


class ResponseSink(Protocol):
    """Where an attempt pushes what arrives. Callbacks are synchronous and must not raise.

    Order: on_head once, on_body any number of times (never empty), then exactly one of on_end
    and on_failure; on_failure may also come first. None is called before `start` returned, and
    none after `abort`.
    """

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        """The final status and its headers; names in lower case, repeated ones joined by ", ".

        Headers that describe the connection or the coding of the body (Content-Length,
        Content-Encoding, Transfer-Encoding, Connection, Set-Cookie ...) are not among them.
        """

    def on_body(self, chunk: bytes) -> None:
        """Bytes of the body with its content coding removed."""

    def on_end(self) -> None:
        """The message is complete."""

    def on_failure(self, failure: Failure) -> None:
        """The attempt is over without a complete message."""


class Attempt(Protocol):
    """One running exchange. All three are synchronous, idempotent, and harmless after the end."""

    def pause(self) -> None:
        """Stop pushing body bytes; the upstream's socket feels it once small buffers are full."""

    def resume(self) -> None:
        """Push again."""

    def abort(self) -> None:
        """Close the socket now, without pooling it. No callback follows."""


class Transport(Protocol):
    """Starts attempts. One object per process; safe for any number of concurrent attempts."""

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Attempt:
        """Begin; needs a running event loop. `connect_s` bounds name, connection and TLS."""

    async def open(self) -> None:
        """Make ready; called once, in the loop that will serve."""

    async def close(self) -> None:
        """Abort what runs, close what is idle, and return when the sockets are gone."""

    @property
    def open_connections(self) -> int:
        """Sockets connected now, idle ones included."""

    @property
    def idle_connections(self) -> int:
        """Sockets kept for reuse."""
