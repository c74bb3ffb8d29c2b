"""How do gateways on many machines share one set of books?

Lives here: the ledger on a Redis or Valkey server as seen from the event loop: what is asked,
whether this server may keep the books at all, and what time it is there. Does not live here:
what is decided (lua/, which must agree with books and window), the pipeline (redis_pipe), the
words (redis_script), what holds while the server is away (degraded).
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import books
from tidegate.limits.ledger import Charge, Granted, Limit, Need, NeverFits, Refused, Usage
from tidegate.limits.redis_fitness import Unfit, fit_line, meaning_of
from tidegate.limits.redis_line import ErrorReply, Line, LineLost
from tidegate.limits.redis_pipe import Job, Pipe, ask
from tidegate.limits.redis_script import (
    TOLERANCE_US,
    Answer,
    Forgotten,
    GaveUp,
    How,
    Moment,
    Speech,
    UnknownAnswer,
    answer,
    command,
    greeting,
    moved_of,
    usage_of,
    verdict,
)
from tidegate.limits.storetime import ALARM_S

logger = logging.getLogger(__name__)

BEAT_S = 5.0
_MEMBER_US = round(3 * BEAT_S * 1_000_000)
_OPEN_S = 5.0
_PROBE_S = 1.0
_MOST_TRIES = 3
_AT_ONCE = 256


class RedisLedger:
    """A Ledger on the server at `url`, shared by any number of processes and machines.

    Needs Redis or Valkey >= 6.2, one primary, `appendonly yes`. No call waits longer than about
    `deadline_s`: then StoreUnavailable, at once from then on, until the server serves again. As
    durable as its append-only file. Time is the server's; the clock only measures how long
    things take here. `given_us` replaces the server's clock (for tests). `joins` is False for
    one who only looks: it then does not count as a process that shares the limits.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        deadline_s: float = 0.25,
        prefix: str = "tidegate",
        given_us: Callable[[], int] | None = None,
        joins: bool = True,
    ) -> None:
        self._url = url
        self._clock = clock
        self._deadline_s = deadline_s
        self._speech = Speech(prefix)
        self._given_us = given_us
        self._member = secrets.token_hex(16) if joins else None
        self._pipe: Pipe | None = None
        self._beating: asyncio.TimerHandle | None = None
        self._offset_us: int | None = None
        self._books: int | None = None
        self._longest_us = 0
        self._forgot_us: int | None = None
        self._refused = ""
        self._joined_us = 0
        self.sharers = 1
        """How many processes share this store, as far as was heard last."""

    @property
    def degraded(self) -> bool:
        """Whether the server failed to answer last, or nothing is open; it is asked again."""
        return self._pipe is None or self._pipe.is_away

    @property
    def clock_ahead_s(self) -> float:
        """How far our wall clock is ahead of store time; 0.0 within ALARM_S, or not known."""
        if self._offset_us is None:
            return 0.0
        store_us = self._offset_us + self._monotonic_us()
        ahead_s = (round(self._clock.now_s() * 1_000_000) - store_us) / 1_000_000
        return ahead_s if abs(ahead_s) > ALARM_S else 0.0

    async def open(self) -> None:
        """Connect and see that this server may keep the books; raises StoreUnavailable."""
        if self._pipe is not None:
            return
        try:
            line = await fit_line(
                self._url, _OPEN_S, warns=True, teach=lambda line: self._greet(line, _OPEN_S)
            )
        except LineLost as error:
            raise StoreUnavailable(meaning_of(error)) from error
        self._pipe = Pipe(self._redial, self._speech.load(), deadline_s=self._deadline_s)
        self._pipe.start(line)
        self._beat_later()

    async def close(self) -> None:
        """Hear what is still due, leave, hang up. Idempotent."""
        pipe, self._pipe = self._pipe, None
        if self._beating is not None:
            self._beating.cancel()
        if pipe is None:
            return
        if self._member is not None and not pipe.is_away:
            pipe.submit(Job(self._speech.greet(self._member, 0, self._moment(), _fresh())))
        await pipe.close()

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        if len({charge.limit.name for charge in charges}) < len(charges):
            raise ValueError("a limit may be charged once")
        lease, lease_us = (reservation_id, owner), round(lease_s * 1_000_000)
        windows = (charge.limit.window_us for charge in charges)
        self._longest_us = max(self._longest_us, lease_us, *windows)
        said = await self._said(
            lambda: Job(
                self._speech.reserve(lease, charges, lease_us, self._moment()),
                undo=lambda: self._speech.finish(lease, "undo", moment=self._moment()),
            )
        )
        try:
            return verdict(said, reservation_id, charges)
        except (GaveUp, UnknownAnswer) as error:
            raise StoreUnavailable(type(error).__name__) from error

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return await self._finish(
            reservation_id, owner, "stand" if need is None else "settle", need
        )

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return await self._finish(reservation_id, owner, "release", None)

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        said = await self._said(lambda: Job(self._speech.usage(limit, scope_key, self._moment())))
        try:
            return usage_of(said, limit)
        except UnknownAnswer as error:
            raise StoreUnavailable(type(error).__name__) from error

    async def usages(self, counters: Sequence[tuple[Limit, str]]) -> list[Usage]:
        """`usage` of each. Together, but so few that other callers find room and time."""
        found = list[Usage]()
        for some in (counters[at : at + _AT_ONCE] for at in range(0, len(counters), _AT_ONCE)):
            found += await asyncio.gather(*(self.usage(*counter) for counter in some))
        return found

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes. Walks over every key of the database."""
        keys, cursor = set[str](), "0"
        while True:
            job = Job(command("SCAN", cursor, "MATCH", self._speech.pattern, "COUNT", 1_000))
            match await self._reply(job):
                case [bytes(following), list(page)]:
                    keys.update(key.decode() for key in page)
                    cursor = following.decode()
                case _:
                    raise StoreUnavailable("UnknownAnswer")
            if cursor == "0":
                break
        return books.scopes(map(self._speech.counter_of, keys), limits)

    async def _finish(self, reservation_id: str, owner: str, how: How, need: Need | None) -> bool:
        job = Job(self._speech.finish((reservation_id, owner), how, need), must_happen=True)
        return await self._reply(job) == 1

    async def _said(self, job: Callable[[], Job]) -> Answer:
        for _ in range(_MOST_TRIES):
            asked_us = self._monotonic_us()
            try:
                said = answer(await self._reply(job()))
                moved_us = moved_of(said)
            except Forgotten as error:
                self._note_forgotten()
                raise StoreUnavailable(type(error).__name__) from error
            except UnknownAnswer as error:
                raise StoreUnavailable(type(error).__name__) from error
            if moved_us is None:
                self._note_time(said, asked_us)
                return said
            if (retiming := self._retiming(said, moved_us)) is not None:
                self._note_retimed(await self._reply(Job(retiming[0])), retiming[1])
        raise StoreUnavailable("the clock of the server does not stand still")

    async def _reply(self, job: Job) -> object:
        if self._pipe is None:
            raise StoreUnavailable("ledger not open", retry_after_s=None)
        return await self._pipe.reply(job)

    def _moment(self) -> Moment:
        newest = None if self._offset_us is None else self._offset_us + self._monotonic_us()
        given = None if self._given_us is None else self._given_us()
        return Moment(newest, given, self._books)

    def _retiming(self, said: Answer, moved_us: int) -> tuple[bytes, int] | None:
        """What moves store time back and by how much, if the clock of the server is ahead.

        It is not if as much time has passed here: then the command was late, not the clock.
        """
        if self._offset_us is None or self._member is None:
            self._offset_us = None
            return None
        ahead_us = said.now_us - self._offset_us - self._monotonic_us()
        if ahead_us <= TOLERANCE_US:
            return None
        return self._speech.retime(moved_us, moved_us - ahead_us), ahead_us

    def _note_retimed(self, reply: object, ahead_us: int) -> None:
        if reply == 1:
            extra = {"ahead_s": round(ahead_us / 1_000_000, 3)}
            logger.warning("store_clock_stepped", extra=extra)

    def _note_forgotten(self) -> None:
        """What was admitted is not in these books: they would admit it again.

        None of it counts any more once the longest window is over; until then the store is away.
        """
        if self._forgot_us is None:
            self._forgot_us = self._monotonic_us()
        if self._pipe is not None:
            self._pipe.drop("Forgotten")

    def _forgive(self) -> None:
        if self._forgot_us is not None:
            passed_us = self._monotonic_us() - self._forgot_us
            if passed_us > self._longest_us:
                self._books = self._forgot_us = None

    def _note_time(self, said: Answer, asked_us: int) -> None:
        # By the moment of asking: what we take for the newest plausible time must not be early.
        self._offset_us = said.now_us - asked_us
        if abs(said.moved_us) > ALARM_S * 1_000_000:
            ahead_s = round(-said.moved_us / 1_000_000, 3)
            logger.warning("store_clock_stepped", extra={"ahead_s": ahead_s})

    def _monotonic_us(self) -> int:
        return round(self._clock.monotonic_s() * 1_000_000)

    async def _redial(self) -> Line:
        """A connection that serves, as Pipe wants it; raises LineLost."""
        step_s = max(self._deadline_s, _PROBE_S)

        async def meet(line: Line) -> None:
            self._forgive()
            await self._greet(line, step_s)

        try:
            line = await fit_line(self._url, step_s, teach=meet)
        except LineLost as lost:
            self._note_refused(lost)
            raise
        self._refused, self._forgot_us = "", None
        return line

    def _note_refused(self, lost: LineLost) -> None:
        """A server that answers and is not taken will not mend by itself: say so, once."""
        is_refused = isinstance(lost, Unfit) or lost.kind == "Forgotten"
        if is_refused and self._refused != lost.kind:
            self._refused = lost.kind
            logger.error("ledger_store_refused", extra={"error": lost.kind})

    async def _greet(self, line: Line, timeout_s: float) -> None:
        """Teach it the scripts, and see with one of them that it takes writes."""
        asked_us = self._joined_us = self._monotonic_us()
        commands = self._speech.load()
        if self._member is not None:
            moment = self._moment()
            commands.append(self._speech.greet(self._member, _MEMBER_US, moment, _fresh()))
        replies = await ask(line, commands, timeout_s)
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise LineLost(reply.kind)
        if self._member is not None:
            retiming = self._note_greeting(replies[-1], asked_us)
            if retiming is not None:
                (reply,) = await ask(line, [retiming[0]], timeout_s)
                self._note_retimed(reply, retiming[1])

    def _note_greeting(self, reply: object, asked_us: int) -> tuple[bytes, int] | None:
        """See _retiming; raises LineLost."""
        try:
            said = answer(reply)
            moved_us = moved_of(said)
            if moved_us is not None:
                return self._retiming(said, moved_us)
            heard, self._books = greeting(said)
            self._note_sharers(heard)
        except UnknownAnswer as error:
            raise LineLost("UnknownAnswer") from error
        except Forgotten as error:
            self._note_forgotten()
            raise LineLost("Forgotten") from error
        self._note_time(said, asked_us)
        return None

    def _note_sharers(self, heard: int) -> None:
        """They are fewer only once all had the time to say again that they are there.

        After a loss the first who is back would else take itself for the only one.
        """
        is_settled = self._monotonic_us() - self._joined_us >= BEAT_S * 1_000_000
        self.sharers = heard if is_settled else max(self.sharers, heard)

    def _beat_later(self) -> None:
        if self._member is not None:
            self._beating = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        self._beat_later()
        if self._pipe is None or self._pipe.is_away or self._member is None:
            return
        asked_us = self._monotonic_us()
        job = Job(self._speech.greet(self._member, _MEMBER_US, self._moment(), _fresh()))

        def heard(future: "asyncio.Future[object]") -> None:
            if future.cancelled() or future.exception() is not None:
                return
            try:
                # A clock that was set is left to the next who asks for something.
                self._note_greeting(future.result(), asked_us)
            except LineLost as lost:
                if self._pipe is not None:
                    self._pipe.drop(lost.kind)

        job.future.add_done_callback(heard)
        self._pipe.submit(job)


def _fresh() -> int:
    """A number for books that have none."""
    return secrets.randbelow(2**52) + 1


__all__ = ["BEAT_S", "RedisLedger"]
