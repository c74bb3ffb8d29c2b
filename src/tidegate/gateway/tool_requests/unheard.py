"""What is a server told that asks something of a client which cannot hear it?

Lives here: the answer in the client's place: the server would wait for ever. Does not live here:
which client can hear it (client_side), what a bridge answers by itself (servers.bridge_call).
"""

from typing import Final

from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.jsonrpc import Code, Response, error_body, result_body
from tidegate.mcp.answers import Ask

_NOBODY_THERE: Final = "The client of this call takes no requests"


def answer_unheard(carriers: Carriers, turn: Turn, server: ToolServer, ask: Ask) -> None:
    """Answer what the server asked, without waiting until that has arrived: a ping is answered,
    and anything else is refused."""
    if turn.upstream_session is None:
        return  # a bridge has done it, and in 2026-07-28 nobody asks like this
    value = result_body(ask.id, {})
    if ask.method != "ping":
        value = error_body(ask.id, Code.METHOD_NOT_FOUND, _NOBODY_THERE)
    answer = Plan(Response(ask.id, value), server, turn.headers)
    carriers.of(server.place).cast(answer.asked(turn))


__all__ = ["answer_unheard"]
