"""Does anything of prompts, answers, errors, arguments, headers or keys stay behind anywhere?

Each place where a text can come in gets a word of its own; afterwards every place where one could
have been kept is searched for all of them.
"""

import asyncio
import json
import signal
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Running, serving, tidegate
from tests.acceptance.worlds import (
    CHAT,
    Upstream,
    begin,
    call,
    chat_body,
    configuration,
    headers,
    request_id,
    scripted,
    write,
)
from tidegate.testing.sockets import Answer, request_bytes

ADMIN_FILE = "admin.txt"


class Canaries:
    """Hands out words that occur nowhere else, and finds them again."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        """A word for this place, the same one each time."""
        return self.words.setdefault(place, f"canary{len(self.words):03d}Xq7Zw{len(place):02d}k")

    def found(self, text: bytes) -> set[str]:
        """The places whose word is in `text`, as it is or as base64."""
        return {
            place
            for place, word in self.words.items()
            if word.encode() in text or b64encode(word.encode())[:-4] in text
        }


def file(canary: Canaries, url: str) -> dict[str, Any]:
    only = {
        "base_url": f"{url}/v1",
        "credentials": [canary("provider credential")],
        "headers": {"X-Account": canary("provider header")},
    }
    tree = configuration(
        url,
        providers={"only": only},
        server={
            "port": 0,
            "admin": {"port": 0, "token": "${file:admin.txt}"},
            "caps": {"llm_body_bytes": 100_000},
        },
        telemetry={"level": "debug"},
        limits=[{"name": "t", "match": {"tenants": ["*"]}, "per": "tenant", "tokens": 10_000}],
    )
    tree["identity"]["keys"][0]["key"] = canary("client key")
    tree["mcp"]["servers"]["backend"]["credential"] = canary("backend credential")
    return tree


class Caller:
    """Sends a word wherever a client can put one; `answers` is all it got."""

    def __init__(self, gateway: Running, canary: Canaries) -> None:
        self.gateway, self.canary = gateway, canary
        self.key = canary("client key")
        self.answers: list[Answer] = []

    async def everything(self) -> None:
        for model in ("quick", "500", "400", "429", "404", "cut", "unknown"):
            self.answers.append(await self._chat(model))
        for model in ("quick", "cut"):
            stream = await begin(self.gateway, model, key=self.key, user=self.canary("user field"))
            stream.head.body = await stream.rest()
            self.answers.append(stream.head)
        # The last: a provider that refuses our key is left alone from then on.
        self.answers.append(await self._chat("401"))
        await self._odd_requests()
        await self._tools()
        await self._refused()

    async def _chat(self, model: str) -> Answer:
        canary = self.canary
        tool = {"name": "t", "description": canary("tool description"), "parameters": {}}
        arguments = {"name": "t", "arguments": json.dumps({"x": canary("call arguments")})}
        messages = [
            {"role": "system", "content": canary("system prompt")},
            {"role": "user", "content": [{"type": "text", "text": canary("prompt")}]},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": arguments}],
            },
            {"role": "tool", "tool_call_id": "c", "content": canary("tool message")},
        ]
        body = chat_body(
            model,
            messages=messages,
            tools=[{"type": "function", "function": tool}],
            metadata={canary("metadata name"): canary("metadata")},
            **{canary("unknown field"): canary("unknown value")},
        )
        given = [
            *headers(self.key),
            ("User-Agent", canary("user agent")),
            ("Cookie", f"session={canary('cookie')}"),
            ("Referer", f"http://{canary('referer')}/"),
            ("X-Request-Id", f"two words {canary('request id')}"),
            ("X-Anything", canary("header")),
            ("Mcp-Session-Id", canary("session")),
        ]
        target = f"{CHAT}?key={canary('query')}"
        return await self.gateway.ask("POST", target, headers=given, body=body)

    async def _odd_requests(self) -> None:
        canary, ask = self.canary, self.gateway.ask
        odd: list[tuple[str, list[tuple[str, str]], bytes]] = [
            (CHAT, headers(self.key), b'{"model":"' + canary("cut json").encode()),
            (CHAT, headers(self.key), b'{"a":1,"a":"' + canary("double key").encode() + b'"}'),
            (CHAT, headers(self.key), chat_body(f"a model {canary('model with spaces')}")),
            (CHAT, headers(self.key), chat_body("sk-" + canary("key as a model"))),
            (CHAT, headers(self.key), chat_body(content=canary("too large") * 9000)),
            (CHAT, headers(self.key), chat_body(canary("over the limit") + "!", max_tokens=9999)),
            (CHAT, headers(canary("wrong key")), chat_body(content=canary("stranger's prompt"))),
            (f"/{canary('path')}", headers(self.key), chat_body()),
            (
                CHAT,
                [*headers(self.key)[1:], ("Content-Type", f"text/{canary('media type')}")],
                b"x",
            ),
            (CHAT, headers(self.key, ("Host", f"{canary('host')}.example")), chat_body()),
            (CHAT, headers(self.key, ("Origin", f"http://{canary('origin')}")), chat_body()),
        ]
        for target, given, body in odd:
            self.answers.append(await ask("POST", target, headers=given, body=body))
        async with await self.gateway.client() as client:
            await client.send(f"{canary('not http')} {canary('garbage')}\r\n\r\n".encode())
            await client.rest()

    async def _tools(self) -> None:
        canary = self.canary
        for tool in ("ask", "admin_reset", f"odd tool {canary('tool with spaces')}"):
            arguments = {"text": canary("argument"), canary("argument name"): 1}
            self.answers.append(await call(self.gateway, tool, key=self.key, **arguments))
        body = b'{"jsonrpc":"2.0","id":"' + canary("rpc id").encode() + b'","method":"'
        body += b"x " + canary("rpc method").encode() + b'"}'
        await self.gateway.ask("POST", "/mcp", headers=headers(self.key), body=body)

    async def _refused(self) -> None:
        wrong = ("Authorization", f"Bearer {self.canary('wrong admin token')}")
        assert (await self.gateway.admin("/metrics", headers=[wrong])).status == 401
        async with await self.gateway.client() as client:
            half = request_bytes("POST", CHAT, headers=headers(self.key), body=chat_body())
            await client.send(half[:-10] + self.canary("half a body").encode())
            client.abort()


async def reports(gateway: Running, token: str) -> bytes:
    """What the second listener says."""
    bearer = ("Authorization", f"Bearer {token}")
    found = b""
    for target in ("/metrics", "/readyz", "/healthz"):
        answer = await gateway.admin(target, headers=[bearer])
        assert answer.status == 200
        found += answer.body
    return found


def kept(folder: Path) -> bytes:
    """All that the process has written to its folder."""
    ours = {"tidegate.yaml", ADMIN_FILE}
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in ours]
    assert {"records.db", "ledger.db"} <= {path.name for path in paths}
    return b"".join(path.read_bytes() for path in paths)


@pytest.mark.full
def test_no_word_of_any_request_key_or_error_is_kept_or_said_anywhere(tmp_path: Path) -> None:
    async def body() -> None:
        canary = Canaries()
        upstream = Upstream(says="Well, " + canary("answer"), error=canary("upstream error"))
        token = canary("admin token")
        (tmp_path / ADMIN_FILE).write_text(token)
        async with scripted(upstream) as server:
            tree = file(canary, server.url)
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                caller = Caller(gateway, canary)
                await caller.everything()
                tree["providers"]["only"]["credentials"] = canary("credential of a broken file")
                tree["identity"]["keys"][0]["kee"] = canary("value of an unknown key")
                write(tmp_path, tree)
                gateway.signal(signal.SIGHUP)
                await gateway.event("reload_failed_last_good_configuration_kept")
                assert canary.found(await reports(gateway, token)) == set()
                assert canary.found(kept(tmp_path)) == set()
            write(tmp_path, file(canary, server.url))
            assert canary.found(gateway.stderr) == set()
            assert gateway.stdout == b""
            assert canary.found(kept(tmp_path)) == set()
            # What was sent did arrive, so that there was something to keep.
            passed = canary.found(json.dumps(upstream.bodies).encode())
            assert {"prompt", "call arguments", "argument", "unknown value"} <= passed
        told: set[str] = set()
        for answer in caller.answers:
            told |= canary.found(answer.body + repr(answer.headers).encode())
        assert told <= {"answer", "origin", "tool with spaces"}
        shown = tidegate(tmp_path, "explain", "--json", request_id(caller.answers[0]))
        assert shown.returncode == 0
        assert canary.found((shown.stdout + shown.stderr).encode()) == set()

    asyncio.run(body())
