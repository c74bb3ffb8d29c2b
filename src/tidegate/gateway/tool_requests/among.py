"""Which of several servers does a message concern, and may it pass to them?

Lives here: for each kind of message, the servers it goes to and what each is asked, decided by
the same function and in each server's own names. Does not live here: that function
(mcp.authorize), the table of names (mcp.federation), asking and merging (federation).
"""

from typing import Final

from tidegate.gateway.tool_requests.call import aim_cancel, decided, deny, may_use, narrowed, note
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.jsonrpc import Call, Message, Notification, Request, Response
from tidegate.mcp.authorize import (
    INVALID_PARAMS,
    LISTED_KIND,
    METHODS,
    NO_RULE,
    OPEN,
    UNKNOWN_METHOD,
    UNKNOWN_TASK,
    authorize,
    subject_of,
)
from tidegate.mcp.denials import unknown
from tidegate.mcp.dry_run import TASKS
from tidegate.mcp.eras import ADDED, REMOVED
from tidegate.mcp.federation import Federation
from tidegate.mcp.federation_messages import aimed, names_something, wished
from tidegate.mcp.introductions import DESCRIBING
from tidegate.mcp.rules import without_rules
from tidegate.mcp.sessions import RunningCalls, Sessions
from tidegate.policy import Allow, Decision, Deny

_LEGACY_ONLY: Final = frozenset({*REMOVED, "logging/setLevel", "ping"})


def judge_among(turn: Turn, message: Message, sessions: Sessions, calls: RunningCalls) -> Plan:
    """Whether one message may pass and to which servers; each decision is a step of the record."""
    plan = Plan(message, _first(turn), turn.headers)
    federation = turn.policy.federation
    if isinstance(message, Response) or federation is None:
        # No server asks a client anything through us, so there is nothing to answer.
        turn.trail.step("answer", "drop")
        plan.forwards = False
    elif isinstance(message, Notification):
        _notified(turn, plan, message, calls)
    elif message.method in (_LEGACY_ONLY if turn.revision.modern else ADDED):
        _refused(turn, plan, message, Deny(METHODS, UNKNOWN_METHOD))
    elif names_something(message):
        _named(turn, plan, message, federation, sessions)
    elif message.method in LISTED_KIND:
        _listed(turn, plan, message, sessions)
    elif message.method in DESCRIBING or message.method in ("ping", "logging/setLevel"):
        _ours(turn, plan, message)
    elif message.method == "subscriptions/listen":
        _subscribed(turn, plan, message, federation, sessions)
    else:
        _owned(turn, plan, message, sessions)
    return plan


def _first(turn: Turn) -> ToolServer:
    return next(iter(turn.policy.servers.values()))


def _refused(turn: Turn, plan: Plan, message: Call, decision: Deny) -> None:
    note(turn, None, message, decision)
    deny(turn, plan, message, decision)


def _notified(turn: Turn, plan: Plan, message: Notification, calls: RunningCalls) -> None:
    """A cancellation goes where the call runs. Everything else ends here: the session is ours."""
    if message.method == "notifications/cancelled":
        note(turn, None, message, Allow(OPEN))
        aim_cancel(turn, plan, message, calls)
        return
    turn.trail.step("answer", "drop")
    plan.forwards = False


def _named(
    turn: Turn, plan: Plan, message: Request, federation: Federation, sessions: Sessions
) -> None:
    """A thing by its name: of the one server whose it is."""
    found = aimed(message, federation)
    if found.server is None:
        _nobodys(turn, plan, message)
        return
    plan.server, plan.message = turn.policy.servers[found.server], found.message
    decision = decided(turn, plan.server, found.message, sessions)
    if message.method == "tools/call":
        plan.decision = decision
    note(turn, plan.server, found.message, decision)
    if isinstance(decision, Deny):
        deny(turn, plan, message, decision)


def _nobodys(turn: Turn, plan: Plan, message: Request) -> None:
    """A name of no server: denied like one that no rule allows, told like one that nobody knows."""
    decision = authorize(message, turn.principal, without_rules(turn.rules))
    note(turn, None, message, decision)
    if not isinstance(decision, Deny):
        raise TypeError("no rule, and yet allowed")
    deny(turn, plan, message, decision)
    subject = subject_of(message)
    if decision.reason == NO_RULE and subject is not None:
        plan.refusal = unknown(
            message.id, subject, errors=turn.policy.errors, modern=turn.revision.modern
        )


def _listed(turn: Turn, plan: Plan, message: Request, sessions: Sessions) -> None:
    """A list: of every server of which the caller may use something of the kind."""
    parts, denied = [], None
    for server in turn.policy.servers.values():
        decision = decided(turn, server, message, sessions)
        note(turn, server, message, decision)
        if isinstance(decision, Allow):
            parts.append(Plan(message, server, turn.headers))
        else:
            denied = decision
    if not parts and denied is not None:
        deny(turn, plan, message, denied)
    plan.parts = tuple(parts)


def _ours(turn: Turn, plan: Plan, message: Request) -> None:
    """What we answer on behalf of every server of which the caller may use something."""
    servers = usable(turn)
    # Who may use nothing at all has no level to set; that there is a gateway anybody may know.
    decision: Decision = Allow(OPEN)
    if message.method == "logging/setLevel" and not servers:
        decision = Deny(METHODS, UNKNOWN_METHOD)
    note(turn, None, message, decision)
    if isinstance(decision, Deny):
        deny(turn, plan, message, decision)
    asks = () if message.method == "ping" else servers
    plan.parts = tuple(Plan(message, server, turn.headers) for server in asks)


def usable(turn: Turn) -> list[ToolServer]:
    """The servers of which the caller may use something."""
    return [server for server in turn.policy.servers.values() if may_use(turn, server)]


def _subscribed(
    turn: Turn, plan: Plan, message: Request, federation: Federation, sessions: Sessions
) -> None:
    """A subscription: at each server the part that it has to do with and the caller may hear."""
    params = message.params or {}
    wishes = wished(params, federation)
    decision: Decision = Allow(OPEN) if wishes is not None else Deny(METHODS, INVALID_PARAMS)
    note(turn, None, message, decision)
    if isinstance(decision, Deny) or wishes is None:
        deny(turn, plan, message, Deny(METHODS, INVALID_PARAMS))
        return
    parts = []
    for server in turn.policy.servers.values():
        wish = {**params, "notifications": wishes[server.name]}
        kept = narrowed(turn, server, Request(message.id, message.method, wish), sessions)
        heard = (kept.params or {}).get("notifications") if kept is not None else None
        if kept is not None and isinstance(heard, dict) and any(heard.values()):
            parts.append(Plan(kept, server, turn.headers))
    plan.parts = tuple(parts)


def _owned(turn: Turn, plan: Plan, message: Request, sessions: Sessions) -> None:
    """A task goes to the server where this caller began it; no other method is known."""
    servers = turn.policy.servers
    if message.method in TASKS:
        task_id = (message.params or {}).get("taskId")
        holders = [n for n in servers if sessions.task_tool(turn.principal, n, task_id) is not None]
        if len(holders) > 1:  # nobody can tell which of them is meant
            _refused(turn, plan, message, Deny(METHODS, UNKNOWN_TASK))
            return
        if holders:
            plan.server = servers[holders[0]]
    decision = decided(turn, plan.server, message, sessions)
    note(turn, plan.server, message, decision)
    if isinstance(decision, Deny):
        deny(turn, plan, message, decision)


__all__ = ["judge_among", "usable"]
