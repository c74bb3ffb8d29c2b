"""How do gateways on many machines share small documents?

Lives here: the shelf on a Redis or Valkey server: what is said and what an answer means. Does not
live here: what is done there (shelf.lua), the connection and waiting (limits.redis_line and
redis_pipe), whether a server may be used (limits.redis_fitness).
"""

import hashlib
import secrets
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from tidegate.errors import StoreUnavailable
from tidegate.limits.redis_fitness import fit_line
from tidegate.limits.redis_line import ErrorReply, Line, LineLost
from tidegate.limits.redis_pipe import Job, Pipe, ask
from tidegate.limits.redis_script import command
from tidegate.mcp.shelf import MAX_NEWS, MAX_VALUE_BYTES, Kind, Mark, News

_PROBE_S: Final = 1.0
_NO_BOOK: Final = "-"


class RedisShelf:
    """A Shelf on the server at `url`, shared by any number of processes and machines.

    Needs what RedisLedger needs, and as durable as that. No call waits longer than about
    `deadline_s`; at once it raises while the server is away.
    """

    def __init__(self, url: str, *, deadline_s: float = 0.25, prefix: str = "tidegate") -> None:
        self._url, self._deadline_s = url, deadline_s
        self._prefix = f"{prefix}:shelf"
        self._source = (files("tidegate.mcp") / "shelf.lua").read_text("utf-8")
        self._digest = hashlib.sha1(self._source.encode(), usedforsecurity=False).hexdigest()
        self._pipe: Pipe | None = None

    @property
    def degraded(self) -> bool:
        """See Shelf.degraded."""
        return self._pipe is None or self._pipe.is_away

    def start(self) -> None:
        """See Shelf.start."""
        if self._pipe is None:
            load = [command("SCRIPT", "LOAD", self._source)]
            self._pipe = Pipe(self._dial, load, deadline_s=self._deadline_s, name="session")
            self._pipe.start()

    async def close(self) -> None:
        """See Shelf.close."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            await pipe.close()

    async def get(self, kind: Kind, key: str) -> bytes | None:
        """See Shelf.get."""
        said = await self._reply(command("HGET", f"{self._prefix}:{kind.name}:i:{key}", "v"))
        if said is None or isinstance(said, bytes):
            return said
        raise StoreUnavailable("UnknownAnswer")

    async def put(self, kind: Kind, key: str, value: bytes, group: str) -> None:
        """See Shelf.put."""
        if len(value) > MAX_VALUE_BYTES:
            raise ValueError("too large a document")
        await self._reply(self._call("put", kind, key, value, group))

    async def touch(self, kind: Kind, key: str) -> bool:
        """See Shelf.touch."""
        return await self._reply(self._call("touch", kind, key)) == 1

    async def drop(self, kind: Kind, key: str) -> bool:
        """See Shelf.drop."""
        return await self._reply(self._call("drop", kind, key), must_happen=True) == 1

    async def group(self, kind: Kind, group: str) -> Mapping[str, bytes]:
        """See Shelf.group."""
        match await self._reply(self._call("group", kind, group)):
            case list(said) if all(isinstance(word, bytes) for word in said):
                return {
                    key.decode(): value for key, value in zip(said[::2], said[1::2], strict=True)
                }
            case _:
                raise StoreUnavailable("UnknownAnswer")

    async def news(self, kind: Kind, mark: Mark | None) -> News:
        """See Shelf.news."""
        book, number = (_NO_BOOK, 0) if mark is None else mark
        match await self._reply(self._call("news", kind, book, number)):
            case [bytes(book_said), bytes(told)]:
                return News(Mark(int(book_said), int(told)), None)
            case [bytes(book_said), bytes(told), list(keys)]:
                changed = frozenset(key.decode() for key in keys)
                return News(Mark(int(book_said), int(told)), changed)
            case _:
                raise StoreUnavailable("UnknownAnswer")

    def _call(self, done: str, kind: Kind, *words: str | bytes | int) -> bytes:
        bounds = (round(kind.live_s * 1_000), kind.most, kind.most_of_group, MAX_NEWS)
        base = f"{self._prefix}:{kind.name}"
        fresh = secrets.randbits(48)
        return command("EVALSHA", self._digest, 1, base, done, *bounds, fresh, *words)

    async def _reply(self, said: bytes, *, must_happen: bool = False) -> object:
        pipe = self._pipe
        if pipe is None:
            raise StoreUnavailable("session store not open", retry_after_s=None)
        return await pipe.reply(Job(said, must_happen=must_happen))

    async def _dial(self) -> Line:
        """A connection that serves, as Pipe wants it; raises LineLost."""
        step_s = max(self._deadline_s, _PROBE_S)
        return await fit_line(self._url, step_s, teach=lambda line: self._teach(line, step_s))

    async def _teach(self, line: Line, timeout_s: float) -> None:
        for reply in await ask(line, [command("SCRIPT", "LOAD", self._source)], timeout_s):
            if isinstance(reply, ErrorReply):
                raise LineLost(reply.kind)


__all__ = ["RedisShelf"]
