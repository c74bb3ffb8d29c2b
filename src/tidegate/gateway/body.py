"""Is this request's body one we may read, and what is in it?

Lives here: media type, content coding, counting while reading, the bytes that all requests hold
together, and the strict parse. Does not live here: what the document means (the path functions),
timers for bodies that do not arrive (server).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from tidegate import strictjson
from tidegate.errors import (
    BodyTooLarge,
    InvalidRequest,
    Overloaded,
    RequestTimeout,
    UnsupportedMediaType,
)
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.respond import Receive, Scope

_PARAMETERS = (b"", b"charset=utf-8", b'charset="utf-8"')

_SYNTAX = "The body is not one valid JSON document in UTF-8."
_TWO_TYPES = "The request names its media type twice."
_FRAME = "The body of the request is not valid HTTP/1.1."
_AMBIGUOUS = "The body has an object with the same key twice."


@dataclass(frozen=True, slots=True)
class JSONBody:
    """A body as it was sent, and the one document it holds."""

    raw: bytes
    value: object


class BodyGate:
    """The bytes of all request bodies in flight; shared by every reader of the process."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Count more bytes; raises Overloaded when there is no room, and then counts nothing."""
        if self.held_bytes + size_bytes > self._max_bytes:
            raise Overloaded("bodies in flight")
        self.held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """These bytes are no longer held."""
        self.held_bytes -= size_bytes


class BodyReader:
    """Reads bodies of at most `max_bytes` bytes. Both contexts hold the bytes until they end.

    Raises UnsupportedMediaType, BodyTooLarge (before anything is decoded, for a lying
    Content-Length as well), InvalidRequest, Overloaded, RequestTimeout.
    """

    def __init__(self, gate: BodyGate, *, max_bytes: int) -> None:
        self._gate = gate
        self._max_bytes = max_bytes

    def raw(self, scope: Scope, receive: Receive) -> "HeldBody":
        """`async with` gives the bytes."""
        return HeldBody(self._gate, self._max_bytes, scope, receive)

    def json(self, scope: Scope, receive: Receive) -> "HeldJSON":
        """`async with` gives a JSONBody."""
        return HeldJSON(self.raw(scope, receive))


class HeldBody:
    """The context of `BodyReader.raw`; entered once."""

    __slots__ = ("_gate", "_max_bytes", "_receive", "_scope", "_size")

    def __init__(self, gate: BodyGate, max_bytes: int, scope: Scope, receive: Receive) -> None:
        self._gate = gate
        self._max_bytes = max_bytes
        self._scope = scope
        self._receive = receive
        self._size = 0

    async def __aenter__(self) -> bytes:
        _check_headers(self._scope["headers"], self._max_bytes)
        try:
            return await self._read()
        except BaseException:
            self._free()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._free()

    async def _read(self) -> bytes:
        chunks: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                # The client is still there, but the rest will not come: it stopped sending, or
                # broke the frame. (When it left, the server cancels this task instead.)
                if message.get("reason") == "malformed":
                    raise InvalidRequest("broken frame", public=_FRAME)
                raise RequestTimeout("the body ended early")
            chunk: bytes = message.get("body", b"")
            if self._size + len(chunk) > self._max_bytes:
                raise BodyTooLarge
            self._gate.take(len(chunk))
            self._size += len(chunk)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    def _free(self) -> None:
        self._gate.give_back(self._size)
        self._size = 0


class HeldJSON:
    """The context of `BodyReader.json`; entered once."""

    __slots__ = ("_held",)

    def __init__(self, held: HeldBody) -> None:
        self._held = held

    async def __aenter__(self) -> JSONBody:
        raw = await self._held.__aenter__()
        try:
            value = await beside_the_loop(len(raw), strictjson.loads, raw)
        except strictjson.StrictJSONError as error:
            await self._held.__aexit__(None, None, None)
            public = _AMBIGUOUS if error.kind == "ambiguous" else _SYNTAX
            raise InvalidRequest(error.reason, public=public) from None
        except BaseException:
            await self._held.__aexit__(None, None, None)
            raise
        return JSONBody(raw, value)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._held.__aexit__(kind, error, trace)


def _check_headers(headers: Iterable[tuple[bytes, bytes]], max_bytes: int) -> None:
    types: list[bytes] = []
    for name, value in headers:
        if name == b"content-type":
            types.append(value)
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType("content coding")
        elif name == b"content-length" and _is_over(value, max_bytes):
            raise BodyTooLarge
    if len(types) > 1:
        raise InvalidRequest("two media types", public=_TWO_TYPES)
    if not types or not _is_json(types[0]):
        raise UnsupportedMediaType("media type")


def _is_over(content_length: bytes, max_bytes: int) -> bool:
    # Twenty digits are more than any cap, and int() refuses thousands of them.
    return content_length.isdigit() and (
        len(content_length) > 19 or int(content_length) > max_bytes
    )


def _is_json(content_type: bytes) -> bool:
    """application/json, with no parameter but a charset of UTF-8 (RFC 8259 section 11 has none)."""
    media_type, *parameters = (part.strip().lower() for part in content_type.split(b";"))
    return media_type == b"application/json" and all(
        parameter in _PARAMETERS for parameter in parameters
    )
