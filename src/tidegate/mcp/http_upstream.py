"""How does an authorized message become an HTTP request, and what is in the bytes that come back?

Lives here: the headers of our own request, built from nothing, and the reader that finds the
JSON-RPC messages in an answer whatever its Content-Type claims. No sockets: the driver is
gateway.servers.upstream. Does not live here: what a message means to the client (answers).
"""

from dataclasses import dataclass, field, replace
from typing import Final

from tidegate import sse, strictjson
from tidegate.jsonrpc import Id, Message, Request, Response, Tree
from tidegate.mcp.answers import Incoming, parse
from tidegate.mcp.eras import McpHeaders, Revision, prefers_events, upstream_headers
from tidegate.mcp.servers import ServerAddress

_BOM: Final = b"\xef\xbb\xbf"
_BLANKS: Final = b" \t\r\n"
_JSON_FIRST: Final = "application/json, text/event-stream"
_EVENTS_FIRST: Final = "text/event-stream, application/json"
HARMLESS: Final = frozenset(
    {
        "completion/complete",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)
"""Requests that may be sent twice at no cost but time."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way to a server.

    `replayable`: sending it twice does no harm beyond cost. A tool that ran must not run again
    because the socket it was asked on turned out to be stale.
    """

    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    replayable: bool = False


def outgoing(
    message: Message,
    server: ServerAddress,
    revision: Revision,
    headers: McpHeaders,
    *,
    session: str | None = None,
    upstream_id: Id | None = None,
    resumable: bool = False,
) -> Outgoing:
    """The request for `message`, under `upstream_id` if that is not its own id.

    Nothing of the client's head is copied but Mcp-Param-*, a well-formed traceparent and, for
    what may be asked again or whose stream can be taken up again (`resumable`), which of the two
    forms of an answer it names first; nothing is left out of its message but the trace's baggage;
    the credential is the server's, the session id the upstream's own.
    """
    replayable = isinstance(message, Request) and message.method in HARMLESS
    # A legacy server that is asked for a stream may end it early and have it resumed. What can be
    # asked for once more is lost at no cost; the answer of a tool that ran is not.
    streams = (replayable or resumable) and not revision.modern and prefers_events(headers)
    own = [("Accept", _EVENTS_FIRST if streams else _JSON_FIRST)]
    own.append(("Content-Type", "application/json"))
    own += _credentials(server, None if revision.modern else session)
    if isinstance(message, Response):
        own += _version(revision.version)
        return Outgoing(tuple(own), strictjson.dumps(message.value))
    own += upstream_headers(message, revision, headers)
    value = message.encode(id=upstream_id) if isinstance(message, Request) else message.encode()
    value = without_baggage(value)
    return Outgoing(tuple(own), strictjson.dumps(value), replayable)


def without_baggage(message: Tree) -> Tree:
    """W3C baggage carries what the caller's side knows of its user; it ends at this boundary."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(meta, dict) or "baggage" not in meta:
        return message
    kept = {key: value for key, value in meta.items() if key != "baggage"}
    return {**message, "params": {**params, "_meta": kept}}


def ending(server: ServerAddress, version: str | None, session: str) -> Outgoing:
    """The DELETE that ends a legacy session of the upstream."""
    return Outgoing((*_credentials(server, session), *_version(version)), b"")


def listening(
    server: ServerAddress, version: str | None, session: str | None, last_event_id: str | None
) -> Outgoing:
    """The GET for what a legacy server says by itself, or for the rest of a stream that was lost.

    `last_event_id` is the upstream's own word for the place behind which it goes on.
    """
    own = [("Accept", "text/event-stream"), *_credentials(server, session), *_version(version)]
    if last_event_id is not None:
        own.append(("Last-Event-ID", last_event_id))
    return Outgoing(tuple(own), b"", replayable=True)


def _credentials(server: ServerAddress, session: str | None) -> list[tuple[str, str]]:
    own = []
    if server.credential is not None:
        own.append(("Authorization", f"Bearer {server.credential}"))
    if session is not None:
        own.append(("Mcp-Session-Id", session))
    return own


def _version(version: str | None) -> list[tuple[str, str]]:
    return [] if version is None else [("MCP-Protocol-Version", version)]


class AnswerTooLarge(ValueError):
    """The body, or one event of it, is larger than the bound."""


class AnswerReader:
    """Body bytes in, messages out; the cuts between the chunks make no difference.

    The form is taken from the first byte of the body: servers label event streams as JSON and
    the other way round. What is neither yields no message, which the caller answers with its
    generic error. `max_bytes` bounds a JSON body and each event. `marks`: messages come with the
    ids of their events, and an id without a message comes with the value None.
    """

    __slots__ = ("_decoder", "_head", "_is_json", "_marks", "_max", "_pieces", "_size")

    def __init__(self, max_bytes: int, *, marks: bool = False) -> None:
        self._max = max_bytes
        self._marks = marks
        self._head = b""
        self._pieces: list[bytes] = []
        self._size = 0
        # Until one of them is so, the form is not known.
        self._is_json = False
        self._decoder: sse.Decoder | None = None

    @property
    def is_stream(self) -> bool:
        """Whether the body is an event stream, as far as it was read."""
        return self._decoder is not None

    @property
    def held_bytes(self) -> int:
        """How much the rest of a message, or the end, has to be parsed with."""
        return self._size if self._decoder is None else self._decoder.held_bytes

    def feed(self, chunk: bytes) -> list[Incoming]:
        """The messages that `chunk` completes. Raises AnswerTooLarge."""
        if self._decoder is None and not self._is_json:
            chunk = self._decide(chunk)
        if self._decoder is not None:
            try:
                events = self._decoder.feed(chunk)
            except sse.EventTooLarge:
                raise AnswerTooLarge from None
            return [incoming for event in events for incoming in _messages(event)]
        if self._is_json:
            self._size += len(chunk)
            if self._size > self._max:
                raise AnswerTooLarge
            self._pieces.append(chunk)
        return []

    def finish(self) -> list[Incoming]:
        """The messages that the end of the body completes."""
        return parse(b"".join(self._pieces)) if self._is_json else []

    def _decide(self, chunk: bytes) -> bytes:
        """Settle the form once a byte tells; returns that and what was held back for it."""
        head = self._head + chunk
        start = head.removeprefix(_BOM).lstrip(_BLANKS)
        if not start or _BOM.startswith(head):
            if len(head) > self._max:
                raise AnswerTooLarge
            self._head = head
            return b""
        self._head = b""
        if start[:1] in b"{[":
            self._is_json = True
            return start
        self._decoder = sse.Decoder(self._max, marks=self._marks)
        return head


def _messages(event: sse.Event) -> list[Incoming]:
    messages = parse(event.data) if event.data else []
    if event.id is None and event.retry_ms is None:
        return messages
    # Of several messages in one event only the last one stands where the id says.
    *before, last = messages or [Incoming(None)]
    return [*before, replace(last, event_id=event.id, retry_ms=event.retry_ms)]


__all__ = [
    "HARMLESS",
    "AnswerReader",
    "AnswerTooLarge",
    "Outgoing",
    "ending",
    "listening",
    "outgoing",
    "without_baggage",
]
