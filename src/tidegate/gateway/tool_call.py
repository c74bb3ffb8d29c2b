"""What was decided about each message of this MCP request, before anything is forwarded?

Lives here: one request on its way (Turn), what becomes of each of its messages (Plan), and the
steps that need no waiting: read, compare with the headers, authorize. Does not live here: the
decisions themselves (mcp), their order and everything that waits (tool_traffic).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate import strictjson
from tidegate.errors import MethodNotAllowed, TidegateError
from tidegate.gateway.filters import guarded
from tidegate.gateway.identify import TokenGate
from tidegate.gateway.masking import Masking
from tidegate.gateway.respond import Responder
from tidegate.identity.keys import KeyTable
from tidegate.jsonrpc import (
    Batch,
    Call,
    Code,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    Tree,
    classify,
    error_body,
    error_of,
    has_oversized_integer,
    typed,
)
from tidegate.limits.ledger import LimitTable
from tidegate.mcp.authorize import (
    INVALID_PARAMS,
    METHODS,
    UNKNOWN_METHOD,
    Subject,
    authorize,
    is_visible,
    subject_of,
)
from tidegate.mcp.batch import flaw_of
from tidegate.mcp.denials import Hiding, Profile, Refusal, refusal
from tidegate.mcp.eras import (
    MODERN,
    REMOVED,
    McpHeaders,
    Rejection,
    Revision,
    settle,
    with_arguments,
)
from tidegate.mcp.http_upstream import ServerAddress
from tidegate.mcp.listing import narrow_subscription
from tidegate.mcp.rules import RuleSet, TenantRules
from tidegate.mcp.sessions import RunningCalls, Session, Sessions
from tidegate.policy import Allow, Decision, Deny, Principal
from tidegate.records.entries import Trail
from tidegate.redaction import redact_tree

_STEP_NAME: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


@dataclass(frozen=True, slots=True)
class ToolServer:
    """One MCP server and what is masked in its traffic."""

    address: ServerAddress
    masking: Masking


@dataclass(frozen=True, slots=True)
class ToolTrafficPolicy:
    """What one configuration revision says about MCP; swapped whole at a reload.

    `servers` by name; this release serves the first one.
    """

    revision: str
    keys: KeyTable
    rules: RuleSet | TenantRules
    servers: Mapping[str, ToolServer]
    limits: LimitTable
    errors: Profile = "brief"
    hide_denied: Hiding = "full"
    tokens: TokenGate | None = None


class Rejected(Exception):
    """The whole request is refused: `refusal` is the answer, `code` the word for the record."""

    def __init__(self, refusal: Refusal, code: str = "gateway.invalid_request") -> None:
        super().__init__(code)
        self.refusal = refusal
        self.code = code


@dataclass(slots=True)
class Turn:
    """One MCP request and everything it was found to be; changed only by the path function."""

    policy: ToolTrafficPolicy
    server: ToolServer
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

    def may_see(self, subject: Subject) -> bool:
        """Whether the principal may use the thing in some way."""
        name = self.server.address.name
        return is_visible(subject, self.principal, self.rules, server=name)

    def error_body(self, error: TidegateError, request_id: str) -> Tree:
        """The dialect of this path, for the responder: JSON-RPC with the id, once it is known."""
        return error_of(error, request_id, id=self.id)


@dataclass(slots=True)
class Plan:
    """What becomes of one message: answered by us (`refusal`), forwarded, or dropped.

    `message` is what is forwarded: narrowed, masked and aimed where that was necessary; `headers`
    are those of the client that may go with it. `outcome` is the word for its end.
    """

    message: Message
    headers: McpHeaders
    refusal: Refusal | None = None
    forwards: bool = True
    outcome: str = "ok"

    @property
    def charged_tool(self) -> str | None:
        """The tool this would run, which counts against limits; None if it runs none."""
        call = self.message
        if not self.forwards or isinstance(call, Response) or call.method != "tools/call":
            return None
        return str((call.params or {}).get("name"))

    def refuse(self, error: TidegateError, turn: "Turn") -> None:
        """Answer with `error` instead of forwarding; a notification is dropped."""
        self.forwards, self.outcome = False, error.code
        if isinstance(self.message, Request):
            body = error_of(error, turn.responder.request_id, id=self.message.id)
            self.refusal = Refusal(body)


def read(data: bytes) -> Message | Batch:
    """The messages in a body. Raises Rejected with -32700 or -32600."""
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as error:
        if error.kind == "ambiguous":
            raise Rejected(_invalid(None, error.reason)) from None
        body = error_body(None, Code.PARSE_ERROR, f"Parse error: {error.reason}")
        raise Rejected(Refusal(body, 400)) from None
    if has_oversized_integer(data, value):
        body = error_body(None, Code.PARSE_ERROR, "Parse error: a number is too large")
        raise Rejected(Refusal(body, 400))
    message = classify(value)
    if isinstance(message, Malformed):
        raise Rejected(_invalid(message.id, message.reason))
    if isinstance(message, Batch) and (flaw := flaw_of(message)) is not None:
        raise Rejected(_invalid(None, flaw))
    return message


def _invalid(id: Id | None, reason: str) -> Refusal:  # noqa: A002 - the member's own name
    return Refusal(error_body(id, Code.INVALID_REQUEST, f"Invalid request: {reason}"), 400)


def place(turn: Turn, message: Message | Batch, sessions: Sessions, now_s: float) -> None:
    """Find the message's id, session and revision. Raises Rejected for headers that do not fit."""
    if isinstance(message, Request):
        turn.id = message.id
    if turn.headers.session is not None:
        turn.session = _session(turn, turn.headers.session, sessions, now_s)
    version = turn.session.version if turn.session is not None else None
    revision = settle(message, turn.headers, session_version=version)
    if isinstance(revision, Rejection):
        turn.trail.step("headers", "deny", code=revision.code.name.lower())
        data = revision.data
        if data is not None and "supported" in data:
            data = {**data, "supported": list(sessions.versions(turn.server.address.url))}
        body = error_body(turn.id, revision.code, revision.message, data)
        raise Rejected(Refusal(body, 400))
    turn.revision = revision
    if revision.modern:
        turn.session = None
    elif turn.headers.session is not None and turn.session is None:
        raise Rejected(no_session(turn.id), "gateway.not_found")


def place_ending(turn: Turn, sessions: Sessions, now_s: float) -> None:
    """Find the session that a DELETE ends. Raises Rejected if it is not the principal's."""
    headers = turn.headers
    if headers.version == MODERN:
        raise MethodNotAllowed("DELETE")
    if headers.flaw is not None or headers.session is None:
        body = error_body(None, Code.INVALID_REQUEST, "A single Mcp-Session-Id is needed")
        raise Rejected(Refusal(body, 400))
    turn.session = _session(turn, headers.session, sessions, now_s)
    turn.trail.step("session", "ok" if turn.session is not None else "deny")
    if turn.session is None:
        raise Rejected(no_session(None), "gateway.not_found")


def _session(turn: Turn, session_id: str, sessions: Sessions, now_s: float) -> Session | None:
    """The session, unless a new configuration has put another server in the place of its own."""
    session = sessions.find(session_id, turn.principal, now_s)
    return session if session and session.server == turn.server.address.url else None


def no_session(id: Id | None) -> Refusal:  # noqa: A002 - the member's own name
    """Unknown, ended or somebody else's: only a 404 makes clients begin a new one."""
    return Refusal(error_body(id, Code.INVALID_REQUEST, "Session not found"), 404)


def judge(turn: Turn, message: Message, sessions: Sessions, calls: RunningCalls) -> Plan:
    """Whether one message may pass; the decision becomes a step of the record."""
    if isinstance(message, Response):
        asked = turn.session is not None and turn.session.questions.take(typed(message.id))
        turn.trail.step("answer", "allow" if asked else "drop")
        return Plan(message, turn.headers, forwards=asked)
    decision = _decision(turn, message, sessions)
    plan = Plan(message, turn.headers)
    if isinstance(decision, Allow) and message.method == "subscriptions/listen":
        decision = _narrow(turn, plan, decision)
    _note(turn, message, decision)
    if isinstance(decision, Deny):
        plan.forwards, plan.outcome = False, decision.reason
        if isinstance(message, Request):
            plan.refusal = refusal(
                message,
                decision,
                turn.principal,
                errors=turn.policy.errors,
                hide=turn.policy.hide_denied,
                modern=turn.revision.modern,
            )
        return plan
    if isinstance(message, Notification) and message.method == "notifications/cancelled":
        _aim_cancel(turn, plan, message, calls)
    return plan


def _decision(turn: Turn, message: Call, sessions: Sessions) -> Decision:
    if turn.revision.modern and message.method in REMOVED:
        return Deny(METHODS, UNKNOWN_METHOD)
    name = turn.server.address.name
    task_id = (message.params or {}).get("taskId")
    return authorize(
        message,
        turn.principal,
        turn.rules,
        server=name,
        task_tool=sessions.task_tool(turn.principal, name, task_id),
    )


def mask(turn: Turn, plans: Sequence[Plan]) -> None:
    """Apply the redaction of arguments to what will be forwarded; what it blocks is answered.

    For one thread at a time, not for one in particular: of a large body this takes seconds.
    """
    for plan in plans:
        if not plan.forwards:
            continue
        try:
            _mask_arguments(turn, plan)
        except TidegateError as error:
            plan.refuse(error, turn)


def _narrow(turn: Turn, plan: Plan, decision: Decision) -> Decision:
    """A subscription keeps the URIs that may be read."""
    message = plan.message
    if not isinstance(message, Request):
        return Deny(METHODS, INVALID_PARAMS)
    narrowed = narrow_subscription(message, turn.may_see)
    if narrowed is None:
        return Deny(METHODS, INVALID_PARAMS)
    plan.message = narrowed
    return decision


def _aim_cancel(turn: Turn, plan: Plan, message: Notification, calls: RunningCalls) -> None:
    """Point a cancellation at the call of this client, by the id the upstream knows.

    One that names no running call of this principal is dropped: at the upstream it would hit a
    call of somebody else with the same id.
    """
    params = message.params or {}
    call = calls.find(turn.principal, turn.session, params.get("requestId"), turn.peer)
    if call is None:
        plan.forwards = False
        return
    aimed = Notification(message.method, {**params, "requestId": call.upstream_id})
    plan.message = aimed


def _note(turn: Turn, message: Call, decision: Decision) -> None:
    """The step of the record: what was asked for, the rule, and what its conditions looked at."""
    subject = subject_of(message)
    asked: dict[str, object] = {"method": message.method, "server": turn.server.address.name}
    if subject is not None:
        asked[_STEP_NAME[subject.kind]] = subject.name
    arguments = (message.params or {}).get("arguments")
    operands: dict[str, object] = {}
    if isinstance(arguments, dict) and (subject is None or subject.kind != "resources"):
        operands = turn.rules.operands(decision.rule, arguments)
    if isinstance(decision, Deny):
        asked["reason"] = decision.reason
    verdict = "allow" if isinstance(decision, Allow) else "deny"
    turn.trail.step("authorize", verdict, rule=decision.rule, operands=operands, **asked)


def _mask_arguments(turn: Turn, plan: Plan) -> None:
    """Apply the redaction of tool arguments to a call that will be forwarded."""
    mode, call = turn.server.masking.tool_arguments, plan.message
    if mode == "off" or not isinstance(call, Request | Notification):
        return
    arguments = (call.params or {}).get("arguments")
    if not isinstance(arguments, dict):
        return
    policy = turn.server.masking.policy_for(turn.principal.tenant)
    applied = policy if mode == "enforce" else policy.observing()
    masked, found = guarded(redact_tree, arguments, applied)
    turn.trail.counts("redact_arguments", mode, found, unscanned=found.unscanned)
    if mode == "enforce" and masked is not arguments:
        params = {**(call.params or {}), "arguments": masked}
        plan.headers = with_arguments(turn.headers, dict(_changes(arguments, masked)))
        plan.message = (
            Request(call.id, call.method, params)
            if isinstance(call, Request)
            else Notification(call.method, params)
        )


def _changes(old: object, new: object) -> Iterator[tuple[str, str]]:
    """The leaves that were masked, where a header may repeat them: not inside of lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for member, value in old.items():
            yield from _changes(value, new.get(member))
    elif isinstance(old, str | int | float) and isinstance(new, str) and old != new:
        yield str(old), new


__all__ = [
    "Plan",
    "Rejected",
    "ToolServer",
    "ToolTrafficPolicy",
    "Turn",
    "judge",
    "mask",
    "no_session",
    "place",
    "place_ending",
    "read",
]
