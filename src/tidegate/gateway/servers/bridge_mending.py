"""Why was a carried request refused, and may it be sent once more?

Lives here: what is done about a session that is gone, headers that only the list of tools names,
and a server that speaks another revision than it did; and what says that nothing ran. Does not
live here: the request itself (bridge_call), what a refusal proves (mcp.probing).
"""

from typing import Final

from tidegate.gateway.servers.bridge_call import Carried
from tidegate.gateway.servers.bridge_line import Line
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.carrier import Asked
from tidegate.jsonrpc import Code, Request, Tree
from tidegate.mcp.page_walk import PageWalk
from tidegate.mcp.probing import (
    Heard,
    is_of_wrong_era,
    lost_session,
    proves_unexecuted,
    speaks_of_sessions,
)

_MOST_PAGES: Final = 20


async def learn_schemas(server: BridgedServer, line: Line) -> None:
    """Read the whole list of tools, to know which arguments go into headers."""
    walk = PageWalk("tools")
    for page in range(_MOST_PAGES):
        params: Tree = {} if walk.cursor is None else {"cursor": walk.cursor}
        heard, _ = await server.ask(line, "tools/list", params)
        line.listed = True
        result = (heard.message or {}).get("result")
        if not isinstance(result, dict):
            return
        server.params.learn(result, first_page=page == 0)
        if walk.items(result) is None or walk.cursor is None:
            return


async def contradicting_header(server: BridgedServer, line: Line, asked: Asked) -> str | None:
    """The Mcp-Param header of a call that its arguments contradict, where nobody behind us looks.

    A legacy server knows no such headers, and a process has none; whoever routes by them must not
    be lied to.
    """
    call, looks = asked.message, line.modern and not server.is_process
    if looks or not asked.revision.modern or not isinstance(call, Request):
        return None
    if call.method != "tools/call":
        return None
    if not server.params.knows(call.params) and not line.listed:
        await server.once((line, "tools/list"), lambda: learn_schemas(server, line))
    return server.params.contradiction(call.params, asked.headers.params)


async def mended(server: BridgedServer, line: Line, carried: Carried, heard: Heard) -> str | None:
    """Why a refused request may be sent once more, as nothing ran; None if it may not.

    The cause is mended: a session that is gone, headers that nobody could know, or a server that
    speaks another revision than it did. Raises ServerFailed.
    """
    call = carried.call
    if server.is_process and heard.status == 404:
        server.drop(line)  # That one has ended, and this message never reached it.
        return "session"
    if line.modern and call.method == "tools/call" and heard.code == Code.HEADER_MISMATCH:
        return "headers" if await _learned_headers(server, line, carried) else None
    gone = line.session is not None and lost_session(heard)
    odd = line.session is not None and speaks_of_sessions(heard)
    if not gone and not odd and not is_of_wrong_era(call.method, heard, modern=line.modern):
        return None
    refusal = await server.recheck(line, at_once=gone)
    if refusal is None:
        return None
    if line.session is not None and (lost_session(refusal) or speaks_of_sessions(refusal)):
        cause = "session"
        server.drop(line)
    else:
        cause = "revision"
        server.contradicted(line)
    return cause if proves_unexecuted(call.method, heard, refusal) else None


async def _learned_headers(server: BridgedServer, line: Line, carried: Carried) -> bool:
    """Whether the list of tools names headers that a refused call did not have."""
    if carried.of_same_era:
        return False
    before = server.params.of(carried.call.params)
    await learn_schemas(server, line)
    return server.params.of(carried.call.params) != before


__all__ = ["contradicting_header", "mended"]
