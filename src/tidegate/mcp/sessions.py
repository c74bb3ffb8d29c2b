"""Whose legacy session is this, whose task, and whose call in flight?

Lives here: the state that outlives one MCP request: our own session ids bound to a principal,
the tasks and open questions that follow from answers, the ids of running calls, and the keys
behind cursors. All of it
is bounded, and all of it is what this process knows: of sessions, tasks and questions others may
know more (gateway.tool_requests.sessions). Does not live here: shared stores, sockets.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeVar

from tidegate.jsonrpc import Id, typed
from tidegate.mcp.cursors import Cursors
from tidegate.mcp.eras import SUPPORTED
from tidegate.policy import Principal

Owner = tuple[str, str, str, str]
"""Issuer, tenant, name and client: a new key or token does not take a session away, another
principal never has it, nor has the same name of another issuer or in another program."""

NOBODY: Final[Owner] = ("", "", "", "")
"""Whose what the gateway asks for itself is; no principal has an empty name."""

ANONYMOUS: Final = "anonymous"
"""The key id of a caller without a key (see policy.Principal)."""
_MAX_QUESTIONS: Final = 1024
_SECRET_BYTES: Final = 16
_MAX_SERVERS: Final = 1024
V = TypeVar("V")


def owner_of(principal: Principal) -> Owner:
    """Who a session, a task or a call belongs to."""
    return principal.issuer, principal.tenant, principal.name, principal.client


@dataclass(slots=True)
class Session:
    """One legacy session: `id` is ours, `upstream_id` is for nobody but `server`, an address.

    `version` is what initialize negotiated. `questions` are the ids of requests the upstream
    sent to this client and that were not answered yet; False: no other process knows. `secret`
    vouches for the ids of its events, and each of `on_end` is called when the session is over.
    At `touched_s` others were told last that it is used.
    """

    id: str
    owner: Owner
    server: str = field(repr=False)
    upstream_id: str = field(repr=False)
    version: str | None = None
    used_s: float = 0.0
    questions: "Recent[bool]" = field(default_factory=lambda: Recent(_MAX_QUESTIONS))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_SECRET_BYTES), repr=False)
    on_end: "set[Callable[[], None]]" = field(default_factory=set, repr=False)
    touched_s: float = 0.0


class Recent(Generic[V]):
    """A mapping that forgets its oldest entries beyond `bound`."""

    __slots__ = ("_bound", "_entries")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._entries: OrderedDict[object, V] = OrderedDict()

    def put(self, key: object, value: V) -> V | None:
        """Remember; the key becomes the newest. What had to be forgotten for it, if anything."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) <= self._bound:
            return None
        return self._entries.popitem(last=False)[1]

    def get(self, key: object) -> V | None:
        """What was remembered, or None."""
        return self._entries.get(key)

    def take(self, key: object) -> bool:
        """Forget; whether it was there."""
        if key not in self._entries:
            return False
        del self._entries[key]
        return True

    def __len__(self) -> int:
        return len(self._entries)


class Sessions:
    """All legacy sessions of this process; at most `bound`, and `per_owner` of one principal.

    `cursors` are those of the pages that clients may go on to, in a session or without one.
    """

    def __init__(
        self,
        *,
        bound: int = 10_000,
        per_owner: int = 100,
        idle_s: float = 3600.0,
    ) -> None:
        self.cursors = Cursors()
        self._bound = bound
        self._per_owner = per_owner
        self._idle_s = idle_s
        self._by_id: OrderedDict[str, Session] = OrderedDict()
        self._tasks: Recent[tuple[Owner, str, str]] = Recent(bound)
        self._versions: Recent[tuple[str, ...]] = Recent(_MAX_SERVERS)

    def open(
        self, principal: Principal, server: str, upstream_id: str, version: str | None, now_s: float
    ) -> Session:
        """A new session; the one unused for longest gives way to it when there are too many."""
        owner = owner_of(principal)
        session = Session(secrets.token_hex(16), owner, server, upstream_id, version)
        self.adopt(session, now_s)
        return session

    def adopt(self, session: Session, now_s: float) -> None:
        """Know one that another process opened; makes room as for a new one."""
        self.expire(now_s)
        theirs = [each for each in self._by_id.values() if each.owner == session.owner]
        if len(theirs) >= self._per_owner:
            self.close(theirs[0])
        elif len(self._by_id) >= self._bound:
            self.close(next(iter(self._by_id.values())))
        session.used_s = now_s
        self._by_id[session.id] = session

    def peek(self, session_id: str) -> Session | None:
        """The session, whoever's it is; it does not count as used."""
        return self._by_id.get(session_id)

    def find(self, session_id: str, principal: Principal, now_s: float) -> Session | None:
        """The session, if it is this principal's: unknown, ended and foreign ones look alike."""
        self.expire(now_s)
        session = self._by_id.get(session_id)
        if session is None or session.owner != owner_of(principal):
            return None
        session.used_s = now_s
        self._by_id.move_to_end(session_id)
        return session

    def has(self, principal: Principal, server: str) -> bool:
        """Whether the principal has a session with `server`."""
        owner = owner_of(principal)
        return any(each.owner == owner and each.server == server for each in self._by_id.values())

    def close(self, session: Session) -> None:
        """End it; idempotent."""
        if self._by_id.pop(session.id, None) is not None:
            for told in tuple(session.on_end):
                told()

    def __len__(self) -> int:
        return len(self._by_id)

    def expire(self, now_s: float) -> None:
        """Close what was not used for too long."""
        # Oldest use first, so this stops at the first one that stays.
        while self._by_id:
            oldest = next(iter(self._by_id.values()))
            if now_s - oldest.used_s < self._idle_s:
                return
            self.close(oldest)

    def begin_task(self, principal: Principal, server: str, task_id: str, tool: str) -> None:
        """Remember which tool began a task, and for whom."""
        self._tasks.put((server, task_id), (owner_of(principal), server, tool))

    def task_tool(self, principal: Principal, server: str, task_id: object) -> str | None:
        """The tool that began this task, if this principal began it there."""
        if not isinstance(task_id, str):
            return None
        entry = self._tasks.get((server, task_id))
        return entry[2] if entry is not None and entry[0] == owner_of(principal) else None

    def learn_versions(self, server: str, listed: object) -> None:
        """Remember which revisions a server (an address) listed when it was discovered.

        Of what it says only revisions that the gateway speaks are kept, in our order; a list
        without any is not one to go by.
        """
        named = listed if isinstance(listed, list) else []
        spoken = tuple(version for version in SUPPORTED if version in named)
        if spoken:
            self._versions.put(server, spoken)

    def versions(self, server: str) -> tuple[str, ...]:
        """The revisions a client can use with `server`: all of ours until it was discovered."""
        return self._versions.get(server) or SUPPORTED


@dataclass(slots=True, eq=False)
class RunningCall:
    """A request that was forwarded and not answered yet; `upstream_id` is what `server` knows.

    `end` ends it here, as long as it can be; `answered`: the server has said its last word.
    """

    owner: Owner
    server: str
    session: str | None
    peer: object
    client_id: Id
    upstream_id: Id
    end: Callable[[], None] | None = None
    answered: bool = False


class RunningCalls:
    """Ids of the calls in flight: unique at each upstream, found again by a cancellation.

    Clients count from 0, and all of them share our connection to a server. An id goes out as it
    came unless another running call of that server (and upstream session) has it. `elsewhere`:
    other processes run calls of the same sessions.
    """

    def __init__(self, fresh: Callable[[], int] = lambda: 2**40 + secrets.randbits(40)) -> None:
        self._fresh = fresh
        self._by_client: dict[tuple[Owner, str | None, object], list[RunningCall]] = {}
        self._taken: set[tuple[str, str | None, object]] = set()
        self._ending: dict[RunningCall, Callable[[], None]] = {}
        self.elsewhere = False

    @contextmanager
    def running(
        self,
        principal: Principal,
        server: str,
        session: Session | None,
        client_id: Id,
        peer: object = None,
    ) -> Iterator[RunningCall]:
        """Holds an entry for the call as long as it runs."""
        scope = (server, (session.upstream_id or None) if session else None)
        upstream_id = client_id
        while (*scope, typed(upstream_id)) in self._taken:
            number = self._fresh()
            upstream_id = f"{client_id}#{number}" if isinstance(client_id, str) else number
        owner, ours = owner_of(principal), session.id if session else None
        call = RunningCall(owner, server, ours, peer, client_id, upstream_id)
        taken, key = (*scope, typed(upstream_id)), (owner, ours, typed(client_id))
        self._taken.add(taken)
        self._by_client.setdefault(key, []).append(call)
        try:
            yield call
        finally:
            self._by_client[key].remove(call)
            if not self._by_client[key]:
                del self._by_client[key]
            if call in self._ending:
                self._ending[call] = partial(self._taken.discard, taken)
            else:
                self._taken.discard(taken)

    @contextmanager
    def ending(self, call: RunningCall | None) -> Iterator[None]:
        """End the call, if there is one; its id at the server stays taken within the block.

        Otherwise the server could find somebody else's next call under the id it is told of.
        """
        if call is None or call in self._ending:
            yield
            return
        self._ending[call] = _nothing
        try:
            if call.end is not None:
                call.end()
            yield
        finally:
            self._ending.pop(call)()

    def find(
        self, principal: Principal, session: Session | None, client_id: object, peer: object = None
    ) -> RunningCall | None:
        """The running call of this principal and session that a client knows as `client_id`.

        If it has several (two clients with one key and no session), the one from the same
        `peer`, else the only one from the same host: better none than somebody else's. Callers
        without a key are told apart by their host alone, so from another one they have none.
        """
        if not isinstance(client_id, str | int) or isinstance(client_id, bool):
            return None
        key = (owner_of(principal), session.id if session else None, typed(client_id))
        calls = self._by_client.get(key, [])
        same = [call for call in calls if call.peer == peer]
        near = same or [call for call in calls if _host(call.peer) == _host(peer)]
        if not near and principal.key_id != ANONYMOUS:
            near = calls
        return near[0] if len(near) == 1 or same else None

    def __len__(self) -> int:
        return len(self._taken)


def _nothing() -> None:
    """It still runs, and gives its id free itself."""


def _host(peer: object) -> object:
    return peer[0] if isinstance(peer, tuple) and peer else peer


__all__ = [
    "NOBODY",
    "Owner",
    "Recent",
    "RunningCall",
    "RunningCalls",
    "Session",
    "Sessions",
    "owner_of",
]
