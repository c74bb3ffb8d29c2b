"""Does `tidegate providers` show, beside a running gateway, what its targets are like?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Running, serving, tidegate
from tests.acceptance.worlds import (
    CHAT,
    Upstream,
    chat,
    chat_body,
    configuration,
    headers,
    scripted,
    write,
)
from tests.ports import free_port
from tidegate.testing.scripted import ScriptedUpstream

BREAKER = {"consecutive": 3, "min_results": 1000, "open_s": 60.0}


def file(upstream: ScriptedUpstream, **server: Any) -> dict[str, Any]:
    """The only provider opens after three failures; the second listener is where the file says."""
    admin = {"port": free_port()}
    candidates = [{"provider": "only"}, {"provider": "only", "model": "large"}]
    return configuration(
        upstream.url,
        server={"port": 0, "admin": admin, **server},
        routes=[
            {"name": "spare", "model": "spare", "candidates": [{"provider": "only"}]},
            {"name": "default", "candidates": candidates, "attempts": 1, "breaker": BREAKER},
        ],
    )


async def shown(folder: Path) -> list[dict[str, Any]]:
    done = await asyncio.to_thread(tidegate, folder, "providers", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["targets"]
    return rows


async def fail(gateway: Running, times: int) -> None:
    for _ in range(times):
        assert (await chat(gateway, "503")).status == 502


@pytest.mark.full
def test_a_target_that_opened_is_shown_with_its_reason_beside_one_never_asked(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server))
            async with serving(tmp_path) as gateway:
                assert (await chat(gateway, "quick")).status == 200
                await fail(gateway, 3)
                only, large = await shown(tmp_path)
                table = await asyncio.to_thread(tidegate, tmp_path, "providers")
                opened = await gateway.event("breaker_opened")
                ready = await gateway.admin("/readyz")
            gone = await asyncio.to_thread(tidegate, tmp_path, "providers")
        assert (only["state"], only["reason"], only["routes"]) == (
            "open",
            "consecutive",
            ["spare", "default"],
        )
        assert (only["successes"], only["failures"], only["worker"]) == (1, 3, None)
        assert only["recent"] == ["ok", *["server_error"] * 3]
        assert only["first_token_ms"] > 0
        # Less by the time that the command took to start.
        assert 0 < only["wait_s"] <= 72
        assert (large["model"], large["state"], large["recent"]) == ("large", "closed", [])
        assert table.returncode == 0
        assert "open: failures in a row" in table.stdout
        assert "only/large" in table.stdout
        assert "never asked" in table.stdout
        assert (opened["provider"], opened["outcome"], opened["reason"]) == (
            "only",
            "server_error",
            "consecutive",
        )
        report = json.loads(ready.body)
        assert (ready.status, report["routes"]) == (200, {"resting": ["spare"]})
        assert report["reasons"] == ["route_resting"]
        assert (gone.returncode, gone.stdout) == (1, "")
        assert "nothing listens there (Connection refused)" in gone.stderr

    asyncio.run(body())


@pytest.mark.full
def test_each_worker_has_a_breaker_of_its_own_and_the_command_says_so(tmp_path: Path) -> None:
    """Told otherwise than BerriAI/litellm PR #34836 asks: what one learned, another finds out."""

    async def body() -> None:
        async with scripted(Upstream()) as server:
            write(tmp_path, file(server, workers=2))
            async with serving(tmp_path) as gateway:
                # One connection stays with the worker that took it.
                client = await gateway.client()
                for _ in range(3):
                    answer = await client.ask(
                        "POST", CHAT, headers=headers(), body=chat_body("503")
                    )
                    assert answer.status == 502
                rows = await shown(tmp_path)
                table = await asyncio.to_thread(tidegate, tmp_path, "providers")
                opened = await gateway.event("breaker_opened")
        states = {row["worker"]: row["state"] for row in rows if row["model"] is None}
        assert sorted(states.values()) == ["closed", "open"]
        assert states[opened["worker"]] == "open"
        assert [row["worker"] for row in rows] == [1, 2, 1, 2]
        assert "open: failures in a row in 1 of 2 workers" in table.stdout
        assert f"  worker {opened['worker']}" in table.stdout

    asyncio.run(body())
