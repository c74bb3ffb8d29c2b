"""What is left after kill -9 under traffic, and what does the next process make of it?"""

import asyncio
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import WAIT_S, Running, serving, tidegate
from tests.acceptance.worlds import (
    CHAT,
    KEY,
    USAGE,
    Stream,
    Upstream,
    begin,
    call,
    chat,
    chat_body,
    code,
    configuration,
    headers,
    request_id,
    scripted,
    write,
)
from tidegate.clock import SystemClock
from tidegate.config import load_config, values
from tidegate.limits import SQLiteLedger
from tidegate.limits.ledger import Granted, Need
from tidegate.policy import Principal
from tidegate.records import as_json, broken_chains, find
from tidegate.testing.clock import ManualClock
from tidegate.testing.scripted import ScriptedUpstream

CAP = 100_000
STREAMS = 3
POSTERS = 3
TOTAL_S = 60.0
LEASE_S = TOTAL_S + 30.0
STREAM_KEY = "-".join(("streamer", "key", "of", "the", "tests"))


def file(upstream: ScriptedUpstream) -> dict[str, Any]:
    key = {"key": STREAM_KEY, "principal": "s", "tenant": "acme", "roles": ["tenant", "streamer"]}
    tree = configuration(
        upstream.url,
        limits=[
            {"name": "tokens", "match": {"tenants": ["*"]}, "per": "tenant", "tokens": CAP},
            {
                "name": "streams",
                "match": {"tenants": ["*"], "roles": ["streamer"]},
                "per": "principal",
                "concurrent": STREAMS,
            },
        ],
        routes=[
            {
                "name": "default",
                "candidates": [{"provider": "only"}],
                "deadlines": {"total_s": TOTAL_S, "stream_total_s": TOTAL_S},
            }
        ],
    )
    tree["identity"]["keys"].append(key)
    return tree


async def post(gateway: Running, answered: list[str]) -> None:
    """Chats, one after the other on one connection, until the gateway is gone."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        async with await gateway.client() as client:
            while True:
                answer = await client.ask(
                    "POST", CHAT, headers=headers(), body=chat_body(max_tokens=100)
                )
                assert answer.status == 200
                answered.append(request_id(answer))


async def used(gateway: Running) -> int:
    """What the tenant has used, as a refusal says it."""
    answer = await chat(gateway, max_tokens=CAP - 100)
    assert (answer.status, code(answer)) == (429, "gateway.rate_limited")
    found = re.search(rb"(\d+) of \d+ used", answer.body)
    assert found is not None
    return int(found[1])


class Traffic:
    """Clients of every kind at once, and what they got before the kill."""

    def __init__(self, upstream: Upstream, server: ScriptedUpstream) -> None:
        self.upstream, self.server = upstream, server
        self.answered: list[str] = []
        self.on_record: list[str] = []
        self.streams: list[Stream] = []

    async def run_and_kill(
        self,
        gateway: Running,
        *,
        posts: int,
        key: str = STREAM_KEY,
        records: Path | None = None,
    ) -> None:
        """Streams that hang, posts that come and go, a tool call that hangs; then kill -9.

        `on_record` is what was answered before that call; with `records` the end comes only when
        those hold that, and all that hangs.
        """
        for _ in range(STREAMS):
            self.streams.append(await begin(gateway, key=key, max_tokens=100))
        posters = [asyncio.ensure_future(post(gateway, self.answered)) for _ in range(POSTERS)]
        await self.server.until(lambda: self.upstream.begun["quick"] >= posts)
        self.on_record = [*self.answered]
        calling = asyncio.ensure_future(call(gateway, "hang"))
        await self.server.until(lambda: self.upstream.begun["hang"] > 0)
        more = self.upstream.begun["quick"] + posts // 3
        await self.server.until(lambda: self.upstream.begun["quick"] >= more)
        if records is not None:
            known = [*self.on_record, *(stream.request_id for stream in self.streams)]
            async with asyncio.timeout(WAIT_S):
                while not await asyncio.to_thread(holds, records, known):
                    pass
        await gateway.kill()
        await asyncio.gather(*posters)
        await asyncio.gather(calling, return_exceptions=True)


def states(path: Path, ids: list[str]) -> set[object]:
    """The states that the records give these requests; all must be known."""
    found = [find(path, one) for one in ids]
    assert None not in found
    return {as_json(record)["state"] for record in found if record is not None}


def holds(path: Path, ids: list[str]) -> bool:
    """Whether the records know all of these, and the one call."""
    return len(intents(path)) == 1 and all(find(path, one) is not None for one in ids)


def intents(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT request_id FROM entries WHERE kind = 'intent'").fetchall()
    return [row[0] for row in rows]


def leases(path: Path) -> dict[str, float]:
    """Seconds that each open reservation has left, by the clock of the store."""
    with closing(sqlite3.connect(path)) as database:
        (now_us,) = database.execute(
            "SELECT value FROM limit_meta WHERE name = 'last_seen_us'"
        ).fetchone()
        rows = database.execute("SELECT id, due_us FROM limit_reservations WHERE is_open")
        return {name: (due_us - now_us) / 1e6 for name, due_us in rows}


@pytest.mark.full
def test_after_kill_9_under_traffic_quota_and_records_are_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        upstream = Upstream()
        records = tmp_path / "records.db"
        async with scripted(upstream) as server:
            write(tmp_path, file(server))
            async with serving(tmp_path) as first:
                traffic = Traffic(upstream, server)
                await traffic.run_and_kill(first, posts=25, records=records)
            streams = [stream.request_id for stream in traffic.streams]
            calls = intents(records)
            assert len(calls) == 1
            assert states(records, streams + calls) == {"cut off"}
            shown = tidegate(tmp_path, "explain", streams[0])
            assert shown.returncode == 0
            assert "the gateway's process is gone" in shown.stdout.lower()
            left = leases(tmp_path / "ledger.db")
            assert set(streams) <= set(left)
            assert all(0 < seconds <= LEASE_S for seconds in left.values())

            async with serving(tmp_path) as second:
                # Acknowledged is charged at what it used; what was under way, at its estimate.
                owed = USAGE["total_tokens"] * len(traffic.answered)
                most = owed + 250 * (len(streams) + 2 * POSTERS)
                assert owed + 100 * len(streams) <= await used(second) <= most
                refused = await chat(second, key=STREAM_KEY)
                assert (refused.status, code(refused)) == (429, "gateway.rate_limited")
                lost = (await second.event("requests_lost"))["lost"]
                assert lost >= len(streams) + len(calls)
                assert states(records, streams + calls) == {"lost"}
                # An answer may reach its client just before its end reaches the disk.
                known = states(records, traffic.on_record)
                assert "ended" in known
                assert known <= {"ended", "lost"}
                shown = tidegate(tmp_path, "explain", calls[0])
                assert shown.returncode == 0
                assert "lost" in shown.stdout
                assert "hang" in shown.stdout
        assert broken_chains(records) == {}
        await slots_are_free_when_the_leases_are_over(tmp_path)

    asyncio.run(body())


async def slots_are_free_when_the_leases_are_over(folder: Path) -> None:
    """The next process, at a time that no test can wait for."""
    config = load_config(folder / "tidegate.yaml", {})
    table = values.limit_table(config)
    streamer = Principal("s", "acme", ("tenant", "streamer"), "key")
    charges = table.charges(streamer, route="default", need=Need(1, 1))
    assert {charge.limit.name for charge in charges} == {"tokens", "streams"}
    for after_s, granted in ((0.0, False), (LEASE_S + 1, True)):
        clock = ManualClock(SystemClock().now_s() + after_s)
        ledger = SQLiteLedger(folder / "ledger.db", clock, wait_s=5.0)
        await ledger.open()
        verdict = await ledger.reserve(f"late-{granted}", "test", charges, lease_s=1.0)
        assert isinstance(verdict, Granted) is granted
        await ledger.close()


@pytest.mark.full
def test_twelve_kills_on_the_same_files_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async def body() -> None:
        upstream, answered, begun = Upstream(), 0, 0
        async with scripted(upstream) as server:
            write(tmp_path, file(server))
            for posts in range(1, 37, 3):
                async with serving(tmp_path) as gateway:
                    if begun:
                        least = USAGE["total_tokens"] * answered + 100 * begun
                        assert least <= await used(gateway) <= least + 250 * 4 * begun
                    upstream.begun.clear()
                    traffic = Traffic(upstream, server)
                    await traffic.run_and_kill(gateway, posts=posts, key=KEY)
                    answered += len(traffic.answered)
                    begun += len(traffic.streams)
        assert broken_chains(tmp_path / "records.db") == {}

    asyncio.run(body())
