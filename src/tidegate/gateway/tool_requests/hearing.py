"""How do the messages of a server's stream reach a client that listens, and when is it over?

Lives here: one open stream: message by message through the stages, kept alive while nothing is
said, ended by either side or from outside. Does not live here: who may listen (streams), the
stages (answer).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.errors import TidegateError
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.servers.carrier import Exchange
from tidegate.gateway.tool_requests.answer import Answer, Shaper
from tidegate.gateway.tool_requests.client_side import COMMENT, event_of
from tidegate.gateway.tool_requests.relay import ToolRelay
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.jsonrpc import Id
from tidegate.mcp.answers import Ask, Incoming, Note, Reply, sort
from tidegate.mcp.stream_places import Mark, mark

if TYPE_CHECKING:
    from tidegate.mcp.sessions import Session

T = TypeVar("T")
_EARLY_S: Final = 0.01


class Over(Exception):
    """The stream ends, in good order. `why` is a constant word for the record."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Hearing:
    """One open stream; to be entered with `with`, so that it hears of the end of its session.

    `plan` is that of the call whose messages come. `name` is the stream's in the ids of its
    events. `beat` is called again and again, also while much is said, and raises what ends the
    stream. `is_current` says whether what it was opened under still holds; once it does not, no
    message passes.
    """

    def __init__(
        self,
        relay: ToolRelay,
        turn: Turn,
        plan: Plan,
        shaper: Shaper,
        *,
        name: str,
        beat: Callable[[], Awaitable[None]],
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        if turn.session is None:
            raise TypeError("nobody listens without a session")
        self.dropped = 0
        self._relay = relay
        self._turn = turn
        self._plan = plan
        self._session: Session = turn.session
        self.shaper = shaper
        self._name = name
        self._beat = beat
        self._is_current = is_current
        self._keep_alive_s = relay.times.keep_alive_s
        self._loop = asyncio.get_running_loop()
        self._beat_at_s = self._loop.time() + self._keep_alive_s
        self._over: asyncio.Future[str] = self._loop.create_future()

    def end(self, why: str) -> None:
        """End it, at the next turn of the loop."""
        if not self._over.done():
            self._over.set_result(why)

    def _session_ended(self) -> None:
        self.end("session_ended")

    def __enter__(self) -> "Hearing":
        self._session.on_end.add(self._session_ended)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.on_end.discard(self._session_ended)

    async def head(self, exchange: Exchange) -> tuple[int, Mapping[str, str]]:
        """Status and headers of the server. Raises ServerFailed and Over."""
        return await self._unless_over(exchange.head())

    async def pass_on(self, exchange: Exchange, sent_id: Id | None) -> tuple[Answer, Mark]:
        """Pass on what comes until it is the answer to `sent_id`, which is returned.

        Raises Over and ServerFailed; what the redactor raises about the answer.
        """
        while (arrived := await self._unless_over(exchange.read())) is not None:
            await self._beat_if_due()
            if not self._is_current():
                raise Over("configuration_changed")
            for incoming in arrived:
                answer = await self._take(incoming, sent_id)
                if answer is not None:
                    return answer, mark(self._session.secret, self._name, incoming)
        raise Over("server_ended")

    async def _take(self, incoming: Incoming, sent_id: Id | None) -> Answer | None:
        message = sort(incoming, sent_id)
        if message is None:
            if incoming.value is None and self.shaper.primes:
                await self._tell(b"", incoming)
            return None
        await self._relay.shared.learn(self.shaper, message)
        if isinstance(message, Note):
            self._relay.pins.heard(self._plan.server, message)
        size = incoming.size_bytes
        if isinstance(message, Reply):
            self.shaper.running.answered = True
            self._relay.offers.listed(self._turn, self._plan, message)
            self.shaper.pinned = await self._relay.pins.listed(self._plan, message)
            return await beside_the_loop(size, self.shaper.reply, message, 200)
        if (data := await self._shaped(size, message)) is not None:
            await self._tell(data, incoming)
        return None

    async def _shaped(self, size: int, message: Note | Ask) -> bytes | None:
        try:
            return await beside_the_loop(size, self.shaper.aside, message)
        except TidegateError:
            # The redactor: nothing unmasked leaves. To end the stream would bring the client back
            # to the same message.
            self.dropped += 1
            return None

    async def _tell(self, data: bytes, incoming: Incoming) -> None:
        told = mark(self._session.secret, self._name, incoming)
        if data or told.id is not None:
            await self._turn.responder.chunk(event_of(data, told))

    async def _beat_if_due(self) -> None:
        now_s = self._loop.time()
        # A timer may be a little early.
        if now_s >= self._beat_at_s - _EARLY_S:
            self._beat_at_s = now_s + self._keep_alive_s
            await self._beat()

    async def _unless_over(self, work: Awaitable[T]) -> T:
        """The result of `work`, unless the stream is over before; kept alive meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            while True:
                waiting = (task, self._over)
                await asyncio.wait(
                    waiting, timeout=self._keep_alive_s, return_when=asyncio.FIRST_COMPLETED
                )
                if self._over.done():
                    raise Over(self._over.result())
                if task.done():
                    return task.result()
                await self._beat_if_due()
                if self._turn.responder.started:
                    await self._turn.responder.chunk(COMMENT)
        finally:
            task.cancel()


__all__ = ["Hearing", "Over"]
