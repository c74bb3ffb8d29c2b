"""Which page of a list may this client ask for, and which one does it get?

Lives here: a cursor is taken back only from whoever it was given to, and what is no list is shown
to nobody as one. Does not live here: what a cursor looks like (mcp.cursors), what of a list may
be seen (mcp.listing), lists of several servers, which have one page (federation).
"""

from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.jsonrpc import Call, Notification, Request
from tidegate.mcp.authorize import INVALID_CURSOR, METHODS
from tidegate.mcp.cursors import MOST_CHARS, Whose, names_next
from tidegate.mcp.listing import is_list
from tidegate.mcp.sessions import Sessions, owner_of
from tidegate.policy import Decision, Deny


def opened(
    turn: Turn, plan: Plan, message: Call, decision: Decision, sessions: Sessions
) -> Decision:
    """The decision over a list, once it is known whose cursor came with it.

    The server gets its own cursor back. One that this client was not given for this list is
    refused, whatever else it is. None at all asks for the first page, and so may an empty one.
    """
    params = message.params or {}
    given = params.get("cursor")
    if given is None or given == "":
        return decision
    cursor = sessions.cursors.taken(given, _whose(turn, plan.server, message.method))
    if cursor is None:
        return Deny(METHODS, INVALID_CURSOR)
    theirs = {**params, "cursor": cursor}
    if isinstance(message, Request):
        plan.message = Request(message.id, message.method, theirs)
    else:
        plan.message = Notification(message.method, theirs)
    return decision


def check(turn: Turn, server: ToolServer, method: str, result: object) -> None:
    """Raises ServerFailed for an answer to a request for a list of which nobody could take away
    what is hidden, not approved or somebody else's."""
    takes_away = turn.hides or method == "tasks/list"
    takes_away = takes_away or (server.pin == "block" and method == "tools/list")
    if takes_away and not is_list(method, result):
        raise ServerFailed("malformed")


def sealed(
    turn: Turn, server: ToolServer, method: str, result: object, sessions: Sessions
) -> object:
    """A page whose next one this client may ask for and nobody else; the same object if there is
    none. Raises ServerFailed if the server's cursor is no text or longer than any.

    Of a server among several the gateway asks for the next page itself.
    """
    if not names_next(result):
        return result
    following = result["nextCursor"]
    if not isinstance(following, str) or len(following) > MOST_CHARS:
        raise ServerFailed("malformed")
    if turn.policy.federation is not None:
        return result
    given = sessions.cursors.given(following, _whose(turn, server, method))
    return {**result, "nextCursor": given}


def _whose(turn: Turn, server: ToolServer, method: str) -> Whose:
    return Whose(owner_of(turn.principal), server.key, method)


__all__ = ["check", "opened", "sealed"]
