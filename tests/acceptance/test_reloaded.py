"""What does a running gateway take over from its file, when, and what does it say about it?"""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Running, serving
from tests.acceptance.worlds import (
    ADMIN_KEY,
    KEY,
    Upstream,
    begin,
    chat,
    configuration,
    explained,
    scripted,
    write,
    write_text,
)
from tidegate.demo.leaky_provider import fragments

NEW_KEY = "-".join(("another", "key", "of", "the", "tests"))
LEAK = "".join(fragments())
FAILED = "reload_failed_last_good_configuration_kept"


async def reloaded(gateway: Running) -> str:
    """Wait for one more reload after a SIGHUP; returns its revision."""
    before = len(gateway.events("reloaded"))
    gateway.signal(signal.SIGHUP)
    return str((await gateway.event("reloaded", times=before + 1))["revision"])


async def statuses(gateway: Running, *keys: str) -> list[int]:
    return [(await chat(gateway, key=key)).status for key in keys]


async def readiness(gateway: Running) -> tuple[int, Any]:
    answer = await gateway.admin("/readyz")
    return answer.status, json.loads(answer.body)["config"]


def with_key(tree: dict[str, Any], key: str) -> dict[str, Any]:
    keys = [{"key": key, "principal": "acme", "tenant": "acme", "roles": ["tenant"]}]
    return tree | {"identity": {"keys": keys}}


@pytest.mark.full
def test_a_changed_file_is_taken_over_and_a_broken_one_is_reported_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            tree = configuration(server.url)
            write(tmp_path, tree)
            async with serving(tmp_path) as gateway:
                first = (await readiness(gateway))[1]["revision"]
                assert await statuses(gateway, KEY, NEW_KEY) == [200, 401]

                write(tmp_path, with_key(tree, NEW_KEY))
                revision = (await gateway.event("reloaded"))["revision"]
                assert revision != first
                assert await statuses(gateway, KEY, NEW_KEY) == [401, 200]
                assert await readiness(gateway) == (
                    200,
                    {"revision": revision, "last_reload": "ok"},
                )

                write_text(tmp_path, "routes: [\nlimits: {")
                failure = await gateway.event(FAILED)
                assert failure["problem"].startswith("tidegate.yaml:")
                assert await statuses(gateway, KEY, NEW_KEY) == [401, 200]
                assert await readiness(gateway) == (
                    200,
                    {"revision": revision, "last_reload": "failed"},
                )

                server_section = {"port": 0, "admin": {"port": 0}, "drain_s": 7.0}
                write(tmp_path, with_key(tree, ADMIN_KEY) | {"server": server_section})
                await gateway.event("reloaded", times=2)
                stale = await gateway.event("restart_needed")
                assert stale["problem"] == "changes of: server"
                assert await statuses(gateway, KEY, NEW_KEY, ADMIN_KEY) == [401, 401, 200]
                assert (await readiness(gateway))[1]["last_reload"] == "ok"
                assert len(gateway.events(FAILED)) == 1
                metrics = (await gateway.admin("/metrics")).body
                assert b"tidegate_config_reload_failures_total 1.0" in metrics

    asyncio.run(body())


@pytest.mark.full
def test_a_running_stream_keeps_the_revision_it_began_with(tmp_path: Path) -> None:
    async def body() -> None:
        upstream = Upstream(says=LEAK)
        async with scripted(upstream) as server:
            tree = configuration(server.url)
            write(tmp_path, with_key(tree, KEY) | {"redaction": {"response": "enforce"}})
            async with serving(tmp_path) as gateway:
                old = (await readiness(gateway))[1]["revision"]
                running = await begin(gateway)
                write(tmp_path, with_key(tree, NEW_KEY) | {"redaction": {"response": "off"}})
                new = await reloaded(gateway)
                upstream.release.set()
                masked = await running.rest()
                assert b"[REDACTED_EMAIL]" in masked
                assert b"jane@" not in masked
                assert masked.endswith(b"data: [DONE]\n\n")
                later = await begin(gateway, key=NEW_KEY)
                assert b"jane@" in await later.rest()
        for stream, revision in ((running, old), (later, new)):
            assert f"revision   {revision}\n" in explained(tmp_path, stream.request_id)

    asyncio.run(body())


@pytest.mark.full
def test_a_rotated_secret_is_taken_over_although_the_revision_stays(tmp_path: Path) -> None:
    async def body() -> None:
        async with scripted(Upstream()) as server:
            tree = with_key(configuration(server.url), "${file:client.txt}")
            only = {"base_url": f"{server.url}/v1", "credentials": ["${file:provider.txt}"]}
            write(tmp_path, tree | {"providers": {"only": only}})
            (tmp_path / "client.txt").write_text(KEY + "\n")
            (tmp_path / "provider.txt").write_text("old-credential\n")
            async with serving(tmp_path) as gateway:
                revision = (await readiness(gateway))[1]["revision"]
                assert await statuses(gateway, KEY, NEW_KEY) == [200, 401]
                (tmp_path / "client.txt").write_text(NEW_KEY + "\n")
                (tmp_path / "provider.txt").write_text("new-credential\n")
                assert await reloaded(gateway) == revision
                assert await statuses(gateway, KEY, NEW_KEY) == [401, 200]
                sent = [request.header("Authorization") for request in server.requests]
                assert sent == ["Bearer old-credential", "Bearer new-credential"]

                (tmp_path / "client.txt").unlink()
                gateway.signal(signal.SIGHUP)
                assert "client.txt" in (await gateway.event(FAILED))["problem"]
                assert await statuses(gateway, NEW_KEY) == [200]

    asyncio.run(body())
