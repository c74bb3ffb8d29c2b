"""How do gateways on many machines share pins?

Lives here: the pins on a Redis or Valkey server, in two hashes without a time limit. Does not
live here: the connection (limits.redis_line), whether this server may keep anything at all
(limits.redis_fitness), what a book means (pins).
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from tidegate.errors import StoreUnavailable
from tidegate.limits.redis_fitness import inspect, meaning_of
from tidegate.limits.redis_line import DriverMissing, ErrorReply, Line, LineLost, dial
from tidegate.limits.redis_pipe import ask
from tidegate.limits.redis_script import command
from tidegate.mcp.pin_store import UNREADABLE, Kept, decode, encode, fresh_mark
from tidegate.mcp.pins import Book

_DIAL_S: Final = 2.0
_BOOK_S: Final = 5.0
"""A book may be megabytes; it travels when it has changed and at no other time."""

_KEEP: Final = """
local mark = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
if mark ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


class RedisPins:
    """A PinStore on the server at `url`, shared by any number of processes and machines.

    A look at the marks takes `deadline_s` at most. As durable as the append-only file there.
    """

    def __init__(self, url: str, *, deadline_s: float = 0.25, prefix: str = "tidegate") -> None:
        self._url = url
        self._deadline_s = deadline_s
        self._marks, self._books = f"{prefix}:pins:marks", f"{prefix}:pins:books"
        self._line: Line | None = None
        self._turn = asyncio.Lock()

    async def marks(self) -> dict[str, int]:
        """See PinStore.marks."""
        (reply,) = await self._ask([command("HGETALL", self._marks)], self._deadline_s)
        if not isinstance(reply, list) or len(reply) % 2:
            raise StoreUnavailable(UNREADABLE)
        return {_text(reply[at]): _number(reply[at + 1]) for at in range(0, len(reply), 2)}

    async def read(self, server: str) -> Kept | None:
        """See PinStore.read."""
        both = [command("HGET", self._marks, server), command("HGET", self._books, server)]
        # In one transaction: a mark belongs to its book.
        said = await self._ask([command("MULTI"), *both, command("EXEC")], _BOOK_S)
        match said[-1]:
            case [None, _]:
                return None
            case [mark, document]:
                return Kept(_number(mark), decode(document))
            case _:
                raise StoreUnavailable(UNREADABLE)

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        """See PinStore.write."""
        mark = fresh_mark()
        words = ("EVAL", _KEEP, 2, self._marks, self._books, server, was, mark, encode(book))
        (reply,) = await self._ask([command(*words)], _BOOK_S)
        if reply not in (0, 1):
            raise StoreUnavailable(UNREADABLE)
        return mark if reply == 1 else None

    async def close(self) -> None:
        """See PinStore.close."""
        self._hang_up()

    async def _ask(self, commands: Sequence[bytes], timeout_s: float) -> list[object]:
        """One reply for each command. A line on which one failed is never used again."""
        async with self._turn:
            try:
                return await self._said(commands, timeout_s)
            except DriverMissing as error:
                raise StoreUnavailable("pip install 'tidegate[redis]'") from error
            except (LineLost, TimeoutError) as error:
                raise StoreUnavailable(meaning_of(error)) from error

    async def _said(self, commands: Sequence[bytes], timeout_s: float) -> list[object]:
        try:
            if self._line is None:
                self._line = await self._dialed()
            replies = await ask(self._line, commands, timeout_s)
            _check(replies)
        except BaseException:
            # Also when the caller leaves: the answer that comes then is not for the next one.
            self._hang_up()
            raise
        return replies

    async def _dialed(self) -> Line:
        line = await dial(self._url, max(self._deadline_s, _DIAL_S))
        try:
            await inspect(line, _DIAL_S, warns=False)
        except BaseException:
            line.abort()
            raise
        return line

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.abort()


def _check(replies: Sequence[object]) -> None:
    for reply in replies:
        if isinstance(reply, ErrorReply):
            raise LineLost(reply.kind)


def _text(reply: object) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


def _number(reply: object) -> int:
    try:
        return int(_text(reply))
    except ValueError:
        raise StoreUnavailable(UNREADABLE) from None


__all__ = ["RedisPins"]
