"""How does the runner ask, and what does it note while the answer comes?

Lives here: one exchange over a raw socket, or through the official SDK with its bytes recorded.
Does not live here: what is asked (drivers), what the bytes mean (events).
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
import openai

from tests.casebook.seen import Exchange, Sent
from tidegate.testing.sockets import RawClient, request_bytes

ANSWER_S = 30.0
# What the SDK lets out; cases ask which of them it is.
_RAISED = (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, LookupError, AttributeError)


async def ask(port: int, sent: Sent, *, declared: int | None = None) -> Exchange:
    """One request on a connection of its own, read to the end of its answer.

    `declared` is a Content-Length that the body does not fill. Faults of the connection end the
    exchange with what was read.
    """
    exchange = Exchange(sent, started_s=time.monotonic())
    headers = list(sent.headers)
    if declared is not None:
        headers.append(("Content-Length", str(declared)))
    with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(ANSWER_S), await RawClient.connect("127.0.0.1", port) as client:
            host = f"127.0.0.1:{port}"
            data = request_bytes(sent.method, sent.path, headers=headers, body=sent.body, host=host)
            await client.send(data)
            await read(client, exchange)
    exchange.ended_s = time.monotonic()
    return exchange


async def read(client: RawClient, exchange: Exchange) -> None:
    """The answer that comes next on this connection, into `exchange`.

    The caller bounds the time: some cases wait longer than a single read of RawClient may.
    """
    reader = client.reader
    while exchange.status < 200:
        raw = await reader.readuntil(b"\r\n\r\n")
        lines = raw[:-4].decode("latin-1").split("\r\n")
        pairs = [line.partition(":")[::2] for line in lines[1:]]
        exchange.status = int(lines[0].split(" ", 2)[1])
        exchange.headers = [(name.lower(), value.strip()) for name, value in pairs]
    exchange.head_s = time.monotonic()
    if exchange.header("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            piece = (await reader.readexactly(size + 2))[:-2]
            exchange.chunks.append((time.monotonic(), piece))
        await reader.readexactly(2)
        exchange.whole = True
        return
    length = exchange.header("content-length")
    left = int(length) if length else 0
    if exchange.status in (204, 304) or exchange.sent.method == "HEAD":
        left = 0
    while left and (piece := await reader.read(min(left, 65_536))):
        exchange.chunks.append((time.monotonic(), piece))
        left -= len(piece)
    exchange.whole = left == 0 and (length is not None or exchange.status in (204, 304))


class _Tee(httpx2.AsyncBaseTransport):
    """Passes requests on and keeps what came back."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._exchanges = exchanges

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        headers = [(name, value) for name, value in request.headers.multi_items()]
        sent = Sent(request.method, request.url.path, headers, body)
        exchange = Exchange(sent, started_s=time.monotonic(), by_sdk=True)
        self._exchanges.append(exchange)
        response = await self._inner.handle_async_request(request)
        exchange.status = response.status_code
        exchange.headers = [(n.lower(), v) for n, v in response.headers.multi_items()]
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_Noted(stream, exchange),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Noted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._inner, self._exchange = inner, exchange

    async def __aiter__(self) -> Any:
        async for data in self._inner:
            self._exchange.chunks.append((time.monotonic(), data))
            yield data
        self._exchange.whole = True
        self._exchange.ended_s = time.monotonic()

    async def aclose(self) -> None:
        await self._inner.aclose()


async def ask_with_sdk(
    port: int, key: str, request: Mapping[str, Any], *, retries: int = 0
) -> list[Exchange]:
    """One chat request through openai-python; an exchange for each try, the last one judged."""
    exchanges: list[Exchange] = []
    error: BaseException | None = None
    text = ""
    async with httpx2.AsyncClient(transport=_Tee(exchanges)) as http:
        client = openai.AsyncOpenAI(
            api_key=key,
            base_url=f"http://127.0.0.1:{port}/v1",
            max_retries=retries,
            http_client=http,
            timeout=ANSWER_S,
        )
        try:
            answer = await client.chat.completions.create(**_arguments(request))
            if request.get("stream"):
                async for piece in answer:
                    text += _delta(piece)
            else:
                text = answer.choices[0].message.content or ""
        except _RAISED as raised:
            error = raised
    if exchanges:
        exchanges[-1].client_error, exchanges[-1].sdk_text = error, text
    elif error is not None:
        raise error
    return exchanges


def _delta(piece: Any) -> str:
    for choice in piece.choices:
        if choice.index == 0 and choice.delta.content:
            return str(choice.delta.content)
    return ""


def _arguments(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the SDK takes by name; the rest goes into extra_body."""
    known = {"model", "messages", "stream", "stream_options", "n", "max_tokens", "tools"}
    more = {key: value for key, value in request.items() if key not in known}
    arguments: dict[str, Any] = {key: request[key] for key in known if key in request}
    return arguments | ({"extra_body": more} if more else {})
