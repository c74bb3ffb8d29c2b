"""Does a list go on at any worker or gateway and after a restart, for its own client alone?"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.acceptance.processes import HOST, Running, serving
from tests.acceptance.session_worlds import only, run, serving_two, tree
from tests.acceptance.worlds import ADMIN_KEY, KEY, write
from tests.redis_server import redis_server
from tidegate.demo.listener import bind, listening

pytestmark = pytest.mark.full

NAMES = [f"tool{number}" for number in range(4)]


class Paged:
    """A server of the official SDK that lists one tool a page; `asked` are the cursors it got."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        server: Server[Any] = Server("paged")
        server.add_request_handler("tools/list", types.PaginatedRequestParams, self._list)
        self.sdk = server.streamable_http_app()

    async def _list(
        self, _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        cursor = params.cursor if params is not None else None
        self.asked.append(cursor)
        at = 0 if cursor is None else NAMES.index(cursor)
        following = NAMES[at + 1] if at + 1 < len(NAMES) else None
        tool = types.Tool(name=NAMES[at], input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool], next_cursor=following)


@asynccontextmanager
async def upstream() -> AsyncIterator[tuple[Paged, str]]:
    server = Paged()
    async with (
        server.sdk.router.lifespan_context(server.sdk),
        listening(server.sdk, bind(0)) as port,
    ):
        yield server, f"http://{HOST}:{port}"


@asynccontextmanager
async def client(gateway: Running, mode: Any, key: str = KEY) -> AsyncIterator[Client]:
    """An official client; every request on a connection of its own."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, limits=limits) as http,
        Client(
            streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http), mode=mode
        ) as one,
    ):
        yield one


async def refused(one: Client, cursor: str | None, server: Paged) -> None:
    """The cursor is invalid, and the server hears nothing of it."""
    asked = len(server.asked)
    with pytest.raises(MCPError, match="Invalid cursor") as told:
        await one.list_tools(cursor=cursor)
    assert told.value.error.code == types.INVALID_PARAMS
    assert len(server.asked) == asked


MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@MODES
def test_a_page_at_one_worker_and_the_next_at_another(tmp_path: Path, mode: str) -> None:
    async def body() -> None:
        async with (
            upstream() as (server, url),
            serving_two(tmp_path, url) as gateway,
            client(gateway, mode) as alice,
            client(gateway, mode, ADMIN_KEY) as bob,
        ):
            for one in (alice, bob):
                # What it said before has been heard then, by whichever worker.
                with suppress(MCPError):
                    await one.list_prompts()
            server.asked.clear()
            names, cursor = [], None
            for worker in (1, 2, 2, 1):
                with only(tmp_path, gateway, worker):
                    if cursor is not None:
                        await refused(bob, cursor, server)
                        await refused(alice, f"{cursor}0", server)
                    page = await alice.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                cursor = page.next_cursor
            assert names == NAMES
            assert cursor is None
            assert server.asked == [None, *NAMES[1:]]

    run(body)


@MODES
def test_a_list_goes_on_after_a_restart_of_the_gateway(tmp_path: Path, mode: str) -> None:
    async def body() -> None:
        async with upstream() as (server, url):
            write(tmp_path, tree(url))
            async with serving(tmp_path) as gateway, client(gateway, mode) as alice:
                cursor = (await alice.list_tools()).next_cursor
            async with (
                serving(tmp_path) as gateway,
                client(gateway, mode) as alice,
                client(gateway, mode, ADMIN_KEY) as bob,
            ):
                await refused(bob, cursor, server)
                page = await alice.list_tools(cursor=cursor)
                assert [tool.name for tool in page.tools] == NAMES[1:2]

    run(body)


def test_in_memory_a_restart_ends_every_list(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (server, url):
            write(tmp_path, tree(url, store={"url": "memory:"}))
            async with serving(tmp_path) as gateway, client(gateway, "legacy") as alice:
                cursor = (await alice.list_tools()).next_cursor
                assert (await alice.list_tools(cursor=cursor)).tools[0].name == NAMES[1]
            async with serving(tmp_path) as gateway, client(gateway, "legacy") as alice:
                await refused(alice, cursor, server)

    run(body)


def test_gateways_on_one_redis_share_cursors(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (server, url), AsyncExitStack() as stack:
            redis = stack.enter_context(redis_server(tmp_path))
            clients, strangers = [], []
            for number in range(2):
                folder = tmp_path / f"gateway{number}"
                folder.mkdir()
                write(folder, tree(url, store={"url": redis.url, "deadline_s": 10.0}))
                gateway = await stack.enter_async_context(serving(folder))
                clients.append(await stack.enter_async_context(client(gateway, "legacy")))
                strangers.append(
                    await stack.enter_async_context(client(gateway, "legacy", ADMIN_KEY))
                )
            cursor = (await clients[0].list_tools()).next_cursor
            await refused(strangers[1], cursor, server)
            page = await clients[1].list_tools(cursor=cursor)
            assert [tool.name for tool in page.tools] == NAMES[1:2]
            page = await clients[0].list_tools(cursor=page.next_cursor)
            assert [tool.name for tool in page.tools] == NAMES[2:3]

    run(body)
