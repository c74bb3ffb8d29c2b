"""Does the gateway pass every row of the table in which its peers were compared?

Primary and backup, for a plain answer (J) and for a stream (S). Rows that are one failure of the
primary are cells of the matrix (PEERS says which); the others are played here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.faults_expected import CONTEXT, CREDENTIAL, FAILED, FILTER, REJECTED, ROWS
from tests.wire.faults_world import FaultWorld, asking, estimated_prompt, fault_world
from tests.wire.gateways import CREDENTIAL as OUR_KEY
from tests.wire.gateways import KEY
from tidegate.demo.faults_act import USAGE
from tidegate.demo.faults_answers import FORMS
from tidegate.testing.sockets import RawClient

pytestmark = pytest.mark.full
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])

# Row of the comparison -> the cells of the matrix that play it; "" for a test below.
PEERS = {
    "429, 500, 503 -> backup": ("429", "500", "503"),
    "connection refused": ("refused",),
    "hang, no first byte": ("hang", "slow", "slow-head"),
    "headers, then silence": ("head-only", "role-only", "slow-first-token"),
    "dribbling body or stream": ("dribble", "trickle"),
    "malformed 200": ("malformed", "bad-chunk", "bad-coding", "bad-frame"),
    "200 {} or HTML": ("empty-object", "html", "empty"),
    "400": ("400", "422", "401"),
    "error as first event": ("error-first", "created-then-error"),
    "death after five tokens": ("cut", "reset-later", "short-body", "stall"),
    "error event after five tokens": ("error-later",),
    "SSE comments": ("comments",),
    "CRLF, no space, split anywhere, ids and retry times": ("odd-framing", "comments"),
}


def play(folder: Path, body: Callable[[FaultWorld], Awaitable[None]], **world: Any) -> None:
    async def run() -> None:
        async with fault_world(folder, **world) as made:
            await body(made)
            assert (await made.books()).reserved == 0

    asyncio.run(run())


def test_each_row_of_the_comparison_that_is_one_failure_is_in_the_matrix() -> None:
    assert {name for names in PEERS.values() for name in names} <= ROWS.keys()


ONWARD = {
    "500": "server_error",
    "reset": "unreachable",
    "malformed": "malformed",
    "404": "not_found",
    "408": "transient",
    "429": "rate_limited",
    "402": "quota",
}
RESTING = {"429": 5, "402": 300}
LAST = {
    "400": ("rejected", 400, REJECTED),
    "401": ("credential", 502, CREDENTIAL),
    "403": ("forbidden", 502, CREDENTIAL),
    "context-length": ("context_too_long", 400, CONTEXT),
    "content-filter": ("content_filter", 400, FILTER),
}


@BOTH
@pytest.mark.parametrize("backup", [*ONWARD, *LAST])
@pytest.mark.parametrize("primary", ONWARD)
def test_when_both_fail_the_client_gets_one_constant_answer(
    tmp_path: Path, primary: str, backup: str, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", primary)
        await world.behave("backup", backup)
        got = await world.ask(stream=stream)
        second, status, code = LAST.get(backup, (ONWARD.get(backup, ""), 502, FAILED))
        waits = [RESTING.get(name) for name in (primary, backup)]
        if backup == "context-length":
            # Too long for the backup is no word about the primary, whose window may be longer.
            status, code, waits = 502, FAILED, waits[:1]
        rest = None not in waits
        assert got.error is not None
        assert (got.status, got.error["code"]) == (503 if rest else status, code)
        assert set(got.error) == {"type", "code", "message", "request_id"}
        attempts = f"primary:{ONWARD[primary]},backup:{second}"
        assert got.headers["x-tidegate-attempts"] == attempts
        waited = min(wait for wait in waits if wait is not None) if rest else None
        assert got.headers.get("retry-after") == (None if waited is None else str(waited))
        # Clients do not wait for more than two minutes: a retry before that is useless.
        assert got.headers["x-should-retry"] == ("true" if rest and waited == 5 else "false")
        assert world.calls == (1, 1)
        assert (await world.books()).used == 0

    play(tmp_path, body)


@pytest.mark.parametrize("form", FORMS)
def test_a_wait_is_understood_in_every_form_and_kept(tmp_path: Path, form: str) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "429-retry-after", form=form, wait_s=2.0)
        got = await world.ask(stream=False)
        assert got.headers["x-tidegate-attempts"] == "primary:rate_limited,backup:ok"
        target = world.target("primary")
        assert target is not None
        if form in ("zero", "negative", "past", "words"):
            # Nothing that can be followed: the route's own time.
            assert 3.0 < target.cooling_s <= 5.0
        else:
            # A form of whole seconds is rounded up.
            assert 0.5 < target.cooling_s <= 3.0
        again = await world.ask(stream=False)
        assert again.headers["x-tidegate-attempts"] == "primary:cooling,backup:ok"

    play(tmp_path, body)


OURS = {
    "date",
    "x-request-id",
    "x-tidegate-provider",
    "x-tidegate-attempts",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "content-type",
    "connection",
}


@BOTH
def test_the_head_of_a_success_says_nothing_of_the_upstream(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        got = await world.ask(stream=stream)
        framing = (
            {"transfer-encoding", "cache-control", "x-accel-buffering"}
            if stream
            else {"content-length"}
        )
        assert set(got.headers) == OURS | framing

    play(tmp_path, body)


@BOTH
def test_a_stream_that_was_not_asked_for_usage_shows_none_and_is_paid_by_it(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        got = await world.ask(stream=stream)
        assert [value["usage"] for value in got.values if "usage" in value] == (
            [] if stream else [USAGE]
        )
        assert (await world.books()).used == USAGE["total_tokens"]

    play(tmp_path, body)


@BOTH
def test_only_the_gateways_own_key_goes_to_the_provider(tmp_path: Path, *, stream: bool) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        sent = [("X-Api-Key", KEY), ("Cookie", f"key={KEY}"), ("X-Forwarded-For", "10.1.2.3")]
        await world.ask(stream=stream, headers=sent)
        assert len(world.providers.heads) == 2
        for head in world.providers.heads:
            assert head["authorization"] == f"Bearer {OUR_KEY}"
            assert KEY not in repr(head)
            assert not {"x-api-key", "cookie", "x-forwarded-for"} & head.keys()

    play(tmp_path, body)


@pytest.mark.parametrize("left", ["stream", "stream before its first word", "document"])
def test_a_client_that_leaves_ends_the_call_of_the_provider(tmp_path: Path, left: str) -> None:
    async def body(world: FaultWorld) -> None:
        behavior = "stall" if left == "stream" else "role-only"
        await world.behave("primary", behavior)
        port = world.served.scene.port
        async with await RawClient.connect("127.0.0.1", port) as client:
            await client.send(asking(stream=left != "document"))
            await world.served.scene.until(lambda: world.calls == (1, 0))
            if left == "stream":
                await client.head()
                await client.chunk()
            client.abort()
            await world.served.scene.until(lambda: world.providers.gone["primary"] == 1)
        await world.served.scene.until(lambda: world.served.app.in_flight == 0)
        books = await world.books()
        assert books.reserved == 0
        if left == "stream":
            assert estimated_prompt() < books.used < USAGE["total_tokens"]
        # Nobody is blamed, and nobody else is asked.
        assert (world.calls, world.verdict("primary")) == ((1, 0), "")

    play(tmp_path, body)


@BOTH
def test_of_forty_at_once_ten_pass_and_thirty_are_told_when_to_come_back(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        asked = [world.ask(stream=stream) for _ in range(40)]
        answers = await asyncio.gather(*asked)
        assert sorted(got.status for got in answers) == [200] * 10 + [429] * 30
        assert world.calls == (10, 0)
        for got in answers:
            if got.status == 429:
                assert got.error is not None
                assert got.error["code"] == "gateway.rate_limited"
                assert 1 <= int(got.headers["retry-after"]) <= 61

    play(tmp_path, body, limits=[{"name": "rpm", "requests": 10}])
