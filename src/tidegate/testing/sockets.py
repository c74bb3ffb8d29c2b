"""What does a client see on the wire, byte for byte?

A raw HTTP/1.1 client that sends exactly what it is told and shows exactly what came. Every wait
is bounded. Does not live here: the other side (scripted.py), what an answer should be.
"""

import asyncio
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tidegate.testing.asgi import WAIT_S

Headers = Iterable[tuple[str, str]]


def request_bytes(
    method: str, target: str, *, headers: Headers = (), body: bytes = b"", host: str = "127.0.0.1"
) -> bytes:
    """One request; Host is added unless given, Content-Length unless a framing header is given."""
    pairs = list(headers)
    names = {name.lower() for name, _ in pairs}
    if "host" not in names:
        pairs.insert(0, ("Host", host))
    if body and not names & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


@dataclass(slots=True)
class Answer:
    """One parsed response. Header names in lower case, in order, repeated ones kept."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key == name.lower()), None)


class RawClient:
    """One connection. `async with await RawClient.connect(host, port) as client`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._chunked = False
        self._left: int | None = 0
        self._method = "GET"

    @classmethod
    async def connect(
        cls, host: str, port: int, *, receive_buffer_bytes: int | None = None
    ) -> "RawClient":
        """Connect; a small receive buffer makes a client that does not read felt early."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        sock.setblocking(False)
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WAIT_S):
                await loop.sock_connect(sock, (host, port))
        except BaseException:
            sock.close()
            raise
        reader, writer = await asyncio.open_connection(
            sock=sock, limit=receive_buffer_bytes or 2**20
        )
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        """Exactly these bytes."""
        self.writer.write(data)
        async with asyncio.timeout(WAIT_S):
            await self.writer.drain()

    async def ask(
        self, method: str, target: str, *, headers: Headers = (), body: bytes = b""
    ) -> Answer:
        """Send one request and read its whole answer."""
        self._method = method
        await self.send(request_bytes(method, target, headers=headers, body=body))
        return await self.answer()

    async def head(self) -> Answer:
        """The next head, interim ones (1xx) included; `body` is still empty."""
        async with asyncio.timeout(WAIT_S):
            raw = await self.reader.readuntil(b"\r\n\r\n")
        lines = raw[:-4].decode("latin-1").split("\r\n")
        pairs = [line.partition(":")[::2] for line in lines[1:]]
        answer = Answer(
            int(lines[0].split(" ", 2)[1]), [(name.lower(), value.strip()) for name, value in pairs]
        )
        self._chunked = answer.header("transfer-encoding") == "chunked"
        length = answer.header("content-length")
        bodiless = answer.status < 200 or answer.status in (204, 304) or self._method == "HEAD"
        self._left = 0 if bodiless else int(length) if length is not None else None
        return answer

    async def chunk(self) -> bytes:
        """The next piece of the body: one chunk if it is chunked; b"" at its end."""
        async with asyncio.timeout(WAIT_S):
            if self._chunked:
                size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
                return (await self.reader.readexactly(size + 2))[:-2]
            if self._left is None:
                return await self.reader.read(65_536)
            data = await self.reader.read(min(self._left, 65_536)) if self._left else b""
            self._left -= len(data)
            return data

    async def answer(self) -> Answer:
        """The next final answer with its whole body."""
        answer = await self.head()
        while answer.status < 200:
            answer = await self.head()
        while piece := await self.chunk():
            answer.body += piece
        return answer

    async def rest(self) -> bytes:
        """Every byte until the peer closes; a reset counts as a close."""
        received = b""
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                while data := await self.reader.read(65_536):
                    received += data
        return received

    def abort(self) -> None:
        """Vanish: the peer gets a reset."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        """Close as a well-behaved client does."""
        self.writer.close()
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self.writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
