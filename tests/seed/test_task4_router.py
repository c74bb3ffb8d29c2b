"""Does the router profile keep every promise made for it?"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.seed.harness import Running, running
from tests.seed.lines import CURL_LINES, parse
from tidegate.config.demo_world import TENANT_TOKEN as TOKEN
from tidegate.demo.providers import LEAKS, Providers
from tidegate.testing.asgi import WAIT_S, ASGIClient
from tidegate.testing.sockets import Answer

CHAT = "/v1/chat/completions"
# The deadline of the profile is 3 s; what a test shows is the order of events, not the length.
SHORT = {"first_token_s: 3.0": "first_token_s: 1.5"}
TABLE = [
    ("ok", "ok", 200, "primary", "primary:ok", None),
    ("429", "ok", 200, "backup", "primary:rate_limited,backup:ok", None),
    ("slow", "ok", 200, "backup", "primary:timeout,backup:ok", None),
    ("400", "ok", 400, None, "primary:rejected", "gateway.upstream_rejected_request"),
    ("500", "ok", 200, "backup", "primary:server_error,backup:ok", None),
    ("malformed", "ok", 200, "backup", "primary:malformed,backup:ok", None),
    ("500", "429", 502, None, "primary:server_error,backup:rate_limited",
     "gateway.all_providers_failed"),
]  # fmt: skip


class Upstream:
    """The two demo providers, or one answer that reports a usage of our choice."""

    def __init__(self) -> None:
        self.providers = Providers()
        self.usage = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not self.usage:
            await self.providers(scope, receive, send)
            return
        usage = {
            "prompt_tokens": 1,
            "completion_tokens": self.usage - 1,
            "total_tokens": self.usage,
        }
        message = {"role": "assistant", "content": "long"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
                           "choices": [choice], "usage": usage}).encode()  # fmt: skip
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture(scope="module")
def gateway(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("task4")
    with running("router", {9201: upstream}, folder, replace=SHORT) as made:
        yield made


@pytest.fixture(autouse=True)
def _fresh(upstream: Upstream) -> None:
    behave(upstream)
    upstream.usage = 0


def behave(upstream: Upstream, primary: str = "ok", backup: str = "ok") -> None:
    upstream.providers.set("primary", primary)
    upstream.providers.set("backup", backup)


def ask(gateway: Running, *, max_tokens: int = 100, content: str = "hello") -> Answer:
    request = {"messages": [{"role": "user", "content": content}], "max_tokens": max_tokens}
    answer: Answer = gateway.run(gateway.post(CHAT, TOKEN, request))
    return answer


def until_there_is_room(gateway: Running, tokens: int) -> None:
    """A request may end in the books a moment after its answer has left: ask little until it has.

    What was really used stays there for a minute, and a hundred small questions take less.
    """
    for _ in range(100):
        room = ask(gateway, max_tokens=1).header("x-ratelimit-remaining-tokens")
        if int(room or 0) >= tokens:
            return
    raise AssertionError(f"only {room} tokens are left")


def error(answer: Answer) -> dict[str, str]:
    parsed: dict[str, dict[str, str]] = json.loads(answer.body)
    assert set(parsed) == {"error"}
    assert set(parsed["error"]) == {"type", "code", "message", "request_id"}
    assert parsed["error"]["request_id"] == answer.header("x-request-id")
    return parsed["error"]


def assert_nothing_leaks(answer: Answer) -> None:
    shown = answer.body.decode() + repr(answer.headers)
    assert [leak for leak in (*LEAKS, "psycopg", "html", "127.0.0.1") if leak in shown] == []


def test_the_curl_line_is_answered_by_the_primary(gateway: Running) -> None:
    answer = gateway.run(gateway.curl("routed chat"))
    assert answer.status == 200
    assert answer.header("x-tidegate-provider") == "primary"
    assert answer.header("x-tidegate-attempts") == "primary:ok"
    assert len(answer.header("x-request-id") or "") == 32
    assert json.loads(answer.body)["choices"][0]["message"]["content"].startswith("Hello from")


def test_the_switch_line_is_what_the_providers_understand(upstream: Upstream) -> None:
    request = parse(CURL_LINES["provider switch"])
    answer = asyncio.run(ASGIClient(upstream.providers).request(request.method, request.target))
    assert answer.status == 200
    assert upstream.providers.state()["primary"]["behaviour"] == "429"


def test_the_table_holds_in_its_order_without_a_restart(
    gateway: Running, upstream: Upstream
) -> None:
    for primary, backup, status, provider, attempts, code in TABLE:
        behave(upstream, primary, backup)
        answer = ask(gateway)
        seen = (
            answer.status,
            answer.header("x-tidegate-provider"),
            answer.header("x-tidegate-attempts"),
            None if answer.status == 200 else error(answer)["code"],
        )
        assert seen == (status, provider, attempts, code), f"primary={primary} backup={backup}"
        assert_nothing_leaks(answer)


def test_a_rejected_request_is_not_tried_elsewhere(gateway: Running, upstream: Upstream) -> None:
    behave(upstream, "400")
    calls = upstream.providers.calls["backup"]
    assert ask(gateway).status == 400
    assert upstream.providers.calls["backup"] == calls


def test_a_tenant_pays_what_was_used_and_not_what_was_asked_for(gateway: Running) -> None:
    # Twenty times 4,000 is beyond the limit of 50,000; twenty times 43 is not.
    assert {ask(gateway, max_tokens=4_000).status for _ in range(20)} == {200}


def test_our_outage_does_not_consume_the_budget(gateway: Running, upstream: Upstream) -> None:
    for _ in range(4):
        behave(upstream)
        until_there_is_room(gateway, 41_000)
        behave(upstream, "400")
        assert ask(gateway, max_tokens=40_000).status == 400
    behave(upstream)
    until_there_is_room(gateway, 41_000)
    assert ask(gateway, max_tokens=40_000).status == 200


def test_what_can_never_fit_is_413_and_not_429(gateway: Running, upstream: Upstream) -> None:
    calls = dict(upstream.providers.calls)
    answer = ask(gateway, max_tokens=60_000)
    assert answer.status == 413
    assert error(answer)["code"] == "gateway.request_exceeds_limit"
    assert answer.header("retry-after") is None
    assert upstream.providers.calls == calls


def test_over_the_limit_is_429_with_an_honest_wait_until_the_first_call_ends(
    gateway: Running, upstream: Upstream
) -> None:
    until_there_is_room(gateway, 46_000)

    async def body() -> None:
        behave(upstream, "hang")
        calls = upstream.providers.calls["primary"]
        async with await gateway.client() as client:
            headers = [("content-type", "application/json"), ("authorization", f"Bearer {TOKEN}")]
            request = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 45_000}
            holding = asyncio.create_task(
                client.ask("POST", CHAT, headers=headers, body=json.dumps(request).encode())
            )
            async with asyncio.timeout(WAIT_S):
                while upstream.providers.calls["primary"] == calls:
                    await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
            refused = await gateway.post(CHAT, TOKEN, request)
            assert refused.status == 429
            assert error(refused)["code"] == "gateway.rate_limited"
            # The window is cut into buckets, so that a wait may be one step longer than the window.
            assert 1 <= int(refused.header("retry-after") or 0) <= 61
            assert (await holding).header("x-tidegate-provider") == "backup"

    gateway.run(body())


@pytest.mark.full
def test_a_restart_keeps_what_was_used(tmp_path: Path) -> None:
    upstream = Upstream()
    upstream.usage = 30_000
    with running("router", {9201: upstream}, tmp_path, replace=SHORT) as gateway:
        assert ask(gateway, max_tokens=30_000).status == 200
        gateway.restart()
        assert ask(gateway, max_tokens=30_000).status == 429
        assert ask(gateway, max_tokens=10_000).status == 200
