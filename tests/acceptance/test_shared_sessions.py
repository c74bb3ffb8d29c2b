"""Do legacy MCP sessions live on in other workers, after a restart and on other gateways?"""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tests.acceptance.crews import kill, replaced
from tests.acceptance.processes import HOST, WAIT_S, serving
from tests.acceptance.session_worlds import (
    VERSION,
    Caller,
    only,
    refused,
    run,
    serving_two,
    tree,
    upstream,
)
from tests.acceptance.worlds import ADMIN_KEY, KEY, write
from tests.redis_server import redis_server

pytestmark = pytest.mark.full


def test_an_official_client_on_fresh_connections_is_served_by_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        limits = httpx2.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            upstream() as (server, url),
            serving_two(tmp_path, url) as gateway,
            httpx2.AsyncClient(headers=headers, limits=limits) as http,
            Client(
                streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                mode="legacy",
            ) as client,
        ):
            assert client.protocol_version == VERSION
            for worker in (1, 2, 1, 2):
                with only(tmp_path, gateway, worker):
                    tools = (await client.list_tools()).tools
                    assert [tool.name for tool in tools] == ["get_status", "order"]
                    result = await client.call_tool("get_status", {"service": "billing"})
                    assert result.structured_content == {"result": "billing is up"}
            for _ in range(10):
                assert (await client.list_tools()).tools
        assert server.ran == ["billing"] * 4

    run(body)


def test_the_answer_to_a_question_comes_in_through_another_worker(tmp_path: Path) -> None:
    async def body() -> None:
        limits = httpx2.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {KEY}"}
        with ExitStack() as standing:

            async def answer(context: Any, params: Any) -> ElicitResult:
                """The worker that showed the question stands still until the server has heard."""
                standing.enter_context(only(tmp_path, gateway, 2))
                return ElicitResult(action="accept", content={"count": 3})

            async with (
                upstream() as (server, url),
                serving_two(tmp_path, url) as gateway,
                httpx2.AsyncClient(headers=headers, limits=limits) as http,
                Client(
                    streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                    mode="legacy",
                    elicitation_callback=answer,
                ) as client,
            ):
                with only(tmp_path, gateway, 1):
                    calling = asyncio.ensure_future(client.call_tool("order", {}))
                    await server.asking.wait()
                await server.heard.wait()
                standing.close()
                result = await calling
                assert result.structured_content == {"result": "3 ordered"}

    run(body)


def test_a_session_is_of_one_principal_and_ends_once_in_all_workers(tmp_path: Path) -> None:
    """Case 28 of the adversarial ones: agentic-community/mcp-gateway-registry #1357."""

    async def body() -> None:
        async with (
            upstream() as (server, url),
            serving_two(tmp_path, url) as gateway,
            Caller() as alice,
            Caller(ADMIN_KEY) as bob,
        ):
            with only(tmp_path, gateway, 1):
                await alice.begin(gateway)
            bob.session = alice.session
            for worker in (2, 1):
                with only(tmp_path, gateway, worker):
                    assert await bob.status(gateway) == 404
                    assert await bob.hear(gateway) == 404
                    assert await bob.end(gateway) == 404
                    assert await alice.status(gateway) == 200
            with only(tmp_path, gateway, 1):
                assert await alice.end(gateway) == 200
                await refused(alice, gateway, server)
            with only(tmp_path, gateway, 2):
                await refused(alice, gateway, server)

    run(body)


def test_a_worker_that_is_killed_takes_no_session_with_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with (
            upstream() as (_, url),
            serving_two(tmp_path, url) as gateway,
            Caller() as alice,
        ):
            with only(tmp_path, gateway, 1):
                await alice.begin(gateway)
                assert await alice.status(gateway) == 200
            kill(gateway, 1)
            assert await alice.status(gateway) == 200
            await replaced(gateway)
            for worker in (1, 2):
                with only(tmp_path, gateway, worker):
                    assert await alice.status(gateway) == 200

    run(body)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_survives_a_restart_of_the_gateway(tmp_path: Path, workers: int) -> None:
    async def body() -> None:
        async with upstream() as (_, url), Caller() as alice, Caller(ADMIN_KEY) as bob:
            write(tmp_path, tree(url, workers=workers))
            async with serving(tmp_path) as gateway:
                await alice.begin(gateway)
                await bob.begin(gateway)
                assert await bob.end(gateway) == 200
            async with serving(tmp_path) as gateway:
                assert await alice.status(gateway) == 200
                assert await bob.status(gateway) == 404
                bob.session = alice.session
                assert await bob.status(gateway) == 404
                assert await alice.end(gateway) == 200
            written = b"".join(
                path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("ledger")
            )
            assert b"shelf_documents" in written
            assert alice.session.encode() not in written

    run(body)


def test_a_session_of_several_servers_is_known_to_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (_, one), upstream() as (_, two):
            servers = {"one": {"url": f"{one}/mcp"}, "two": {"url": f"{two}/mcp"}}
            rules = [{"allow": {"roles": ["tenant"]}}]
            mcp = {"hide_denied": "off", "servers": servers, "rules": rules}
            async with serving_two(tmp_path, one, mcp=mcp) as gateway, Caller() as alice:
                with only(tmp_path, gateway, 1):
                    await alice.begin(gateway)
                for worker in (2, 1):
                    with only(tmp_path, gateway, worker):
                        answer = await alice.ask(gateway, "tools/list")
                        assert "one__get_status" in answer.text, answer.text
                        assert "two__get_status" in answer.text
                with only(tmp_path, gateway, 2):
                    assert await alice.end(gateway) == 200
                with only(tmp_path, gateway, 1):
                    async with asyncio.timeout(WAIT_S):
                        while (await alice.ask(gateway, "tools/list")).status_code != 404:
                            pass

    run(body)


def test_a_client_of_a_server_of_another_era_is_served_by_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with (
            upstream("modern") as (server, url),
            serving_two(tmp_path, url) as gateway,
            httpx2.AsyncClient(headers=headers, limits=limits) as http,
            Client(
                streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                mode="legacy",
            ) as client,
        ):
            for worker in (1, 2, 1, 2):
                with only(tmp_path, gateway, worker):
                    result = await client.call_tool("get_status", {"service": "billing"})
                    assert result.structured_content == {"result": "billing is up"}
        assert server.ran == ["billing"] * 4

    run(body)


def test_gateways_on_one_redis_share_sessions_and_outlive_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (server, url), AsyncExitStack() as stack:
            redis = stack.enter_context(redis_server(tmp_path))
            gateways = []
            for number in range(2):
                folder = tmp_path / f"gateway{number}"
                folder.mkdir()
                write(folder, tree(url, store={"url": redis.url, "deadline_s": 10.0}))
                gateways.append(await stack.enter_async_context(serving(folder)))
            one, other = gateways
            alice, late = Caller(), Caller()
            for caller in (alice, late):
                await stack.enter_async_context(caller)
            await alice.begin(one)
            await late.begin(one)
            assert [await alice.status(each) for each in gateways] == [200, 200]
            redis.kill()
            await other.event("session_store_failed")
            await one.event("session_store_failed")
            assert [await alice.status(each) for each in gateways] == [200, 200]
            assert await late.status(other) == 503  # it never saw that one
            told = await Caller().ask(one, "initialize", protocolVersion=VERSION)
            assert (told.status_code, told.json()["id"]) == (503, 7)
            redis.start()
            for each in gateways:
                await each.event("session_store_serves_again")
            assert await late.status(other) == 200
            assert await alice.end(other) == 200
            for each in gateways:
                await refused(alice, each, server)

    run(body)
