"""What is known about one MCP request while it runs?

Lives here: what a configuration says about MCP (ToolTrafficPolicy), one request on its way (Turn)
and what becomes of each of its messages (Plan). Does not live here: how that is decided
(call), what then happens (tool_traffic).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from tidegate.errors import TidegateError
from tidegate.gateway.identify import TokenGate
from tidegate.gateway.masking import Masking
from tidegate.gateway.pins.known import Since
from tidegate.gateway.respond import Responder
from tidegate.gateway.servers.carrier import Asked
from tidegate.gateway.tool_requests.suspended import Resumable
from tidegate.identity.keys import KeyTable
from tidegate.jsonrpc import (
    Code,
    Id,
    Message,
    Notification,
    Request,
    Response,
    Tree,
    error_body,
    error_of,
)
from tidegate.limits.ledger import LimitTable
from tidegate.mcp.authorize import (
    Subject,
    authorize,
    is_denied,
    is_visible,
)
from tidegate.mcp.changes import changed_list
from tidegate.mcp.denials import Hiding, Profile, Refusal
from tidegate.mcp.eras import (
    McpHeaders,
    Revision,
)
from tidegate.mcp.federation import Federation
from tidegate.mcp.listing import may_hear
from tidegate.mcp.rules import RuleSet, TenantRules
from tidegate.mcp.servers import Place
from tidegate.mcp.sessions import RunningCall, Session, owner_of
from tidegate.policy import Allow, Decision, Principal
from tidegate.records.entries import Trail

_NEEDS_SESSION: Final = (
    "The MCP server behind the gateway answers in a session only: begin with initialize"
)
_FEDERATED: Final = "tidegate:federation"


@dataclass(frozen=True, slots=True)
class ToolServer:
    """One MCP server, what is masked in its traffic, and what a changed tool definition means."""

    place: Place
    masking: Masking
    pin: Literal["off", "warn", "block"] = "off"

    @property
    def name(self) -> str:
        """As the configuration calls it."""
        return self.place.name

    @property
    def key(self) -> str:
        """What sessions with it belong to."""
        return self.place.key


@dataclass(frozen=True, slots=True)
class ToolTrafficPolicy:
    """What one configuration revision says about MCP; swapped whole at a reload.

    `servers` by name, in the order of the file; `federation` is the table of their names if there
    are several.
    """

    revision: str
    keys: KeyTable
    rules: RuleSet | TenantRules
    servers: Mapping[str, ToolServer]
    limits: LimitTable
    errors: Profile = "brief"
    hide_denied: Hiding = "full"
    tokens: TokenGate | None = None
    federation: Federation | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if len(self.servers) > 1:
            object.__setattr__(self, "federation", Federation(tuple(self.servers)))

    @property
    def pinned_servers(self) -> tuple[str, ...]:
        """The names of those whose tools are compared with pins."""
        return tuple(name for name, server in self.servers.items() if server.pin != "off")

    @property
    def realm(self) -> str:
        """What a session of a client belongs to: another server in its place ends it.

        With several servers it is one with the gateway, whichever servers come and go.
        """
        if self.federation is not None:
            return _FEDERATED
        return next(iter(self.servers.values())).key


class Rejected(Exception):
    """The whole request is refused: `refusal` is the answer, `code` the word for the record."""

    def __init__(self, refusal: Refusal, code: str = "gateway.invalid_request") -> None:
        super().__init__(code)
        self.refusal = refusal
        self.code = code


def rejected(
    sentence: str,
    status: int = 400,
    *,
    code: Code = Code.INVALID_REQUEST,
    id: Id | None = None,  # noqa: A002 - the member's own name
    data: Tree | None = None,
) -> Rejected:
    """An error of JSON-RPC for the whole request; without an id as long as none is known."""
    return Rejected(Refusal(error_body(id, code, sentence, data), status))


@dataclass(slots=True)
class Turn:
    """One MCP request and everything it was found to be; changed only by the path function."""

    policy: ToolTrafficPolicy
    principal: Principal
    headers: McpHeaders
    trail: Trail
    responder: Responder
    peer: object = None
    session: Session | None = None
    revision: Revision = field(default_factory=Revision)
    id: Id | None = None

    @property
    def hides(self) -> bool:
        """Whether lists show only what may be called."""
        return self.policy.hide_denied != "off"

    @property
    def rules(self) -> RuleSet:
        """What counts for this principal."""
        return self.policy.rules.of(self.principal.tenant)

    @property
    def upstream_session(self) -> str | None:
        """The session of the upstream that the client's is one with; None if it is with us."""
        return (self.session.upstream_id or None) if self.session is not None else None

    @property
    def client_session(self) -> str | None:
        """What tells this client from others of its principal; None for one without a session."""
        return self.upstream_session or (self.session.id if self.session is not None else None)

    @property
    def lacks_session(self) -> bool:
        """Whether the client talks to a server that may have sessions, and is in none."""
        single = self.policy.federation is None
        return single and not self.revision.modern and self.session is None

    def may_see(self, server: ToolServer, subject: Subject) -> bool:
        """Whether the principal may use the thing of this server in some way."""
        return is_visible(subject, self.principal, self.rules, server=server.name)

    def may_send(self, server: ToolServer, method: str) -> bool:
        """Whether the principal may send this method, which names nothing, to a server."""
        decision = authorize(Request(0, method), self.principal, self.rules, server=server.name)
        return isinstance(decision, Allow)

    def may_hear(self, server: ToolServer, told: Notification) -> bool:
        """Whether what a server tells may reach the principal: of a list that changed, whoever
        may ask for that list; of a resource, whoever may see it."""
        if (method := changed_list(told.method)) is not None:
            return self.may_send(server, method)
        return not self.hides or may_hear(told, partial(self.may_see, server))

    def is_denied(self, server: ToolServer, subject: Subject) -> bool:
        """Whether a rule denies the principal this thing of this server."""
        return is_denied(subject, self.principal, self.rules, server=server.name)

    def error_body(self, error: TidegateError, request_id: str) -> Tree:
        """The dialect of this path, for the responder: JSON-RPC with the id, once it is known."""
        return error_of(error, request_id, id=self.id)


@dataclass(slots=True)
class Plan:
    """What becomes of one message: answered by us (`refusal`), forwarded, or dropped.

    `server` is where it goes. `message` is what is forwarded: narrowed, masked and aimed where that
    was necessary; `headers` are those of the client that may go with it. `outcome` is the word for
    its end. `parts` are what is asked of each server for a request that we answer ourselves; None
    for one that goes to `server`. `suspended`: the request ended without its answer and goes on.
    `sent`: of a list that is compared with pins, what was known when it was asked for.
    `ends`: the call of this client that the message cancels. `life`: that of a process whose tools
    were compared for this message, see Asked. `decision`: what the rules say of a call of a tool.
    `is_listed`: with `hide_denied` full, whether the server has listed the tool that this calls.
    """

    message: Message
    server: ToolServer
    headers: McpHeaders
    refusal: Refusal | None = None
    forwards: bool = True
    outcome: str = "ok"
    parts: tuple["Plan", ...] | None = None
    suspended: Resumable | None = None
    sent: Since | None = None
    ends: RunningCall | None = None
    life: int | None = None
    decision: Decision | None = None
    is_listed: bool = False

    @property
    def tool(self) -> str | None:
        """The tool that this calls, as its server knows it; None if it calls none."""
        call = self.message
        if isinstance(call, Response) or call.method != "tools/call":
            return None
        return str((call.params or {}).get("name"))

    @property
    def charged_tool(self) -> str | None:
        """The tool this would run, which counts against limits; None if it runs none."""
        return self.tool if self.forwards else None

    @property
    def cancels(self) -> Id | None:
        """The call that this ends, as its server knows it."""
        message = self.message
        if not isinstance(message, Notification) or message.method != "notifications/cancelled":
            return None
        named = (message.params or {}).get("requestId")
        return named if isinstance(named, str | int) else None

    @property
    def request(self) -> Request:
        """The message, which is a request: only that has an answer."""
        if not isinstance(self.message, Request):
            raise TypeError("only a request has an answer")
        return self.message

    def asked(
        self, turn: "Turn", upstream_id: Id | None = None, *, resumable: bool = False
    ) -> Asked:
        """What is sent to the server; `resumable`: its client can come back for a stream."""
        call, federation = self.message, turn.policy.federation
        return Asked(
            call,
            turn.revision,
            self.headers,
            owner_of(turn.principal),
            upstream_id,
            session=turn.upstream_session,
            endless=isinstance(call, Request) and call.method == "subscriptions/listen",
            resumable=resumable,
            client=turn.client_session,
            life=self.life,
            shown=str if federation is None else partial(federation.shown_link, self.server.name),
        )

    def refuse(self, error: TidegateError, turn: "Turn") -> None:
        """Answer with `error` instead of forwarding; a notification is dropped."""
        self.forwards, self.outcome = False, error.code
        if isinstance(self.message, Request):
            body = error_of(error, turn.responder.request_id, id=self.message.id)
            self.refusal = Refusal(body)


def no_session(id: Id | None) -> Refusal:  # noqa: A002 - the member's own name
    """Unknown, ended or somebody else's: only a 404 makes clients begin a new one."""
    return Refusal(error_body(id, Code.INVALID_REQUEST, "Session not found"), 404)


def needs_session(id: Id | None) -> Refusal:  # noqa: A002 - the member's own name
    """There is none, and the server answers in one only."""
    return Refusal(error_body(id, Code.INVALID_REQUEST, _NEEDS_SESSION), 400)


__all__ = [
    "Plan",
    "Rejected",
    "ToolServer",
    "ToolTrafficPolicy",
    "Turn",
    "needs_session",
    "no_session",
    "rejected",
]
