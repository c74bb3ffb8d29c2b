"""How do model providers fail, and can each failure be had on command?

Lives here: two OpenAI style providers, `/primary/v1` and `/backup/v1`, whose behavior is set by
`POST /_set?provider=primary&behaviour=429` while they run. Their error bodies name hosts and
accounts on purpose: nothing of that may pass the gateway. Does not live here: what the gateway
makes of a failure (routing).
"""

from enum import StrEnum

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

NAMES = ("primary", "backup")
USAGE = {"prompt_tokens": 12, "completion_tokens": 31, "total_tokens": 43}
LEAKS = ("db-3.us-east-1.internal", "quota-svc-7.internal", "org-4417")
SLOW_S = 10.0
_DRIBBLE_S = 0.05


class Behavior(StrEnum):
    """What a provider does with the next requests."""

    OK = "ok"
    TOO_MANY = "429"
    BROKEN = "500"
    REJECT = "400"
    SLOW = "slow"
    HANG = "hang"
    DRIBBLE = "dribble"
    CUT = "cut"
    MALFORMED = "malformed"


_ERRORS: dict[Behavior, tuple[int, dict[str, object]]] = {
    Behavior.TOO_MANY: (
        429,
        {
            "message": f"Rate limit reached for {LEAKS[2]}; bucket held by {LEAKS[1]}",
            "type": "rate_limit_error",
            "code": "rate_limit_exceeded",
        },
    ),
    Behavior.BROKEN: (
        500,
        {
            "message": f"psycopg.OperationalError: connection to {LEAKS[0]} refused",
            "type": "server_error",
            "code": None,
        },
    ),
    Behavior.REJECT: (
        400,
        {
            "message": f"Invalid value in the request of {LEAKS[2]}, see {LEAKS[0]}",
            "type": "invalid_request_error",
            "code": None,
        },
    ),
}


class Providers:
    """Both providers and their switch, as one ASGI application.

    `POST /_set?provider=P&behaviour=B` changes a behavior, `GET /_state` shows the behaviors and
    counts `calls` and `gone` (clients that left before the answer was complete).
    """

    def __init__(self, *, slow_s: float = SLOW_S) -> None:
        self.behavior = dict.fromkeys(NAMES, Behavior.OK)
        self.calls = dict.fromkeys(NAMES, 0)
        self.gone = dict.fromkeys(NAMES, 0)
        self._slow_s = slow_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            return
        async with Exchange(scope, receive, send) as exchange:
            name = exchange.path.split("/")[1]
            if exchange.path == "/_set" and exchange.method == "POST":
                await self._set(exchange)
            elif exchange.path == "/_state" and exchange.method == "GET":
                await exchange.json(200, self.state())
            elif name in NAMES and exchange.path == f"/{name}/v1/chat/completions":
                await self._chat(exchange, name)
            else:
                await exchange.json(404, {"error": {"message": "no such path", "type": "demo"}})

    def state(self) -> dict[str, dict[str, object]]:
        """Behavior and counts of each provider."""
        return {
            name: {
                "behaviour": self.behavior[name].value,
                "calls": self.calls[name],
                "gone": self.gone[name],
            }
            for name in NAMES
        }

    async def _set(self, exchange: Exchange) -> None:
        await exchange.body()
        name, wanted = exchange.query.get("provider", ""), exchange.query.get("behaviour", "")
        if name not in NAMES or wanted not in {*Behavior}:
            choices = "|".join(Behavior)
            usage = f"POST /_set?provider={'|'.join(NAMES)}&behaviour={choices}"
            await exchange.json(400, {"error": usage})
            return
        self.behavior[name] = Behavior(wanted)
        await exchange.json(200, self.state())

    async def _chat(self, exchange: Exchange, name: str) -> None:
        self.calls[name] += 1
        request = await exchange.request()
        behavior = self.behavior[name]
        streamed = request.get("stream") is True
        if behavior in _ERRORS:
            status, error = _ERRORS[behavior]
            await exchange.json(status, {"error": error}, ((b"x-served-by", LEAKS[1].encode()),))
        elif behavior is Behavior.MALFORMED:
            await self._malformed(exchange, streamed=streamed)
        elif behavior is Behavior.DRIBBLE:
            await self._dribble(exchange, name, streamed=streamed)
        elif behavior in (Behavior.HANG, Behavior.SLOW) and await self._silent(exchange, behavior):
            self.gone[name] += 1
        elif streamed:
            await self._stream(exchange, name, request)
        else:
            await self._whole(exchange, name, request)

    async def _silent(self, exchange: Exchange, behavior: Behavior) -> bool:
        return await exchange.gone_within(None if behavior is Behavior.HANG else self._slow_s)

    async def _malformed(self, exchange: Exchange, *, streamed: bool) -> None:
        text = f"<html><body>502 from {LEAKS[0]}</body></html>".encode()
        if not streamed:
            await exchange.json(200, text)
            return
        await exchange.start_events()
        await exchange.event(text)
        await exchange.end()

    async def _dribble(self, exchange: Exchange, name: str, *, streamed: bool) -> None:
        """Bytes often enough to keep any read timer from firing, and never an answer."""
        if streamed:
            await exchange.start_events()
        else:
            await exchange.head(200, ((b"content-type", b"application/json"),))
        while not await exchange.gone_within(_DRIBBLE_S):
            await exchange.write(b": still thinking\n\n" if streamed else b" ")
        self.gone[name] += 1

    async def _whole(self, exchange: Exchange, name: str, request: dict[str, object]) -> None:
        choices = [(_text(name), "stop")] * choice_count(request)
        answer = completion(request.get("model", name), choices, USAGE)
        if self.behavior[name] is not Behavior.CUT:
            await exchange.json(200, answer)
            return
        await exchange.head(200, ((b"content-type", b"application/json"),))
        await exchange.write(b'{"id":"chatcmpl-demo","object":"chat.completion","choi')

    async def _stream(self, exchange: Exchange, name: str, request: dict[str, object]) -> None:
        model, count = request.get("model", name), choice_count(request)
        words = _text(name).split(" ")
        await exchange.start_events()
        for index in range(count):
            await exchange.event(chunk(model, index, {"role": "assistant", "content": ""}))
        for number, word in enumerate(words):
            if number == len(words) // 2 and self.behavior[name] is Behavior.CUT:
                return
            for index in range(count):
                text = word if number == 0 else f" {word}"
                await exchange.event(chunk(model, index, {"content": text}))
        for index in range(count):
            await exchange.event(chunk(model, index, {}, finish="stop"))
        if wants_usage(request):
            await exchange.event(usage_chunk(model, USAGE))
        await exchange.event(b"[DONE]")
        await exchange.end()


def _text(name: str) -> str:
    return f"Hello from {name}. How may I help you today?"
