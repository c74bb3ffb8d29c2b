"""How do gateways on many machines share one set of books?

Lives here: the ledger on a Redis or Valkey server as seen from the event loop: what is asked,
whether this server may keep the books at all, and what time it is there. Does not live here:
what is decided (lua/, which must agree with books and window), the pipeline (redis_pipe), the
words (redis_script), what holds while the server is away (degraded).
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Sequence

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import books
from tidegate.limits.ledger import Charge, Granted, Limit, Need, NeverFits, Refused, Usage
from tidegate.limits.redis_line import DriverMissing, ErrorReply, Line, LineLost, dial
from tidegate.limits.redis_pipe import Job, Pipe, ask
from tidegate.limits.redis_script import (
    Answer,
    GaveUp,
    How,
    Moment,
    Speech,
    UnknownAnswer,
    answer,
    command,
    sharers_of,
    usage_of,
    verdict,
)
from tidegate.limits.storetime import ALARM_S

logger = logging.getLogger(__name__)

OLDEST = (6, 2)
BEAT_S = 5.0
_MEMBER_US = round(3 * BEAT_S * 1_000_000)
_OPEN_S = 5.0
_PROBE_S = 1.0

_MEANINGS = {
    "AuthenticationError": "it refuses this user and password",
    "AuthenticationWrongNumberOfArgsError": "it refuses this user and password",
    "NOAUTH": "it asks for a password, and the address has none",
    "AuthenticationRequired": "it asks for a password, and the address has none",
    "NoPermissionError": "this user may not run the commands that limits need",
    "NOPERM": "this user may not run the commands that limits need",
    "READONLY": "it is a replica; name the primary",
    "ReadOnlyError": "it is a replica; name the primary",
    "ResponseError": "it refuses the database number of the address",
    "LOADING": "it is still reading its data",
    "BusyLoadingError": "it is still reading its data",
    "OOM": "its memory is full",
    "OutOfMemoryError": "its memory is full",
    "ConnectionRefusedError": "nothing listens there",
    "gaierror": "its host name is not known",
    "SSLCertVerificationError": "its certificate is not trusted here",
    "SSLError": "it does not speak TLS as we do",
    "TimeoutError": "it does not answer",
}


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
            line = await dial(self._url, _OPEN_S)
            try:
                await self._inspect(line)
                await self._greet(line, _OPEN_S)
            except BaseException:
                line.abort()
                raise
        except DriverMissing as error:
            raise StoreUnavailable("pip install 'tidegate[redis]'", retry_after_s=None) from error
        except (LineLost, TimeoutError) as error:
            kind = error.kind if isinstance(error, LineLost) else "TimeoutError"
            raise StoreUnavailable(_MEANINGS.get(kind, kind)) from error
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
            job = Job(self._speech.greet(self._member, 0, self._moment()))
            pipe.submit(job)
        await pipe.close()

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        if len({charge.limit.name for charge in charges}) < len(charges):
            raise ValueError("a limit may be charged once")
        job = Job(
            self._speech.reserve(
                (reservation_id, owner), charges, round(lease_s * 1_000_000), self._moment()
            ),
            undo=lambda: self._speech.finish(
                (reservation_id, owner), "undo", moment=self._moment()
            ),
        )
        said = await self._said(job)
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
        said = await self._said(Job(self._speech.usage(limit, scope_key, self._moment())))
        try:
            return usage_of(said, limit)
        except UnknownAnswer as error:
            raise StoreUnavailable(type(error).__name__) from error

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

    async def _said(self, job: Job) -> Answer:
        asked_us = self._monotonic_us()
        try:
            said = answer(await self._reply(job))
        except UnknownAnswer as error:
            raise StoreUnavailable(type(error).__name__) from error
        self._note_time(said, asked_us)
        return said

    async def _reply(self, job: Job) -> object:
        if self._pipe is None:
            raise StoreUnavailable("ledger not open", retry_after_s=None)
        self._pipe.submit(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if self._pipe is not None:
                self._pipe.withdraw(job)
            raise

    def _moment(self) -> Moment:
        newest = None if self._offset_us is None else self._offset_us + self._monotonic_us()
        return Moment(newest, None if self._given_us is None else self._given_us())

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
        timeout_s = max(self._deadline_s, _PROBE_S)
        try:
            line = await dial(self._url, timeout_s)
        except TimeoutError:
            raise LineLost("TimeoutError") from None
        try:
            await self._greet(line, timeout_s)
        except BaseException:
            line.abort()
            raise
        return line

    async def _greet(self, line: Line, timeout_s: float) -> None:
        """Teach it the scripts, and see with one of them that it takes writes."""
        asked_us = self._monotonic_us()
        commands = self._speech.load()
        if self._member is not None:
            commands.append(self._speech.greet(self._member, _MEMBER_US, self._moment()))
        replies = await ask(line, commands, timeout_s)
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise LineLost(reply.kind)
        if self._member is not None:
            self._note_greeting(replies[-1], asked_us)

    def _note_greeting(self, reply: object, asked_us: int) -> None:
        try:
            said = answer(reply)
            self._note_time(said, asked_us)
            self.sharers = sharers_of(said)
        except UnknownAnswer as error:
            raise LineLost("UnknownAnswer") from error

    def _beat_later(self) -> None:
        if self._member is not None:
            self._beating = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        self._beat_later()
        if self._pipe is None or self._pipe.is_away or self._member is None:
            return
        asked_us = self._monotonic_us()
        job = Job(self._speech.greet(self._member, _MEMBER_US, self._moment()))

        def heard(future: "asyncio.Future[object]") -> None:
            if not future.cancelled() and future.exception() is None:
                self._note_greeting(future.result(), asked_us)

        job.future.add_done_callback(heard)
        self._pipe.submit(job)

    async def _inspect(self, line: Line) -> None:
        """Whether this server may keep the books; raises StoreUnavailable, LineLost."""
        info, append, memory = await ask(
            line,
            [
                command("INFO"),
                command("CONFIG", "GET", "appendonly"),
                command("CONFIG", "GET", "maxmemory*"),
            ],
            _OPEN_S,
        )
        if isinstance(info, ErrorReply) and info.kind in ("NOAUTH", "LOADING"):
            raise LineLost(info.kind)
        facts = dict(re.findall(r"^(\w+):(.*?)\r?$", _text(info), re.MULTILINE))
        _check_version(facts.get("redis_version", ""))
        if facts.get("redis_mode", "standalone") == "cluster":
            raise StoreUnavailable("it is a cluster; name a server that holds every key by itself")
        if facts.get("role") == "slave":
            raise LineLost("READONLY")
        _check_persistence(append)
        _check_eviction(memory)


def _check_version(version: str) -> None:
    found = re.match(r"([0-9]+)\.([0-9]+)", version)
    if found is None:
        logger.warning("store_version_unknown")
    elif tuple(map(int, found.groups())) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise StoreUnavailable(f"it is Redis {version}; tidegate needs {wanted} or newer")


def _check_persistence(reply: object) -> None:
    match reply:
        case [b"appendonly", b"yes"]:
            return
        case [b"appendonly", _]:
            raise StoreUnavailable(
                "appendonly is off there, so a restart would give every tenant a fresh quota; set"
                " `appendonly yes` in its configuration, or: redis-cli CONFIG SET appendonly yes"
            )
        case _:
            logger.warning("store_persistence_unknown")


def _check_eviction(reply: object) -> None:
    if not isinstance(reply, list) or len(reply) % 2:
        return
    facts = dict(zip(reply[::2], reply[1::2], strict=True))
    if facts.get(b"maxmemory", b"0") != b"0" and facts.get(b"maxmemory-policy") != b"noeviction":
        # Every key of ours has a time limit, so that any other policy may drop a full counter.
        logger.warning("store_may_evict")


def _text(reply: object) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


__all__ = ["BEAT_S", "OLDEST", "RedisLedger"]
