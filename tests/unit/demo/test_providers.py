"""Does each behavior of the demo providers fail in its own way, and only when told to?"""

import asyncio
import json

import pytest

from tests.unit.demo.chat import chat, texts, until
from tidegate.demo.providers import LEAKS, NAMES, Behavior, Providers
from tidegate.testing.asgi import ASGIClient

HELP = "How may I help you today?"
CHAT = {name: f"/{name}/v1/chat/completions" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", [False, True])
def test_ok_answers_under_its_own_name(name: str, *, stream: bool) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        answer = await chat(client, CHAT[name], {"stream": stream, "n": 2})
        assert answer.status == 200
        if stream:
            assert texts(answer.body) == dict.fromkeys((0, 1), f"Hello from {name}. " + HELP)
        else:
            parsed = json.loads(answer.body)
            assert [c["message"]["content"] for c in parsed["choices"]] == [
                f"Hello from {name}. " + HELP
            ] * 2
            assert parsed["usage"]["total_tokens"] == 43

    asyncio.run(body())


@pytest.mark.parametrize("behavior", [Behavior.TOO_MANY, Behavior.BROKEN, Behavior.REJECT])
def test_error_behaviors_answer_their_status_with_a_leaky_body(behavior: Behavior) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await client.request("POST", f"/_set?provider=primary&behaviour={behavior}")
        answer = await chat(client, CHAT["primary"], {})
        assert answer.status == int(behavior)
        assert any(leak.encode() in answer.body for leak in LEAKS)
        # No Retry-After: how long a target then cools is the gateway's own setting.
        assert answer.header("retry-after") is None
        assert (await chat(client, CHAT["backup"], {})).status == 200

    asyncio.run(body())


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_is_a_success_that_no_parser_reads(*, stream: bool) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await client.request("POST", "/_set?provider=primary&behaviour=malformed")
        answer = await chat(client, CHAT["primary"], {"stream": stream})
        assert answer.status == 200
        assert b"<html>" in answer.body

    asyncio.run(body())


def test_cut_ends_in_the_middle_of_the_text() -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await client.request("POST", "/_set?provider=primary&behaviour=cut")
        streamed = await chat(client, CHAT["primary"], {"stream": True})
        assert texts(streamed.body)[0].startswith("Hello from")
        assert b"[DONE]" not in streamed.body
        whole = await chat(client, CHAT["primary"], {})
        with pytest.raises(json.JSONDecodeError):
            json.loads(whole.body)

    asyncio.run(body())


@pytest.mark.parametrize("behavior", ["hang", "slow"])
def test_silent_behaviors_send_nothing_and_count_the_client_that_leaves(behavior: str) -> None:
    async def body() -> None:
        providers = Providers()
        client = ASGIClient(providers)
        await client.request("POST", f"/_set?provider=primary&behaviour={behavior}")
        async with client.exchange("POST", CHAT["primary"], body=b"{}") as exchange:
            await until(lambda: providers.calls["primary"] == 1)
            exchange._incoming.put_nowait({"type": "http.disconnect"})
            await until(lambda: providers.gone["primary"] == 1)
            assert exchange.status == 0

    asyncio.run(body())


def test_slow_answers_in_the_end() -> None:
    async def body() -> None:
        client = ASGIClient(Providers(slow_s=0.0))
        await client.request("POST", "/_set?provider=backup&behaviour=slow")
        answer = await chat(client, CHAT["backup"], {})
        assert json.loads(answer.body)["choices"][0]["message"]["content"].endswith(HELP)

    asyncio.run(body())


@pytest.mark.parametrize(("stream", "drop"), [(True, b": still thinking\n\n"), (False, b" ")])
def test_dribble_sends_bytes_and_never_an_answer(*, stream: bool, drop: bytes) -> None:
    async def body() -> None:
        providers = Providers()
        client = ASGIClient(providers)
        await client.request("POST", "/_set?provider=primary&behaviour=dribble")
        request = json.dumps({"stream": stream}).encode()
        async with client.exchange("POST", CHAT["primary"], body=request) as exchange:
            assert await exchange.head() == 200
            assert [await exchange.chunk() for _ in range(2)] == [drop, drop]
            exchange._incoming.put_nowait({"type": "http.disconnect"})
            await until(lambda: providers.gone["primary"] == 1)

    asyncio.run(body())


def test_state_shows_behaviors_and_counts() -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await chat(client, CHAT["backup"], {})
        await client.request("POST", "/_set?provider=primary&behaviour=500")
        state = json.loads((await client.request("GET", "/_state")).body)
        assert state == {
            "primary": {"behaviour": "500", "calls": 0, "gone": 0},
            "backup": {"behaviour": "ok", "calls": 1, "gone": 0},
        }

    asyncio.run(body())


@pytest.mark.parametrize(
    "query", ["", "provider=third&behaviour=ok", "provider=primary&behaviour=x"]
)
def test_an_unknown_setting_is_refused_with_the_choices(query: str) -> None:
    async def body() -> None:
        providers = Providers()
        answer = await ASGIClient(providers).request("POST", f"/_set?{query}")
        assert answer.status == 400
        assert b"ok|429|500|400|slow|hang|dribble|cut|malformed" in answer.body
        assert set(providers.behavior.values()) == {Behavior.OK}

    asyncio.run(body())
