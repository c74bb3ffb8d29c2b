"""Does anything that an upstream says of its inside reach anybody?

BerriAI/litellm #5762, #39757 and PRs #39380, #31489, nyroway/nyro #67: hosts, keys, organizations,
paths and stack traces of a provider in what a client or a log was given.
"""

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Running, serving, tidegate
from tests.acceptance.upstream_canaries import ANSWERS, BODIES, EVENTS, GOOD, Canaries, Leaky
from tests.acceptance.worlds import CHAT, KEY, chat_body, configuration, explained, headers, write
from tests.wire import gateways
from tidegate.gateway.logs import set_up
from tidegate.testing.asgi import ASGIClient
from tidegate.testing.scripted import ScriptedUpstream
from tidegate.testing.sockets import Answer, RawClient

SPECIAL = (300, 301, 302, 303, 304, 305, 307, 308, 399)
SPECIAL += (*range(400, 419), *range(421, 432), 451, 460, 499)
SPECIAL += (*range(500, 512), *range(520, 531), 561, 598, 599)
PLACES = ("before", "after", "end")
TOLD = {
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "openai-processing-ms",
    "openai-version",
    "retry-after",
    "retry-after-ms",
    "transfer-encoding",
    "x-accel-buffering",
    "x-request-id",
    "x-should-retry",
    "x-tidegate-attempts",
    "x-tidegate-provider",
}
"""Every header that an answer may have; those of limits beside them."""


def tree(url: str, canaries: Canaries) -> dict[str, Any]:
    """One route over two targets that ask by a name, a path and a header which nobody may learn."""
    inner = {
        "base_url": f"{url}/{canaries.tokens[6]}/v1",
        "credentials": [canaries.words[2]],
        "headers": {"X-Account": canaries.words[13]},
        "query": {"deployment": canaries.words[9]},
    }
    breaker = {"consecutive": 1000, "min_results": 1000, "open_s": 0.001, "max_open_s": 0.001}
    route = {
        "name": "default",
        "candidates": [{"provider": "primary"}, {"provider": "backup"}],
        "cooling": {"on_429_s": 0.0, "max_s": 0.001},
        "breaker": breaker,
    }
    parts = {"providers": {"primary": inner, "backup": inner}, "routes": [route]}
    return configuration(url, telemetry={"level": "debug"}, **parts)


def described(folder: Path, url: str, canaries: Canaries) -> str:
    """The same for a gateway in this process, without limits, and with targets that do rest."""
    whole = tree(url, canaries)
    parts = {"providers": whole["providers"], "routes": whole["routes"], "limits": []}
    parts["routes"][0]["cooling"]["max_s"] = 600.0
    text = gateways.config_text(folder, **parts)
    return text.replace(gateways.KEY, KEY)


class Caller:
    """A client on one connection, for as long as the gateway keeps it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._client: RawClient | None = None

    async def ask(self, model: str, *, stream: bool) -> Answer:
        """One answer."""
        if self._client is None:
            self._client = await RawClient.connect("127.0.0.1", self._port)
        body = chat_body(model, stream=stream)
        answer = await self._client.ask("POST", CHAT, headers=headers(KEY), body=body)
        if answer.header("connection") == "close":
            await self.leave()
        return answer

    async def leave(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def requests(*, everything: bool) -> Iterator[tuple[str, bool]]:
    """The models to ask for, and whether as a stream; else one of each kind."""
    if everything:
        yield from (
            (f"status/{status}/{body}", (n + m) % 2 == 1)
            for n, status in enumerate(SPECIAL)
            for m, body in enumerate(BODIES)
        )
        yield from ((f"stream/{place}/{name}", True) for place in PLACES for name in EVENTS)
        yield from ((f"plain/{name}", stream) for name in ANSWERS for stream in (False, True))
    else:
        few = (302, 400, 401, 404, 429, 500, 529)
        for n, body in enumerate(BODIES):
            yield f"status/{few[n % len(few)]}/{body}", n % 2 == 1
        for n, name in enumerate(EVENTS):
            yield f"stream/{PLACES[n % 2]}/{name}", True
        yield from ((f"stream/end/{name}", True) for name in ("text", "error"))
        yield from ((f"plain/{name}", False) for name in ("choice stop", "beside", "fault"))
    yield from (("good", stream) for stream in (False, True))


def told(answer: Answer) -> bytes:
    """All that the client can read."""
    return repr(answer.headers).encode() + answer.body


def assert_honest(model: str, answer: Answer) -> None:
    """An answer, or an error of ours; what broke says so and has no end mark."""
    names = {name for name, _ in answer.headers if not name.startswith("x-ratelimit-")}
    assert names <= TOLD, model
    shape, *words = model.split("/")
    if shape == "status":
        assert answer.status >= 400, model
    if answer.status != 200:
        error = json.loads(answer.body)["error"]
        assert set(error) == {"type", "code", "message", "request_id"}, model
    elif shape == "stream":
        good = words[1] in GOOD or words[0] == "end"
        assert answer.body.endswith(b"data: [DONE]\n\n") == good, model
        assert (b"gateway.upstream_interrupted" in answer.body) != good, model


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """What the process would say on stderr, at its most talkative."""
    root, said = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    set_up("json", "debug", stream=said)
    try:
        yield said
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before
        root.setLevel(level)


def test_one_of_each_kind_of_leak_reaches_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        canaries = Canaries("canary")
        upstream = Leaky(canaries)
        async with ScriptedUpstream(upstream) as server:
            text = described(tmp_path, server.url, canaries)
            with logged() as said:
                async with gateways.serving(text) as served:
                    caller = Caller(served.scene.port)
                    for model, stream in requests(everything=False):
                        served.app._targets._states.clear()
                        answer = await caller.ask(model, stream=stream)
                        assert canaries.found(told(answer)) == [], model
                        assert_honest(model, answer)
                    await caller.leave()
                    pages = ASGIClient(served.app.admin)
                    for page in ("/metrics", "/readyz", "/targets"):
                        shown = await pages.request("GET", page)
                        assert canaries.found(shown.body) == [], page
                    assert (
                        b"tidegate_attempts_total" in (await pages.request("GET", "/metrics")).body
                    )
            assert "attempt_failed" in said.getvalue()
            assert canaries.found(said.getvalue().encode()) == []
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
        assert canaries.found(kept) == []
        assert upstream.asked > 60

    asyncio.run(body())


async def shown(gateway: Running) -> bytes:
    """What the second listener says."""
    pages = [await gateway.admin(page) for page in ("/metrics", "/readyz", "/healthz", "/targets")]
    assert [page.status for page in pages] == [200] * 4
    return b"".join(page.body for page in pages)


@pytest.mark.full
def test_no_word_of_an_upstream_reaches_a_client_a_log_a_metric_or_a_record(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        canaries = Canaries("canary")
        async with ScriptedUpstream(Leaky(canaries)) as server:
            write(tmp_path, tree(server.url, canaries))
            ids = []
            async with serving(tmp_path) as gateway:
                caller = Caller(gateway.port)
                for model, stream in requests(everything=True):
                    answer = await caller.ask(model, stream=stream)
                    assert canaries.found(told(answer)) == [], (model, stream)
                    assert_honest(model, answer)
                    ids.append(str(answer.header("x-request-id")))
                await caller.leave()
                assert canaries.found(await shown(gateway)) == []
                listed = tidegate(tmp_path, "providers", "--json")
            assert canaries.found(gateway.stderr + gateway.stdout) == []
            assert gateway.events("attempt_failed")
        for one in ids:
            assert canaries.found(explained(tmp_path, one).encode()) == []
        for output in (listed, tidegate(tmp_path, "explain", "--json", ids[0])):
            assert canaries.found((output.stdout + output.stderr).encode()) == []
        kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".yaml"]
        assert {"records.db", "ledger.db"} <= {path.name for path in kept}
        assert canaries.found(b"".join(path.read_bytes() for path in kept)) == []

    asyncio.run(body())


_OURS = re.compile(rb"[0-9a-f]{32}")


def seen(answer: Answer) -> tuple[int, bytes, bytes]:
    """An answer without its id and what is of its moment."""
    momentary = ("date", "retry-after", "retry-after-ms", "x-request-id")
    pairs = sorted((name, "" if name in momentary else value) for name, value in answer.headers)
    return answer.status, repr(pairs).encode(), _OURS.sub(b"id", answer.body)


@pytest.mark.full
def test_what_a_client_gets_does_not_depend_on_the_words_of_an_error(tmp_path: Path) -> None:
    """No oracle: neither the size nor the text of what an upstream says changes a single byte."""

    async def answers(canaries: Canaries) -> dict[tuple[str, bool], tuple[int, bytes, bytes]]:
        folder = tmp_path / canaries.tokens[0][:6]
        folder.mkdir()
        async with ScriptedUpstream(Leaky(canaries)) as server:
            text = described(folder, server.url, canaries)
            async with gateways.serving(text) as served:
                caller, given = Caller(served.scene.port), {}
                for model, stream in requests(everything=True):
                    # What one request leaves behind must not decide what the next one gets.
                    served.app._targets._states.clear()
                    given[model, stream] = seen(await caller.ask(model, stream=stream))
                await caller.leave()
        return given

    async def body() -> None:
        short = await answers(Canaries("canary"))
        long = await answers(Canaries("another", length=200))
        assert [key for key in short if short[key] != long[key]] == []

    asyncio.run(body())
