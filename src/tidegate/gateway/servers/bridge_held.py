"""Does a legacy server tell of the resources that clients have subscribed to?

Lives here: what each client of ours subscribed to and whether the server knows it in the
conversation that there is now; one subscription at the server for all of them. Does not live here:
who hears of a change (bridge_streams), what a client is answered (bridge_exchange).

A server that was started anew knows nothing of what it was asked before, and nothing may tell us
so. Whatever a client asks for, even what it has, the server is therefore asked before it is
answered.

Source: MCP 2025-11-25, server/resources (subscriptions).
"""

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from tidegate.gateway.servers.bridge_line import Line
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Code, Tree
from tidegate.mcp.changes import has_room
from tidegate.mcp.probing import Heard, lost_session, speaks_of_sessions

_NO_ROOM: Final = "Invalid params: too many subscriptions"


class Holder(Protocol):
    """What is remembered of a legacy client: what it `subscribed` to, and what of it is `held`.

    Held is what the server tells of in the conversation `line`. Whoever changes that has `turn`.
    """

    line: Line | None
    subscribed: set[str]
    held: set[str]
    turn: asyncio.Lock


class HeldResources:
    """What one server tells of. An error of it is returned, in the words of JSON-RPC.

    A conversation that turns out to be lost is dropped: ask again in another one. Every method
    may raise ServerFailed.
    """

    def __init__(self, server: BridgedServer) -> None:
        self.server = server

    async def subscribe(self, client: Holder, line: Line, uri: str) -> Tree | None:
        """Have `line` tell the client of this resource, too; the error if it does not."""
        async with client.turn:
            made = await self._settle(client, line)
            if line.dropped or uri in made:
                return None
            if uri not in client.subscribed and not has_room([*client.subscribed, uri]):
                return {"code": int(Code.INVALID_PARAMS), "message": _NO_ROOM}
            is_new = uri not in client.subscribed
            # At once: a client that ends meanwhile takes it back.
            client.subscribed.add(uri)
            try:
                return await self._hold_for(client, line, uri)
            finally:
                if is_new and uri not in client.held:
                    client.subscribed.discard(uri)

    async def unsubscribe(self, client: Holder, line: Line, uri: str) -> None:
        """The client wants to hear of this resource no more."""
        client.subscribed.discard(uri)
        async with client.turn:
            await self._settle(client, line)
            if uri in client.held:
                client.held.discard(uri)
                await self.release(line, uri)

    async def settle(self, client: Holder, line: Line) -> None:
        """Have `line` tell of what the client subscribed to in a conversation that is over."""
        async with client.turn:
            await self._settle(client, line)

    async def hold(self, line: Line, uri: str, *, again: bool = False) -> Tree | None:
        """Have the server tell of this resource, for one more; `again`: for one that had it.

        Of 2026-07-28 nothing is asked here: the stream that hears of it says so itself.
        """
        if line.modern:
            return None
        if not line.introduction.promises("resources", "subscribe"):
            return {"code": int(Code.METHOD_NOT_FOUND), "message": "Method not found"}
        # The end of another's must not reach the server behind the beginning of this one.
        async with line.turn:
            error = await self._ask(line, uri)
            if error is None:
                line.subscribed[uri] = max(1, line.subscribed.get(uri, 0) + (not again))
            return error

    async def release(self, line: Line, uri: str) -> None:
        """One less wants to hear of this resource."""
        async with line.turn:
            left = line.subscribed.get(uri, 0) - 1
            if left > 0:
                line.subscribed[uri] = left
            elif line.subscribed.pop(uri, None) is not None and not line.dropped:
                with suppress(ServerFailed):
                    await self.server.ask(line, "resources/unsubscribe", {"uri": uri})

    def forget(self, client: Holder) -> None:
        """The client is gone; does not wait."""
        uris, client.subscribed, client.held = client.held, set(), set()
        if client.line is not None:
            self.let_go(client.line, uris)

    def let_go(self, line: Line, uris: set[str]) -> None:
        """As `release`, without waiting."""

        async def release_all() -> None:
            for uri in sorted(uris):
                await self.release(line, uri)

        if uris and not self.server.closed:
            self.server.spawn(release_all())

    async def _settle(self, client: Holder, line: Line) -> set[str]:
        """What the server was asked for just now, and tells of."""
        if line.dropped:
            return set()
        if client.line is not line:
            client.line, client.held = line, set()
        made: set[str] = set()
        for uri in sorted(client.subscribed - client.held):
            if await self._hold_for(client, line, uri) is None:
                made.add(uri)
            elif line.dropped:
                break
        return made

    async def _hold_for(self, client: Holder, line: Line, uri: str) -> Tree | None:
        is_held = uri in client.held
        error = await self.hold(line, uri, again=is_held)
        if line.dropped:
            return error
        if error is None and uri in client.subscribed:
            client.held.add(uri)
        elif error is None or is_held:
            # The client was faster, or is gone; or it had what the server does not give any more.
            client.held.discard(uri)
            await self.release(line, uri)
        if error is not None:
            client.subscribed.discard(uri)
        return error

    async def _ask(self, line: Line, uri: str) -> Tree | None:
        try:
            heard, _ = await self.server.ask(line, "resources/subscribe", {"uri": uri})
        except ServerFailed as failed:
            if failed.reason != "session_ended":
                raise
            heard = Heard(404)
            self.server.drop(line)
        if heard.message is not None and "result" in heard.message:
            return None
        if not line.dropped and await self._is_lost(line, heard):
            self.server.drop(line)
        error = (heard.message or {}).get("error")
        return error if isinstance(error, dict) else {"code": int(Code.INTERNAL_ERROR)}

    async def _is_lost(self, line: Line, heard: Heard) -> bool:
        """Whether the server does not know the session any more; a resource may look like that."""
        gone = lost_session(heard)
        if line.session is None or not (gone or speaks_of_sessions(heard)):
            return False
        refusal = await self.server.recheck(line, at_once=gone)
        return refusal is not None and (lost_session(refusal) or speaks_of_sessions(refusal))


__all__ = ["HeldResources", "Holder"]
