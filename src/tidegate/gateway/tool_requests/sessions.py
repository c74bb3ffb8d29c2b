"""How does every process of a gateway know the same legacy sessions?

Lives here: when the shared store is asked and told about sessions, the tools behind tasks and
open questions, and what holds while it is away. Does not live here: the sessions this process
knows (mcp.sessions), what is written of one (mcp.session_papers), the stores (mcp.shelf).

A session that this process knows costs nothing: one look every LOOK_S tells which sessions ended
elsewhere, so an ended one is refused everywhere after FRESH_S at the latest. While the store is
away known sessions go on for GRACE_S since it last answered, and no new ones are begun.
"""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from contextlib import suppress
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.gateway.tool_requests.pages import whose
from tidegate.gateway.tool_requests.shared_cursors import SharedCursors
from tidegate.gateway.tool_requests.turn import Turn
from tidegate.jsonrpc import Id, Message, Request, Response, typed
from tidegate.mcp import session_papers as papers
from tidegate.mcp.answers import Ask, Note, Reply
from tidegate.mcp.authorize import LISTED_KIND
from tidegate.mcp.cursors import names_next
from tidegate.mcp.eras import LISTEN, MODERN
from tidegate.mcp.listing import listed_tasks, subscribed_tasks
from tidegate.mcp.session_papers import QUESTIONS, TASKS
from tidegate.mcp.sessions import Session, Sessions, owner_of
from tidegate.mcp.shelf import Kind, Mark, Shelf
from tidegate.policy import Principal

if TYPE_CHECKING:
    from tidegate.gateway.tool_requests.answer import Shaper

LOOK_S: Final = 0.5
FRESH_S: Final = 2.0
GRACE_S: Final = 60.0
_MOST_TRIES: Final = 3
_SPARE_KEYS: Final = 64
_T = TypeVar("_T")


class ToolSessions:
    """`local` and the store behind it; without a `shelf` only what this process knows exists.

    `kind` is how sessions lie there.
    """

    def __init__(
        self,
        local: Sessions,
        clock: Clock,
        shelf: Shelf | None = None,
        *,
        kind: Kind = papers.SESSIONS,
    ) -> None:
        self.local = local
        self._kind = kind
        self._clock = clock
        self._shelf = shelf
        self._cursors = None if shelf is None else SharedCursors(local.cursors, clock, shelf)
        self._mark: Mark | None = None
        self._looked_s = float("-inf")
        self._ids: dict[str, str] = {}  # by the key in the store
        self._looking: asyncio.Task[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def has_store(self) -> bool:
        """Whether other processes may know the same sessions."""
        return self._shelf is not None

    @property
    def degraded(self) -> bool:
        """Whether the store, once it was needed, failed us last."""
        return self._shelf is not None and self._mark is not None and self._shelf.degraded

    def start(self) -> None:
        """Begin to connect, so that no request has to wait for that; else the first one does."""
        if self._shelf is not None:
            self._shelf.start()

    def check(self) -> None:
        """Whether a session could be begun; raises StoreUnavailable. Asks nobody."""
        if self._shelf is not None:
            self._shelf.start()
            if self._shelf.degraded:
                raise StoreUnavailable("new sessions cannot be kept")

    async def meet(self, turn: Turn) -> None:
        """Before anything is decided of a request: `bring` its session, if it names one."""
        named = turn.headers.session
        if self._shelf is not None and named is not None and turn.headers.version != MODERN:
            await self.bring(named, turn.principal)

    async def prepare(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Before messages are judged: `bring` the questions, tasks and pages they are about."""
        if self._shelf is None or self._cursors is None:
            return
        for message in messages:
            if isinstance(message, Response):
                if turn.session is not None:
                    await self.bring_question(turn.session, message.id)
            else:
                params = message.params or {}
                await self.bring_task(turn.principal, turn.policy.servers, params.get("taskId"))
                if message.method in LISTED_KIND and turn.policy.federation is None:
                    await self._cursors.bring(params.get("cursor"), whose(turn, message.method))
                if isinstance(message, Request) and message.method == LISTEN:
                    for each in subscribed_tasks(message):
                        await self.bring_task(turn.principal, turn.policy.servers, each)

    async def learn(self, shaper: "Shaper", message: Reply | Note | Ask) -> None:
        """Shaper.learn, for every process: what an answer begins, before the client hears of it.

        Raises StoreUnavailable where the client could not go on with what it began.
        """
        shaper.learn(message)
        if self._shelf is None or self._cursors is None:
            return
        turn = shaper.turn
        if isinstance(message, Ask):
            if turn.session is not None:
                await self.keep_question(turn.session, message.id)
        elif isinstance(message, Reply):
            principal, server, method = turn.principal, shaper.plan.server.name, shaper.call.method
            if shaper.opened is not None:
                await self.keep(shaper.opened)
            if shaper.begun is not None:
                await self.keep_task(principal, server, *shaper.begun)
            if method in LISTED_KIND:
                result = message.message.get("result")
                if method == "tasks/list":
                    await self.bring_tasks(principal, server, listed_tasks(result))
                if names_next(result) and turn.policy.federation is None:
                    await self._cursors.tell(result["nextCursor"], whose(turn, method))

    async def bring(self, session_id: str, principal: Principal) -> None:
        """Before Sessions.find: have it know what the store knows of this session.

        Waits for nobody if the session is known here. Raises StoreUnavailable.
        """
        shelf = self._shelf
        if shelf is None:
            return
        session = self.local.peek(session_id)
        if session is None:
            if papers.is_session_id(session_id):
                await self._fetch(shelf, session_id, principal)
            return
        if session.owner != owner_of(principal):
            return
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s > FRESH_S:
            await self._look_again(shelf, now_s)
        if now_s - session.touched_s > papers.TOUCH_S:
            session.touched_s = now_s
            self._spawn(self._touch(shelf, session))

    async def keep(self, session: Session) -> None:
        """After Sessions.open, before the client hears of it: have every process know it.

        Raises StoreUnavailable; then there is no session.
        """
        shelf = self._shelf
        if shelf is None:
            return
        shelf.start()
        try:
            await self._begin_to_look(shelf)
            document = papers.sealed(session, token_bytes(papers.NONCE_BYTES))
            key, group = papers.session_key(session.id), papers.group_of(session.owner)
            await shelf.put(self._kind, key, document, group)
        except BaseException:
            self.local.close(session)
            raise
        self._known(session)

    async def end(self, session: Session) -> None:
        """Instead of Sessions.close: end it here and everywhere.

        Raises StoreUnavailable; then it has ended here, and elsewhere as soon as the store serves.
        """
        self.local.close(session)
        if self._shelf is not None:
            key = papers.session_key(session.id)
            self._ids.pop(key, None)
            self._shelf.start()
            await self._shelf.drop(self._kind, key)

    def end_soon(self, session: Session) -> None:
        """As `end`, without waiting."""
        self.local.close(session)
        if self._shelf is not None:
            self._spawn(self.end(session))

    async def keep_question(self, session: Session, question: Id) -> None:
        """Before the client sees a question: have its answer come in through any process."""
        if self._shelf is None:
            return
        keys = papers.question_key(session.id, question), papers.session_key(session.id)
        try:
            await self._shelf.put(QUESTIONS, keys[0], b"", keys[1])
        except StoreUnavailable:
            return  # then it has to come through this one
        session.questions.put(typed(question), True)

    async def bring_question(self, session: Session, question: Id) -> None:
        """Before an answer is judged: is the question open? Of several answers one hears yes."""
        if self._shelf is None or session.questions.get(typed(question)) is False:
            return
        try:
            is_open = await self._shelf.drop(QUESTIONS, papers.question_key(session.id, question))
        except StoreUnavailable:
            return  # what this process knows has to do
        if is_open:
            session.questions.put(typed(question), True)
        else:
            session.questions.take(typed(question))

    async def keep_task(self, principal: Principal, server: str, task_id: str, tool: str) -> None:
        """After Sessions.begin_task: have every process know it. Not raised if the store is away:

        the tool has run, and its client has to hear of it; then only this process knows the task.
        """
        if self._shelf is not None:
            self._shelf.start()
            owner = owner_of(principal)
            document, group = papers.begun(owner, tool), papers.group_of(owner)
            with suppress(StoreUnavailable):
                await self._shelf.put(TASKS, papers.task_key(server, task_id), document, group)

    async def bring_task(
        self, principal: Principal, servers: Collection[str], task_id: object
    ) -> None:
        """Before a message about a task is judged, for each server it may be of.

        Raises StoreUnavailable.
        """
        if self._shelf is None or not isinstance(task_id, str):
            return
        owner = owner_of(principal)
        for server in servers:
            if self.local.task_tool(principal, server, task_id) is None:
                self._shelf.start()
                document = await self._shelf.get(TASKS, papers.task_key(server, task_id))
                tool = papers.tool_begun(document, owner) if document is not None else None
                if tool is not None:
                    self.local.begin_task(principal, server, task_id, tool)

    async def bring_tasks(
        self, principal: Principal, server: str, task_ids: Sequence[object]
    ) -> None:
        """Before a list of tasks is filtered. Raises StoreUnavailable."""
        unknown = [
            task_id
            for task_id in task_ids
            if isinstance(task_id, str) and self.local.task_tool(principal, server, task_id) is None
        ]
        if self._shelf is None or not unknown:
            return
        self._shelf.start()
        owner = owner_of(principal)
        theirs = await self._shelf.group(TASKS, papers.group_of(owner))
        for task_id in unknown:
            document = theirs.get(papers.task_key(server, task_id))
            tool = papers.tool_begun(document, owner) if document is not None else None
            if tool is not None:
                self.local.begin_task(principal, server, task_id, tool)

    async def close(self) -> None:
        """Look no more, and let go of the store."""
        if self._timer is not None:
            self._timer.cancel()
        if self._shelf is not None:
            await self._shelf.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _fetch(self, shelf: Shelf, session_id: str, principal: Principal) -> None:
        shelf.start()
        await self._begin_to_look(shelf)
        document = None
        for _ in range(_MOST_TRIES):
            # What ended while we read of it was told to a look that did not know it yet.
            mark, document = self._mark, await shelf.get(self._kind, papers.session_key(session_id))
            if mark == self._mark:
                break
        session = None if document is None else papers.unsealed(session_id, document)
        if session is None or session.owner != owner_of(principal):
            return
        if self.local.peek(session_id) is None:
            self.local.adopt(session, self._clock.monotonic_s())
            self._known(session)

    def _known(self, session: Session) -> None:
        session.touched_s = self._clock.monotonic_s()
        if len(self._ids) > 2 * len(self.local) + _SPARE_KEYS:
            self._ids = {k: one for k, one in self._ids.items() if self.local.peek(one)}
        self._ids[papers.session_key(session.id)] = session.id
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.local.expire(self._clock.monotonic_s())
        if self._shelf is not None and len(self.local):
            self._spawn(self._look(self._shelf))
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._tick)

    async def _begin_to_look(self, shelf: Shelf) -> None:
        """Whatever is known must have been heard of after a first look."""
        if self._mark is None and not await self._look(shelf):
            raise StoreUnavailable("sessions cannot be read")

    async def _look_again(self, shelf: Shelf, now_s: float) -> None:
        if not shelf.degraded and await self._look(shelf):
            return
        if now_s - self._looked_s > GRACE_S:
            raise StoreUnavailable("sessions were not heard of for too long")

    async def _look(self, shelf: Shelf) -> bool:
        """What ended elsewhere ends here; whether the store answered. One look at a time."""
        if self._looking is None or self._looking.done():
            self._looking = self._spawn(self._heard(shelf))
        return await asyncio.shield(self._looking)

    async def _heard(self, shelf: Shelf) -> bool:
        began_s = self._clock.monotonic_s()
        try:
            news = await shelf.news(self._kind, self._mark)
        except StoreUnavailable:
            return False
        self._mark, self._looked_s = news.mark, began_s
        for key in list(self._ids) if news.changed is None else news.changed:
            session_id = self._ids.pop(key, None)
            session = self.local.peek(session_id) if session_id is not None else None
            if session is not None:
                self.local.close(session)
        return True

    async def _touch(self, shelf: Shelf, session: Session) -> None:
        if not await shelf.touch(self._kind, papers.session_key(session.id)):
            self.local.close(session)

    def _spawn(self, work: Coroutine[object, object, _T]) -> "asyncio.Task[_T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(task.exception(), StoreUnavailable):
            return  # the store says in the log that it is away


__all__ = ["FRESH_S", "GRACE_S", "LOOK_S", "ToolSessions"]
