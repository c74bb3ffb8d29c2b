"""Does each of the sixteen public provider faults end well, for a stream and a plain answer?

The list is that of failoverbench/failoverbench (scenarios S01 to S16, methodology v0.1), played
here by the providers of the demo: what a correct system does is said in each name.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.faults_world import PATIENT, SHORT, FaultWorld, Got, fault_world
from tidegate.demo.faults_act import USAGE
from tidegate.testing.asgi import WAIT_S

pytestmark = pytest.mark.full
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
WHOLE = {name: f"Hello from {name}. How may I help you today?" for name in ("primary", "backup")}
FAILED, INTERRUPTED = "gateway.all_providers_failed", "gateway.upstream_interrupted"
QUICK = {"breaker": {"consecutive": 2, "min_results": 100, "open_s": 0.5, "max_open_s": 0.5}}


def play(folder: Path, body: Callable[[FaultWorld], Awaitable[None]], **world: Any) -> None:
    async def run() -> None:
        async with fault_world(folder, **world) as made:
            await body(made)
            assert (await made.books()).reserved == 0

    asyncio.run(run())


def told(got: Got) -> tuple[int, str | None, str | None]:
    return got.status, got.headers.get("x-tidegate-attempts"), (got.error or {}).get("code")


def served(got: Got, provider: str, attempts: str) -> None:
    assert told(got) == (200, attempts, None)
    assert got.text == WHOLE[provider]
    assert got.is_done == got.is_stream


@BOTH
def test_s01_a_named_wait_is_kept_while_the_backup_answers(tmp_path: Path, *, stream: bool) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "429-retry-after", times=1, wait_s=2.0)
        served(await world.ask(stream=stream), "backup", "primary:rate_limited,backup:ok")
        target = world.target("primary")
        assert target is not None
        assert 0.0 < target.cooling_s <= 2.0
        served(await world.ask(stream=stream), "backup", "primary:cooling,backup:ok")
        assert world.calls == (1, 2)

    play(tmp_path, body)


@BOTH
def test_s01_without_a_backup_the_client_is_told_the_wait(tmp_path: Path, *, stream: bool) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "429-retry-after", wait_s=2.0)
        for attempts in ("primary:rate_limited", "primary:cooling"):
            got = await world.ask(stream=stream)
            assert told(got) == (503, attempts, FAILED)
            assert got.headers["x-should-retry"] == "true"
            assert 1 <= int(got.headers["retry-after"]) <= 2
            assert 0 < int(got.headers["retry-after-ms"]) <= 2_000
        assert world.calls == (1, 0)
        assert (await world.books()).used == 0

    play(tmp_path, body, targets=("primary",))


@BOTH
def test_s02_a_provider_that_goes_on_refusing_is_not_hammered(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "429")
        served(await world.ask(stream=stream), "backup", "primary:rate_limited,backup:ok")
        for _ in range(4):
            served(await world.ask(stream=stream), "backup", "primary:cooling,backup:ok")
        assert world.calls == (1, 5)

    play(tmp_path, body)


@BOTH
@pytest.mark.parametrize(
    ("fault", "outcome"), [("500", "server_error"), ("reset", "unreachable")], ids=["s03", "s05"]
)
def test_s03_s05_one_fault_that_passes_is_asked_once_more(
    tmp_path: Path,
    *,
    stream: bool,
    fault: str,
    outcome: str,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault, times=1)
        served(await world.ask(stream=stream), "primary", f"primary:{outcome},primary:ok")
        assert world.calls == (2, 0)
        assert (await world.books()).used == USAGE["total_tokens"]

    play(tmp_path, body, targets=("primary",))


@BOTH
@pytest.mark.parametrize("fault", ["500", "reset"], ids=["s03", "s05"])
def test_s03_s05_with_a_backup_nobody_waits_for_the_primary(
    tmp_path: Path,
    *,
    stream: bool,
    fault: str,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault, times=1)
        outcome = "server_error" if fault == "500" else "unreachable"
        served(await world.ask(stream=stream), "backup", f"primary:{outcome},backup:ok")
        served(await world.ask(stream=stream), "primary", "primary:ok")

    play(tmp_path, body)


@BOTH
def test_s04_a_dead_provider_is_asked_five_times_and_then_left_alone(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        for _ in range(5):
            served(await world.ask(stream=stream), "backup", "primary:server_error,backup:ok")
        for _ in range(5):
            served(await world.ask(stream=stream), "backup", "primary:open,backup:ok")
        assert world.calls == (5, 10)
        assert (await world.books()).used == 10 * USAGE["total_tokens"]

    play(tmp_path, body)


@BOTH
@pytest.mark.parametrize("fault", ["hang", "slow-first-token"], ids=["s06", "s07"])
def test_s06_s07_silence_costs_one_deadline_and_is_not_asked_again(
    tmp_path: Path,
    *,
    stream: bool,
    fault: str,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault)
        served(await world.ask(stream=stream), "backup", "primary:timeout,backup:ok")
        assert world.calls == (1, 1)
        await world.served.scene.until(lambda: world.providers.gone["primary"] == 1)

    play(tmp_path, body, deadlines=SHORT)


@BOTH
def test_s07_a_first_token_within_its_deadline_is_waited_for(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "slow-first-token", wait_s=0.05)
        served(await world.ask(stream=stream), "primary", "primary:ok")

    play(tmp_path, body)


@BOTH
@pytest.mark.parametrize("fault", ["cut", "stall", "bad-chunk"], ids=["s08", "s09", "s10"])
def test_s08_s09_s10_half_an_answer_is_never_a_whole_one(
    tmp_path: Path,
    *,
    stream: bool,
    fault: str,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault, times=1)
        got = await world.ask(stream=stream)
        if stream:
            assert told(got) == (200, "primary:ok", INTERRUPTED)
            assert WHOLE["primary"].startswith(got.text)
            assert (got.finishes, got.is_done) == ([], False)
        else:
            assert got.text == WHOLE["backup"]
        # Whatever it was, the next request finds everything well.
        served(await world.ask(stream=stream), "primary", "primary:ok")

    play(tmp_path, body, deadlines=SHORT if fault == "stall" else PATIENT)


@BOTH
def test_s11_a_missing_end_mark_is_added_at_once_and_usage_reported(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "no-done")
        wish = {"stream_options": {"include_usage": True}} if stream else {}
        got = await world.ask(stream=stream, **wish)
        served(got, "primary", "primary:ok")
        assert got.finishes == ["stop"]
        assert got.values[-1]["usage"] == USAGE

    play(tmp_path, body)


@BOTH
@pytest.mark.parametrize("fault", ["context-length", "413"])
def test_s12_a_prompt_that_is_too_long_goes_only_to_a_larger_window(
    tmp_path: Path,
    *,
    stream: bool,
    fault: str,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", fault)
        attempts = "primary:context_too_long,backup:ok"
        served(await world.ask(stream=stream), "backup", attempts)
        await world.behave("primary", "ok")
        served(await world.ask(stream=stream), "primary", "primary:ok")

    windows = {"primary": 8_192, "backup": 131_072}
    candidates = [{"provider": name, "context_tokens": size} for name, size in windows.items()]
    play(tmp_path, body, route={"candidates": candidates})


@BOTH
@pytest.mark.parametrize("larger", [8_192, 4_096, None])
def test_s12_the_same_window_is_not_asked_a_second_time(
    tmp_path: Path,
    *,
    stream: bool,
    larger: int | None,
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "context-length")
        got = await world.ask(stream=stream)
        assert told(got) == (400, "primary:context_too_long", "context_length_exceeded")
        assert world.calls == (1, 0)

    backup: dict[str, object] = {"provider": "backup"}
    if larger is not None:
        backup["context_tokens"] = larger
    candidates = [{"provider": "primary", "context_tokens": 8_192}, backup]
    play(tmp_path, body, route={"candidates": candidates})


@BOTH
def test_s13_a_refusal_by_policy_is_not_routed_around(tmp_path: Path, *, stream: bool) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "content-filter")
        got = await world.ask(stream=stream)
        assert told(got) == (400, "primary:content_filter", "content_filter")
        assert got.headers["x-should-retry"] == "false"
        assert world.calls == (1, 0)
        assert (await world.books()).used == 0

    play(tmp_path, body)


@BOTH
def test_s14_no_prefill_is_made_up_so_none_can_be_refused(tmp_path: Path, *, stream: bool) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "cut")
        await world.behave("backup", "no-prefill")
        got = await world.ask(stream=stream)
        if stream:
            # The real fault, and not the backup's refusal of something we would have made up.
            assert told(got) == (200, "primary:ok", INTERRUPTED)
            assert world.calls == (1, 0)
        else:
            served(got, "backup", "primary:unreachable,backup:ok")

    play(tmp_path, body)


@BOTH
def test_s14_a_prefill_of_the_clients_own_goes_on_as_it_was_sent(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        prefill = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello"}]
        await world.behave("primary", "503")
        served(
            await world.ask(stream=stream, messages=prefill),
            "backup",
            "primary:server_error,backup:ok",
        )
        await world.behave("backup", "no-prefill")
        got = await world.ask(stream=stream, messages=prefill)
        # It was the client's: it hears that this is refused, and in the header what came first.
        attempts = "primary:server_error,backup:rejected"
        assert told(got) == (400, attempts, "gateway.upstream_rejected_request")

    play(tmp_path, body)


@BOTH
def test_s15_an_outage_is_served_by_the_backup_and_its_end_is_noticed(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        for _ in range(10):
            got = await world.ask(stream=stream)
            assert (got.status, got.text) == (200, WHOLE["backup"])
        # Two that opened the breaker, and probes.
        asked = world.calls[0]
        assert 2 <= asked < 10
        await world.behave("primary", "ok")
        async with asyncio.timeout(WAIT_S):
            while (got := await world.ask(stream=stream)).text != WHOLE["primary"]:
                assert got.text == WHOLE["backup"]
        # It took one probe.
        assert world.calls[0] == asked + 1

    play(tmp_path, body, route=QUICK)


@BOTH
def test_s15_a_primary_that_flaps_costs_no_client_its_answer(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "flap", times=2)
        seen = set()
        async with asyncio.timeout(WAIT_S):
            while len(seen) < 3 or world.calls[0] < 6:
                got = await world.ask(stream=stream)
                assert got.status == 200
                assert got.text in WHOLE.values()
                seen.add(got.headers["x-tidegate-attempts"])
        assert {"primary:ok", "primary:server_error,backup:ok", "primary:open,backup:ok"} <= seen

    play(tmp_path, body, route=QUICK)


@BOTH
def test_s16_the_answer_names_who_gave_it_and_only_that_is_paid(
    tmp_path: Path, *, stream: bool
) -> None:
    async def body(world: FaultWorld) -> None:
        await world.behave("primary", "503")
        got = await world.ask(stream=stream, model="asked-for")
        served(got, "backup", "primary:server_error,backup:ok")
        assert got.headers["x-tidegate-provider"] == "backup"
        assert {value["model"] for value in got.values} == {"of-the-backup"}
        assert (await world.books()).used == USAGE["total_tokens"]

    candidates = [{"provider": "primary"}, {"provider": "backup", "model": "of-the-backup"}]
    play(tmp_path, body, route={"candidates": candidates})
