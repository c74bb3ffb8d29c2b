"""Does the leaky provider cut every secret, and does its text come whole in both forms?"""

import asyncio
import json
import re

from tests.unit.demo.chat import chat, events, texts
from tidegate.demo.leaky_provider import MASKED, LeakyProvider, fragments
from tidegate.testing.asgi import WAIT_S, ASGIClient

SECRETS = {
    "EMAIL": r"jane@example\.com",
    "SSN": r"123-45-6789",
    "CARD": r"4111 1111 1111 1111",
    "SECRET": r"sk-[a-z0-9]{16,}",
}


def test_each_secret_is_in_the_text_once_but_cut_across_events() -> None:
    whole = "".join(fragments())
    for pattern in SECRETS.values():
        assert len(re.findall(pattern, whole)) == 1
        assert not any(re.search(pattern, piece) for piece in fragments())


def test_masking_the_four_secrets_gives_the_text_that_the_gateway_is_to_show() -> None:
    whole = "".join(fragments())
    for word, pattern in SECRETS.items():
        whole = re.sub(pattern, f"[REDACTED_{word}]", whole)
    assert whole == MASKED


def test_stream_and_whole_answer_say_the_same() -> None:
    async def body() -> None:
        client = ASGIClient(LeakyProvider(total_s=0.0))
        whole = await chat(client, "/v1/chat/completions", {"model": "m"})
        answer = json.loads(whole.body)
        assert answer["choices"][0]["message"]["content"] == "".join(fragments())
        assert answer["usage"]["total_tokens"] > answer["usage"]["prompt_tokens"]
        streamed = await chat(client, "/v1/chat/completions", {"model": "m", "stream": True})
        assert streamed.header("content-type") == "text/event-stream; charset=utf-8"
        assert texts(streamed.body) == {0: "".join(fragments())}
        assert streamed.body.endswith(b"data: [DONE]\n\n")

    asyncio.run(body())


def test_choices_are_interleaved_and_usage_comes_only_when_asked_for() -> None:
    async def body() -> None:
        client = ASGIClient(LeakyProvider(total_s=0.0))
        asked = {"stream": True, "n": 2, "stream_options": {"include_usage": True}}
        with_usage = await chat(client, "/v1/chat/completions", asked)
        assert texts(with_usage.body) == dict.fromkeys((0, 1), "".join(fragments()))
        assert events(with_usage.body)[-1]["choices"] == []
        without = await chat(client, "/v1/chat/completions", {"stream": True})
        assert all("usage" not in event for event in events(without.body))

    asyncio.run(body())


def test_a_gate_holds_the_second_half_back_until_it_opens() -> None:
    async def body() -> None:
        half = len(fragments()) // 2
        opened = asyncio.Event()

        async def gate(number: int) -> None:
            if number == half:
                await opened.wait()

        provider = LeakyProvider(before_event=gate)
        request = json.dumps({"stream": True}).encode()
        client = ASGIClient(provider)
        async with client.exchange("POST", "/v1/chat/completions", body=request) as exchange:
            async with asyncio.timeout(WAIT_S):
                while fragments()[half - 1].encode() not in exchange.body:
                    await exchange.chunk()
            assert provider.events_written == half
            opened.set()
            await exchange.read()
        assert provider.events_written == len(fragments())

    asyncio.run(body())


def test_other_paths_and_methods_are_not_found() -> None:
    async def body() -> None:
        client = ASGIClient(LeakyProvider())
        assert (await client.request("GET", "/v1/chat/completions")).status == 404
        assert (await client.request("POST", "/v1/models")).status == 404

    asyncio.run(body())
