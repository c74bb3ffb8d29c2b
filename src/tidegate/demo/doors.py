"""How does a provider's port refuse connections while the other one answers?

Lives here: a port of its own for each of the two providers, which is closed, or full, while its
behavior says so. Does not live here: what the providers answer (providers).
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from types import TracebackType
from typing import Self

from tidegate.demo.exchange import Receive, Scope, Send
from tidegate.demo.listener import HOST, bind, listening, port_of
from tidegate.demo.providers import NAMES, Providers

REFUSED, FULL = "refused", "no-accept"
_OPEN = "open"
_CALLERS = 2
_LAST_PORT = 65_535


def own_ports(shared: int) -> dict[str, int]:
    """The usual ports of the providers beside the one they share: those right after it."""
    return {name: port for port, name in enumerate(NAMES, shared + 1) if port <= _LAST_PORT}


class Doors:
    """The own ports of `providers`, for the length of a block.

    `ports` has the port of each: `wanted`, or a free one. On it `/v1/...` is the provider's. With
    the behavior `refused` the port closes, with every connection on it; with `no-accept` it keeps
    callers waiting; with any other it opens again on the same number. A switch over HTTP is
    followed before it is answered; whoever sets one in this process calls `follow`.
    """

    def __init__(self, providers: Providers, wanted: Mapping[str, int] | None = None) -> None:
        self._providers = providers
        self._wanted = wanted or {}
        self._doors: dict[str, AsyncExitStack] = {}
        self._states: dict[str, str] = {}
        self._turning = asyncio.Lock()
        self.ports: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        for name in NAMES:
            with bind(self._wanted.get(name, 0), fall_back=True) as sock:
                self.ports[name] = port_of(sock)
            await self.follow(name)
        self._providers.changed = self.follow
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._providers.changed = None
        for door in self._doors.values():
            await door.aclose()

    async def follow(self, name: str) -> None:
        """Turn the port of `name` as its behavior says; raises OSError if it is taken meanwhile."""
        async with self._turning:
            wanted = self._providers.switches[name].name
            state = wanted if wanted in (REFUSED, FULL) else _OPEN
            if self._states.get(name) == state:
                return
            if name in self._doors:
                await self._doors.pop(name).aclose()
            self._states[name] = REFUSED
            async with AsyncExitStack() as door:
                if state == _OPEN:
                    app = _Room(self._providers, name)
                    await door.enter_async_context(listening(app, bind(self.ports[name])))
                elif state == FULL:
                    door.enter_context(_full(self.ports[name]))
                self._doors[name] = door.pop_all()
            self._states[name] = state


@contextmanager
def _full(port: int) -> Iterator[None]:
    """A port whose queue is full: it takes no connection and refuses none.

    Linux then drops the first packet of whoever calls, who waits.
    """
    with ExitStack() as held:
        held.enter_context(bind(port, backlog=0))
        for _ in range(_CALLERS):
            caller = held.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex((HOST, port))
        yield


class _Room:
    """One provider alone, as an ASGI application at `/v1`."""

    def __init__(self, providers: Providers, name: str) -> None:
        self._providers = providers
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._providers({**scope, "path": f"/{self._name}{scope['path']}"}, receive, send)


__all__ = ["FULL", "REFUSED", "Doors", "own_ports"]
