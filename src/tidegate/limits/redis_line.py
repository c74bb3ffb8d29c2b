"""How is one connection to Redis made, written to and read?

Lives here: the connection of redis-py (address, TLS, password, database) with none of its
retries, and the reading of replies. Does not live here: what is said (redis_script), deadlines
of requests, what happens without a connection (redis_pipe).
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Protocol, cast

_CHUNK_BYTES = 65_536
_IN_A_SCRIPT = re.compile(rb"ERR Error running script \([^)]*\): [^-]*: -([A-Z]+) ")


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """The server refused a command; `kind` is the word that its sentence begins with.

    Of a command inside a script it is the word that the same command would get outside.
    """

    kind: str


class LineLost(Exception):
    """There is no connection, or none any more; `kind` says why in one word."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class DriverMissing(Exception):
    """The package redis, an extra of ours, is not installed."""


class Line(Protocol):
    """One connection, ready for commands."""

    def send(self, data: bytes) -> None:
        """Write; never waits."""

    async def hear(self) -> list[object]:
        """The replies that have come, at least one; raises LineLost."""

    def abort(self) -> None:
        """Close at once, whatever is unsent. Idempotent."""


async def dial(url: str, timeout_s: float) -> Line:
    """A connection to `url` within the time; raises LineLost, DriverMissing."""
    try:
        # An extra: whoever keeps the books elsewhere does not have it.
        from redis.asyncio.connection import Connection, parse_url  # noqa: PLC0415
        from redis.exceptions import RedisError  # noqa: PLC0415
    except ImportError as error:
        raise DriverMissing from error
    options = cast("dict[str, Any]", parse_url(url))
    kind = _with_streams(options.pop("connection_class", Connection))
    connection = kind(
        **options,
        protocol=2,
        retry=None,
        driver_info=None,
        socket_timeout=None,
        socket_connect_timeout=timeout_s,
    )
    try:
        async with asyncio.timeout(timeout_s):
            await connection.connect()
    except (RedisError, OSError) as error:
        _RedisLine(connection).abort()
        # Its text may hold the address; the kind is enough.
        raise LineLost(_kind(error)) from error
    except BaseException:
        _RedisLine(connection).abort()
        raise
    return _RedisLine(connection)


def _kind(error: BaseException) -> str:
    """The most telling class name among the error and its causes."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, OSError) and type(link) is not OSError:
            return type(link).__name__
        link = link.__cause__ or link.__context__
    return type(error).__name__


def _with_streams(kind: type[Any]) -> type[Any]:
    """That class of connections, whose streams may be taken over."""

    class Connection(kind):  # type: ignore[misc]
        _reader: object
        _writer: object

        def take_streams(self) -> tuple[object, object]:
            streams = self._reader, self._writer
            # Without them it neither closes them behind our back nor says that they are open.
            self._reader = self._writer = None
            return streams

    return Connection


class _RedisLine:
    """The streams of a connection that redis-py has made, used without it from here on."""

    def __init__(self, connection: Any) -> None:
        reader, writer = connection.take_streams()
        self._reader: asyncio.StreamReader | None = reader
        self._writer: asyncio.StreamWriter | None = writer
        self._replies = ReplyReader()

    def send(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)

    async def hear(self) -> list[object]:
        replies = list[object]()
        while not replies:
            replies = self._replies.feed(await self._read())
        return replies

    def abort(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.transport.abort()

    async def _read(self) -> bytes:
        if self._reader is None or self._writer is None:
            raise LineLost("ConnectionClosed")
        try:
            data = await self._reader.read(_CHUNK_BYTES)
        except OSError as error:
            raise LineLost(type(error).__name__) from error
        if not data:
            raise LineLost("ConnectionClosed")
        return data


class ReplyReader:
    """Bytes as they come, replies as they are complete. Cost: linear, but for cut arrays."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[object]:
        """The replies that `data` completes; raises LineLost for what is no reply."""
        data = self._held + data if self._held else data
        replies, at = list[object](), 0
        while at < len(data):
            try:
                reply, at = _reply(data, at)
            except _Cut:
                break
            except ValueError as error:
                raise LineLost("InvalidReply") from error
            replies.append(reply)
        self._held = data[at:]
        return replies


class _Cut(Exception):
    """The reply goes on in bytes that have not come yet."""


def _reply(data: bytes, at: int) -> tuple[object, int]:
    end = data.find(b"\r\n", at)
    if end < 0:
        raise _Cut
    kind, body, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind == b"$":
        size = int(body)
        if size < 0:
            return None, at
        if len(data) < at + size + 2:
            raise _Cut
        return data[at : at + size], at + size + 2
    if kind == b":":
        return int(body), at
    if kind == b"+":
        return body, at
    if kind == b"-":
        return ErrorReply(_refusal(body)), at
    if kind == b"*":
        items = list[object]()
        for _ in range(int(body)):
            item, at = _reply(data, at)
            items.append(item)
        return items, at
    raise LineLost("InvalidReply")


def _refusal(sentence: bytes) -> str:
    # Before Redis 7 a refusal inside a script is an ERR about the script, which holds the other.
    inner = _IN_A_SCRIPT.match(sentence)
    word = inner[1] if inner else sentence.partition(b" ")[0]
    return word.decode("ascii", "replace")


__all__ = ["DriverMissing", "ErrorReply", "Line", "LineLost", "ReplyReader", "dial"]
