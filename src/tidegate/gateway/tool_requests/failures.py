"""What becomes of a message whose server failed, and what is noted of it?

Lives here: the step of the record and the line of the log, and the end of a message that was not
sent as its server could not be asked about it. Does not live here: what is a failure
(servers.upstream), answers to messages that were sent (relay).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from tidegate.gateway.servers.upstream import NEEDS_SESSION, ServerFailed
from tidegate.gateway.tool_requests.turn import (
    Plan,
    ToolServer,
    Turn,
    needs_session,
    no_session,
)
from tidegate.jsonrpc import Id, Request
from tidegate.mcp.answers import generic
from tidegate.mcp.denials import Refusal
from tidegate.transport.upstream import Failure

logger = logging.getLogger(__name__)

_OF_CLIENT: Final[Mapping[str, tuple[str, Callable[[Id], Refusal]]]] = {
    "session_ended": ("gateway.not_found", no_session),
    NEEDS_SESSION: ("gateway.invalid_request", needs_session),
}
"""What is no failure of a server: its client can do something about it."""

_REFUSING: Final = (401, 403)


def note_failed(turn: Turn, server: ToolServer, failed: ServerFailed, status: int) -> None:
    """The server did not answer, or not with MCP: in the record and in the log."""
    where = named(turn, server)
    turn.trail.step("upstream", "failed", reason=failed.reason, status=status, server=where)
    if failed.reason not in _OF_CLIENT and failed.reason != Failure.DRAINING:
        logger.warning(
            "tool_server_failed",
            extra={
                "request_id": turn.responder.request_id,
                "server": server.name,
                "reason": failed.reason,
                "upstream_status": status,
            },
        )


def note_status(turn: Turn, server: ToolServer, status: int) -> None:
    """That our own credential was refused, in the log: no client can do anything about it."""
    if status in _REFUSING:
        logger.error(
            "mcp_credential_refused",
            extra={
                "request_id": turn.responder.request_id,
                "server": server.name,
                "status": status,
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
    if (own := told(plan.message.id, failed)) is not None:
        plan.outcome, plan.refusal = own
    else:
        plan.refusal = Refusal(generic(plan.message.id, turn.responder.request_id))


def told(id: Id, failed: ServerFailed) -> tuple[str, Refusal] | None:  # noqa: A002 - the member's name
    """What a client is told that can do something about the failure, with the word for the end of
    its request; None if it cannot."""
    word, refusal = _OF_CLIENT.get(failed.reason, ("", None))
    return None if refusal is None else (word, refusal(id))


__all__ = ["fail", "named", "note_failed", "note_status", "told"]
