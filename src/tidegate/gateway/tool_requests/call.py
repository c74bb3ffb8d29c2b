"""What was decided about each message of this MCP request, before anything is forwarded?

Lives here: the steps that need no waiting: read, compare with the headers, authorize, mask. Does
not live here: the decisions themselves (mcp), their order and everything that waits (tool_traffic).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tidegate import strictjson
from tidegate.errors import ContentBlocked, MethodNotAllowed, TidegateError
from tidegate.gateway.tool_requests.pages import admitted
from tidegate.gateway.tool_requests.turn import (
    Plan,
    Rejected,
    ToolServer,
    Turn,
    no_session,
    rejected,
)
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
    has_oversized_integer,
    typed,
)
from tidegate.mcp.authorize import (
    INVALID_PARAMS,
    LISTED_KIND,
    METHODS,
    UNKNOWN_METHOD,
    authorize,
    subject_of,
)
from tidegate.mcp.batch import flaw_of
from tidegate.mcp.client_texts import texts_of, with_texts
from tidegate.mcp.denials import refusal
from tidegate.mcp.eras import (
    LEGACY,
    LISTEN,
    MODERN,
    REMOVED,
    Rejection,
    Revision,
    settle,
    with_arguments,
)
from tidegate.mcp.listing import narrow_subscription
from tidegate.mcp.sessions import RunningCalls, Session, Sessions
from tidegate.policy import Allow, Decision, Deny

_NEEDS_SESSION: Final = "A single Mcp-Session-Id is needed"
_PROBE: Final = "logging/setLevel"
"""What whoever may use something of a server may send to it."""
_NOT_ANSWERED: Final = "The answer was refused by the gateway"
_STEP_NAME: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


def read(data: bytes) -> Message | Batch:
    """The messages in a body. Raises Rejected with -32700 or -32600."""
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as error:
        if error.kind == "ambiguous":
            raise _invalid(None, error.reason) from None
        raise rejected(f"Parse error: {error.reason}", code=Code.PARSE_ERROR) from None
    if has_oversized_integer(data, value):
        raise rejected("Parse error: a number is too large", code=Code.PARSE_ERROR)
    message = classify(value)
    if isinstance(message, Malformed):
        raise _invalid(message.id, message.reason)
    if isinstance(message, Batch) and (flaw := flaw_of(message)) is not None:
        raise _invalid(None, flaw)
    return message


def _invalid(id: Id | None, reason: str) -> Rejected:  # noqa: A002 - the member's own name
    return rejected(f"Invalid request: {reason}", id=id)


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
            data = {**data, "supported": list(sessions.versions(turn.policy.realm))}
        raise rejected(revision.message, code=revision.code, id=turn.id, data=data)
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
        raise rejected(_NEEDS_SESSION)
    turn.session = _session(turn, headers.session, sessions, now_s)
    turn.trail.step("session", "ok" if turn.session is not None else "deny")
    if turn.session is None:
        raise Rejected(no_session(None), "gateway.not_found")


def place_listening(turn: Turn, sessions: Sessions, now_s: float) -> Session:
    """The session that a GET listens in. Raises Rejected if it is not the principal's."""
    headers = turn.headers
    unused = headers.session is None and not sessions.has(turn.principal, turn.policy.realm)
    if headers.version == MODERN or (headers.flaw is None and unused):
        # A client without a session asks for a stream in any case; this answer it expects.
        raise MethodNotAllowed("GET")
    if headers.flaw is not None or headers.session is None:
        raise rejected(_NEEDS_SESSION)
    if headers.version is not None and headers.version not in LEGACY:
        known = list(sessions.versions(turn.policy.realm))
        told: Tree = {"supported": known, "requested": headers.version[:64]}
        said = "Unsupported protocol version"
        raise rejected(said, code=Code.UNSUPPORTED_VERSION, data=told)
    turn.session = session = _session(turn, headers.session, sessions, now_s)
    turn.trail.step("session", "ok" if session is not None else "deny")
    if session is None:
        raise Rejected(no_session(None), "gateway.not_found")
    turn.revision = Revision(headers.version or session.version)
    return session


def _session(turn: Turn, session_id: str, sessions: Sessions, now_s: float) -> Session | None:
    """The session, unless a new configuration has put another server in the place of its own."""
    session = sessions.find(session_id, turn.principal, now_s)
    return session if session and session.server == turn.policy.realm else None


def judge(turn: Turn, message: Message, sessions: Sessions, calls: RunningCalls) -> Plan:
    """Whether one message may pass to the one server; the decision is a step of the record."""
    server = next(iter(turn.policy.servers.values()))
    plan = Plan(message, server, turn.headers)
    if isinstance(message, Response):
        answers = turn.session is not None and turn.session.questions.take(typed(message.id))
        turn.trail.step("answer", "allow" if answers else "drop")
        plan.forwards = answers
        return plan
    decision = decided(turn, server, message, sessions)
    if isinstance(decision, Allow):
        if message.method in LISTED_KIND:
            decision = admitted(turn, message, decision, sessions)
        elif message.method == LISTEN:
            decision = _narrow(turn, plan, decision, sessions)
    if message.method == "tools/call":
        plan.decision = decision
    note(turn, server, message, decision)
    if isinstance(decision, Deny):
        deny(turn, plan, message, decision)
    elif isinstance(message, Notification) and message.method == "notifications/cancelled":
        aim_cancel(turn, plan, message, calls)
    return plan


def deny(turn: Turn, plan: Plan, asked: Call, decision: Deny) -> None:
    """The end of a plan: what the client is told names what it `asked` for, as it wrote it."""
    plan.forwards, plan.outcome = False, decision.reason
    if isinstance(asked, Request):
        plan.refusal = refusal(
            asked,
            decision,
            turn.principal,
            errors=turn.policy.errors,
            hide=turn.policy.hide_denied,
            modern=turn.revision.modern,
        )


def decided(turn: Turn, server: ToolServer, message: Call, sessions: Sessions) -> Decision:
    """The decision over a message, in the server's own words."""
    if message.method in REMOVED if turn.revision.modern else message.method == LISTEN:
        return Deny(METHODS, UNKNOWN_METHOD)
    name = server.name
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
            _mask_texts(turn, plan)
        except TidegateError as error:
            note_refused(turn, "redact_arguments", error)
            if isinstance(plan.message, Response):
                _answer_instead(plan, plan.message, error)
            else:
                plan.refuse(error, turn)


def note_refused(turn: Turn, stage: str, error: TidegateError) -> None:
    """The step of a redaction that lets nothing pass: what it found, or that it failed."""
    if isinstance(error, ContentBlocked):
        turn.trail.step(stage, "block", detector=error.kind)
    else:
        turn.trail.step(stage, "fail", code=error.code)


def _answer_instead(plan: Plan, answer: Response, error: TidegateError) -> None:
    """The server waits for an answer of its client: it learns that there is none."""
    plan.outcome = error.code
    plan.message = Response(answer.id, error_body(answer.id, Code.BLOCKED, _NOT_ANSWERED))


def may_use(turn: Turn, server: ToolServer) -> bool:
    """Whether the caller may use anything of a server at all."""
    return turn.may_send(server, _PROBE)


def narrowed(
    turn: Turn, server: ToolServer, message: Request, sessions: Sessions
) -> Request | None:
    """What of a subscription the caller may hear; None if it is malformed."""

    def owned(task_id: str) -> bool:
        return sessions.task_tool(turn.principal, server.name, task_id) is not None

    visible, lists = partial(turn.may_see, server), partial(turn.may_send, server)
    return narrow_subscription(message, visible, lists, owned)


def _narrow(turn: Turn, plan: Plan, decision: Decision, sessions: Sessions) -> Decision:
    """A subscription keeps what its caller may hear of."""
    message = plan.message
    if not isinstance(message, Request):
        return Deny(METHODS, INVALID_PARAMS)
    kept = narrowed(turn, plan.server, message, sessions)
    if kept is None:
        return Deny(METHODS, INVALID_PARAMS)
    plan.message = kept
    return decision


def aim_cancel(turn: Turn, plan: Plan, message: Notification, calls: RunningCalls) -> None:
    """Point a cancellation at the call of this client, by the id the upstream knows.

    One that names no running call of this principal is dropped: at the upstream it would hit a
    call of somebody else with the same id, and so would one for a server that is no more. In an
    upstream session of its own a client can hit nobody else: if calls of it may run in another
    process, the message goes as it came.
    """
    params = message.params or {}
    call = calls.find(turn.principal, turn.session, params.get("requestId"), turn.peer)
    server = None if call is None else turn.policy.servers.get(call.server)
    if call is None and calls.elsewhere and turn.upstream_session is not None:
        return
    if call is None or server is None:
        plan.forwards = False
        return
    plan.server, plan.ends = server, call
    aimed = Notification(message.method, {**params, "requestId": call.upstream_id})
    plan.message = aimed


def note(turn: Turn, server: ToolServer | None, message: Call, decision: Decision) -> None:
    """The step of the record: what was asked for, the rule, and what its conditions looked at.

    `server` is None for what concerns none in particular.
    """
    subject = subject_of(message)
    asked: dict[str, object] = {"method": message.method}
    if server is not None:
        asked["server"] = server.name
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


def _mask_texts(turn: Turn, plan: Plan) -> None:
    """Apply the redaction of tool arguments to every text of a message that will be forwarded."""
    masking, texts = plan.server.masking, texts_of(plan.message)
    mode = masking.tool_arguments
    if mode == "off" or not texts:
        return
    masked, counts = masking.mask_arguments(texts, turn.principal.tenant)
    turn.trail.counts("redact_arguments", mode, counts, unscanned=counts.unscanned)
    if masked is not texts:
        old, new = texts.get("arguments"), masked.get("arguments")
        plan.headers = with_arguments(turn.headers, old, new)
        plan.message = with_texts(plan.message, masked)


__all__ = [
    "aim_cancel",
    "decided",
    "deny",
    "judge",
    "mask",
    "may_use",
    "narrowed",
    "note",
    "note_refused",
    "place",
    "place_ending",
    "place_listening",
    "read",
]
