"""What runs beside the gateway when there are no real upstreams?

Lives here: the three demo upstreams on their ports, for the length of a block, each alone or all
together. Does not live here: what they answer, the configuration that points at them
(config.demo_world), the scenes.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tidegate.config.demo_world import BACKEND_TOKEN, DemoPorts
from tidegate.demo.leaky_provider import TOTAL_S, LeakyProvider
from tidegate.demo.listener import bind, listening, port_of
from tidegate.demo.mcp_backend import McpBackend
from tidegate.demo.providers import Providers

if TYPE_CHECKING:
    import socket

ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]


class World:
    """The demo upstreams. Sockets are bound at once, requests are served inside the block.

    A port that is taken is replaced by a free one; `ports` has the real numbers. `leaky_s` is
    how long the leaky provider takes for one stream.
    """

    def __init__(self, ports: DemoPorts | None = None, *, leaky_s: float = TOTAL_S) -> None:
        wanted = ports or DemoPorts()
        self.backend = McpBackend(token=BACKEND_TOKEN)
        self.leaky = LeakyProvider(total_s=leaky_s)
        self.providers = Providers()
        self._listeners: list[tuple[ASGIApp, socket.socket]] = [
            (self.backend, bind(wanted.mcp_backend, fall_back=True)),
            (self.leaky, bind(wanted.leaky_provider, fall_back=True)),
            (self.providers, bind(wanted.providers, fall_back=True)),
        ]
        self.ports = DemoPorts(*(port_of(sock) for _, sock in self._listeners))
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for app, sock in self._listeners:
            await self._running.enter_async_context(listening(app, sock))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._running.aclose()


_USUAL = DemoPorts()
PARTS: dict[str, tuple[int, str]] = {
    "mcp-backend": (_USUAL.mcp_backend, "/mcp"),
    "leaky-provider": (_USUAL.leaky_provider, "/v1/chat/completions"),
    "providers": (_USUAL.providers, "/primary/v1/chat/completions"),
}
"""The parts that can run alone: usual port, and the path to try."""


def part(name: str) -> ASGIApp:
    """One demo upstream by the name in PARTS."""
    match name:
        case "mcp-backend":
            # Alone it stands for a server that was there before the gateway: it knows its token.
            return McpBackend(token=BACKEND_TOKEN)
        case "leaky-provider":
            return LeakyProvider()
        case _:
            return Providers()
