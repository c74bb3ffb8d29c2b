"""Which way leads to which MCP server, and what becomes of it at a reload?

Lives here: the one carrier of each server, which knows its era and its sessions, and when it is
given up. Does not live here: the ways themselves (carrier, children, bridge),
which server a message is for (tool_requests.call).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial

from tidegate.clock import Clock
from tidegate.gateway.servers.bridge import BridgedCarrier
from tidegate.gateway.servers.carrier import Carrier, HttpCarrier
from tidegate.gateway.servers.children import Children
from tidegate.gateway.servers.upstream import ToolUpstream
from tidegate.mcp.servers import Place, ServerCommand


class Carriers:
    """The ways to all servers. One per application; survives a reload.

    With several servers no client talks to one of them alone, so the gateway ends their protocol
    itself; with a single one over HTTP a client of its era talks to it as if we were not there.
    `tools_changed` is told the name of a server, and whether that says so itself.
    """

    def __init__(
        self,
        upstream: ToolUpstream,
        children: Children,
        clock: Clock,
        *,
        tools_changed: Callable[[str, bool], None],
    ) -> None:
        self._upstream = upstream
        self._children = children
        self._clock = clock
        self._tools_changed = tools_changed
        self._several = self._draining = False
        self._kept: dict[str, tuple[Place, BridgedCarrier]] = {}
        self._wanted: dict[str, Place] | None = None
        self._retired: dict[BridgedCarrier, tuple[Place, asyncio.TimerHandle]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, place: Place) -> BridgedCarrier:
        """The way to the server in this place; the same one for an equal place."""
        kept = self._kept.get(place.name)
        if kept is not None and kept[0] == place:
            return kept[1]
        wanted = None if self._wanted is None else self._wanted.get(place.name)
        if kept is not None or (self._wanted is not None and wanted != place):
            return self._former(place)
        carrier = self._made(place)
        self._kept[place.name] = place, carrier
        return carrier

    def life_of(self, place: Place) -> int:
        """Which life of a process this is; 0 for what is none. Another may be another server."""
        return self._children.carrier(place).generation if isinstance(place, ServerCommand) else 0

    def watch(self, place: Place) -> None:
        """Hear of changes of the tools of the server in this place, as long as it is configured.

        Free if that is so already, or nothing is known of it yet.
        """
        kept = self._kept.get(place.name)
        if kept is not None and kept[0] == place and not self._draining:
            kept[1].watch.begin()

    def is_heard(self, place: Place) -> bool:
        """Whether the server in this place could tell us that its tools change."""
        kept = self._kept.get(place.name)
        return kept is not None and kept[0] == place and kept[1].watch.is_heard

    def watch_only(self, names: Collection[str]) -> None:
        """Of no other server anybody wants to know whether its tools change."""
        for name, (_, carrier) in self._kept.items():
            if name not in names:
                carrier.watch.end()

    def let_go(self) -> None:
        """A drain begins: end what would never end by itself."""
        self._draining = True
        self.watch_only(())

    def retain(self, places: Iterable[Place]) -> None:
        """These are configured now. What leads elsewhere is closed once no call can need it."""
        wanted = {place.name: place for place in places}
        several = len(wanted) > 1
        for name, (place, carrier) in tuple(self._kept.items()):
            if wanted.get(name) != place or several != self._several:
                del self._kept[name]
                self._retire(place, carrier)
        self._several, self._wanted = several, wanted
        self._children.retain(p for p in wanted.values() if isinstance(p, ServerCommand))

    def cut(self) -> None:
        """The drain limit is reached: end what still runs, and start nothing any more."""
        for carrier in self._all():
            carrier.cut()
        self._children.cut()

    async def close(self) -> None:
        """End our sessions at the servers, then the processes; within a few seconds."""
        for _, handle in self._retired.values():
            handle.cancel()
        closing = {asyncio.ensure_future(carrier.close()) for carrier in self._all()}
        self._kept.clear()
        self._retired.clear()
        if closing := closing | self._closing:
            await asyncio.wait(closing)
        await self._children.close()

    def _all(self) -> list[BridgedCarrier]:
        return [*(carrier for _, carrier in self._kept.values()), *self._retired]

    def _made(self, place: Place) -> BridgedCarrier:
        stdio = isinstance(place, ServerCommand)
        inner: Carrier = (
            self._children.carrier(place)
            if isinstance(place, ServerCommand)
            else HttpCarrier(self._upstream, place)
        )
        carrier = BridgedCarrier(
            inner, name=place.name, clock=self._clock, terminates=self._several, stdio=stdio
        )
        carrier.tell_of_tools(partial(self._tools_changed, place.name))
        return carrier

    def _former(self, place: Place) -> BridgedCarrier:
        """For a request that began before a reload, which ends with what it knows.

        It must not stand in the way of those that came after it, and is given up like the rest.
        """
        for carrier, (theirs, _) in self._retired.items():
            if theirs == place:
                return carrier
        carrier = self._made(place)
        self._retire(place, carrier)
        return carrier

    def _retire(self, place: Place, carrier: BridgedCarrier) -> None:
        carrier.watch.end(for_good=True)
        # A call that runs may still go on for as long as any call may.
        later = asyncio.get_running_loop().call_later
        handle = later(self._upstream.times.total_s, self._give_up, carrier)
        self._retired[carrier] = place, handle

    def _give_up(self, carrier: BridgedCarrier) -> None:
        self._retired.pop(carrier, None)
        task = asyncio.get_running_loop().create_task(carrier.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


__all__ = ["Carriers"]
