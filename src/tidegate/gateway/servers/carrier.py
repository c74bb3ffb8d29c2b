"""How do messages reach one MCP server, whatever kind of server it is?

Lives here: what the path asks of every way to a server, and the way over HTTP in the client's own
era. Does not live here: the sockets (upstream), processes (children), a server of
another era (bridge).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from tidegate.gateway.servers.upstream import ToolUpstream
from tidegate.jsonrpc import Id, Message
from tidegate.mcp.answers import Incoming
from tidegate.mcp.eras import McpHeaders, Revision
from tidegate.mcp.http_upstream import ending, listening, outgoing
from tidegate.mcp.servers import ServerAddress
from tidegate.mcp.sessions import Owner


@dataclass(frozen=True, slots=True)
class Asked:
    """One message on its way to one server, in the server's own names.

    `revision` is the one it is written in, the client's; `headers` are those of the client that
    may go with it. `upstream_id` stands in for the message's own id: it is unique at the server.
    `session` is the upstream's, where the client's session is one with it. `endless`: a
    subscription, which may be silent for as long as it likes once it has begun. `resumable`: its
    client can come back for a stream that ends early. `client` is the session of the client, with
    the upstream or with us: what a client told us to remember belongs to it. `life`: which life of
    a process this was decided for (Carriers.life_of), and no other may get it; None: any.
    `shown`: what the client calls a resource that a link in the answer leads to.
    """

    message: Message
    revision: Revision
    headers: McpHeaders
    owner: Owner
    upstream_id: Id | None = None
    session: str | None = None
    endless: bool = False
    resumable: bool = False
    client: str | None = None
    life: int | None = None
    shown: Callable[[str], str] = str


class Exchange(Protocol):
    """One message to a server and what comes back; leaving it aborts what still runs."""

    @property
    def is_stream(self) -> bool:
        """Whether the answer turned out to be an event stream."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Status and lower-case headers. Raises ServerFailed."""

    async def read(self) -> list[Incoming] | None:
        """The next messages, perhaps none; None at the end. Raises ServerFailed."""

    def let_end(self) -> None:
        """Nothing more is wanted; what ends soon by itself may."""


class Carrier(Protocol):
    """The way to one server."""

    def exchange(self, asked: Asked) -> Exchange:
        """Send a message; to be entered with `with`."""

    def cast(self, asked: Asked) -> None:
        """Send without waiting: it survives the request that asked for it."""

    def ending(self, session: str, version: str | None) -> Exchange:
        """Tell the server that one of its sessions ends; to be entered with `with`."""

    def listening(
        self,
        owner: Owner,
        session: str | None,
        revision: Revision,
        last_event_id: str | None = None,
    ) -> Exchange:
        """What the server says by itself in this session; to be entered with `with`.

        `session` None: what it says to this owner, whose session is with us. `last_event_id`: the
        rest of the stream that this event of the server belongs to.
        """


class HttpCarrier:
    """The way over HTTP to a server that speaks the client's era; it has no state."""

    __slots__ = ("_address", "_upstream")

    def __init__(self, upstream: ToolUpstream, address: ServerAddress) -> None:
        self._upstream = upstream
        self._address = address

    def exchange(self, asked: Asked) -> Exchange:
        """See Carrier."""
        message = outgoing(
            asked.message,
            self._address,
            asked.revision,
            asked.headers,
            session=asked.session,
            upstream_id=asked.upstream_id,
            resumable=asked.resumable,
        )
        return self._upstream.exchange(self._address.url, message, endless=asked.endless)

    def cast(self, asked: Asked) -> None:
        """See Carrier."""
        message = outgoing(
            asked.message, self._address, asked.revision, asked.headers, session=asked.session
        )
        self._upstream.cast(self._address.url, message)

    def ending(self, session: str, version: str | None) -> Exchange:
        """See Carrier."""
        message = ending(self._address, version, session)
        return self._upstream.exchange(self._address.url, message, method="DELETE", is_last=True)

    def listening(
        self,
        owner: Owner,
        session: str | None,
        revision: Revision,
        last_event_id: str | None = None,
    ) -> Exchange:
        """See Carrier."""
        del owner
        message = listening(self._address, revision.version, session, last_event_id)
        return self._upstream.exchange(self._address.url, message, method="GET", endless=True)


__all__ = ["Asked", "Carrier", "Exchange", "HttpCarrier"]
