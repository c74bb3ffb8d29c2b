"""Do several processes serve as one gateway: one quota, one record, one configuration?"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.crews import (
    Load,
    ends,
    file,
    kill,
    nobody_listens,
    owed,
    pid,
    readiness,
    replaced,
    scraped_until,
)
from tests.acceptance.processes import START_S, Running, serving, started, tidegate
from tests.acceptance.test_reloaded import FAILED, NEW_KEY, reloaded, with_key
from tests.acceptance.worlds import (
    KEY,
    Upstream,
    begin,
    chat,
    code,
    configuration,
    scripted,
    write,
    write_text,
)
from tidegate.records import broken_chains
from tidegate.testing.scripted import ScriptedUpstream

CAP = 10


def capped(upstream: ScriptedUpstream, workers: int) -> dict[str, Any]:
    limit = {"name": "r", "match": {"tenants": ["*"]}, "per": "tenant", "requests": CAP}
    return file(upstream, workers, limits=[limit])


@pytest.mark.full
@pytest.mark.parametrize("workers", [2, 4])
def test_they_share_one_quota_and_one_record_and_leave_nothing_behind(
    tmp_path: Path, workers: int
) -> None:
    """Counters of each replica for itself would admit as often: maximhq/bifrost #3547."""

    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, capped(server, workers))
            async with serving(tmp_path) as gateway:
                spawned = [line["worker"] for line in gateway.events("worker_spawned")]
                assert spawned == list(range(1, workers + 1))
                asking = [asyncio.ensure_future(chat(gateway, "held")) for _ in range(3 * CAP)]
                await server.until(lambda: upstream.begun["held"] >= CAP)
                upstream.release.set()
                answers = await asyncio.gather(*asking)
                assert Counter(each.status for each in answers) == {200: CAP, 429: 2 * CAP}
                assert {code(each) for each in answers if each.status == 429} == {
                    "gateway.rate_limited"
                }
                assert upstream.begun["held"] == CAP
                status, report = await readiness(gateway)
                assert (status, report["workers"]["accepting"]) == (200, workers)
                numbers = await scraped_until(
                    gateway, lambda found: found.get("tidegate_requests_total", 0) >= 3 * CAP
                )
                assert numbers["tidegate_requests_total"] == 3 * CAP
                assert numbers["tidegate_limit_rejections_total"] == 2 * CAP
                assert await gateway.stop() == 0
                assert len({line["worker"] for line in gateway.events("draining")}) == workers
            await nobody_listens(gateway)
        assert owed(tmp_path) == (0, 0)
        assert broken_chains(tmp_path / "records.db") == {}

    asyncio.run(body())


@pytest.mark.full
def test_a_reload_under_load_is_in_force_everywhere_or_nowhere(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            tree = file(server, 3)
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                load = Load(gateway, clients=12, keep_alive=True)
                await load.answered(30)
                write_text(tmp_path, "routes: [\nlimits: {")
                failure = await gateway.event(FAILED)
                assert failure["problem"].startswith("tidegate.yaml:")
                assert "worker" not in failure
                # One that starts now begins with what is in force, not with the broken file.
                kill(gateway, 2)
                await replaced(gateway)
                report = (await readiness(gateway))[1]
                assert report["config"]["last_reload"] == "failed"
                assert report["reasons"] == ["config_reload_failed"]
                await load.answered(60)
                assert set(load.statuses) == {200}

                newer = with_key(tree, NEW_KEY) | {"store": {"url": "sqlite:///other.db"}}
                write(tmp_path, newer)
                revision = (await gateway.event("reloaded"))["revision"]
                assert (await gateway.event("restart_needed"))["problem"] == "changes of: store"
                asked = [await chat(gateway, key=key) for key in (KEY, NEW_KEY) * 12]
                assert [answer.status for answer in asked] == [401, 200] * 12
                # So does one that starts later still; and it opens the store of the others.
                kill(gateway, 3)
                await replaced(gateway, times=2)
                asked = [await chat(gateway, key=key) for key in (KEY, NEW_KEY) * 12]
                assert [answer.status for answer in asked] == [401, 200] * 12
                assert not (tmp_path / "other.db").exists()
                assert (await readiness(gateway))[1]["config"] == {
                    "revision": revision,
                    "last_reload": "ok",
                }
                load.stop()
                await load.ended()
                assert set(load.statuses) == {200, 401}

    asyncio.run(body())


@pytest.mark.full
def test_a_running_stream_keeps_the_revision_it_began_with(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            tree = file(server)
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                streams = [await begin(gateway) for _ in range(4)]
                write(tmp_path, with_key(tree, NEW_KEY))
                await reloaded(gateway)
                upstream.release.set()
                assert [await ends(stream) for stream in streams] == [True] * 4

    asyncio.run(body())


@pytest.mark.full
def test_a_change_of_their_number_needs_a_restart_and_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server))
            async with serving(tmp_path) as gateway:
                write(tmp_path, file(server, 4))
                assert (await gateway.event("restart_needed"))["problem"] == "changes of: server"
                assert (await readiness(gateway))[1]["workers"]["wanted"] == 2

    asyncio.run(body())


@pytest.mark.full
def test_the_demo_world_is_served_by_several_too_and_its_upstreams_run_once(tmp_path: Path) -> None:
    async def body() -> None:
        arguments = ("serve", "--workers", "2", "--port", "0")
        environ = {"TIDEGATE_LOG": "json"}
        async with started(tmp_path, *arguments, environ=environ) as gateway:
            ready = await gateway.event("ready", within_s=START_S)
            gateway.port = ready["port"]
            key = "sk-" + "tenant-acme"
            answers = [await chat(gateway, "x", key=key) for _ in range(4)]
            assert {answer.status for answer in answers} == {200}
            assert await gateway.stop() == 0

    asyncio.run(body())


@pytest.mark.full
def test_a_store_in_memory_is_refused_for_several(tmp_path: Path) -> None:
    tree = configuration("http://127.0.0.1:9", store={"url": "memory:"})
    write(tmp_path, tree)
    done = tidegate(tmp_path, "check")
    assert done.returncode == 0
    done = tidegate(tmp_path, "serve", "--workers", "2")
    assert done.returncode == 3
    assert "2 workers cannot share a store in memory" in done.stderr


def failing(gateway: Running) -> set[int]:
    """The workers that have said that an attempt failed."""
    return {line["worker"] for line in gateway.events("attempt_failed")}


@pytest.mark.full
def test_each_line_of_the_log_is_whole_and_says_whose_it_is(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server, 4))
            async with serving(tmp_path) as gateway:
                load = Load(gateway, clients=16, keep_alive=False, model="500")
                # Which of them takes a connection is for the system to say.
                async with asyncio.timeout(START_S):
                    while len(failing(gateway)) < 4:
                        await load.answered(20)
                load.stop()
                await load.ended()
        lines = [line for line in gateway.said.splitlines() if "tidegate ready" not in line]
        parsed = [json.loads(line) for line in lines if not line.startswith("warning: ")]
        workers = Counter(
            line.get("worker") for line in parsed if line["event"] == "attempt_failed"
        )
        assert set(workers) == {1, 2, 3, 4}
        assert {line.get("worker") for line in parsed if line["event"] == "ready"} == {None}
        assert pid(gateway, 1) != pid(gateway, 2)

    asyncio.run(body())
