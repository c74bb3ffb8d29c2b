"""Does a key live and die with its line, and do the commands beside a gateway tell the truth?"""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.crews import scraped_until
from tests.acceptance.processes import Running, serving, tidegate
from tests.acceptance.worlds import KEY, Upstream, begin, chat, configuration, scripted, write

pytestmark = pytest.mark.full

LIMITS = [
    {"name": "per-minute", "tokens": 50_000},
    {"name": "budget", "money_micros": 1_000_000, "window_s": 86_400.0},
    {"name": "slots", "concurrent": 5},
]
COST = "tidegate_cost_micros_total"
PRICES = {"only": {"*": {"input": 1_000_000, "output": 2_000_000}}}


def report(folder: Path, *arguments: str) -> dict[str, Any]:
    """`tidegate limits --json`, by limit."""
    done = tidegate(folder, "limits", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return {row["limit"]: row for row in json.loads(done.stdout)["limits"]}


async def settled(folder: Path, limit: str, used: int) -> dict[str, Any]:
    """The settlement is written by a task of its own, a moment after the answer at most."""
    for _ in range(100):
        found = report(folder)[limit]
        if found["used"] == used and not found["reserved"]:
            break
    return found


async def reloaded(gateway: Running) -> None:
    before = len(gateway.events("reloaded"))
    gateway.signal(signal.SIGHUP)
    await gateway.event("reloaded", times=before + 1)


def test_a_key_that_was_made_is_let_in_by_its_line_and_shut_out_without_it(tmp_path: Path) -> None:
    async def body() -> None:
        done = tidegate(
            tmp_path,
            *("keys", "new", "--principal", "vera", "--tenant", "acme", "--roles", "viewer"),
        )
        assert done.returncode == 0, done.stderr
        key, line = done.stdout.splitlines()
        async with scripted(Upstream()) as server:
            without = configuration(server.url)
            keys = without["identity"]["keys"] + yaml.safe_load(line)
            write(tmp_path, without | {"identity": {"keys": keys}})
            async with serving(tmp_path) as gateway:
                assert (await chat(gateway, key=key)).status == 200
                assert (await chat(gateway, key=line.split('"')[1])).status == 401
                write(tmp_path, without)
                await reloaded(gateway)
                revoked = await chat(gateway, key=key)
                assert revoked.status == 401
                assert revoked.header("www-authenticate") == "Bearer"
                assert (await chat(gateway, key=KEY)).status == 200
            assert key not in gateway.said

    asyncio.run(body())


def test_limits_are_read_while_the_gateway_serves_and_after_it_has_ended(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, configuration(server.url, limits=LIMITS, prices=PRICES))
            async with serving(tmp_path) as gateway:
                answer = await chat(gateway)
                assert answer.status == 200
                tokens = await settled(tmp_path, "per-minute", 43)
                assert (tokens["used"], tokens["free"], tokens["scope"]) == (43, 49_957, ["acme"])
                assert 0 < tokens["next_free_s"] <= 60.25
                # 12 tokens of prompt at one micro-unit, 31 of answer at two.
                assert (await settled(tmp_path, "budget", 74))["free"] == 1_000_000 - 74
                running = await begin(gateway)
                during = report(tmp_path, "acme")
                assert during["slots"]["reserved"] == 1
                assert during["per-minute"]["reserved"] > 0
                upstream.release.set()
                await running.rest()
                numbers = await scraped_until(gateway, lambda found: COST in found)
                assert numbers[COST] >= 74
            after = report(tmp_path)
            assert (after["slots"]["reserved"], after["per-minute"]["reserved"]) == (0, 0)
            explained = tidegate(tmp_path, "explain", answer.header("x-request-id") or "").stdout
            assert "input_tokens 12, money_micros 74, output_tokens 31" in explained

    asyncio.run(body())


def test_a_limit_on_money_without_a_price_is_refused_at_its_place(tmp_path: Path) -> None:
    write(tmp_path, configuration("http://127.0.0.1:1", limits=LIMITS))
    for command in ("check", "serve"):
        done = tidegate(tmp_path, command)
        assert done.returncode == 3
        place = "limits[1].money_micros: not every model that 'only' may be asked for has a price"
        assert place in done.stderr
