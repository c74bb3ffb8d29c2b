"""What does a test of pins in one process need: a store that fails, a server that changes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import StoreUnavailable
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pins.checked import Pins
from tidegate.gateway.pins.known import HERE, Where
from tidegate.mcp.pin_store import Kept, MemoryPins, PinStore
from tidegate.mcp.pins import Book, Mode, Verdicts, approve
from tidegate.testing.clock import ManualClock

if TYPE_CHECKING:
    from tidegate.clock import Clock

LOGGER = "tidegate.gateway.pins.checked"
TOLD = "tidegate.gateway.pins.told"
MODES: list[Mode] = ["warn", "block"]


def tools(**described: str) -> list[object]:
    return [{"name": name, "description": text} for name, text in described.items()]


class Store(MemoryPins):
    """One store for several processes that counts who looks, and fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.looks = 0
        self.reads = 0
        self.gate: asyncio.Event | None = None

    async def marks(self) -> dict[str, int]:
        self.looks += 1
        if self.gate is not None:
            await self.gate.wait()
        self._may_fail()
        return await super().marks()

    async def read(self, server: str) -> Kept | None:
        self.reads += 1
        self._may_fail()
        return await super().read(server)

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        self._may_fail()
        return await super().write(server, book, was=was)

    def lose(self) -> None:
        """As a Redis that was emptied."""
        self._books.clear()

    def _may_fail(self) -> None:
        if self.fails:
            raise StoreUnavailable("it is away")


@dataclass
class Server:
    """A server whose list is asked for."""

    shown: list[object]
    asked: int = 0
    error: Exception | None = None
    gate: asyncio.Event | None = None
    at: Where = HERE
    heard: bool = True

    def where(self) -> Where:
        return self.at

    def is_heard(self) -> bool:
        return self.heard

    async def __call__(self) -> list[object]:
        self.asked += 1
        shown = self.shown
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return shown


@dataclass
class World:
    """One process with the server `files`."""

    store: PinStore = field(default_factory=Store)
    server: Server = field(default_factory=lambda: Server(tools(read="first", write="first")))
    clock: ManualClock = field(default_factory=ManualClock)
    metrics: Metrics = field(default_factory=Metrics)
    names: tuple[str, ...] = ("files",)

    def __post_init__(self) -> None:
        clock: Clock = self.clock
        self.pins = Pins(self.store, clock, self.metrics, servers=lambda: self.names)

    async def call(self, tool: str = "read", mode: Mode = "block") -> Verdicts:
        return await self.pins.before_call("files", mode, tool, self.server)

    async def judge(
        self,
        shown: list[object],
        mode: Mode = "block",
        *,
        page: str | None = None,
        following: str | None = None,
    ) -> Verdicts:
        """`page` and `following` are cursors; without them it is the whole list."""
        at = self.server.at
        since = self.pins.since("files", at)
        return await self.pins.judge(
            "files", mode, shown, cursor=page, following=following, since=since, where=at
        )

    async def idle(self) -> None:
        """Wait until nothing is looked at beside a call any more."""
        tasks = [known.running for known in self.pins._known.values()]
        for task in (*tasks, self.pins._looking):
            if task is not None:
                await asyncio.wait((task,))
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop: whoever is told of it

    def beside(self) -> "World":
        """Another process on the same store, at the same time."""
        return World(self.store, self.server, self.clock)

    async def approve(self, *names: str) -> None:
        """As the command does, in another process."""
        kept = await self.store.read("files")
        assert kept is not None
        approved = approve(kept.book, names, now_s=self.clock.now_s())
        assert await self.store.write("files", approved, was=kept.mark)

    def counted(self, state: str) -> float:
        text = self.metrics.render()[1].decode()
        wanted = f'tidegate_tool_pins_total{{server="files",state="{state}"}} '
        found = [line for line in text.splitlines() if line.startswith(wanted)]
        return float(found[0].rpartition(" ")[2]) if found else 0.0


def run(body: Callable[[World], Awaitable[None]], world: World | None = None) -> None:
    async def main() -> None:
        chosen = world or World()
        try:
            await body(chosen)
        finally:
            await chosen.pins.close()

    asyncio.run(main())
