"""What stands around a gateway under test: its file, its keys, the upstreams it calls?

One scripted upstream plays the model provider and the MCP server; what it does is chosen by the
name of the model or tool, so that each request of a test says what should happen to it. Does
not live here: the process (processes).
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Running
from tidegate import sse
from tidegate.records import as_text, find
from tidegate.testing.scripted import (
    STREAM_HEAD,
    ScriptedUpstream,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
)
from tidegate.testing.sockets import Answer, RawClient, request_bytes

# Put together, so that no scanner of sources takes them for real ones.
KEY = "-".join(("acme", "key", "of", "the", "tests"))
ADMIN_KEY = "-".join(("adam", "key", "of", "the", "tests"))
CHAT = "/v1/chat/completions"
JSON = ("Content-Type", "application/json")
USAGE = {"prompt_tokens": 12, "completion_tokens": 31, "total_tokens": 43}


def configuration(upstream: str, **parts: Any) -> dict[str, Any]:
    """A file as a tree: one provider and one MCP server at `upstream`; `parts` replace sections."""
    return {
        "server": {"port": 0, "admin": {"port": 0}},
        # On a busy machine a sound store may be late.
        "store": {"url": "sqlite:///ledger.db", "wait_s": 30.0},
        "records": {"path": "records.db"},
        "identity": {
            "keys": [
                {"key": KEY, "principal": "acme", "tenant": "acme", "roles": ["tenant"]},
                {"key": ADMIN_KEY, "principal": "adam", "tenant": "acme", "roles": ["admin"]},
            ]
        },
        "providers": {"only": {"base_url": f"{upstream}/v1"}},
        # One failure must not decide what the next request gets.
        "routes": [
            {
                "name": "default",
                "candidates": [{"provider": "only"}],
                "cooling": {"on_429_s": 0.0},
                "breaker": {"consecutive": 100, "min_results": 1000},
            }
        ],
        "mcp": {
            "hide_denied": "off",
            "servers": {"backend": {"url": f"{upstream}/mcp"}},
            "rules": [
                {"deny": {"tools": ["admin_*"], "unless_roles": ["admin"]}},
                {"allow": {"roles": ["tenant", "admin"]}},
            ],
        },
    } | parts


def write(folder: Path, tree: Mapping[str, Any]) -> Path:
    """The configuration where `serve` finds it; replaced whole, as an editor does."""
    return write_text(folder, json.dumps(tree, indent=1))  # which is YAML, too


def write_text(folder: Path, text: str) -> Path:
    """Any text in its place; nobody ever reads half of it."""
    path, new = folder / "tidegate.yaml", folder / "tidegate.yaml.new"
    new.write_text(text)
    new.replace(path)
    return path


def event(text: str = "", *, finish: str | None = None, **more: Any) -> bytes:
    """One event of a streamed completion."""
    delta = {"content": text} if text else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse.encode(
        json.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1_700_000_000,
                "model": "m",
                "choices": [choice],
            }
            | more
        ).encode()
    )


DONE = b"data: [DONE]\n\n"


def completion(text: str, **more: Any) -> bytes:
    """A whole completion."""
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": USAGE,
        }
        | more
    ).encode()


def json_answer(status: int, body: bytes, *headers: tuple[str, str]) -> bytes:
    """One JSON response."""
    return answer_bytes(status, headers=[JSON, *headers], body=body)


@dataclass(slots=True)
class Upstream:
    """What each model and tool does. `release` lets those that wait go on.

    Models: `quick` answers; `held` begins and waits; `stuck` begins and never ends; `silent`
    never answers; `cut` breaks off in the middle of its text; `flaky` fails the first time; a
    number is a status. Tools: `hang` never answers, `endless` streams and never ends, others
    answer. `begun` counts the requests of each model or tool. `says` is what models and tools
    say, `error` what stands in the body and in a header of an error.
    """

    says: str = "Hello from the model."
    error: str = "the upstream is not well"
    release: asyncio.Event = field(default_factory=asyncio.Event)
    begun: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, exchange: UpstreamExchange) -> None:
        """The script of every request."""
        body = json.loads(exchange.request.body)
        self.bodies.append(body)
        with suppress(ConnectionError):
            if exchange.request.target.startswith("/mcp"):
                await self._mcp(exchange, body)
            else:
                await self._chat(exchange, body)

    async def _chat(self, exchange: UpstreamExchange, body: dict[str, Any]) -> None:
        model, stream = str(body.get("model", "quick")), body.get("stream") is True
        self.begun[model] += 1
        if model == "flaky" and self.begun[model] == 1:
            await exchange.send(answer_bytes(500))
        elif model.isdigit():
            error = {"error": {"message": self.error, "type": "x", "code": None}}
            headers = [("X-Served-By", self.error)] if self.error.isascii() else []
            answer = json_answer(int(model), json.dumps(error).encode(), *headers)
            await exchange.send(answer)
        elif model == "silent":
            await exchange.gone.wait()
        elif not stream:
            if model == "held":
                await self._wait(exchange)
            await exchange.send(json_answer(200, completion(self.says)))
        else:
            await self._stream(exchange, model)

    async def _stream(self, exchange: UpstreamExchange, model: str) -> None:
        first, rest = self.says[:6], self.says[6:]
        await exchange.send(STREAM_HEAD + chunk_bytes(event(first)))
        if model == "cut":
            exchange.cut()
            return
        if model == "held":
            await self._wait(exchange)
        elif model == "stuck":
            await exchange.gone.wait()
        end = event(rest) + event(finish="stop") + event(usage=USAGE, choices=[]) + DONE
        await exchange.send(chunk_bytes(end) + chunk_bytes(b""))

    async def _mcp(self, exchange: UpstreamExchange, body: dict[str, Any]) -> None:
        tool = str(body.get("params", {}).get("name", body.get("method")))
        self.begun[tool] += 1
        if tool == "hang":
            await exchange.gone.wait()
            return
        if tool == "endless":
            progress = {"progressToken": "t", "progress": 1}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
            await exchange.send(STREAM_HEAD + chunk_bytes(sse.encode(json.dumps(note).encode())))
            await exchange.gone.wait()
            return
        content = [{"type": "text", "text": self.says}]
        answer = {"jsonrpc": "2.0", "id": body.get("id"), "result": {"content": content}}
        await exchange.send(json_answer(200, json.dumps(answer).encode()))

    async def _wait(self, exchange: UpstreamExchange) -> None:
        waits = [asyncio.ensure_future(e.wait()) for e in (self.release, exchange.gone)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def scripted(upstream: Upstream) -> ScriptedUpstream:
    """`upstream` as a server, to be entered with `async with`."""
    return ScriptedUpstream(upstream)


def headers(key: str | None = KEY, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Those of a JSON request with a key."""
    bearer = [] if key is None else [("Authorization", f"Bearer {key}")]
    return [JSON, *bearer, *more]


def chat_body(model: str = "quick", *, content: str = "hi", **more: Any) -> bytes:
    """The body of a chat request."""
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": model, "messages": messages} | more).encode()


async def chat(
    gateway: Running, model: str = "quick", *, key: str | None = KEY, **more: Any
) -> Answer:
    """The whole answer to one chat request."""
    return await gateway.ask("POST", CHAT, headers=headers(key), body=chat_body(model, **more))


def call_body(tool: str, number: int = 1, **arguments: Any) -> bytes:
    """The body of a tool call."""
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


async def call(gateway: Running, tool: str, *, key: str | None = KEY, **arguments: Any) -> Answer:
    """The whole answer to one tool call."""
    body = call_body(tool, **arguments)
    return await gateway.ask("POST", "/mcp", headers=headers(key), body=body)


class Stream:
    """A streamed answer that has begun."""

    def __init__(self, client: RawClient, head: Answer, first: bytes) -> None:
        self.client, self.head, self.received = client, head, first

    @property
    def request_id(self) -> str:
        return request_id(self.head)

    async def rest(self) -> bytes:
        """Everything until it ends, the beginning included; cut short counts as an end."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while piece := await self.client.chunk():
                self.received += piece
        return self.received


async def begin(
    gateway: Running,
    model: str = "held",
    *,
    key: str = KEY,
    receive_buffer_bytes: int | None = None,
    **more: Any,
) -> Stream:
    """Ask for a stream and wait for its first bytes."""
    client = await gateway.client(receive_buffer_bytes=receive_buffer_bytes)
    body = chat_body(model, stream=True, **more)
    await client.send(request_bytes("POST", CHAT, headers=headers(key), body=body))
    head = await client.head()
    assert head.status == 200
    return Stream(client, head, await client.chunk())


def request_id(answer: Answer) -> str:
    """The x-request-id of an answer."""
    found = answer.header("x-request-id")
    assert found is not None
    return found


def explained(folder: Path, identifier: str) -> str:
    """What `tidegate explain` prints, without a process of its own for it."""
    record = find(folder / "records.db", identifier)
    assert record is not None
    return as_text(record)


def code(answer: Answer) -> str:
    """The code in an error envelope, which has exactly the four keys."""
    error = json.loads(answer.body)["error"]
    assert set(error) - {"param"} == {"type", "code", "message", "request_id"}
    assert error["request_id"] == request_id(answer)
    return str(error["code"])
