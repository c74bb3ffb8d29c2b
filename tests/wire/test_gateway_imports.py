"""Once a kind of request was served, no request of that kind imports anything: a real process."""

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    BANG,
    DONE,
    ERROR,
    ERROR_OBJECT,
    HELLO,
    ROLE,
    STOP,
    completion,
    delta,
    event,
)
from tests.app.test_chat_bodies import CODINGS, streamed, whole
from tests.unit.identity.tokens import AUDIENCE, ISSUER, claims, jwk, jwks, token
from tests.wire.gateways import CHAT, CREDENTIAL, JSON, KEYED, VIEWER, chat, config_text
from tests.wire.listening import turn
from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import Script, ScriptedUpstream, answer_bytes, steps
from tidegate.testing.sockets import RawClient

LEAK = (
    ROLE + event(delta(content="mail jane@exa")) + event(delta(content="mple.com ")) + STOP + DONE
)
MAIL = completion("mail jane@example.com")
PACKED = {name: pack(json.dumps(MAIL).encode()) for name, (pack, _) in CODINGS.items()}
CALL = {
    "id": "a",
    "index": 0,
    "type": "function",
    "function": {"name": "f", "arguments": '{"to":"jane@example.com"}'},
}

CHATS: dict[str, tuple[list[Script], bytes]] = {
    "plain": ([whole(completion("hello"))], chat()),
    "stream": ([streamed(HELLO)], chat(stream=True)),
    "masked stream": ([streamed(LEAK)], chat(stream=True)),
    "tool calls": ([streamed(event(delta(tool_calls=[CALL])) + STOP + DONE)], chat(stream=True)),
    "masked": ([whole(MAIL)], chat()),
    "gzip": ([whole(PACKED["gzip"], ("Content-Encoding", "gzip"))], chat()),
    "br": ([whole(PACKED["br"], ("Content-Encoding", "br"))], chat()),
    "failover": ([whole(ERROR_OBJECT, status=429), whole(completion("hello"))], chat()),
    "all failed": ([streamed(ERROR), streamed(ROLE)], chat(stream=True)),
    "cut": ([streamed(ROLE + BANG + ERROR)], chat(stream=True)),
    "rejected": ([whole(ERROR_OBJECT, status=400)], chat()),
    "found in a request": ([whole(completion("hello"))], chat(user="jane@example.com")),
    "bad JSON": ([], b"{"),
    "bad field": ([], chat(messages=1)),
    "large": ([whole(completion("hello"))], chat(messages=[{"content": "a b " * 70_000}])),
    "never": ([], chat(max_tokens=10_000_000)),
}
KEYLESS: list[tuple[str, str, Any]] = [
    ("POST", CHAT, [JSON]),
    ("GET", CHAT, []),
    ("GET", "/nowhere", []),
    ("POST", CHAT, [("Host", "evil.example")]),
    ("POST", CHAT, [("Origin", "https://evil.example")]),
]
MESSAGES: list[Any] = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_status"}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "admin_reset_key"}},
    [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_status"}}],
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "no message",
]


def bearers() -> list[str]:
    """A token that is good, one that is over, one of a key that nobody has, and none at all."""
    good = token(claims(exp=10**10))
    return [
        f"Bearer {text.decode()}"
        for text in (
            good,
            token(claims(exp=1)),
            token(claims(exp=10**10), header={"kid": "unknown"}),
            token(claims(exp=10**10), key="rsa", algorithm="RS256"),
            good + b"x",
        )
    ]


async def once(port: int, upstream: ScriptedUpstream) -> str:
    """One request of every kind, each on a connection of its own; the id of the last one."""

    async def ask(method: str, target: str, headers: Any, body: bytes = b"") -> str:
        async with await RawClient.connect("127.0.0.1", port) as client:
            answer = await client.ask(method, target, headers=headers, body=body)
            return answer.header("x-request-id") or ""

    for scripts, body in CHATS.values():
        upstream.scripts = [*upstream.scripts[: len(upstream.requests)], *scripts, *scripts[-1:]]
        await ask("POST", CHAT, [JSON, KEYED], body)
    for value in bearers():
        await ask("POST", CHAT, [JSON, ("Authorization", value)], b"{")
    await ask("GET", "/.well-known/oauth-protected-resource/mcp", [])
    for method, target, headers in KEYLESS:
        await ask(method, target, headers)
    mine = [JSON, ("Authorization", f"Bearer {VIEWER}"), ("Accept", "application/json")]
    for message in MESSAGES:
        await ask("POST", "/mcp", mine, json.dumps(message).encode())
    return await ask("POST", CHAT, [JSON, KEYED], chat(max_tokens=10_000_000))


class Errors:
    """What a process writes to its standard error, read as it comes."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self.text = ""
        self.port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.reading = asyncio.ensure_future(self._read(stream))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := (await stream.readline()).decode():
            self.text += line
            if found := re.match(r"tidegate ready: \S+:(\d+)", line):
                self.port.set_result(int(found[1]))

    async def told_of(self, request_id: str) -> None:
        """Until it has written of this request, and so all that it wrote before."""
        async with asyncio.timeout(WAIT_S):
            while request_id not in self.text:
                await turn()

    def imported(self) -> list[str]:
        """What it said to have imported so far, in order."""
        return re.findall(r"^import time:[^|]*\|[^|]*\|\s*(\S+)", self.text, re.MULTILINE)


@pytest.mark.full
def test_no_import_runs_while_requests_are_served(tmp_path: Path) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        keys = steps(answer_bytes(headers=[JSON], body=jwks(jwk("ec"), jwk("rsa"))))
        async with (
            ScriptedUpstream() as upstream,
            ScriptedUpstream(keys) as issuer,
            listening(backend, bind(0)) as mcp,
        ):
            text = config_text(
                tmp_path,
                primary=f"{upstream.url}/v1",
                backup=f"{upstream.url}/v1",
                mcp=f"http://127.0.0.1:{mcp}/mcp",
                limits=[{"name": "tokens", "match": {"roles": ["tenant"]}, "tokens": 9_000_000}],
                server={"port": 0, "admin": {"port": 0}},
            )
            accepted = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"{issuer.url}/jwks"}
            document = json.loads(text)
            document["identity"]["jwt"] = [accepted]
            text = json.dumps(document)
            (tmp_path / "tidegate.yaml").write_text(text)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-X", "importtime", "-m", "tidegate", "serve"),
                *("--config", "tidegate.yaml"),
                cwd=tmp_path,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
            )
            assert process.stderr is not None
            errors = Errors(process.stderr)
            try:
                async with asyncio.timeout(3 * WAIT_S):
                    port = await errors.port
                ready = len(errors.imported())
                await errors.told_of(await once(port, upstream))
                first = len(errors.imported())
                await errors.told_of(await once(port, upstream))
            finally:
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(2 * WAIT_S):
                    await process.wait()
                await errors.reading
        names = errors.imported()
        assert ready > 100
        # The first name that is looked up loads the codec of domain names.
        assert set(names[ready:first]) <= {"stringprep", "encodings.idna"}
        assert names[first:] == []

    asyncio.run(body())
