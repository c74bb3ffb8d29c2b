"""One gateway process for all tests of a module that only ask it things."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.processes import Running, serving
from tests.acceptance.worlds import Upstream, configuration, scripted, write
from tidegate.testing.scripted import ScriptedUpstream


@dataclass(slots=True)
class Scene:
    """The process, what it calls, and the loop on which both are reached."""

    gateway: Running
    upstream: Upstream
    server: ScriptedUpstream
    run: Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A gateway on the standard file, changed by the module's `PARTS`."""
    folder = tmp_path_factory.mktemp("scene")
    parts: dict[str, Any] = getattr(request.module, "PARTS", {})
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        upstream = Upstream()

        async def start() -> tuple[ScriptedUpstream, Running]:
            server = await stack.enter_async_context(scripted(upstream))
            write(folder, configuration(server.url, **parts))
            return server, await stack.enter_async_context(serving(folder))

        server, gateway = runner.run(start())
        yield Scene(gateway, upstream, server, runner.run)
        runner.run(stack.aclose())
