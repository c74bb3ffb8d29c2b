"""What does a failing provider hold while it answers one request?

Lives here: the request with what was ordered for it, the waits that notice a client that leaves,
and the good answer in pieces. Does not live here: the faults themselves (faults_answers,
faults_streams, faults_wire), who orders them (providers).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate import strictjson
from tidegate.demo.exchange import (
    Exchange,
    Header,
    choice_count,
    chunk,
    completion,
    usage_chunk,
    wants_usage,
)
from tidegate.demo.leaks import HEADERS

USAGE = {"prompt_tokens": 12, "completion_tokens": 31, "total_tokens": 43}
JSON = b"application/json"
EVENTS = b"text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to happen to one request.

    `wait_s` is the time that the behavior is about, `status` and `form` the variant wanted.
    `turn` counts the requests since the order was given, from 0; `times` is how many of them
    it is for (None: all).
    """

    name: str = "ok"
    wait_s: float = 0.0
    status: int = 500
    form: str = ""
    turn: int = 0
    times: int | None = None


class Act:
    """One request at a provider, on its way to the ordered end.

    `left` says that the client went away before the answer was complete.
    """

    def __init__(
        self, exchange: Exchange, provider: str, request: dict[str, object], order: Order
    ) -> None:
        self.exchange = exchange
        self.provider = provider
        self.request = request
        self.order = order
        self.stream = request.get("stream") is True
        self.model = request.get("model", provider)
        self.choices = choice_count(request)
        self.left = False

    @property
    def text(self) -> str:
        """The whole good answer: nine words."""
        return f"Hello from {self.provider}. How may I help you today?"

    def whole(self, usage: object = USAGE) -> dict[str, object]:
        """The good answer as one document."""
        answer = completion(self.model, [(self.text, "stop")] * self.choices, USAGE)
        return {**answer, "usage": usage}

    async def gone_within(self, seconds: float | None) -> bool:
        """Wait, for ever with None; true when the client has left, which is noted."""
        self.left = self.left or await self.exchange.gone_within(seconds)
        return self.left

    async def head(self, kind: bytes = b"", status: int = 200, more: Sequence[Header] = ()) -> None:
        """Status and headers without a length; `kind` b"" is what fits the request."""
        kind = kind or (EVENTS if self.stream else JSON)
        await self.exchange.head(status, ((b"content-type", kind), *more, *HEADERS))

    async def document(
        self, value: object, status: int = 200, more: Sequence[Header] = (), kind: bytes = JSON
    ) -> None:
        """One whole message; bytes go out as they are, anything else as JSON."""
        data = value if isinstance(value, bytes) else strictjson.dumps(value)
        await self.head(kind, status, (*more, (b"content-length", b"%d" % len(data))))
        if data:
            await self.exchange.write(data)
        await self.exchange.end()

    async def roles(self) -> None:
        """The event that opens each choice."""
        for index in range(self.choices):
            delta = {"role": "assistant", "content": ""}
            await self.exchange.event(chunk(self.model, index, delta))

    async def words(self, start: int = 0, stop: int | None = None, pause_s: float = 0.0) -> bool:
        """The words [start, stop), an event each; false when the client left in a pause."""
        for number, word in enumerate(self.text.split(" ")):
            if number < start or (stop is not None and number >= stop):
                continue
            if pause_s and await self.gone_within(pause_s):
                return False
            for index in range(self.choices):
                text = word if number == 0 else f" {word}"
                await self.exchange.event(chunk(self.model, index, {"content": text}))
        return True

    async def finish(self, usage: object = USAGE, *, done: bool = True) -> None:
        """The rest of a good stream: finish reasons, usage if it was asked for, end mark."""
        for index in range(self.choices):
            await self.exchange.event(chunk(self.model, index, {}, finish="stop"))
        if wants_usage(self.request) and usage is not None:
            await self.exchange.event({**usage_chunk(self.model, USAGE), "usage": usage})
        if done:
            await self.exchange.event(b"[DONE]")
        await self.exchange.end()

    async def good(self, usage: object = USAGE) -> None:
        """The good answer in the form that was asked for."""
        if not self.stream:
            await self.document(self.whole(usage))
            return
        await self.head()
        await self.roles()
        await self.words()
        await self.finish(usage)


__all__ = ["EVENTS", "JSON", "USAGE", "Act", "Order"]
