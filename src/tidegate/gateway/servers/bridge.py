"""How is a server reached whose revision may not be its client's?

Lives here: the carrier that hides a server's revision from the path. Does not live here: which way
a message takes (bridge_exchange), the server's era and sessions (bridge_server), streams
for what changes (bridge_streams), the translation (mcp.bridging and its neighbors).
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Self, cast

from tidegate.clock import Clock
from tidegate.gateway.servers.bridge_exchange import OWN_SESSION, Bridge, BridgedExchange
from tidegate.gateway.servers.bridge_line import BridgeTimes, Process
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.bridge_streams import Stream
from tidegate.gateway.servers.bridge_watch import ToolWatch
from tidegate.gateway.servers.carrier import Asked, Carrier, Exchange
from tidegate.jsonrpc import Notification, Request
from tidegate.mcp.answers import Incoming
from tidegate.mcp.eras import Revision
from tidegate.mcp.sessions import Owner


class BridgedCarrier:
    """The way to one server, whatever revision it speaks. One per server; survives reloads.

    Without `terminates` a client that speaks the server's era is let through untouched, sessions
    and all; the server's era is asked for only after it refused a message. With it every client
    is served through sessions of our own. `stdio`: behind `inner` is a process.
    """

    def __init__(
        self,
        inner: Carrier,
        *,
        name: str,
        clock: Clock,
        terminates: bool,
        stdio: bool = False,
        times: BridgeTimes | None = None,
    ) -> None:
        self._inner = inner
        process = cast("Process", inner) if stdio else None
        server = BridgedServer(inner, name, clock, process=process, times=times or BridgeTimes())
        self._bridge = Bridge(server, terminates=terminates or stdio)
        self.watch = ToolWatch(self._bridge.changes, process)
        """Our own subscription to what changes about its tools."""

    def exchange(self, asked: Asked) -> Exchange:
        """See Carrier."""
        bridge, message = self._bridge, asked.message
        watched = isinstance(message, Request) and not bridge.server.speaks[asked.revision.modern]
        if bridge.passes(asked) and not watched:
            return self._inner.exchange(asked)
        return BridgedExchange(bridge, asked)

    def cast(self, asked: Asked) -> None:
        """See Carrier. A cancellation of what was carried has been told when it was left."""
        if self._bridge.passes(asked):
            self._inner.cast(asked)
        elif isinstance(asked.message, Notification):
            self._bridge.cancel(asked)

    def ending(self, session: str, version: str | None) -> Exchange:
        """See Carrier. A session that we gave out ends here."""
        if not session.startswith(OWN_SESSION):
            return self._inner.ending(session, version)
        self._bridge.end_client(session)
        return _Ended()

    def listening(
        self,
        owner: Owner,
        session: str | None,
        revision: Revision,
        last_event_id: str | None = None,
        *,
        client: str | None = None,
    ) -> Exchange:
        """See Carrier. What changes at the server, for a client's session that we gave out."""
        bridge = self._bridge
        if session is not None and not bridge.terminates and not session.startswith(OWN_SESSION):
            return self._inner.listening(owner, session, revision, last_event_id)
        return Stream.of_session(bridge.changes, owner, bridge.client(owner, session or client))

    def end_client(self, session: str) -> None:
        """The session of a client has ended: what it told us to remember is forgotten."""
        self._bridge.end_client(session)

    def tell_of_tools(self, told: Callable[[bool], None]) -> None:
        """Call `told` whenever the tools of the server may have changed, whoever hears of it.

        Its argument: whether the server says so; else nobody could have heard of it until then.
        """
        self._bridge.changes.tools_changed = partial(told, True)
        self.watch.began = partial(told, False)

    def forget(self) -> None:
        """What was known of the server may not hold any more."""
        self._bridge.server.forget()

    def cut(self) -> None:
        """End every stream for what changes, as the process is leaving."""
        self.watch.end(for_good=True)
        self._bridge.changes.end()

    async def close(self) -> None:
        """End the streams and our sessions at the server, within two seconds."""
        self.watch.end(for_good=True)
        self._bridge.changes.end()
        await self._bridge.server.close()


class _Ended:
    """The end of a session that was none of the server's."""

    is_stream = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing runs."""

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """See Exchange."""
        return 200, {}

    async def read(self) -> list[Incoming] | None:
        """See Exchange."""
        return None

    def let_end(self) -> None:
        """See Exchange."""


__all__ = ["BridgedCarrier"]
