"""What does an upstream answer, as bytes?

Lives here: from the keys of `upstream` (status, headers, content_type, sse, json, body, write) or
from words to a head and writes; the chunks and completions that the runner makes up itself. Does
not live here: when they are sent and by which server (provider, backend).
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import brotli

from tests.casebook.writes import Write, paced, plan

PIXELS = "iVBORw0KGgo"


class CannotAnswer(ValueError):
    """Keys or words that describe no answer."""


@dataclass(frozen=True)
class Canned:
    """One answer. `plain` is the body before any content coding, for comparison."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    writes: tuple[Write, ...] = ()
    plain: bytes = b""
    stream: bool = False


def chunk(delta: Mapping[str, Any], *, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    """One chat.completion.chunk."""
    choice = {"index": index, "delta": dict(delta), "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def event(value: object) -> bytes:
    """One event with that JSON value as data."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def stream(texts: list[str], *, finish: str | None = "stop", done: bool = True) -> bytes:
    """A whole stream of text deltas."""
    events = [event(chunk({"content": text})) for text in texts]
    if finish:
        events.append(event(chunk({}, finish=finish)))
    return b"".join(events) + (b"data: [DONE]\n\n" if done else b"")


def completion(text: str | None, **more: Any) -> dict[str, Any]:
    """One chat.completion."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    } | more


def default(*, streamed: bool) -> Canned:
    """What a provider says when the case does not."""
    if streamed:
        return _canned(200, {"Content-Type": "text/event-stream"}, stream(["ok"]), "", slow=False)
    body = json.dumps(completion("ok")).encode()
    return _canned(200, {"Content-Type": "application/json"}, body, "", slow=False)


def streamed(texts: list[str]) -> Canned:
    """One delta for each text, each in a write of its own."""
    headers = {"Content-Type": "text/event-stream"}
    return _canned(200, headers, stream(texts), "one event per write", slow=False)


def canned(upstream: Mapping[str, Any], *, slow: bool = False, pace: bool = False) -> Canned:
    """The answer that the keys of `upstream` describe; raises CannotAnswer."""
    headers = {str(name): str(value) for name, value in (upstream.get("headers") or {}).items()}
    status = int(upstream.get("status", 200))
    streamed = "sse" in upstream
    if streamed:
        body = _bytes(upstream["sse"], _stream_words)
        headers.setdefault("Content-Type", "text/event-stream")
    elif "json" in upstream:
        body = _bytes(upstream["json"], _json_words)
        headers.setdefault("Content-Type", "application/json")
    else:
        body = _bytes(upstream.get("body", ""), str)
        headers.setdefault("Content-Type", "application/json")
    if "content_type" in upstream:
        headers["Content-Type"] = str(upstream["content_type"])
    made = _canned(status, headers, body, str(upstream.get("write", "")), slow=slow)
    if not pace:
        return made
    writes = made.writes if len(made.writes) > 1 else tuple(plan("each event", made.plain))
    return replace(made, writes=tuple(paced(writes)))


def _bytes(value: object, words: Callable[[str], object]) -> bytes:
    if isinstance(value, str) and not _LITERAL.search(value):
        value = words(value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False).encode()


# A string that is the body itself and not a description of it: an event stream, or JSON.
_LITERAL = re.compile(r"(?:^|[\r\n\ufeff])(?:data|event|id|retry|):|^\s*(?:[{\[]|$)")


def _canned(
    status: int, headers: Mapping[str, str], body: bytes, write: str, *, slow: bool
) -> Canned:
    coding = next((v for n, v in headers.items() if n.lower() == "content-encoding"), "")
    streamed = any("event-stream" in value for value in headers.values())
    writes = plan(write, body, slow=slow)
    if coding:
        pieces = plan("each event", body) if streamed and not write else writes
        writes = _coded(coding.lower(), pieces)
    return Canned(status, tuple(headers.items()), tuple(writes), body, streamed)


def _coded(coding: str, writes: list[Write]) -> list[Write]:
    """The writes compressed, flushed after each one."""
    if coding in ("gzip", "x-gzip", "deflate"):
        packer = zlib.compressobj(wbits=31 if "gzip" in coding else 15)
        coded = [
            Write(packer.compress(w.data) + packer.flush(zlib.Z_SYNC_FLUSH), w.pause_s)
            for w in writes
        ]
        return [*coded, Write(packer.flush())]
    if coding == "br":
        pressed = brotli.Compressor()
        coded = [Write(pressed.process(w.data) + pressed.flush(), w.pause_s) for w in writes]
        return [*coded, Write(pressed.finish())]
    if coding == "identity":
        return writes
    raise CannotAnswer(f"content coding {coding}")


def _json_words(words: str) -> object:
    """`json` in words: a completion, or an error body."""
    if found := re.search(r'completion with (?:the )?content "((?:[^"\\]|\\.)*)"', words):
        return completion(found[1])
    if "error" in words:
        return {"error": {"message": "bad request of org-4417", "type": "x", "code": "x"}}
    if "completion" in words:
        return completion("ok")
    raise CannotAnswer(words)


def _stream_words(words: str) -> object:
    """`sse` in words: large fields, series of deltas, compressed streams."""
    if found := re.search(
        r"delta carries (?P<field>[\w\[\].]+) = (?P<prefix>\S+) \+ (?P<count>\d+) characters", words
    ):
        delta: dict[str, Any] = {}
        value = found["prefix"].rstrip(",") + "," + _pixels(int(found["count"]))
        _put(delta, re.findall(r"\w+", found["field"]), value)
        after = re.search(r'then (?:the )?text "([^"]*)"', words)
        return event(chunk(delta)) + stream([after[1]] if after else ["done"])
    if found := re.search(
        r"(\d+) (?:text )?(?:deltas|events|chunks)(?: of (\d+) characters)?", words
    ):
        size = int(found[2] or 2)
        return stream(["x" * (size - 1) + " "] * int(found[1]))
    if found := re.search(r'texts? "((?:[^"\\]|\\.)*)"', words):
        return stream([found[1]])
    if "stream" in words:
        return stream(["mail jane@exa", "mple.com ", "now"])
    raise CannotAnswer(words)


def _pixels(count: int) -> str:
    return (PIXELS * (count // len(PIXELS) + 1))[:count]


def _put(target: dict[str, Any], path: list[str], value: object) -> None:
    """Set `a.0.b` style paths: a number makes a list of one."""
    key, rest = path[0], path[1:]
    if not rest:
        target[key] = value
    elif rest[0].isdigit():
        inner: dict[str, Any] = {}
        target[key] = [inner]
        _put(inner, rest[1:], value)
    else:
        target[key] = {}
        _put(target[key], rest, value)
