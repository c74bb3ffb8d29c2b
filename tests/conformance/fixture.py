"""What does the conformance harness measure? This server: the kit's tools behind the kit's front.

`tidegate mcp serve tests.conformance.fixture:server --http 127.0.0.1:0 --errors spec` serves it.
Tools are strict tools; what the kit does not offer (resources, prompts, completion, subscriptions)
are handlers of the official SDK on the same server object. `broken` has a tool that answers
something else, and broken_front() a front that does not ask who calls: the harness has to notice.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from tests.conformance.fixture_asking import ASKING
from tests.conformance.fixture_pages import add_pages
from tests.conformance.fixture_rounds import rounds
from tests.conformance.fixture_tools import SHOWING, constant, tool
from tidegate.tools import ToolServer

NAME = "tidegate-conformance"
_SPOILED = "test_image_content"


def fixture(*, spoiled: bool = False) -> ToolServer:
    """The server, with everything that the harness asks for."""
    bus = InMemorySubscriptionBus()
    tools = {one.name: one for one in (*SHOWING, *ASKING, *rounds(bus))}
    if spoiled:
        text = constant(types.TextContent(text="no picture"))
        tools[_SPOILED] = tool(_SPOILED, "Broken.", text)
    kit = ToolServer(list(tools.values()), name=NAME, errors="spec")
    add_pages(kit.server)
    kit.server.add_request_handler(
        "subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus)
    )
    state = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
    kit.server.middleware.append(state)
    return kit


server = fixture()
broken = fixture(spoiled=True)


@asynccontextmanager
async def broken_front() -> AsyncIterator[Callable[[Any, Any, Any], Awaitable[None]]]:
    """The front, told that every request names this machine and comes from nowhere."""
    app = fixture().http_app()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        kept = [(name, value) for name, value in scope["headers"] if name != b"origin"]
        heard = [(name, b"localhost" if name == b"host" else value) for name, value in kept]
        await app({**scope, "headers": heard}, receive, send)

    async with app.running():
        yield serve
