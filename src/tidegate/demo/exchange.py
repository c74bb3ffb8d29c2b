"""How does a demo upstream read one request and write one answer?

Lives here: the few lines of raw ASGI that all demo upstreams share, above all a wait that ends
when the client goes away. Does not live here: what is answered (the providers, the backend).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl

from tidegate import sse, strictjson

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]


WIRE = "tidegate.wire"
"""The extension of the scope by which a listener hands out the socket itself."""


class Wire(Protocol):
    """The connection below HTTP. Once it is used, nothing else of the exchange may be.

    Only interim heads (1xx) may go before an answer that is then given as any other.
    """

    def write(self, data: bytes) -> None:
        """Exactly these bytes."""

    def close(self) -> None:
        """Close after what was written."""

    def reset(self) -> None:
        """Close at once; the client gets a reset."""


class Exchange:
    """One request and its answer; enter it to have its watcher of the client cleaned up."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        self.wire: Wire | None = scope.get("extensions", {}).get(WIRE)
        self._receive = receive
        self._send = send
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})

    async def body(self) -> bytes:
        """The whole request body; call it once, before anything waits."""
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        return b"".join(parts)

    async def request(self) -> dict[str, object]:
        """The body as a JSON object; an empty one for anything that is not."""
        try:
            value = strictjson.loads(await self.body())
        except strictjson.StrictJSONError:
            return {}
        return value if isinstance(value, dict) else {}

    async def gone_within(self, seconds: float | None) -> bool:
        """Waits `seconds` (None: for ever), less if the client goes away; True if it did."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._until_gone())
        done, _ = await asyncio.wait({self._watch}, timeout=seconds)
        return bool(done)

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def head(self, status: int, headers: Sequence[Header]) -> None:
        """Status line and headers."""
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers]})

    async def write(self, data: bytes) -> None:
        """A piece of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """The end of the body; an exchange left without it is a connection cut in the middle."""
        await self._send({"type": "http.response.body", "body": b""})

    async def json(self, status: int, value: object, headers: Sequence[Header] = ()) -> None:
        """One whole JSON answer."""
        data = value if isinstance(value, bytes) else strictjson.dumps(value)
        length = (b"content-length", b"%d" % len(data))
        await self.head(status, ((b"content-type", b"application/json"), length, *headers))
        await self._send({"type": "http.response.body", "body": data})

    async def start_events(self) -> None:
        """The head of an event stream."""
        await self.head(200, ((b"content-type", b"text/event-stream; charset=utf-8"),))

    async def event(self, value: object) -> None:
        """One event; bytes go out as they are, anything else as JSON."""
        data = value if isinstance(value, bytes) else strictjson.dumps(value)
        await self.write(sse.encode(data))


def choice_count(request: dict[str, object]) -> int:
    """How many choices the request asks for: `n`, kept between 1 and 8."""
    wanted = request.get("n")
    return min(max(wanted, 1), 8) if isinstance(wanted, int) else 1


def wants_usage(request: dict[str, object]) -> bool:
    """Whether a stream is to end with a usage event."""
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def completion(
    model: object, choices: Sequence[tuple[str, str]], usage: dict[str, int]
) -> dict[str, object]:
    """A whole chat completion; `choices` are pairs of text and finish reason."""
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": text},
                "finish_reason": reason,
            }
            for index, (text, reason) in enumerate(choices)
        ],
        "usage": usage,
    }


def chunk(
    model: object, index: int, delta: Mapping[str, object], *, finish: str | None = None
) -> dict[str, object]:
    """One event of a streamed chat completion, for one choice."""
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
    }


def usage_chunk(model: object, usage: dict[str, int]) -> dict[str, object]:
    """The event without choices that closes a stream asked for with `include_usage`."""
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": [],
        "usage": usage,
    }
