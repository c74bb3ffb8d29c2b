"""Does the official client of the OpenAI API work with the gateway, as it is, over a socket?"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.app.chat_upstreams import (
    BANG,
    CANARY,
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    completion,
    delta,
    event,
)
from tests.app.test_chat_bodies import streamed, whole
from tests.wire.gateways import KEY, VIEWER, Served, config_text, serving
from tidegate.testing.scripted import STREAM_HEAD, Script, ScriptedUpstream, chunk_bytes, steps

MESSAGES: Any = [{"role": "user", "content": "hi"}]
Use = Callable[[openai.OpenAI], Any]


def client_of(url: str, key: str = KEY, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=retries, timeout=30.0)


async def used(served: Served, use: Use, **options: Any) -> Any:
    """What `use` makes of a client, in a thread of its own."""

    def call() -> Any:
        with client_of(served.url, **options) as client:
            return use(client)

    return await asyncio.to_thread(call)


def played(
    folder: Path, use: Use, *scripts: Script, options: Any = None, **parts: Any
) -> tuple[Any, int]:
    """What `use` makes of a gateway in front of these scripts; how many requests reached them."""

    async def body() -> tuple[Any, int]:
        async with ScriptedUpstream(*scripts) as upstream:
            text = config_text(
                folder, primary=f"{upstream.url}/v1", backup=f"{upstream.url}/v1", **parts
            )
            async with serving(text) as served:
                result = await used(served, use, **(options or {}))
            return result, len(upstream.requests)

    return asyncio.run(body())


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(model="m", messages=MESSAGES, **fields)


def test_a_completion_is_one_with_its_request_id(tmp_path: Path) -> None:
    answer, _ = played(tmp_path, ask, whole(completion("hello", model="m", created=1)))
    assert answer.choices[0].message.content == "hello"
    assert answer.usage.total_tokens == 43
    assert len(answer._request_id) == 32


@pytest.mark.full
def test_raw_answers_show_our_headers(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        return raw.headers, raw.request_id, raw.parse()

    scripts = (whole(ERROR_OBJECT, status=500), whole(completion("hello")))
    (headers, request_id, parsed), _ = played(tmp_path, use, *scripts)
    assert headers["x-tidegate-provider"] == "backup"
    assert headers["x-tidegate-attempts"] == "primary:server_error,backup:ok"
    assert headers["x-request-id"] == request_id
    assert parsed.choices[0].message.content == "hello"


def test_a_stream_is_one_with_its_usage(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
        text = "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)
        return text, chunks[-1].usage.completion_tokens, chunks[-2].choices[0].finish_reason

    sent = b": ping\n\nretry: 3\n\n" + ROLE + HEL + LO + STOP + USAGE + DONE
    result, _ = played(tmp_path, use, streamed(sent, cut=50))
    assert result == ("Hello", 31, "stop")


@pytest.mark.full
def test_a_stream_that_was_not_asked_for_usage_has_none(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        return [(len(chunk.choices), chunk.usage) for chunk in ask(client, stream=True)]

    chunks, _ = played(tmp_path, use, streamed(ROLE + HEL + LO + STOP + USAGE + DONE, cut=50))
    # Loops that read `chunk.choices[0]` meet no event without one.
    assert set(chunks) == {(1, None)}


CALLS = [
    {"index": 0, "id": "call_a", "type": "function", "function": {"name": "f", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"to": "jane@exa'}},
    {"index": 0, "function": {"arguments": 'mple.com"}'}},
    {"index": 1, "id": "call_b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
]


@pytest.mark.parametrize("mode", [pytest.param("detect", marks=pytest.mark.full), "enforce"])
def test_tool_calls_of_a_stream_add_up(tmp_path: Path, mode: str) -> None:
    def use(client: openai.OpenAI) -> Any:
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        with client.chat.completions.stream(model="m", messages=MESSAGES, tools=[tool]) as stream:  # type: ignore[list-item]
            return stream.get_final_completion().choices[0]

    sent = b"".join(event(delta(tool_calls=[call])) for call in CALLS)
    sent = ROLE + sent + event(delta(finish="tool_calls")) + DONE
    choice, _ = played(
        tmp_path,
        use,
        streamed(sent.replace(b'"id": "c1"', b'"id": "c1", "created": 1, "model": "m"')),
        redaction={"tool_arguments": mode},
    )
    assert choice.finish_reason == "tool_calls"
    calls = [(call.id, call.function.name) for call in choice.message.tool_calls]
    assert calls == [("call_a", "f"), ("call_b", "g")]
    to = json.loads(choice.message.tool_calls[0].function.arguments)["to"]
    assert to == ("[REDACTED_EMAIL]" if mode == "enforce" else "jane@example.com")


def raised(kind: type[openai.APIError], **fields: Any) -> Use:
    """A use that must raise exactly that; gives the error."""

    def use(client: openai.OpenAI) -> Any:
        with pytest.raises(kind) as caught:
            list(ask(client, **fields))
        assert type(caught.value) is kind
        return caught.value

    return use


SMALL = [{"name": "small", "tokens": 50}]
TYPED: dict[str, tuple[type[openai.APIError], int, str, dict[str, Any]]] = {
    "key": (
        openai.AuthenticationError,
        401,
        "gateway.unauthenticated",
        {"options": {"key": "another"}},
    ),
    "role": (
        openai.PermissionDeniedError,
        403,
        "gateway.forbidden",
        {
            "options": {"key": VIEWER},
            "routes": [
                {
                    "name": "default",
                    "match": {"roles": ["tenant"]},
                    "candidates": [{"provider": "primary"}],
                }
            ],
        },
    ),
    "field": (
        openai.BadRequestError,
        400,
        "gateway.invalid_request",
        {"fields": {"extra_body": {"stream": "yes"}}},
    ),
    "rejected": (openai.BadRequestError, 400, "gateway.upstream_rejected_request", {"status": 400}),
    "never": (
        openai.APIStatusError,
        413,
        "gateway.request_exceeds_limit",
        {"limits": SMALL, "fields": {"max_tokens": 60}},
    ),
    "body": (
        openai.APIStatusError,
        413,
        "gateway.body_too_large",
        {
            "server": {"caps": {"llm_body_bytes": 100_000}},
            "fields": {"user": "x" * 3_000_000},
        },
    ),
    "failed": (openai.InternalServerError, 502, "gateway.all_providers_failed", {"status": 500}),
    "credential": (openai.InternalServerError, 502, "gateway.upstream_credential", {"status": 401}),
}
FEW = ("key", "failed")


@pytest.mark.parametrize(
    "case", [pytest.param(x, marks=() if x in FEW else pytest.mark.full) for x in TYPED]
)
def test_errors_are_of_the_clients_own_types(tmp_path: Path, case: str) -> None:
    kind, status, code, given = TYPED[case]
    parts = {name: value for name, value in given.items() if name not in ("fields", "status")}
    script = whole(ERROR_OBJECT, status=given.get("status", 200))
    error, _ = played(tmp_path, raised(kind, **given.get("fields", {})), script, **parts)
    assert (error.status_code, error.code) == (status, code)
    assert error.request_id == error.body["request_id"]
    assert CANARY not in str(error)


def test_a_limit_is_a_rate_limit_error_that_says_when_to_come_back(tmp_path: Path) -> None:
    def small(client: openai.OpenAI) -> Any:
        return ask(client, max_tokens=40)

    async def body() -> tuple[Any, int]:
        limits = [{"name": "small", "tokens": 70}]
        async with ScriptedUpstream(whole(completion("hello"))) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1", limits=limits)
            async with serving(text) as served:
                await used(served, small)
                await served.scene.until(lambda: served.app._charging.pending == 0)
                error = await used(served, raised(openai.RateLimitError, max_tokens=40))
            return error, len(upstream.requests)

    error, asked = asyncio.run(body())
    assert error.code == "gateway.rate_limited"
    headers = error.response.headers
    assert 55 <= int(headers["retry-after"]) <= 61
    assert int(headers["retry-after-ms"]) <= int(headers["retry-after"]) * 1000
    assert headers["x-should-retry"] == "true"
    assert (headers["x-ratelimit-limit-tokens"], headers["x-ratelimit-remaining-tokens"]) == (
        "70",
        str(70 - 43),
    )
    assert headers["x-ratelimit-reset-tokens"].startswith(("1m", "5"))
    assert asked == 1


def test_a_refusal_that_no_retry_mends_is_not_retried(tmp_path: Path) -> None:
    options = {"retries": 2}
    script = whole(ERROR_OBJECT, status=400)
    _, asked = played(tmp_path, raised(openai.BadRequestError), script, options=options)
    assert asked == 1
    # Two targets were asked, once each: trying everybody again is no help right now.
    script = whole(ERROR_OBJECT, status=500)
    _, asked = played(tmp_path, raised(openai.InternalServerError), script, options=options)
    assert asked == 2


def test_a_stream_that_breaks_raises_after_its_text(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        text = ""
        with pytest.raises(openai.APIError) as caught:  # noqa: PT012 - text before it counts
            for chunk in ask(client, stream=True):
                text += chunk.choices[0].delta.content or ""
        return text, caught.value

    (text, error), asked = played(tmp_path, use, streamed(ROLE + BANG + ERROR + DONE))
    assert text == "Hel!"
    assert error.code == "gateway.upstream_interrupted"
    assert set(error.body) == {"type", "code", "message", "request_id"}
    assert CANARY not in str(error)
    assert asked == 1


def test_a_client_that_closes_a_stream_stops_the_upstream(tmp_path: Path) -> None:
    async def body() -> None:
        endless = steps(STREAM_HEAD, chunk_bytes(ROLE + BANG), asyncio.Event())
        async with ScriptedUpstream(endless) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1")
            async with serving(text) as served:

                def use(client: openai.OpenAI) -> None:
                    with ask(client, stream=True) as stream:
                        assert next(iter(stream)).choices

                await used(served, use)
                await upstream.until(lambda: upstream.open_connections == 0)
                await served.scene.until(lambda: served.app.in_flight == 0)
                assert served.metric("requests_total", outcome="cancelled") == 1
                assert served.metric("attempts_total", result="cancelled") == 1

    asyncio.run(body())
