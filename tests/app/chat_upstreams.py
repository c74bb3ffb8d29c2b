"""What may a provider send, in exactly which order, without a socket?

A transport that runs a script for each attempt, and the words of the OpenAI dialect that the
scripts say.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from tidegate.testing.asgi import WAIT_S
from tidegate.transport.upstream import Failure, ResponseSink, UpstreamRequest


def delta(index: int = 0, finish: str | None = None, **fields: object) -> bytes:
    """The payload of one event of a stream."""
    choice = {"index": index, "delta": fields, "finish_reason": finish}
    return json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}).encode()


def event(payload: bytes | Mapping[str, object]) -> bytes:
    """One event with this payload."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return b"data: " + data + b"\n\n"


def completion(text: str, **fields: object) -> dict[str, object]:
    """A whole answer with usage 12 + 31."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 31, "total_tokens": 43},
        **fields,
    }


ROLE = event(delta(role="assistant", content=""))
HEL = event(delta(content="Hel"))
# A word that nothing can lengthen: it leaves at once.
BANG = event(delta(content="Hel!"))
LO = event(delta(content="lo"))
STOP = event(delta(finish="stop"))
DONE = event(b"[DONE]")
USAGE = event({"choices": [], "usage": completion("")["usage"]})  # type: ignore[dict-item]
CANARY = "-".join(("canary", "org", "4417"))
ERROR_OBJECT = {"error": {"message": f"failed at {CANARY}", "type": "server_error", "code": None}}
ERROR = event(ERROR_OBJECT)
HELLO = ROLE + HEL + LO + STOP + USAGE + DONE


class Asked:
    """One attempt as the provider got it; its answer comes from the script."""

    def __init__(self, request: UpstreamRequest, sink: ResponseSink, connect_s: float) -> None:
        self.request = request
        self.provider = (urlsplit(request.url).hostname or "").removesuffix(".example")
        self.headers = {name.lower(): value for name, value in request.headers}
        self.body = request.body
        self.connect_s = connect_s
        self.over = False
        self.gone = asyncio.Event()
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.task: asyncio.Task[None] | None = None
        self._sink = sink

    def head(self, status: int = 200, kind: str = "text/event-stream", **more: str) -> None:
        """Status and headers; `retry_after="3"` stands for Retry-After."""
        if not self.over:
            named = {name.replace("_", "-"): value for name, value in more.items()}
            self._sink.on_head(status, {"content-type": kind, **named})

    def send(self, *pieces: bytes) -> None:
        """Each piece is one read of the gateway's, unless it did not come to read in between."""
        for piece in pieces:
            if not self.over:
                self._sink.on_body(piece)

    def end(self) -> None:
        """The clean end of the message."""
        if not self.over:
            self.over = True
            self._sink.on_end()

    def fail(self, failure: Failure = Failure.RESET) -> None:
        """The connection is lost."""
        if not self.over:
            self.over = True
            self._sink.on_failure(failure)

    def pause(self) -> None:
        """Of Attempt."""
        self.flowing.clear()

    def resume(self) -> None:
        """Of Attempt."""
        self.flowing.set()

    def abort(self) -> None:
        """Of Attempt: the gateway has left."""
        if not self.over:
            self.over = True
            self.gone.set()
            if self.task is not None:
                self.task.cancel()


Script = Callable[[Asked], Awaitable[None]]


class Providers:
    """A transport without sockets. Attempt n at a provider runs its script n; the last repeats.

    `asked` holds every attempt in order, `running` those that neither ended nor were aborted. A
    script takes no longer than `bound_s`.
    """

    def __init__(self, **scripts: Script | list[Script]) -> None:
        self.asked: list[Asked] = []
        self.bound_s: float | None = WAIT_S
        self.scripts = {
            name: list(given) if isinstance(given, list) else [given]
            for name, given in scripts.items()
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Event()

    async def until(self, count: int) -> Asked:
        """Wait until `count` attempts were begun; gives the last of them."""
        async with asyncio.timeout(WAIT_S):
            while len(self.asked) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.asked[count - 1]

    @property
    def running(self) -> list[Asked]:
        """Attempts that still hold a connection."""
        return [asked for asked in self.asked if not asked.over]

    @property
    def order(self) -> list[str]:
        """The providers asked, in order."""
        return [asked.provider for asked in self.asked]

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Asked:
        """Of Transport."""
        asked = Asked(request, sink, connect_s)
        mine = sum(earlier.provider == asked.provider for earlier in self.asked)
        self.asked.append(asked)
        self._arrived.set()
        scripts = self.scripts[asked.provider]
        script = scripts[min(mine, len(scripts) - 1)]
        asked.task = asyncio.get_running_loop().create_task(self._run(script, asked))
        self._tasks.add(asked.task)
        asked.task.add_done_callback(self._tasks.discard)
        return asked

    async def _run(self, script: Script, asked: Asked) -> None:
        async with asyncio.timeout(self.bound_s):
            await script(asked)

    async def open(self) -> None:
        """Of Transport."""

    async def close(self) -> None:
        """Of Transport: scripts that still wait are ended."""
        for task in tuple(self._tasks):
            task.cancel()

    open_connections = idle_connections = 0


def streams(*pieces: bytes, then: Failure | None = None, hangs: bool = False) -> Script:
    """An event stream of these pieces; then its clean end, a failure, or nothing for ever."""

    async def run(asked: Asked) -> None:
        asked.head()
        for piece in pieces:
            # One turn of the loop after each, so that the gateway reads them one by one.
            await asyncio.wait([asyncio.ensure_future(_turn())])
            asked.send(piece)
        if hangs:
            await asked.gone.wait()
        elif then is not None:
            asked.fail(then)
        else:
            asked.end()

    return run


def answers(
    value: object, status: int = 200, kind: str = "application/json", **more: str
) -> Script:
    """One whole message; bytes leave as they are."""

    async def run(asked: Asked) -> None:
        asked.head(status, kind, **more)
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        asked.send(body) if body else None
        asked.end()

    return run


def fails(failure: Failure = Failure.UNREACHABLE) -> Script:
    """No answer at all."""

    async def run(asked: Asked) -> None:
        asked.fail(failure)

    return run


async def silent(asked: Asked) -> None:
    """Takes the request and says nothing."""
    await asked.gone.wait()


async def _turn() -> None:
    """One turn of the event loop."""


def texts(body: bytes) -> dict[int, str]:
    """The joined text of each choice of a stream that reached the client."""
    found: dict[int, str] = {}
    for data in payloads(body):
        for choice in data.get("choices", ()) if isinstance(data, dict) else ():
            piece = choice["delta"].get("content") or ""
            found[choice["index"]] = found.get(choice["index"], "") + piece
    return found


def payloads(body: bytes) -> list[Any]:
    """The JSON values of a stream that reached the client; "[DONE]" for its end mark."""
    found: list[Any] = []
    for block in body.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if lines and lines != [""]:
            assert len(lines) == 1
            assert lines[0].startswith("data: ")
            data = lines[0].removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found
