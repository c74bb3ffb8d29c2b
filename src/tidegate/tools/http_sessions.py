"""How does a client of the older eras keep a conversation over HTTP?

Lives here: sessions of the handshake era: each has a loop of the SDK's server of its own, and
routes what that says to the request it belongs to, or to the client's standing stream. Bounded in
number and in idle time. Does not live here: HTTP (http), the wire form of a stream (http_answers).
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from typing import Any, Final

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from tidegate import strictjson
from tidegate.jsonrpc import Id, Message, Notification, Request, Response, error_body, typed
from tidegate.tools.boundary import as_json
from tidegate.tools.http_modern import as_request
from tidegate.tools.outbox import Item, Outbox

logger = logging.getLogger(__name__)

_CANCELLED: Final = -32800
_ENDED: Final = -32600
_PRIMED: Final = "2025-11-25"
_KEPT: Final = 4
"""How many finished streams of a session can be asked for again."""
MOST_OPEN: Final = 256
"""How many requests of one session may run at once."""


class Session:
    """One conversation. `version` is None until the handshake is done."""

    def __init__(self, server: Server[Any], state: Any) -> None:
        self.id = secrets.token_hex(16)
        self.version: str | None = None
        self.standing = Outbox(name="s")
        self.readers = 0
        self.idle: asyncio.TimerHandle | None = None
        self._server, self._state = server, state
        self._open: dict[tuple[bool, Id], Outbox] = {}
        self._named: OrderedDict[str, Outbox] = OrderedDict(s=self.standing)
        self._streams = 0
        self._to_sdk, self._requests = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](0)
        self._answers, self._from_sdk = anyio.create_memory_object_stream[SessionMessage](0)

    async def run(self) -> None:
        """Serves until it is cancelled or closed."""
        pump = asyncio.create_task(self._pump())
        try:
            await serve_loop(
                self._server,
                self._requests,
                self._answers,
                lifespan_state=self._state,
                session_id=self.id,
            )
        finally:
            pump.cancel()
            self._end()

    def outbox(self, ids: tuple[Id, ...]) -> Outbox | None:
        """Where the answers to `ids` will be; None if one of them is in flight already."""
        if any(typed(each) in self._open for each in ids):
            return None
        self._streams += 1
        name = f"{self._streams:x}"
        box = Outbox(ids, name=name, primed=self.version == _PRIMED)
        self._named[name] = box
        while len(self._named) > _KEPT + 1 and self._forget_one():
            pass
        self._open |= {typed(each): box for each in ids}
        return box

    @property
    def is_full(self) -> bool:
        """Whether no more requests may run."""
        return len(self._open) >= MOST_OPEN

    async def say(self, message: Message, *, http: Any = None, events: bool = False) -> bool:
        """Hands a message over to the SDK's server; False if the session has ended."""
        match message:
            case Request():
                sent: Any = as_request(message)
            case Notification(method, params):
                sent = mcp_types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
            case _:
                sent = message_of(message)
        metadata = self._metadata(message, http, events=events)
        try:
            await self._to_sdk.send(SessionMessage(sent, metadata))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return False
        return True

    def resume(self, last_event: str) -> Outbox | None:
        """The stream that the event belongs to, set right behind it; None if it is gone."""
        name, _, count = last_event.rpartition("-")
        box = self._named.get(name)
        if box is None or not count.isdigit() or len(count) > 9:
            return None
        box.read(int(count))
        return box

    def forget(self, box: Outbox) -> None:
        """Its client has everything."""
        self._named.pop(box.name or "", None)

    def _metadata(self, message: Message, http: Any, *, events: bool) -> ServerMessageMetadata:
        if not isinstance(message, Request):
            return ServerMessageMetadata(request_context=http)
        box = self._open.get(typed(message.id))

        async def unanswered() -> None:
            self._answer(message.id, _error(message.id, _CANCELLED, "Request cancelled"))

        async def let_go() -> None:
            if box is not None and box.primed:
                box.detach()

        async def let_standing_go() -> None:
            self.standing.detach()

        return ServerMessageMetadata(
            request_context=http,
            close_sse_stream=let_go,
            close_standalone_sse_stream=let_standing_go,
            on_request_unanswered=unanswered,
            can_send_request=events,
        )

    async def _pump(self) -> None:
        async for said in self._from_sdk:
            message, metadata = said.message, said.metadata
            data = as_json(message)
            if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                if message.id is None:
                    continue
                if self.version is None and isinstance(message, mcp_types.JSONRPCResponse):
                    self.version = message.result.get("protocolVersion")
                self._answer(message.id, data)
                continue
            related = getattr(metadata, "related_request_id", None)
            box = self.standing if related is None else self._open.get(typed(related))
            if box is not None:
                box.put(Item(data))

    def _answer(self, id: Id, data: bytes) -> None:  # noqa: A002
        box = self._open.pop(typed(id), None)
        if box is not None:
            box.put(Item(data, typed(id)))

    def _forget_one(self) -> bool:
        for name, box in self._named.items():
            if box.complete:
                del self._named[name]
                return True
        return False

    def _end(self) -> None:
        for _, id in list(self._open):  # noqa: A001
            self._answer(id, _error(id, _ENDED, "The session has ended"))
        self.standing.close()
        self._to_sdk.close()
        self._from_sdk.close()


class Sessions:
    """The sessions of one server: at most `most`, and none idle for longer than `idle_s`."""

    def __init__(self, server: Server[Any], *, most: int, idle_s: float) -> None:
        self._server = server
        self._most, self._idle_s = most, idle_s
        self._sessions: dict[str, Session] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.state: Any = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self) -> Session | None:
        """A new session; None if there are too many."""
        if len(self._sessions) >= self._most:
            return None
        session = Session(self._server, self.state)
        self._sessions[session.id] = session
        task = asyncio.create_task(session.run())
        self._tasks[session.id] = task
        task.add_done_callback(lambda task: self._ended(session.id, task))
        return session

    def get(self, id: str) -> Session | None:  # noqa: A002
        """The session, if it is there."""
        return self._sessions.get(id)

    def enter(self, session: Session) -> None:
        """Somebody uses it."""
        session.readers += 1
        if session.idle is not None:
            session.idle.cancel()

    def leave(self, session: Session) -> None:
        """Nobody does, perhaps; from then on it gets old."""
        session.readers -= 1
        if session.readers == 0 and session.id in self._sessions:
            loop = asyncio.get_running_loop()
            session.idle = loop.call_later(self._idle_s, self.drop, session.id)

    def drop(self, id: str) -> None:  # noqa: A002
        """Ends the session: what runs in it is cancelled."""
        session = self._sessions.pop(id, None)
        if session is not None and session.idle is not None:
            session.idle.cancel()
        if (task := self._tasks.get(id)) is not None:
            task.cancel()

    def let_go(self) -> None:
        """Ends the standing streams; what was asked goes on."""
        for session in self._sessions.values():
            session.standing.close()

    async def close(self) -> None:
        """Ends all of them."""
        tasks = list(self._tasks.values())
        for each in list(self._sessions):
            self.drop(each)
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, id: str, task: "asyncio.Task[None]") -> None:  # noqa: A002
        self._sessions.pop(id, None)
        self._tasks.pop(id, None)
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error("session_failed", exc_info=bug)


def message_of(response: Response) -> mcp_types.JSONRPCMessage | None:
    """The SDK's form of an answer to a question of ours; None if it is none."""
    try:
        found: mcp_types.JSONRPCMessage = mcp_types.jsonrpc_message_adapter.validate_python(
            response.value, by_name=False
        )
    except ValidationError:
        return None
    return found


def _error(id: Id, code: int, message: str) -> bytes:  # noqa: A002
    return strictjson.dumps(error_body(id, code, message))


__all__ = ["MOST_OPEN", "Session", "Sessions", "message_of"]
