"""How does the gateway answer on behalf of several servers?

Lives here: asking each of them at the same time, each within a deadline of its own, and the one
answer that comes of it: lists, what the gateway offers, subscriptions. Does not live here: whom
to ask (among), how answers become one (mcp.federation_merging), how one server is asked and
what of its answer may be seen (relay).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from tidegate import __version__, strictjson
from tidegate.clock import Clock
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.answer import Answer
from tidegate.gateway.tool_requests.client_side import ClientSide, Collected
from tidegate.gateway.tool_requests.failures import note_failed
from tidegate.gateway.tool_requests.listening import Listening
from tidegate.gateway.tool_requests.pages import asks_first
from tidegate.gateway.tool_requests.relay import SESSION_HEADER, ToolRelay
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.jsonrpc import Code, Request, Tree, error_body, result_body
from tidegate.mcp.answers import generic
from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.mcp.eras import MODERN, McpHeaders, Revision
from tidegate.mcp.federation_merging import (
    Offer,
    Part,
    described,
    merged_list,
    negotiated,
)
from tidegate.mcp.federation_rests import Rests
from tidegate.mcp.meta_keys import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY
from tidegate.mcp.page_walk import MOST_BYTES, PageWalk
from tidegate.mcp.sessions import owner_of

OWN: Final[Mapping[str, object]] = {"name": "tidegate", "version": __version__}
"""What the gateway says of itself where it answers in place of a server."""

PART_S: Final = 4.0
"""How long one server has for its part of an answer. Less than the five seconds after which a
common client library gives up on us."""

_WAITED_S: Final = 1.0
"""Whoever fails faster keeps nobody waiting, and is asked again the next time."""

_MOST_PAGES: Final = 1000
_ITEM_BYTES: Final = 1024
"""What a thing in a list takes, or so: enough to tell much work from little."""

_LEVELS: Final = frozenset(
    {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
)
T = TypeVar("T")


class ToolFederation:
    """Answers what concerns several servers. One per application; it knows who lets others wait."""

    def __init__(self, relay: ToolRelay, clock: Clock, *, keep_alive_s: float) -> None:
        self._relay = relay
        self._clock = clock
        self._keep_alive_s = keep_alive_s
        self._listening = Listening(relay, part_s=PART_S)
        self._rests = Rests()

    async def answer(
        self, turn: Turn, plan: Plan, client: ClientSide | Collected | None = None
    ) -> str:
        """Answer the request of a plan with parts, to `client` if given; the word for its end."""
        client = client or ClientSide(turn, keep_alive_s=self._keep_alive_s)
        call = plan.request
        answer: Answer
        match call.method:
            case "subscriptions/listen" if isinstance(client, ClientSide):
                return await self._listening.serve(turn, plan, client)
            case "initialize" | "server/discover":
                answer = Answer(await self._described(turn, plan, client))
            case "logging/setLevel":
                answer = Answer(await self._level(turn, plan))
            case "ping":
                answer = Answer(result_body(call.id, {}))
            case _:
                answer = await self._list(turn, plan)
        error = answer.message.get("error")
        await client.final(answer, streamed=False)
        if not isinstance(error, dict):
            return "ok"
        failed = error.get("code") == Code.INTERNAL_ERROR
        return "gateway.upstream_failed" if failed else "gateway.invalid_request"

    async def _list(self, turn: Turn, plan: Plan) -> Answer:
        call = plan.request
        if not asks_first(call):
            # Our lists have one page, so no cursor is ours.
            return Answer(
                error_body(call.id, Code.INVALID_PARAMS, "Invalid cursor"),
                400 if turn.revision.modern else 200,
            )
        parts = await self._of_each(plan, lambda number, part: self._part(turn, part, number))
        result = merged_list(call.method, parts, modern=turn.revision.modern)
        if result is None:
            return self._failed(turn, call)
        message = result_body(call.id, result)
        size = _ITEM_BYTES * sum(len(part.items or ()) for part in parts)
        return Answer(message, raw=await beside_the_loop(size, strictjson.dumps, message))

    async def _of_each(self, plan: Plan, ask: Callable[[int, Plan], Awaitable[T]]) -> list[T]:
        """What `ask` comes to for each part, all at the same time, in the order of the parts."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_awaited(ask(number, part)))
                for number, part in enumerate(plan.parts or ())
            ]
        return [task.result() for task in tasks]

    async def _within(self, turn: Turn, part: Plan, awaitable: Awaitable[T]) -> T | None:
        """What the server answers in time; None, with a step and a line of the log, otherwise."""
        try:
            async with asyncio.timeout(PART_S):
                return await awaitable
        except TimeoutError:
            note_failed(turn, part.server, ServerFailed("timeout"), 0)
        except ServerFailed as failed:
            note_failed(turn, part.server, failed, 0)
        return None

    async def _unless_resting(
        self, turn: Turn, part: Plan, method: str, ask: Callable[[], Awaitable[T | None]]
    ) -> T | None:
        """As `_within`, but a server that let others wait in vain is missed at once."""
        began_s = self._clock.monotonic_s()
        named = part.server.name
        asking = self._rests.ask(
            (named, part.server.key, method), owner_of(turn.principal), began_s
        )
        if asking is None:
            turn.trail.step("federation", "missing", server=named, reason="resting")
            return None
        try:
            found = await self._within(turn, part, ask())
            now_s = self._clock.monotonic_s()
            if found is not None:
                self._rests.answered(asking)
            elif now_s - began_s >= _WAITED_S:
                self._rests.missed(asking, now_s)
        finally:
            self._rests.ended(asking)
        if found is None:
            turn.trail.step("federation", "missing", server=named)
        return found

    async def _part(self, turn: Turn, part: Plan, number: int) -> Part:
        pages = await self._unless_resting(
            turn, part, part.request.method, lambda: self._pages(turn, part, number)
        )
        if pages is None:
            return Part(part.server.name, None)
        items, ttl_ms = pages
        return Part(part.server.name, items, ttl_ms)

    async def _pages(
        self, turn: Turn, part: Plan, number: int
    ) -> tuple[list[object], float] | None:
        """Every item of one server's list. Raises ServerFailed; None if that was noted already."""
        call, asking = part.request, _own_turn(turn)
        walk = PageWalk(LISTED_MEMBER[call.method])
        items: list[object] = []
        ttls: list[float] = []
        size = 0
        for page in range(_MOST_PAGES):
            message = _page(call, f"{turn.responder.request_id}-{number}-{page}", walk.cursor)
            answer = await self._ask(asking, part, message)
            if answer is None:
                return None
            if _is_unknown_method(answer):
                return items, 0
            result = answer.get("result")
            found = walk.items(result)
            if not isinstance(result, dict) or found is None:
                raise ServerFailed("malformed")
            items += found
            ttls.append(_ttl_ms(result))
            if walk.cursor is None:
                return items, min(ttls)
            size += await beside_the_loop(_ITEM_BYTES * len(found), _size_of, result)
            if size > MOST_BYTES:
                break
        raise ServerFailed("too_large")

    async def _ask(self, turn: Turn, part: Plan, message: Request) -> Tree | None:
        """The answer of one server; None if it failed, which the relay has noted."""
        collected = Collected()
        headers = McpHeaders(accept="application/json", traceparent=turn.headers.traceparent)
        word = await self._relay.forward(turn, Plan(message, part.server, headers), collected)
        return collected.answer.message if word == "ok" else None

    async def _described(self, turn: Turn, plan: Plan, client: ClientSide | Collected) -> Tree:
        """Our answer to initialize, which opens a session of ours, and to server/discover."""
        call = plan.request
        version = negotiated(call.params or {}) if call.method == "initialize" else None
        if version is not None:
            self._relay.shared.check()
        if call.method == "initialize" and version is None:
            return error_body(call.id, Code.INVALID_PARAMS, "Invalid params")
        asking = replace(_own_turn(turn), revision=Revision(MODERN))
        offers = await self._of_each(plan, lambda number, part: self._offer(asking, part, number))
        result = described(offers, version=version, own=OWN)
        if result is None:
            return self._failed(turn, call).message
        if version is not None:
            now_s = self._clock.monotonic_s()
            realm = turn.policy.realm
            session = self._relay.sessions.open(turn.principal, realm, "", version, now_s)
            await self._relay.shared.keep(session)
            client.headers = ((SESSION_HEADER, session.id.encode("ascii")),)
        return result_body(call.id, result)

    async def _offer(self, turn: Turn, part: Plan, number: int) -> Offer:
        params: Tree = {
            "_meta": {
                VERSION_KEY: MODERN,
                CAPABILITIES_KEY: {},
                CLIENT_KEY: dict(OWN),
            }
        }
        message = Request(f"{turn.responder.request_id}-{number}", "server/discover", params)

        async def asked() -> Tree | None:
            answer = await self._ask(turn, part, message)
            result = None if answer is None else answer.get("result")
            return result if isinstance(result, dict) else None

        return Offer(
            part.server.name, await self._unless_resting(turn, part, message.method, asked)
        )

    async def _level(self, turn: Turn, plan: Plan) -> Tree:
        """Every server is told which messages its log should send; some have no log to send."""
        call = plan.request
        level = (call.params or {}).get("level")
        if not isinstance(level, str) or level not in _LEVELS:
            return error_body(call.id, Code.INVALID_PARAMS, "Invalid params")

        async def tell(number: int, part: Plan) -> None:
            message = Request(f"{turn.responder.request_id}-{number}", call.method, call.params)
            # In the client's session: its level is not that of others of its principal.
            await self._within(turn, part, self._ask(turn, part, message))

        await self._of_each(plan, tell)
        return result_body(call.id, {})

    def _failed(self, turn: Turn, call: Request) -> Answer:
        return Answer(generic(call.id, turn.responder.request_id))


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _own_turn(turn: Turn) -> Turn:
    """The same request as our own: its parts are in no session of the client."""
    return replace(turn, session=None)


def _page(call: Request, id: str, cursor: str | None) -> Request:  # noqa: A002 - the member's name
    """A request of ours for one page; of the client's params only what describes the caller."""
    params: Tree = {}
    meta = (call.params or {}).get("_meta")
    if isinstance(meta, dict):
        params["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}
    if cursor is not None:
        params["cursor"] = cursor
    return Request(id, call.method, params or None)


def _is_unknown_method(answer: Tree) -> bool:
    """Whether the server says that it has nothing of the kind."""
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") == Code.METHOD_NOT_FOUND


def _ttl_ms(result: Mapping[str, object]) -> float:
    ttl = result.get("ttlMs")
    is_number = isinstance(ttl, int | float) and not isinstance(ttl, bool)
    return max(0, ttl) if is_number and isinstance(ttl, int | float) else 0


def _size_of(value: object) -> int:
    return len(strictjson.dumps(value))


__all__ = ["OWN", "PART_S", "ToolFederation"]
