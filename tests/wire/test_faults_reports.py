"""Do the failures that people have reported of other gateways end well here, over real sockets?

Each test names its reports. Failures of one kind that end alike are cells of the matrix.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.faults_expected import FAILED, INTERRUPTED
from tests.wire.faults_world import FaultWorld, Got, fault_world
from tidegate.demo.faults_act import USAGE
from tidegate.demo.faults_refusals import SHAPES
from tidegate.testing.asgi import WAIT_S

pytestmark = pytest.mark.full
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
WHOLE = {name: f"Hello from {name}. How may I help you today?" for name in ("primary", "backup")}
QUICK = {"consecutive": 2, "min_results": 100, "open_s": 0.5, "max_open_s": 0.5}
Body = Callable[[FaultWorld], Awaitable[None]]


def play(folder: Path, body: Body, **world: Any) -> None:
    async def run() -> None:
        async with fault_world(folder, **world) as made:
            await body(made)
            assert (await made.books()).reserved == 0

    asyncio.run(run())


def attempts(got: Got) -> str | None:
    return got.headers.get("x-tidegate-attempts")


async def until_probing(world: FaultWorld) -> None:
    """Until the pause of the primary's breaker is over."""

    def is_over() -> bool:
        target = world.target("primary")
        return target is not None and target.wait_s == 0.0 and target.state == "half_open"

    await world.served.scene.until(is_over)


@BOTH
@pytest.mark.parametrize("status", [429, 500, 503, 529])
@pytest.mark.parametrize("behavior", ["status", "error-first"])
def test_an_error_before_the_first_word_is_never_the_clients(
    tmp_path: Path, behavior: str, status: int, *, stream: bool
) -> None:
    """BerriAI/litellm #40404, #28216, #6957, #5512, maximhq/bifrost #5395: as status or in band."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", behavior, status=status)
        got = await world.ask(stream=stream)
        outcome = "rate_limited" if status == 429 else "server_error"
        assert (got.status, attempts(got)) == (200, f"primary:{outcome},backup:ok")
        assert got.raw.count(b"HTTP/1.1") == 1
        assert got.text == WHOLE["backup"]

    play(tmp_path, body)


@BOTH
@pytest.mark.parametrize("behavior", ["error-first", "error-later"])
@pytest.mark.parametrize("form", SHAPES)
def test_an_error_in_whatever_shape_is_one(
    tmp_path: Path, form: str, behavior: str, *, stream: bool
) -> None:
    """Of other people's servers: not an event that is passed on, and no end that looks whole."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", behavior, form=form)
        got = await world.ask(stream=stream)
        if stream and behavior == "error-later":
            assert got.error is not None
            assert (got.error["code"], got.is_done, got.finishes) == (INTERRUPTED, False, [])
            assert world.verdict("primary") == "bad"
        else:
            assert got.text == WHOLE["backup"]
            assert len([value for value in got.values if "choices" not in value]) == 0

    play(tmp_path, body)


def test_a_stream_that_nobody_opens_is_no_success(tmp_path: Path) -> None:
    """mlflow/mlflow #25262: the client got 200 and an error event; here the status is honest."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "404")
        await world.behave("backup", "404")
        got = await world.ask(stream=True)
        assert (got.status, attempts(got)) == (502, "primary:not_found,backup:not_found")

    play(tmp_path, body)


@BOTH
def test_what_broke_one_attempt_is_forgotten_by_the_next(tmp_path: Path, *, stream: bool) -> None:
    """maximhq/bifrost #4788: three targets fail in three ways, the fourth answers as a whole."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503", "malformed", "half-head")
        got = await world.ask(stream=stream)
        failed = "primary:server_error,primary:malformed,primary:unreachable"
        assert (got.status, attempts(got)) == (200, f"{failed},backup:ok")
        assert got.text == WHOLE["backup"]
        assert world.calls == (3, 1)
        assert (await world.books()).used == USAGE["total_tokens"]

    three = [{"provider": "primary", "model": name} for name in ("a", "b", "c")]
    play(tmp_path, body, route={"attempts": 4, "candidates": [*three, {"provider": "backup"}]})


def test_a_provider_that_only_trickles_is_left_alone(tmp_path: Path) -> None:
    """maximhq/bifrost #6472: five streams of too few tokens a second, none of them cut."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "trickle", wait_s=0.005)
        for _ in range(5):
            got = await world.ask(stream=True, n=3)
            assert (got.is_done, attempts(got)) == (True, "primary:ok")
        got = await world.ask(stream=True, n=3)
        assert attempts(got) == "primary:open,backup:ok"

    # Twenty-seven words in at least nine pauses of 5 ms are 600 a second at most.
    play(tmp_path, body, route={"breaker": {"slow_tokens_per_s": 5_000.0}})


@pytest.mark.parametrize("status", [429, 500])
def test_after_an_error_in_the_middle_everything_goes_on(tmp_path: Path, status: int) -> None:
    """BerriAI/litellm #26015: a 429 in the middle of a stream without fallbacks spun for ever."""

    async def body(world: FaultWorld) -> None:
        before = len(asyncio.all_tasks())
        await world.behave("primary", "error-later", times=1, status=status)
        got = await world.ask(stream=True)
        assert got.error is not None
        assert (got.error["code"], got.is_done, got.finishes) == (INTERRUPTED, False, [])
        assert (await world.ask(stream=True)).text == WHOLE["primary"]
        await world.served.scene.until(lambda: len(asyncio.all_tasks()) <= before)

    play(tmp_path, body, targets=("primary",))


@BOTH
@pytest.mark.parametrize(("most", "calls"), [(1, (1, 0)), (2, (1, 1)), (3, (1, 1))])
def test_providers_are_never_asked_more_often_than_configured(
    tmp_path: Path, most: int, calls: tuple[int, int], *, stream: bool
) -> None:
    """BerriAI/litellm #19985: the fallback began the retries anew."""

    async def body(world: FaultWorld) -> None:
        for name in ("primary", "backup"):
            await world.behave(name, "500")
        assert (await world.ask(stream=stream)).status == 502
        assert world.calls == calls

    play(tmp_path, body, route={"attempts": most})


@BOTH
@pytest.mark.parametrize("fault", ["503", "refused", "malformed"])
def test_a_dead_only_target_costs_its_clients_nothing(
    tmp_path: Path, fault: str, *, stream: bool
) -> None:
    """BerriAI/litellm #40405, PR #8668, PR #27610, Portkey-AI/gateway #1289: it is left alone,
    also when it is the only one, also when it refuses connections."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault)
        answers = [await world.ask(stream=stream) for _ in range(20)]
        told = [attempts(got) for got in answers]
        opened = told.index("primary:open")
        # After five failures, and for the whole pause.
        assert ",".join(str(one) for one in told[:opened]).count("primary:") == 5
        assert set(told[opened:]) == {"primary:open"}
        assert world.calls[0] == (0 if fault == "refused" else 5)
        for got in answers[opened:]:
            assert got.error is not None
            assert (got.status, got.error["code"]) == (503, FAILED)
            assert 1 <= int(got.headers["retry-after"]) <= 7

    play(tmp_path, body, targets=("primary",))


@BOTH
def test_streams_that_always_break_open_the_breaker(tmp_path: Path, *, stream: bool) -> None:
    """ferro-labs/ai-gateway #136: the verdict of a stream is that of its end, not of its head."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "cut")
        for _ in range(5):
            await world.ask(stream=stream)
        got = await world.ask(stream=stream)
        assert (attempts(got), got.text) == ("primary:open,backup:ok", WHOLE["backup"])
        assert world.calls[0] == 5

    play(tmp_path, body)


@BOTH
def test_a_429_without_a_word_goes_to_the_backup(tmp_path: Path, *, stream: bool) -> None:
    """langwatch/langwatch #7027, maximhq/bifrost #3261, agentgateway/agentgateway #1500."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "429")
        got = await world.ask(stream=stream)
        assert (attempts(got), got.text) == ("primary:rate_limited,backup:ok", WHOLE["backup"])

    play(tmp_path, body)


@BOTH
def test_a_probe_that_meets_a_429_locks_nobody_out(tmp_path: Path, *, stream: bool) -> None:
    """voidmind-io/voidllm #184, #185: the 429 is no verdict, and the next probe is allowed."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        for _ in range(2):
            await world.ask(stream=stream)
        await until_probing(world)
        await world.behave("primary", "429-retry-after", times=1, wait_s=2.0)
        got = await world.ask(stream=stream)
        assert attempts(got) == "primary:rate_limited,backup:ok"
        assert attempts(await world.ask(stream=stream)) == "primary:cooling,backup:ok"
        await until_probing(world)
        assert attempts(await world.ask(stream=stream)) == "primary:ok"
        target = world.target("primary")
        assert target is not None
        assert target.state == "closed"

    play(tmp_path, body, route={"breaker": QUICK})


@BOTH
def test_a_hundred_at_the_end_of_the_pause_make_one_call(tmp_path: Path, *, stream: bool) -> None:
    """bytedance/deer-flow PR #2095: all callers passed when the breaker was half open."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        for _ in range(2):
            await world.ask(stream=stream)
        await until_probing(world)
        await world.behave("primary", "hang")
        asked = [asyncio.create_task(world.ask(stream=stream)) for _ in range(100)]
        async with asyncio.timeout(2 * WAIT_S):
            answers = await asyncio.gather(*asked)
        assert world.calls[0] == 3
        told = sorted(str(attempts(got)) for got in answers)
        assert told == ["primary:open,backup:ok"] * 99 + ["primary:timeout,backup:ok"]
        assert {got.text for got in answers} == {WHOLE["backup"]}

    deadlines = {"first_token_s": 6.0, "idle_s": 6.0, "total_s": 30.0, "stream_total_s": 30.0}
    play(tmp_path, body, route={"breaker": QUICK}, deadlines=deadlines)


@BOTH
@pytest.mark.parametrize("fault", ["401", "403"])
def test_another_credential_may_serve_what_ours_may_not(
    tmp_path: Path, fault: str, *, stream: bool
) -> None:
    """apache/apisix #13852: with the option, and only where the credential is another one."""

    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault)
        outcome = "credential" if fault == "401" else "forbidden"
        got = await world.ask(stream=stream)
        assert (got.status, attempts(got)) == (200, f"primary:{outcome},backup:ok")
        got = await world.ask(stream=stream)
        again = "open" if fault == "401" else outcome
        assert attempts(got) == f"primary:{again},backup:ok"

    play(
        tmp_path,
        body,
        route={"failover_on_credential_error": True},
        credentials={"backup": "-".join(("another", "credential"))},
    )
