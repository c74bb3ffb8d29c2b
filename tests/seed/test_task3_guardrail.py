"""Does the redacting gateway profile keep every promise made for it?"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seed.harness import Running, deltas, running
from tests.seed.lines import CURL_LINES, parse
from tidegate.demo.leaky_provider import MASKED, LeakyProvider, fragments
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import request_bytes

TAIL = (
    b": guardrail redactions={'email': 1, 'ssn': 1, 'credit_card': 1, 'api_key': 1}\n"
    b"data: [DONE]\n\n"
)
HALF = len(fragments()) // 2


class Gate:
    """Lets the provider write its first half, and the second one when it is opened."""

    def __init__(self) -> None:
        self.closed = False
        self.opened = asyncio.Event()

    async def __call__(self, number: int) -> None:
        if self.closed and number == HALF:
            await self.opened.wait()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def provider(gate: Gate) -> LeakyProvider:
    return LeakyProvider(before_event=gate)


@pytest.fixture(scope="module")
def gateway(provider: LeakyProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running("guardrail", {9101: provider}, tmp_path_factory.mktemp("task3")) as made:
        yield made


def test_the_curl_line_gives_the_masked_text_and_the_counts_above_done(gateway: Running) -> None:
    answer = gateway.run(gateway.curl("masked stream"))
    assert answer.status == 200
    assert answer.header("content-type") == "text/event-stream; charset=utf-8"
    assert answer.header("x-accel-buffering") == "no"
    assert answer.header("cache-control") == "no-cache"
    assert deltas(answer.body) == {0: MASKED}
    assert answer.body.endswith(b"\n\n" + TAIL)


def test_the_readme_shows_that_text_and_that_comment(gateway: Running) -> None:
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text()
    assert MASKED in readme
    assert TAIL.split(b"\n")[0].decode() in readme


def test_no_piece_of_a_secret_is_in_any_byte_of_the_answer(gateway: Running) -> None:
    answer = gateway.run(gateway.curl("masked stream"))
    assert answer.status == 200
    for piece in (b"ja", b"example", b"123-", b"6789", b"4111", b"1111", b"sk-", b"abcdef"):
        assert piece not in answer.body.replace(b"application/json", b"")


def test_the_first_content_leaves_before_the_provider_wrote_its_second_half(
    gateway: Running, gate: Gate, provider: LeakyProvider
) -> None:
    async def body() -> None:
        gate.closed, gate.opened = True, asyncio.Event()
        already = provider.events_written
        async with await gateway.client() as client:
            line = parse(CURL_LINES["masked stream"])
            await client.send(
                request_bytes(line.method, line.target, headers=line.headers, body=line.body)
            )
            assert (await client.head()).status == 200
            seen = b""
            async with asyncio.timeout(WAIT_S):
                while b"account" not in seen:
                    seen += await client.chunk()
            assert provider.events_written - already <= HALF
            gate.opened.set()
        gate.closed = False

    gateway.run(body())


def test_a_whole_answer_is_masked_like_a_stream(gateway: Running) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    answer = gateway.run(gateway.post("/v1/chat/completions", None, request))
    assert answer.status == 200
    parsed = json.loads(answer.body)
    assert parsed["choices"][0]["message"]["content"] == MASKED
    assert parsed["usage"]["total_tokens"] > 0


def test_each_choice_of_several_has_its_own_text(gateway: Running) -> None:
    request = {"stream": True, "n": 3, "messages": [{"role": "user", "content": "hi"}]}
    answer = gateway.run(gateway.post("/v1/chat/completions", None, request))
    assert deltas(answer.body) == dict.fromkeys(range(3), MASKED)
    assert b"'email': 3, 'ssn': 3, 'credit_card': 3, 'api_key': 3" in answer.body
