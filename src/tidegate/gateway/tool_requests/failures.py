"""What becomes of a message whose server failed, and what is noted of it?

Lives here: the step of the record and the line of the log, and the end of a message that was not
sent as its server could not be asked about it. Does not live here: what is a failure
(servers.upstream), answers to messages that were sent (relay).
"""

import logging

from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn, no_session
from tidegate.jsonrpc import Request
from tidegate.mcp.answers import generic
from tidegate.mcp.denials import Refusal
from tidegate.transport.upstream import Failure

logger = logging.getLogger(__name__)


def note_failed(turn: Turn, server: ToolServer, failed: ServerFailed, status: int) -> None:
    """The server did not answer, or not with MCP: in the record and in the log."""
    where = named(turn, server)
    turn.trail.step("upstream", "failed", reason=failed.reason, status=status, server=where)
    if failed.reason not in ("session_ended", Failure.DRAINING):
        logger.warning(
            "tool_server_failed",
            extra={
                "request_id": turn.responder.request_id,
                "server": server.name,
                "reason": failed.reason,
                "upstream_status": status,
            },
        )


def named(turn: Turn, server: ToolServer) -> str | None:
    """The server's name for the record, where there are several."""
    return server.name if turn.policy.federation is not None else None


def fail(turn: Turn, plan: Plan, failed: ServerFailed) -> None:
    """The end of a plan: nobody knows what the tool is, and what is not known does not pass."""
    plan.forwards, plan.outcome = False, "gateway.upstream_failed"
    if not isinstance(plan.message, Request):
        return
    if failed.reason == "session_ended":
        plan.outcome, plan.refusal = "gateway.not_found", no_session(plan.message.id)
    else:
        plan.refusal = Refusal(generic(plan.message.id, turn.responder.request_id))


__all__ = ["fail", "named", "note_failed"]
