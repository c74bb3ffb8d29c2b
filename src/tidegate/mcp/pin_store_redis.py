"""How do gateways on many machines share pins?

Lives here: the pins on a Redis or Valkey server, in two hashes without a time limit. Does not
live here: the connection and waiting (limits.redis_line and redis_pipe), whether this server may
keep anything at all (limits.redis_fitness), what a book means (pins).
"""

import asyncio
from typing import Final

from tidegate.errors import StoreUnavailable
from tidegate.limits.redis_fitness import fit_line, meaning_of
from tidegate.limits.redis_line import Line, LineLost
from tidegate.limits.redis_pipe import Job, Pipe
from tidegate.limits.redis_script import command
from tidegate.mcp.pin_store import UNREADABLE, Kept, decode, encode, fresh_mark
from tidegate.mcp.pins import Book

_PROBE_S: Final = 1.0
_BOOK_S: Final = 5.0
"""A book may be megabytes; it travels when it has changed and at no other time."""

_BOTH: Final = """
return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[2], ARGV[1])}
"""
"""At once: a mark belongs to its book."""

_KEEP: Final = """
local mark = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
if mark == ARGV[3] then return 1 end
if mark ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
"""May be said twice, when the connection was lost before its answer came: a mark is one's own."""


class RedisPins:
    """A PinStore on the server at `url`, shared by any number of processes and machines.

    A look at the marks takes `deadline_s` at most, a book 5 s, the first connection 2 s; while
    the server is away every call raises at once. As durable as the append-only file there.
    """

    def __init__(self, url: str, *, deadline_s: float = 0.25, prefix: str = "tidegate") -> None:
        self._marks, self._books = f"{prefix}:pins:marks", f"{prefix}:pins:books"
        # Two connections: nobody who looks waits behind a book.
        self._looks = _Way(url, deadline_s)
        self._transfers = _Way(url, max(deadline_s, _BOOK_S))

    async def marks(self) -> dict[str, int]:
        """See PinStore.marks."""
        reply = await self._looks.ask(command("HGETALL", self._marks))
        if not isinstance(reply, list) or len(reply) % 2:
            raise StoreUnavailable(UNREADABLE)
        return {_text(reply[at]): _number(reply[at + 1]) for at in range(0, len(reply), 2)}

    async def read(self, server: str) -> Kept | None:
        """See PinStore.read."""
        match await self._transfers.ask(self._script(_BOTH, server)):
            case [None, _]:
                return None
            case [mark, document]:
                return Kept(_number(mark), decode(document))
            case _:
                raise StoreUnavailable(UNREADABLE)

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        """See PinStore.write."""
        mark = fresh_mark()
        reply = await self._transfers.ask(self._script(_KEEP, server, was, mark, encode(book)))
        if reply not in (0, 1):
            raise StoreUnavailable(UNREADABLE)
        return mark if reply == 1 else None

    async def close(self) -> None:
        """See PinStore.close."""
        await asyncio.gather(self._looks.close(), self._transfers.close())

    def _script(self, script: str, *words: str | bytes | int) -> bytes:
        return command("EVAL", script, 2, self._marks, self._books, *words)


class _Way:
    """One connection on which an answer may take `deadline_s`, made with the first question."""

    def __init__(self, url: str, deadline_s: float) -> None:
        self._url, self._deadline_s = url, deadline_s
        self._pipe: Pipe | None = None
        self._opening = asyncio.Lock()
        self._lost = LineLost("ConnectionClosed")

    async def ask(self, said: bytes) -> object:
        """The reply. Raises StoreUnavailable, with a reason for the operator."""
        pipe = self._pipe or await self._open()
        if pipe.is_away:
            raise StoreUnavailable(meaning_of(self._lost))
        try:
            return await pipe.reply(Job(said))
        except StoreUnavailable as error:
            if error.detail != self._lost.kind:
                self._lost = LineLost(error.detail)
            raise StoreUnavailable(meaning_of(self._lost)) from None

    async def close(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            await pipe.close()

    async def _open(self) -> Pipe:
        async with self._opening:
            if self._pipe is None:
                pipe = Pipe(self._dial, (), deadline_s=self._deadline_s, name="pins")
                try:
                    # A deadline of an answer is too short for all that a connection takes.
                    line = await self._dial()
                except LineLost:
                    line = None
                pipe.start(line)
                self._pipe = pipe
            return self._pipe

    async def _dial(self) -> Line:
        """A connection that serves, as Pipe wants it; raises LineLost."""
        try:
            return await fit_line(self._url, max(self._deadline_s, _PROBE_S))
        except LineLost as lost:
            self._lost = lost
            raise


def _text(reply: object) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


def _number(reply: object) -> int:
    try:
        return int(_text(reply))
    except ValueError:
        raise StoreUnavailable(UNREADABLE) from None


__all__ = ["RedisPins"]
