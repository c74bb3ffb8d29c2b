"""What the tests of one attempt share: a transport and its upstream, and a sink that remembers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import Script, ScriptedUpstream
from tidegate.transport import Failure, UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def world(
    *scripts: Script, at_once_s: float = WAIT_S
) -> AsyncIterator[tuple[AiohttpTransport, ScriptedUpstream]]:
    transport = AiohttpTransport(at_once_s=at_once_s)
    await transport.open()
    try:
        async with ScriptedUpstream(*scripts) as upstream:
            yield transport, upstream
            await transport.close()
            assert transport.open_connections == 0
    finally:
        await transport.close()


class Log:
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.changed = asyncio.Event()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._add((status, dict(headers)))

    def on_body(self, chunk: bytes) -> None:
        self._add(chunk)

    def on_end(self) -> None:
        self._add("end")

    def on_failure(self, failure: Failure) -> None:
        self._add(failure)

    def _add(self, what: object) -> None:
        self.told.append(what)
        self.changed.set()

    async def until(self, true: Callable[[list[object]], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true(self.told):
                self.changed.clear()
                await self.changed.wait()

    @property
    def over(self) -> bool:
        return bool(self.told) and (self.told[-1] == "end" or isinstance(self.told[-1], Failure))


async def turns(count: int) -> None:
    """Let the loop turn, so that whatever can move has moved."""
    for _ in range(count):
        turned = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turned.set_result, None)
        await turned


def post(upstream: ScriptedUpstream, *, replayable: bool = False) -> UpstreamRequest:
    return UpstreamRequest(
        "POST",
        upstream.url + "/v1/a%2Fb?x=%41&y=1",
        (("Content-Type", "application/json"), ("X-Key", "k"), ("Host", "evil")),
        b'{"n":1}',
        replayable=replayable,
    )


async def told(
    transport: AiohttpTransport, upstream: ScriptedUpstream, *, replayable: bool = False
) -> list[object]:
    sink = Log()
    transport.start(post(upstream, replayable=replayable), sink, connect_s=WAIT_S)
    assert sink.told == []
    await sink.until(lambda _: sink.over)
    return sink.told
