"""Where can an upstream put what no client may hear, and how is it found again?

Twenty words of the inside of a provider; every place of an answer that can hold words; and an
upstream that puts them there, told by the name of the model.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from tests.acceptance.worlds import DONE, completion, event
from tidegate.testing.scripted import STREAM_HEAD, UpstreamExchange, answer_bytes, chunk_bytes

# Each is one token that occurs nowhere else; {} is replaced by it.
_FORMS = (
    "db-{}.internal.example",
    "10.1.2.3:{}",
    "sk-proj-{}",
    "Bearer {}",
    "org-{}",
    "quota-{}.svc.cluster.local",
    "/srv/{}/app/handlers.py",
    "Traceback (most recent call last): File {}, line 4",
    "proj_{}",
    "deployment {}",
    "gpt-inner-{}",
    "s3://bucket-{}/logs",
    "us-east-{}",
    "account {} (tier 4)",
    "SELECT * FROM {}_keys",
    "postgres://svc_{}@db/main",
    "KeyError: '{}'",
    "pod {}-7f9c",
    "https://console.{}.example/billing",
    "req_{}",
)


class Canaries:
    """Twenty words. `length` makes them longer, which must not show either."""

    def __init__(self, name: str, *, length: int = 8) -> None:
        self.tokens = [f"{name}{n:02d}" + "zqxwvk"[n % 6] * length for n in range(len(_FORMS))]
        self.words = [form.format(token) for form, token in zip(_FORMS, self.tokens, strict=True)]
        self.text = "; ".join(self.words)
        self._forms = {
            form: token for token in self.tokens for form in _written(token.encode("ascii"))
        }

    def found(self, seen: bytes) -> list[str]:
        """The words of which `seen` holds something, in any case and in the usual codings."""
        lower = seen.lower()
        return sorted({token for form, token in self._forms.items() if form in lower})


def _written(token: bytes) -> set[bytes]:
    coded = [b64encode(b"x" * shift + token)[4:-4] for shift in range(3)]
    return {form.lower() for form in (token, token.hex().encode(), token[::-1], *coded)}


def headers(c: Canaries) -> list[tuple[str, str]]:
    """Every header that an upstream or something before it is known to add, and some names."""
    w = [word.replace("\n", " ") for word in c.words]
    return [
        ("Server", w[0]),
        ("X-Upstream-Host", w[0]),
        ("Via", f"1.1 {w[1]}"),
        ("X-Request-Id", w[19]),
        ("OpenAI-Organization", w[4]),
        ("OpenAI-Processing-Ms", f"12 {w[17]}"),
        ("OpenAI-Version", f"2020-10-01 {w[10]}"),
        ("OpenAI-Model", w[10]),
        ("Set-Cookie", f"session={c.tokens[2]}; Path=/"),
        ("Location", w[18]),
        ("WWW-Authenticate", f'Bearer realm="{w[5]}", error="{c.tokens[3]}"'),
        ("Retry-After", w[12]),
        ("Retry-After-Ms", c.tokens[12]),
        ("X-RateLimit-Reset-Tokens", c.tokens[13]),
        ("X-RateLimit-Remaining-Requests", c.tokens[13]),
        ("X-Should-Retry", c.tokens[1]),
        ("CF-Ray", c.tokens[14]),
        ("Warning", f'199 {c.tokens[0]} "{w[16]}"'),
        ("Link", f"<{quote(w[11])}>; rel=next"),
        ("Content-Language", c.tokens[9]),
        ("Server-Timing", f"{c.tokens[15]};dur=3"),
        ("Access-Control-Allow-Origin", w[18]),
        ("X-Tidegate-Provider", w[7]),
        ("X-Tidegate-Attempts", w[8]),
        ("Trailer", f"X-{c.tokens[16]}"),
        (f"X-{c.tokens[6]}", w[6]),
        (c.tokens[17], "1"),
    ]


JSON = "application/json"
BODIES: Mapping[str, Callable[[Canaries], tuple[str, bytes]]] = {
    "error": lambda c: (JSON, _json(error=_error(c))),
    "aggregator": lambda c: (
        JSON,
        _json(
            error={
                **_error(c),
                "code": 502,
                "metadata": {"raw": c.text, "provider_name": c.words[0]},
                "innererror": {"code": c.words[1], "message": c.text},
                "details": [{"reason": c.words[2], "@type": c.words[18]}],
            },
            user_id=c.words[4],
        ),
    ),
    "detail": lambda c: (JSON, _json(detail=[{"loc": ["body", c.words[6]], "msg": c.text}])),
    "message": lambda c: (JSON, _json(message=c.text, request_id=c.words[19])),
    "list": lambda c: (JSON, json.dumps([{"error": _error(c)}]).encode()),
    "text": lambda c: ("text/plain", c.text.encode()),
    "html": lambda c: (
        "text/html; charset=utf-8",
        f"<html><title>{c.words[0]}</title><pre>{c.text}</pre></html>".encode(),
    ),
    "bytes": lambda c: (f"application/{c.tokens[9]}", b"\xff\xfe\x00" + c.text.encode("utf-16")),
    "cut": lambda c: (JSON, _json(error=_error(c))[:-3]),
    "nothing": lambda c: (f"{JSON}; charset={c.tokens[9]}", b""),
    # Words that lead to an answer of their own, each with all the rest beside them.
    "context": lambda c: (JSON, _json(error=_error(c, code="context_length_exceeded"))),
    "filter": lambda c: (JSON, _json(error=_error(c, code="content_filter"))),
    "quota": lambda c: (JSON, _json(error=_error(c, code="insufficient_quota"))),
    "key": lambda c: (JSON, _json(error=_error(c, code="invalid_api_key"))),
    "model": lambda c: (JSON, _json(error=_error(c, code="model_not_found"))),
    "usage": lambda c: (JSON, _json(error=_error(c, message=f"unknown stream_options {c.text}"))),
}


def _json(**members: object) -> bytes:
    return json.dumps(members).encode()


def _error(c: Canaries, **more: object) -> dict[str, object]:
    return {"message": c.text, "type": c.words[7], "code": c.words[16], "param": c.words[6], **more}


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _chunk(**choice: object) -> dict[str, object]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}


# What stands in a stream where an event could stand.
EVENTS: Mapping[str, Callable[[Canaries], bytes]] = {
    "error": lambda c: _event({"error": _error(c)}),
    "error string": lambda c: _event({"error": c.text}),
    "error raw": lambda c: _event(
        {"error": {**_error(c), "code": 502, "metadata": {"raw": c.text}}, "provider": c.words[0]}
    ),
    "error named": lambda c: b"event: error\n" + _event(_error(c)),
    "error Named": lambda c: b"event: Error\n" + _event(_error(c)),
    "exception named": lambda c: b"event: exception\n" + _event({"message": c.text}),
    "object error": lambda c: _event({"object": "error", **_error(c)}),
    "type error": lambda c: _event({"type": "error", "message": c.text}),
    "detail": lambda c: _event({"detail": c.text}),
    "errors": lambda c: _event({"errors": [{"message": c.text}], "success": False}),
    "fault": lambda c: _event({"fault": {"faultstring": c.text}}),
    "code": lambda c: _event({"error_code": c.words[16], "message": c.text}),
    "list": lambda c: _event([{"error": _error(c)}]),
    "word": lambda c: _event(c.text),
    "choice": lambda c: _event(_chunk(delta={}, finish_reason="error", error=_error(c))),
    "choice stop": lambda c: _event(_chunk(delta={}, finish_reason="stop", error=_error(c))),
    "choice null": lambda c: _event(_chunk(delta={"content": ""}, error=_error(c))),
    "text": lambda c: b"data: " + c.text.encode() + b"\n\n",
    "html": lambda c: f"<html>{c.text}</html>\n\n".encode(),
    "json": lambda c: _json(error=_error(c)) + b"\n\n",
    "large": lambda c: b"data: " + c.text.encode() * 60 + b"\n\n",
    # These are no errors: what follows them is a good answer, and they are not heard of.
    "comment": lambda c: f": {c.text}\n\n".encode(),
    "id": lambda c: f"id: {c.text}\n\n".encode(),
    "retry": lambda c: f"retry: {c.tokens[0]}\n\n".encode(),
    "name": lambda c: f"event: {c.tokens[7]}\n".encode() + event("! "),
    "field": lambda c: f"{c.tokens[7]}: {c.words[0]}\n".encode() + event("! "),
    "ping": lambda c: _event({"ping": c.text}),
}
GOOD = frozenset({"comment", "id", "retry", "name", "field", "ping", "html", "json"})

# Plain answers with 200 that are none.
ANSWERS: Mapping[str, Callable[[Canaries], tuple[str, bytes]]] = {
    **{name: BODIES[name] for name in BODIES if name != "nothing"},
    "choice": lambda c: (JSON, _answer(c, finish_reason="error", error=_error(c))),
    "choice stop": lambda c: (JSON, _answer(c, error=_error(c))),
    "beside": lambda c: (JSON, completion("hello", error=_error(c))),
    "empty": lambda c: (JSON, _json(choices=[], id=c.words[19])),
    "fault": lambda c: (JSON, _json(fault={"faultstring": c.text})),
    "stream": lambda c: ("text/event-stream", EVENTS["error"](c)),
}


def _answer(c: Canaries, **more: object) -> bytes:
    message = {"role": "assistant", "content": ""}
    return completion(
        "", choices=[{"index": 0, "message": message, "finish_reason": "stop", **more}]
    )


def raw(c: Canaries, status: int, kind: str, body: bytes) -> bytes:
    """One whole answer with every header, an odd reason, and what came before it."""
    early = f"HTTP/1.1 103 {c.tokens[0]}\r\nLink: <{c.tokens[1]}>\r\n\r\n".encode()
    if status in (304,):
        body = b""
    pairs = [("Content-Type", kind), *headers(c)]
    answer = answer_bytes(status, headers=pairs, body=body)
    return early + answer.replace(b" Answer\r\n", f" {c.words[3]}\r\n".encode(), 1)


def stream(c: Canaries, place: str, name: str) -> list[bytes]:
    """The pieces of a stream with this in it: `before` the first word, `after` it, at the `end`."""
    head = STREAM_HEAD.replace(b" Answer\r\n", f" {c.words[3]}\r\n".encode(), 1)
    named = "".join(f"{key}: {value}\r\n" for key, value in headers(c)).encode("latin-1")
    odd = EVENTS[name](c)
    good = [event("Hello! "), event("there. ")]
    parts = {
        "before": [odd, *good],
        "after": [good[0], odd, good[1]],
        "end": [*good, event(finish="stop"), DONE + odd],
    }[place]
    if place != "end":
        parts += [event(finish="stop"), DONE]
    chunks = [f"{len(p):x};x={c.tokens[0]}\r\n".encode() + p + b"\r\n" for p in parts]
    last = f"0\r\nX-{c.tokens[16]}: {c.words[16]}\r\n\r\n".encode()
    return [head[:-2] + named + b"\r\n", *chunks, last]


class Leaky:
    """An upstream. Models: `status/500/html`, `stream/after/detail`, `plain/beside`, `good`."""

    def __init__(self, canaries: Canaries) -> None:
        self.canaries = canaries
        self.asked = 0

    async def __call__(self, exchange: UpstreamExchange) -> None:
        """The script of every request."""
        self.asked += 1
        body: dict[str, Any] = json.loads(exchange.request.body)
        shape, *words = str(body["model"]).split("/")
        with suppress(ConnectionError):
            for piece in self._pieces(shape, words, streams=body.get("stream") is True):
                await exchange.send(piece)

    def _pieces(self, shape: str, words: list[str], *, streams: bool) -> list[bytes]:
        c = self.canaries
        if shape == "status":
            return [raw(c, int(words[0]), *BODIES[words[1]](c))]
        if shape == "stream":
            return stream(c, words[0], words[1])
        if shape == "plain":
            return [raw(c, 200, *ANSWERS[words[0]](c))]
        if streams:
            return [STREAM_HEAD, chunk_bytes(event("ok") + event(finish="stop") + DONE + b"")]
        return [raw(c, 200, JSON, completion("hello"))]
