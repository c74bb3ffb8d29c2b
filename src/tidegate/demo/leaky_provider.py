"""What does a model answer that knows too much?

Lives here: an OpenAI style provider whose every answer holds an e-mail address, a social security
number, a card number and a key, each of them cut across events, because that is the case a filter
of single events misses. Does not live here: how the gateway masks them (redaction).
"""

from collections.abc import Awaitable, Callable

from tidegate.demo.exchange import (
    Exchange,
    Receive,
    Scope,
    Send,
    choice_count,
    chunk,
    completion,
    usage_chunk,
    wants_usage,
)

MASKED = (
    "Sure! Here is the account owner: [REDACTED_EMAIL]. Their SSN is [REDACTED_SSN] "
    "and the card on file is [REDACTED_CARD]. The internal key is [REDACTED_SECRET]. Anything else?"
)
TOTAL_S = 0.15


def fragments() -> tuple[str, ...]:
    """The pieces of the answer, one an event; no secret is whole in any of them."""
    # Put together here, so that no scanner of sources takes the made-up key for a real one.
    key = ("sk", "-", "abcdef0123", "456789abcd", "ef0123")
    owner = ("Sure", "!", " Here is", " the account", " owner: ja", "ne@exa", "mple", ".com. Their")
    ssn = (" SSN is 12", "3-4", "5-67", "89 and the")
    card = (" card on file", " is 4111 1111", " 1111 1111", ". The internal")
    secret = (" key is ", key[0] + key[1], key[2], key[3], key[4] + ". Any", "thing else", "?")
    return (*owner, *ssn, *card, *secret)


class LeakyProvider:
    """`POST .../chat/completions`, stream and not.

    The events of a stream are spread over `total_s` seconds. `before_event`, if given, replaces
    that pace: it is awaited with the number of each piece of text before the piece is written.
    `events_written` counts them over the life of the provider.
    """

    def __init__(
        self,
        *,
        total_s: float = TOTAL_S,
        before_event: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._pieces = fragments()
        self._pause_s = total_s / len(self._pieces)
        self._before_event = before_event
        self.calls = 0
        self.events_written = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            return
        async with Exchange(scope, receive, send) as exchange:
            if exchange.method != "POST" or not exchange.path.endswith("/chat/completions"):
                await exchange.json(404, {"error": {"message": "no such path", "type": "demo"}})
                return
            self.calls += 1
            request = await exchange.request()
            if request.get("stream") is True:
                await self._stream(exchange, request)
            else:
                choices = [("".join(self._pieces), "stop")] * choice_count(request)
                model = request.get("model", "leaky")
                await exchange.json(200, completion(model, choices, self._usage(len(choices))))

    async def _stream(self, exchange: Exchange, request: dict[str, object]) -> None:
        model, count = request.get("model", "leaky"), choice_count(request)
        await exchange.start_events()
        for index in range(count):
            await exchange.event(chunk(model, index, {"role": "assistant", "content": ""}))
        for number, piece in enumerate(self._pieces):
            if self._before_event is not None:
                await self._before_event(number)
            elif await exchange.gone_within(self._pause_s):
                return
            for index in range(count):
                await exchange.event(chunk(model, index, {"content": piece}))
            self.events_written += 1
        for index in range(count):
            await exchange.event(chunk(model, index, {}, finish="stop"))
        if wants_usage(request):
            await exchange.event(usage_chunk(model, self._usage(count)))
        await exchange.event(b"[DONE]")
        await exchange.end()

    def _usage(self, count: int) -> dict[str, int]:
        written = len(self._pieces) * 2 * count
        return {"prompt_tokens": 9, "completion_tokens": written, "total_tokens": 9 + written}
