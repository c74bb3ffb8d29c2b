"""How is an answer written over HTTP, as one JSON document or as an event stream?

Lives here: heads, bodies, events, and when a stream is begun: with the first message that is no
answer, or when the answer takes so long that something must be said. Does not live here: which
messages there are (outbox), what is refused (doors, http).
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from tidegate import strictjson
from tidegate.jsonrpc import Id, error_body
from tidegate.tools.doors import Refusal
from tidegate.tools.outbox import Item, Outbox

Header = tuple[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PING_S: Final = 15.0
_JSON: Final[Header] = (b"content-type", b"application/json")
_STREAM: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    # Proxies such as nginx would otherwise collect the stream before passing it on.
    (b"x-accel-buffering", b"no"),
)
_RETRY_MS: Final = 500
"""How soon a client comes back for a stream that a tool has let go."""


class Reply:
    """Answers one HTTP request, once. `extra` are headers of every answer."""

    def __init__(self, send: Send, *, ping_s: float = PING_S) -> None:
        self._send = send
        self._ping_s = ping_s
        self.extra: list[Header] = []
        self.started = False
        self.streamed = False
        self.gone = False

    async def whole(self, status: int, data: bytes = b"", headers: tuple[Header, ...] = ()) -> None:
        """One JSON document, or nothing."""
        kind = (_JSON,) if data else ()
        length = () if status == 204 else ((b"content-length", b"%d" % len(data)),)
        await self._head(status, (*kind, *length, *headers))
        await self._send({"type": "http.response.body", "body": data})

    async def refuse(self, refusal: Refusal, id: Id | None = None) -> None:  # noqa: A002
        """A status and the error of JSON-RPC that goes with it."""
        body = error_body(id, refusal.code, refusal.message, refusal.data)
        await self.whole(refusal.status, strictjson.dumps(body), refusal.headers)

    async def relay(self, outbox: Outbox, *, events: bool, batch: bool = False) -> None:
        """Everything of `outbox`; as one document as long as there are only answers.

        `events`: the client takes a stream. Without it all but the answers is left out. Writes
        nothing if there was no answer.
        """
        answers: list[Item] = []
        reader = outbox.reader
        while not reader.over:
            item = await reader.next(self._ping_s)
            if self.gone:
                return
            if item is not None and item.answers is not None and not self.started:
                answers.append(item)
            elif events and (item is not None or not reader.over or reader.left):
                await self._begin(outbox, answers, taken=item is not None)
                await self._body(b": ping\n\n" if item is None else _event(item))
        if self.started:
            await self._send({"type": "http.response.body", "body": b""})
        elif batch and answers:
            order = {key: place for place, key in enumerate(outbox.order)}
            answers.sort(key=lambda item: order[item.answers or (False, 0)])
            await self.whole(200, b"[" + b",".join(item.data for item in answers) + b"]")
        elif answers:
            await self.whole(answers[0].status, answers[0].data)

    async def stream(self, outbox: Outbox) -> None:
        """Everything of `outbox` as a stream that has begun already."""
        await self._begin(outbox, [], taken=False)
        await self.relay(outbox, events=True)

    async def _begin(self, outbox: Outbox, answers: list[Item], *, taken: bool) -> None:
        if self.started:
            return
        self.streamed = True
        await self._head(200, _STREAM)
        if outbox.name is not None and outbox.primed:
            # What a client needs that is told to come back before it has seen any event.
            sent = outbox.reader.seen - len(answers) - taken
            first = f"id: {outbox.name}-{sent}\nretry: {_RETRY_MS}\ndata: \n\n"
            await self._body(first.encode())
        for item in answers:
            await self._body(_event(item))
        answers.clear()

    async def _body(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _head(self, status: int, headers: tuple[Header, ...]) -> None:
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*self.extra, *headers],
            }
        )


def _event(item: Item) -> bytes:
    place = b"" if item.event_id is None else f"id: {item.event_id}\n".encode()
    return b"%sevent: message\ndata: %s\n\n" % (place, item.data)


__all__ = ["PING_S", "Header", "Reply", "Send"]
