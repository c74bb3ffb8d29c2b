"""What is one conversation of the gateway with a server, and what does it count in it?

Lives here: the revision, the session, the ids of our messages, and what was asked for in it so
far. Does not live here: when one is begun and ended (bridge_server).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol

from tidegate import __version__
from tidegate.gateway.servers.carrier import Asked
from tidegate.jsonrpc import Message, Tree
from tidegate.mcp.eras import MODERN, McpHeaders, Revision
from tidegate.mcp.introductions import Introduction
from tidegate.mcp.probing import Heard
from tidegate.mcp.sessions import Owner

CLIENT: Final[Tree] = {"name": "tidegate", "version": __version__}
"""How we introduce ourselves to a server."""


@dataclass(frozen=True, slots=True)
class BridgeTimes:
    """Seconds. `silence_s`: how long a process may leave the first probe without an answer.

    `start_s`: how long until it has begun; what it is made of may have to be fetched first.
    `call_s`: a call, whatever becomes of its stream.
    """

    silence_s: float = 3.0
    start_s: float = 60.0
    ask_s: float = 10.0
    call_s: float = 600.0
    known_s: float = 600.0
    idle_s: float = 600.0
    farewell_s: float = 2.0


@dataclass(slots=True, eq=False)
class Line:
    """One conversation with the server, shared by all who may use it.

    `session` is the server's id for it; None for 2026-07-28, for a process, and for a legacy
    server that has no sessions. `level` is from which level on the server tells of what it does.
    `listed`: we have asked for its tools ourselves. `refusal` is how the server refused a harmless
    request in it, which was tried last at `checked_s`. Whoever changes what the server tells of has
    the `turn`; a level that it did not take is not tried before `level_rests_until_s`.
    """

    introduction: Introduction
    owner: Owner
    session: str | None = None
    level: str | None = None
    used_s: float = 0.0
    users: int = 0
    dropped: bool = False
    listed: bool = False
    checked_s: float = float("-inf")
    refusal: Heard | None = None
    level_rests_until_s: float = float("-inf")
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    subscribed: dict[str, int] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The revision that is spoken here."""
        return self.introduction.version

    @property
    def modern(self) -> bool:
        """Whether every message stands for itself."""
        return self.version == MODERN

    def next_id(self) -> str:
        """An id that no other message of this conversation has."""
        return f"tidegate-{next(self.numbers)}"

    def asked(
        self,
        message: Message,
        *,
        endless: bool = False,
        headers: McpHeaders | None = None,
        owner: Owner | None = None,
        life: int | None = None,
    ) -> Asked:
        """`message`, in the server's own words, on its way to the carrier.

        `owner`: whose it is, where several share the conversation. `life`: see Asked.
        """
        return Asked(
            message,
            Revision(self.version),
            headers or McpHeaders(),
            owner or self.owner,
            session=self.session,
            endless=endless,
            life=life,
        )


class Process(Protocol):
    """What a carrier knows whose server is a process."""

    generation: int
    """Another number is another process, which knows nothing of what the one before was told."""
    listener: Callable[[Tree], None] | None
    """Hears every message that belongs to no request."""
    over: Callable[[], None] | None
    """Called when the process has ended."""


__all__ = ["CLIENT", "BridgeTimes", "Line", "Process"]
