"""Several worlds of one gateway: a store for sessions that they share, and that can be away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.app.mcp_world import World, ask
from tests.app.test_tool_traffic_sessions import Stateful
from tests.app.virtual import clock_here, run_timeless
from tests.contract.shelf.shelves import Model
from tidegate.errors import StoreUnavailable
from tidegate.mcp.shelf import Kind, Mark, News
from tidegate.testing.asgi import ASGIExchange

LIST = ask("tools/list")


class SharedStore:
    """What lies there, for the shelves of all processes."""

    def __init__(self) -> None:
        self.clock = clock_here()
        self.models: dict[str, Model] = {}
        self.away = False
        self.book = 1
        self.asked: list[tuple[str, str]] = []

    def shelf(self) -> "SharedShelf":
        """For one more process."""
        return SharedShelf(self)

    def model(self, kind: Kind, word: str) -> Model:
        """The documents of a kind; raises StoreUnavailable."""
        self.asked.append((word, kind.name))
        if self.away:
            raise StoreUnavailable("away")
        model = self.models.setdefault(kind.name, Model(kind))
        model.now_s = self.clock.monotonic_s()
        return model

    @property
    def written(self) -> bytes:
        """Everything that somebody finds who reads the store."""
        found = [
            (key + document.group).encode() + document.value
            for model in self.models.values()
            for key, document in model.documents.items()
        ]
        return b"".join(found)


class SharedShelf:
    """A Shelf of one process."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store
        self.hold: asyncio.Event | None = None
        self.held = asyncio.Event()
        self._failed = False
        self._owed: list[tuple[Kind, str]] = []

    @property
    def degraded(self) -> bool:
        """See Shelf: whoever looks finds that it has mended by itself."""
        if self._failed and not self.store.away:
            self._serve()
        return self._failed

    def start(self) -> None:
        """See Shelf."""

    async def close(self) -> None:
        """See Shelf."""

    def _model(self, kind: Kind, word: str) -> Model:
        try:
            model = self.store.model(kind, word)
        except StoreUnavailable:
            self._failed = True
            raise
        self._serve()
        return model

    def _serve(self) -> None:
        self._failed = False
        owed, self._owed = self._owed, []
        for kind, key in owed:
            self.store.model(kind, "owed").drop(key)

    async def get(self, kind: Kind, key: str) -> bytes | None:
        """See Shelf; what was read is told when `hold` is over."""
        found = self._model(kind, "get").get(key)
        if self.hold is not None:
            self.held.set()
            await self.hold.wait()
        return found

    async def put(self, kind: Kind, key: str, value: bytes, group: str) -> None:
        """See Shelf."""
        self._model(kind, "put").put(key, value, group)

    async def touch(self, kind: Kind, key: str) -> bool:
        """See Shelf."""
        return self._model(kind, "touch").touch(key)

    async def drop(self, kind: Kind, key: str) -> bool:
        """See Shelf."""
        try:
            return self._model(kind, "drop").drop(key)
        except StoreUnavailable:
            self._owed.append((kind, key))
            raise

    async def group(self, kind: Kind, group: str) -> Mapping[str, bytes]:
        """See Shelf."""
        return self._model(kind, "group").group(group)

    async def news(self, kind: Kind, mark: Mark | None) -> News:
        """See Shelf."""
        changes = self._model(kind, "news").changes
        now = Mark(self.store.book, len(changes))
        if mark is None or mark.book != now.book:
            return News(now, None)
        return News(now, frozenset(changes[mark.number :]))


class Crew:
    """Two processes, and what they share."""

    def __init__(self, server: Any) -> None:
        self.server, self.store = server, SharedStore()
        self.worlds: list[World] = []
        self.one, self.other = self.more(), self.more()

    def more(self) -> World:
        """One more process."""
        self.worlds.append(World(self.server, shelf=self.store.shelf()))
        return self.worlds[-1]


@asynccontextmanager
async def crew(server: Any = None) -> AsyncIterator[Crew]:
    here = Crew(server or Stateful())
    yield here
    for world in here.worlds:
        await world.traffic.relay.shared.close()


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def awaited() -> None:
        await body()

    run_timeless(awaited())


async def pass_time(seconds: float) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


async def delete(world: World, session: str, role: str = "viewer") -> ASGIExchange:
    exchange = world.exchange(b"", role=role, method="DELETE", mcp_session_id=session)
    async with exchange:
        await exchange.read()
    return exchange


async def used(world: World, session: str, role: str = "viewer") -> int:
    """The status of a request in the session."""
    return (await world.post(LIST, role=role, mcp_session_id=session)).status
