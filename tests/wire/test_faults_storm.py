"""Do failures in any order leave every client with an honest answer, and clean books?"""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
import uvloop

from tests.wire.faults_expected import INTERRUPTED, ROWS
from tests.wire.faults_world import SHORT, FaultWorld, Got, counted, estimated_prompt, fault_world
from tidegate.demo.faults_act import USAGE

pytestmark = pytest.mark.full
REQUESTS, AT_ONCE = 300, 16
WHOLE = {name: f"Hello from {name}. How may I help you today?" for name in ("primary", "backup")}
# Without those that keep a target from being asked again: the storm is to go on.
NAMES = sorted(
    name
    for name, row in ROWS.items()
    if row.stream.verdict not in ("rests", "open")
    and row.plain.verdict not in ("rests", "open")
    and name not in ("refused", "no-accept", "flap", "bomb", "too-long")
)
NEVER_OPEN = {"consecutive": 1_000_000, "ratio": 1.0, "min_results": 1_000_000}
ERRORS = {
    400: {"gateway.upstream_rejected_request", "context_length_exceeded", "content_filter"},
    502: {"gateway.all_providers_failed", "gateway.upstream_credential"},
    504: {"gateway.all_providers_failed"},
}


def ended(got: Got, *, stream: bool) -> str:
    """How an answer ended: whole, broken or refused; nothing else is allowed."""
    provider = got.headers.get("x-tidegate-provider")
    if got.error is None:
        assert got.status == 200
        assert provider is not None
        assert got.text == WHOLE[provider]
        assert got.is_done == stream
        return "whole"
    if got.is_stream:
        assert provider is not None
        assert (got.error["code"], got.finishes) == (INTERRUPTED, [])
        assert b"[DONE]" not in got.body
        text = got.text
        assert WHOLE[provider].startswith(text) or text == "Hello from here."
        return "broken"
    assert got.error["code"] in ERRORS[got.status]
    assert provider is None
    return "refused"


async def storm(world: FaultWorld, draw: random.Random) -> Counter[str]:
    for name in WHOLE:
        # The backup is well in two of three.
        weights = [1.0] * len(NAMES)
        weights[NAMES.index("ok")] = 2.0 * len(NAMES) if name == "backup" else 1.0
        world.providers.set(name, *draw.choices(NAMES, weights, k=2 * REQUESTS))
    room = asyncio.Semaphore(AT_ONCE)
    seen: Counter[str] = Counter()
    owed: list[tuple[int, int]] = []

    async def one(*, stream: bool) -> None:
        async with room:
            got = await world.ask(stream=stream)
        how = ended(got, stream=stream)
        seen[how] += 1
        by_count = estimated_prompt() + counted(got.text)
        by_report = by_count if how == "broken" else USAGE["total_tokens"]
        owed.append((0, 0) if how == "refused" else (by_count, by_report))

    await asyncio.gather(*(one(stream=draw.random() < 0.5) for _ in range(REQUESTS)))
    books = await world.books()
    assert books.reserved == 0
    # Every answer is paid, by its own report or by count; nothing else is.
    assert sum(least for least, _ in owed) <= books.used <= sum(most for _, most in owed)
    return seen


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_failures_leaves_honest_answers_and_clean_books(
    tmp_path: Path, seed: int, loop: str
) -> None:
    async def body() -> None:
        route = {"breaker": NEVER_OPEN, "cooling": {"on_429_s": 0.0}}
        limits = [{"name": "tokens", "tokens": 10_000_000}]
        async with fault_world(tmp_path, deadlines=SHORT, route=route, limits=limits) as world:
            seen = await storm(world, random.Random(seed))  # noqa: S311 - a seed to play it again
            # The storm was one: each end has been met.
            assert set(seen) == {"whole", "broken", "refused"}
            gateway = world.served.app
            await world.served.scene.until(lambda: gateway.in_flight == 0)
            assert len(gateway._inboxes) == 0
            transport = gateway._transport
            await world.served.scene.until(
                lambda: transport.open_connections == transport.idle_connections
            )
            primary, backup = world.calls
            # A connection that was kept and turns out to be closed is asked for anew, once.
            assert REQUESTS <= primary <= 2 * REQUESTS
            assert backup <= 2 * REQUESTS

    factory = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}[loop]
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(body())
