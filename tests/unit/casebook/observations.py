"""Which observations does a test of a rule need, right ones and wrong ones?

Short makers of exchanges, conversations and cases, without any process or socket.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.casebook.answers import chunk, event, stream
from tests.casebook.cases import Case
from tests.casebook.seen import Call, Exchange, Reply, Seen, Sent, Talk

ID = "0123456789abcdef"
KEY = "provider-key"
MAIL = "jane@example.com"
CARD = " ".join(["4111", "1111", "1111", "1111"])


def case(kind: str, *sentences: str, **expect: Any) -> Case:
    """A case that expects this; `given` holds keys of its input."""
    given = expect.pop("given", {})
    return Case("X-1", "", {"kind": kind, **given}, {"assert": list(sentences), **expect}, "x:1")


def envelope(code: str = "gateway.invalid_request", **more: Any) -> dict[str, Any]:
    """An error as the gateway tells it."""
    error = {"type": "invalid_request_error", "code": code, "message": "no", "request_id": ID}
    return {"error": error | more}


def rpc(identifier: object = 1, *, error: int | None = None, data: Any = None, **more: Any) -> Any:
    """A JSON-RPC answer: an error with that code, or a result."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": identifier}
    if error is None:
        return message | {"result": more.get("result", {})}
    body = {"code": error, "message": more.get("message", "no")}
    return message | {"error": body | ({} if data is None else {"data": data})}


def call_of(value: Any, *, headers: Sequence[tuple[str, str]] = (), **more: Any) -> Call:
    """A request at the upstream."""
    own = [("Authorization", f"Bearer {KEY}"), ("Content-Type", "application/json")]
    return Call("POST", "/x", [*own, *headers], json.dumps(value).encode(), 0.0, **more)


def tools_call(name: str, identifier: object = 1, **params: Any) -> dict[str, Any]:
    """A tools/call request."""
    params = {"name": name, "arguments": {}} | params
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


def web(
    value: Any = None,
    *,
    status: int = 200,
    sent: Any = None,
    headers: Mapping[str, str] | None = None,
    asked: Mapping[str, str] | None = None,
    calls: Sequence[Call] = (),
    **more: Any,
) -> Exchange:
    """An exchange with a JSON answer (bytes stay as they are, None: no body)."""
    body = (
        value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
    )
    whole = {"content-type": "application/json", "x-request-id": ID} | dict(headers or {})
    exchange = Exchange(
        Sent("POST", "/x", list((asked or {}).items()), json.dumps(sent or {}).encode()),
        status=status,
        headers=list(whole.items()),
        chunks=[(1.0, body)] if body else [],
        started_s=0.0,
        ended_s=1.0,
        whole=True,
        calls=list(calls),
    )
    for name, item in more.items():
        setattr(exchange, name, item)
    return exchange


def streamed(
    *pieces: bytes, canned: bytes = b"", writes: Sequence[float] = (), **more: Any
) -> Exchange:
    """An exchange with an event stream: piece n is read n + 1 tenths of a second after the start.

    `writes` are the moments at which the upstream wrote the events of `canned`.
    """
    exchange = web(None, **more)
    exchange.headers[0] = ("content-type", "text/event-stream; charset=utf-8")
    exchange.chunks = [((at + 1) / 10, piece) for at, piece in enumerate(pieces)]
    exchange.canned = canned
    events = [part + b"\n\n" for part in canned.split(b"\n\n") if part]
    if writes:
        written = list(zip(writes, events, strict=True))
        exchange.calls = [call_of({})]
        exchange.calls[0].writes = written
    return exchange


def texts(*parts: str, **more: Any) -> Exchange:
    """A well-ended stream with these text deltas, one read for each event."""
    pieces = [part + b"\n\n" for part in stream(list(parts)).split(b"\n\n") if part]
    return streamed(*pieces, **more)


def deltas(*values: Mapping[str, Any], finish: str | None = "stop") -> bytes:
    """A stream of these deltas."""
    events = b"".join(event(chunk(value)) for value in values)
    last = event(chunk({}, finish=finish)) if finish else b""
    return events + last + b"data: [DONE]\n\n"


def calling(*calls: Mapping[str, Any]) -> bytes:
    """A stream of tool-call deltas, one for each event."""
    return deltas(*({"tool_calls": [value]} for value in calls), finish="tool_calls")


def seen(kind: str, *exchanges: Exchange, **more: Any) -> Seen:
    """All that a case showed; `given`, `expect`, `profile`, `variants` and so on by name."""
    made = Seen(
        case(kind, given=more.pop("given", {}), **more.pop("expect", {})),
        more.pop("profile", "brief"),
        exchanges=list(exchanges),
        credential=KEY,
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def talk(*messages: Any, sent: Sequence[Any] = (), after_s: float = 0.1, **more: Any) -> Seen:
    """A conversation over stdio: the replies, and the lines that were sent."""
    replies = [Reply(json.dumps(message), message, after_s) for message in messages]
    lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in sent]
    made = Talk(sent=lines, replies=replies, running=True, exit_code=0, exit_after_s=0.1)
    made.cpu_s, made.refunded = 0.01, "0.00"
    for name, value in more.items():
        setattr(made, name, value)
    return seen("stdio", talk=made)


def ping(identifier: object) -> dict[str, Any]:
    """A ping request."""
    return {"jsonrpc": "2.0", "id": identifier, "method": "ping"}


def refund(identifier: object, **arguments: Any) -> dict[str, Any]:
    """A refund request."""
    return tools_call("trigger_refund", identifier, arguments=arguments)
