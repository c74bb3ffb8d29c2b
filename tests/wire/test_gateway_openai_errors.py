"""What does the official client make of every failure, and how often are providers asked then?

Counted at the upstream: never more than the attempts of the route for each try of the client, and
a try that cannot help is not made.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.app.chat_upstreams import BANG, DONE, ERROR, ERROR_OBJECT, LO, ROLE, STOP, completion
from tests.app.test_chat_bodies import streamed, whole
from tests.ports import free_port
from tests.wire.gateways import KEY, Served, config_text, serving
from tests.wire.test_gateway_openai import MESSAGES, ask, played, raised, used
from tidegate.testing.scripted import (
    STREAM_HEAD,
    Script,
    ScriptedUpstream,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
    cut_after,
    steps,
)

RETRIES = {"retries": 2}
TWICE = ("primary", "backup")


def route(*providers: str, **more: Any) -> list[dict[str, Any]]:
    """A route that never opens a breaker and does not let a target rest by itself."""
    return [
        {
            "name": "default",
            "candidates": [{"provider": provider} for provider in providers or TWICE],
            "cooling": {"on_429_s": 0.0},
            "breaker": {"consecutive": 100, "min_results": 100},
            "attempts": 3,
            **more,
        }
    ]


def error(status: int, code: str | None = None, **headers: str) -> Script:
    """An error of the dialect."""
    body = {"error": {"message": "no", "type": "x", "code": code}}
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    content = ("Content-Type", "application/json")
    return steps(answer_bytes(status, headers=[content, *named], body=json.dumps(body).encode()))


async def resets(exchange: UpstreamExchange) -> None:
    exchange.reset()


HALF = cut_after(answer_bytes(headers=[("Content-Length", "99")], body=b"{"))
SOON = {"deadlines": {"first_token_s": 1.0, "total_s": 1.5}}
Seen = tuple[type[openai.APIError], int, str]
REJECTED: Seen = (openai.BadRequestError, 400, "gateway.upstream_rejected_request")
TOO_LONG: Seen = (openai.BadRequestError, 400, "context_length_exceeded")
FILTERED: Seen = (openai.BadRequestError, 400, "content_filter")
NO_KEY: Seen = (openai.InternalServerError, 502, "gateway.upstream_credential")
FAILED: Seen = (openai.InternalServerError, 502, "gateway.all_providers_failed")
LATE: Seen = (openai.InternalServerError, 504, "gateway.all_providers_failed")
# The upstream; what the client sees; how many requests reached the upstream; the route.
FAILURES: dict[str, tuple[Script, Seen, int, list[Any]]] = {
    "400": (error(400), REJECTED, 1, route()),
    "422": (error(422), REJECTED, 1, route()),
    "context": (error(400, "context_length_exceeded"), TOO_LONG, 1, route()),
    "filter": (error(400, "content_filter"), FILTERED, 1, route()),
    "401": (error(401), NO_KEY, 1, route()),
    "403": (error(403), NO_KEY, 1, route()),
    "404": (error(404, "model_not_found"), FAILED, 2, route()),
    "429": (error(429), FAILED, 2, route()),
    "500": (error(500), FAILED, 2, route()),
    "500 of the only one": (error(500), FAILED, 2, route("primary")),
    "503": (error(503), FAILED, 2, route()),
    "a redirect": (error(302, location="/elsewhere"), FAILED, 2, route()),
    "not JSON": (whole(b"<html></html>"), FAILED, 2, route()),
    "an error in a 200": (whole(ERROR_OBJECT), FAILED, 2, route()),
    "a reset": (resets, FAILED, 2, route()),
    "silence": (steps(asyncio.Event()), LATE, 1, route("primary", **SOON)),
    "half an answer": (HALF, FAILED, 2, route()),
}
FEW = ("context", "500")


@pytest.mark.parametrize(
    "case", [pytest.param(x, marks=() if x in FEW else pytest.mark.full) for x in FAILURES]
)
def test_every_failure_has_its_type_and_is_not_tried_in_vain(tmp_path: Path, case: str) -> None:
    script, (kind, status, code), wanted, routes = FAILURES[case]
    caught, asked = played(tmp_path, raised(kind), script, options=RETRIES, routes=routes)
    assert (caught.status_code, caught.code) == (status, code)
    assert caught.response.headers["x-should-retry"] == "false"
    assert "retry-after" not in caught.response.headers
    assert set(caught.body) == {"type", "code", "message", "request_id"}
    assert caught.request_id == caught.body["request_id"]
    assert asked == wanted


def sent(client: openai.OpenAI, method: str, path: str, **options: Any) -> Any:
    """One request that the client has no method of its own for."""
    return getattr(client, method)(path, cast_to=object, **options)


OURS: dict[str, tuple[type[openai.APIError], int, str, Callable[[openai.OpenAI], Any]]] = {
    "path": (
        openai.NotFoundError,
        404,
        "gateway.not_found",
        lambda client: sent(client, "post", "/embeddings", body={}),
    ),
    "method": (
        openai.APIStatusError,
        405,
        "gateway.method_not_allowed",
        lambda client: sent(client, "get", "/chat/completions"),
    ),
    "media type": (
        openai.APIStatusError,
        415,
        "gateway.unsupported_media_type",
        lambda client: ask(client, extra_headers={"Content-Type": "text/plain"}),
    ),
    "opt-out": (
        openai.BadRequestError,
        400,
        "gateway.invalid_request",
        lambda client: ask(client, extra_headers={"x-tidegate-fallback": "maybe"}),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", OURS)
def test_refusals_of_our_own_are_typed_and_not_repeated(tmp_path: Path, case: str) -> None:
    kind, status, code, use = OURS[case]

    def caught(client: openai.OpenAI) -> Any:
        with pytest.raises(kind) as raising:
            use(client)
        assert type(raising.value) is kind
        return raising.value

    refused, asked = played(tmp_path, caught, whole(completion("hi")), options=RETRIES)
    assert (refused.status_code, refused.code, asked) == (status, code, 0)


@pytest.mark.full
def test_targets_that_rest_are_asked_again_by_the_client_when_they_are_back(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        began_s = time.monotonic()
        answer = ask(client)
        return answer.choices[0].message.content, time.monotonic() - began_s

    rests = error(429, retry_after_ms="600")
    (text, took_s), asked = played(
        tmp_path, use, rests, rests, whole(completion("back")), options=RETRIES, routes=route()
    )
    assert (text, asked) == ("back", 3)
    assert took_s > 0.5  # it was told to wait, and no sooner would have helped


@pytest.mark.full
def test_a_wait_that_is_told_is_true_and_one_shorter_is_refused(tmp_path: Path) -> None:
    """With retries switched off, the client sees what a wait of its own would follow."""

    def use(client: openai.OpenAI) -> Any:
        with pytest.raises(openai.InternalServerError) as first:
            ask(client)
        with pytest.raises(openai.InternalServerError) as second:
            ask(client)
        return first.value, second.value

    rests = error(429, retry_after="7")
    caught, asked = played(tmp_path, use, rests, routes=route())
    for seen in caught:
        assert seen.status_code == 503
        headers = seen.response.headers
        assert headers["x-should-retry"] == "true"
        assert 6 <= int(headers["retry-after"]) <= 7
        assert 0 < int(headers["retry-after-ms"]) <= 7000
    assert asked == 2
    attempts = [seen.response.headers["x-tidegate-attempts"] for seen in caught]
    assert attempts == [
        "primary:rate_limited,backup:rate_limited",
        "primary:cooling,backup:cooling",
    ]


@pytest.mark.full
def test_a_limit_of_the_tenant_is_waited_for_by_the_client(tmp_path: Path) -> None:
    def use(client: openai.OpenAI) -> Any:
        return [ask(client).choices[0].message.content for _ in range(2)]

    limits = [{"name": "few", "requests": 1, "window_s": 1.0}]
    answers, asked = played(tmp_path, use, whole(completion("hi")), options=RETRIES, limits=limits)
    assert (answers, asked) == (["hi", "hi"], 2)


def at_port(port: int, use: Callable[[openai.OpenAI], Any], **options: Any) -> Any:
    """What `use` makes of a client that talks to this port."""
    url = f"http://127.0.0.1:{port}/v1"
    with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, **options) as client:
        return use(client)


@pytest.mark.full
def test_a_gateway_that_is_away_is_a_connection_error() -> None:
    at_port(free_port(), raised(openai.APIConnectionError))


@pytest.mark.full
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_gives_up_frees_its_upstream_and_each_try_asks_once(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body() -> None:
        parts = (STREAM_HEAD, chunk_bytes(ROLE)) if stream else ()
        async with ScriptedUpstream(steps(*parts, asyncio.Event())) as upstream:
            text = config_text(tmp_path, primary=f"{upstream.url}/v1", backup=f"{upstream.url}/v1")
            async with serving(text) as served:

                def use(client: openai.OpenAI) -> Any:
                    hurried = client.with_options(timeout=1.0, max_retries=1)
                    return raised(openai.APITimeoutError, stream=stream)(hurried)

                await used(served, use)
                await upstream.until(lambda: upstream.open_connections == 0)
                await served.scene.until(lambda: served.app.in_flight == 0)
                assert len(upstream.requests) == 2
                assert served.metric("requests_total", outcome="cancelled") == 2

    asyncio.run(body())


@pytest.mark.full
def test_a_full_gateway_is_a_server_error_that_may_be_tried_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with ScriptedUpstream(steps(asyncio.Event())) as upstream:
            text = config_text(
                tmp_path,
                primary=f"{upstream.url}/v1",
                server={"caps": {"requests_in_flight": 1}},
            )
            async with serving(text) as served:
                waiting = asyncio.ensure_future(endless(served))
                await upstream.until(lambda: len(upstream.requests) == 1)
                caught = await used(served, raised(openai.InternalServerError))
                assert (caught.status_code, caught.code) == (503, "gateway.overloaded")
                assert caught.response.headers["x-should-retry"] == "true"
                assert len(upstream.requests) == 1
                waiting.cancel()
                await asyncio.wait([waiting])
                assert waiting.cancelled()
                # An asynchronous client that is cancelled leaves at once.
                await upstream.until(lambda: upstream.open_connections == 0)

    asyncio.run(body())


async def endless(served: Served) -> None:
    """A request of the asynchronous client."""
    url = f"{served.url}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
        await client.chat.completions.create(model="m", messages=MESSAGES)


BROKEN: dict[str, Script] = {
    "cut": cut_after(STREAM_HEAD, chunk_bytes(ROLE + BANG)),
    "cut in an event": cut_after(STREAM_HEAD, chunk_bytes(ROLE + BANG + LO[:20])),
    "ended": steps(STREAM_HEAD, chunk_bytes(ROLE + BANG), chunk_bytes(b"")),
    "an error event": streamed(ROLE + BANG + ERROR + DONE),
    "no JSON": streamed(ROLE + BANG + b"data: {\n\n" + STOP + DONE),
    "silence": steps(STREAM_HEAD, chunk_bytes(ROLE + BANG), asyncio.Event()),
}


@pytest.mark.full
@pytest.mark.parametrize("case", BROKEN)
def test_every_stream_that_breaks_raises_after_its_text_and_is_not_repeated(
    tmp_path: Path, case: str
) -> None:
    """Portkey-AI/gateway #1797: half an answer that the client takes for a whole one."""

    def use(client: openai.OpenAI) -> Any:
        text = ""
        with pytest.raises(openai.APIError) as caught:  # noqa: PT012 - text before it counts
            for chunk in ask(client, stream=True):
                text += chunk.choices[0].delta.content or ""
        return text, caught.value

    routes = route(deadlines={"idle_s": 1.0})
    (text, caught), asked = played(tmp_path, use, BROKEN[case], options=RETRIES, routes=routes)
    assert (text, caught.code, asked) == ("Hel!", "gateway.upstream_interrupted", 1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(12))
def test_whatever_fails_providers_are_asked_no_more_than_attempts_times_tries(
    tmp_path: Path, seed: int
) -> None:
    """BerriAI/litellm #19985: a fallback that begins the retries anew multiplies the attempts."""
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
    faults = [
        error(500),
        error(503),
        error(429),
        error(404),
        error(408),
        error(429, retry_after_ms="50"),
        resets,
        whole(b"{}"),
        cut_after(b"HTTP/1.1 2"),
    ]
    attempts, retries = dice.randint(1, 3), dice.randint(0, 2)
    scripts = [dice.choice(faults) for _ in range(12)]

    def use(client: openai.OpenAI) -> None:
        with pytest.raises(openai.APIError):
            ask(client)

    _, asked = played(
        tmp_path,
        use,
        *scripts,
        options={"retries": retries},
        routes=route(attempts=attempts),
    )
    # A reset on a kept connection is taken for one that was closed already: one call more.
    replayed = scripts[:asked].count(resets)
    assert 1 <= asked <= attempts * (retries + 1) + replayed
