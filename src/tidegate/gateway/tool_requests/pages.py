"""Which page of a list may this client ask for, and which one does it get?

Lives here: a cursor is taken back only from whoever it was given to, and what is no list is shown
to nobody as one. Does not live here: what is known of cursors (mcp.cursors), what of a list may
be seen (mcp.listing), lists of several servers, which have one page (federation).
"""

from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.turn import ToolServer, Turn
from tidegate.jsonrpc import Call
from tidegate.mcp.authorize import INVALID_CURSOR, METHODS
from tidegate.mcp.cursors import Whose, is_cursor, names_next
from tidegate.mcp.listing import is_list
from tidegate.mcp.sessions import Sessions, owner_of
from tidegate.policy import Decision, Deny


def admitted(turn: Turn, message: Call, decision: Decision, sessions: Sessions) -> Decision:
    """The decision over a list, once it is known whose cursor came with it.

    One that this client was not given for this list is refused, whatever else it is. None at all
    asks for the first page, and so may an empty one.
    """
    if asks_first(message):
        return decision
    cursor = (message.params or {}).get("cursor")
    if not sessions.cursors.was_given(cursor, whose(turn, message.method)):
        return Deny(METHODS, INVALID_CURSOR)
    return decision


def asks_first(message: Call) -> bool:
    """Whether a request for a list is one for its first page: nothing in it names another."""
    return (message.params or {}).get("cursor") in (None, "")


def check(turn: Turn, server: ToolServer, method: str, result: object) -> None:
    """Raises ServerFailed for an answer to a request for a list of which nobody could take away
    what is hidden, not approved or somebody else's."""
    takes_away = turn.hides or method == "tasks/list"
    takes_away = takes_away or (server.pin == "block" and method == "tools/list")
    if takes_away and not is_list(method, result):
        raise ServerFailed("malformed")


def give(turn: Turn, method: str, result: object, sessions: Sessions) -> None:
    """The next page of a list is for this client, and for nobody else.

    Of a server among several the gateway asks for the next page itself.
    """
    if turn.policy.federation is None and names_next(result):
        following = result["nextCursor"]
        if is_cursor(following):
            sessions.cursors.give(following, whose(turn, method))


def check_next(result: object) -> None:
    """Raises ServerFailed if the place of the next page is no text, or longer than any."""
    if names_next(result) and not is_cursor(result["nextCursor"]):
        raise ServerFailed("malformed")


def whose(turn: Turn, method: str) -> Whose:
    """To whom a cursor of the one server behind this request is given."""
    return Whose(owner_of(turn.principal), turn.policy.realm, method)


__all__ = ["admitted", "asks_first", "check", "check_next", "give", "whose"]
