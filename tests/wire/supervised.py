"""What the tests of the supervisor share: a service that remembers what was done to it."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.wire.listening import answer
from tidegate.config import Config, ConfigInvalid, Problem, load_config
from tidegate.errors import StoreUnavailable
from tidegate.gateway.listener import WireCaps
from tidegate.gateway.settings import Companion, OnReady, Ready, Settings
from tidegate.gateway.supervise import Supervision
from tidegate.testing.asgi import WAIT_S


class Flags:
    def __init__(self) -> None:
        self.draining = False
        self.reload_failed = False


class Counts:
    def __init__(self) -> None:
        self.codes: list[str] = []
        self.failed_reloads = 0

    def refused(self, *, code: str) -> None:
        self.codes.append(code)

    def reload_failed(self) -> None:
        self.failed_reloads += 1


class FakeService:
    """`/hold` answers when `go` is set, or 503 when cut; everything else at once."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.readiness = Flags()
        self.metrics = Counts()
        self.go, self.holding, self.was_cut = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ignores_cut = False
        self.store_fails = False
        self.stale: tuple[str, ...] = ()
        self.reloaded: list[Config] = []
        self.reload_bug: Exception | None = None
        self.demo = True

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        status = 200
        if scope["path"] == "/hold":
            self.holding.set()
            go = asyncio.ensure_future(self.go.wait())
            cut = asyncio.ensure_future(self.was_cut.wait())
            try:
                await asyncio.wait((go, cut), return_when=asyncio.FIRST_COMPLETED)
            finally:
                go.cancel()
                cut.cancel()
            status = 200 if self.go.is_set() else 503
        await answer(send, b"main", status)

    async def admin(self, _scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, b"draining" if self.readiness.draining else b"ready")

    async def open(self) -> None:
        if self.store_fails:
            raise StoreUnavailable("the disk is gone")
        self.told.append("open")

    async def close(self) -> None:
        self.told.append("close")

    def let_go(self) -> None:
        self.told.append("let go")

    def cut(self) -> None:
        self.told.append("cut")
        if not self.ignores_cut:
            self.was_cut.set()

    def reload(self, config: Config) -> tuple[str, ...]:
        if self.reload_bug is not None:
            raise self.reload_bug
        if config.demo is not self.demo:
            raise ConfigInvalid([Problem(config.source, 0, 0, "demo", "switched", "restart")])
        self.reloaded.append(config)
        return self.stale


class Run:
    """One supervised run, in this process; `ready` once it accepts."""

    def __init__(self, service: FakeService, task: "asyncio.Task[int]") -> None:
        self.service, self.task = service, task
        self.accepts = asyncio.Event()
        self.addresses: Ready | None = None

    async def ready(self) -> Ready:
        waiting = asyncio.ensure_future(self.accepts.wait())
        await asyncio.wait(
            (waiting, self.task), timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED
        )
        assert self.addresses is not None
        return self.addresses

    async def code(self) -> int:
        async with asyncio.timeout(WAIT_S):
            return await self.task


def demo_config() -> Config:
    return load_config(None, {})


@asynccontextmanager
async def supervised(
    service: FakeService,
    *,
    load: Callable[[], Config] = demo_config,
    watch: Path | None = None,
    config: Config | None = None,
    companion: Companion | None = None,
    also: OnReady | None = None,
    **settings: Any,
) -> AsyncIterator[Run]:
    settings = {"port": 0, "admin_port": 0, "drain_s": WAIT_S, "poll_s": 0.005, **settings}
    settings = {"caps": WireCaps(linger_s=0.05), **settings}
    supervision = Supervision(service, Settings(**settings), load=load, watch=watch, config=config)

    async def on_ready(ready: Ready) -> None:
        run.addresses = ready
        run.accepts.set()
        if also is not None:
            await also(ready)

    serving = supervision.serve(companion=companion, on_ready=on_ready)
    run = Run(service, asyncio.create_task(serving))
    try:
        yield run
    finally:
        run.task.cancel()
        await asyncio.wait((run.task,), timeout=WAIT_S)


def send_signal(number: int) -> None:
    os.kill(os.getpid(), number)


TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP


async def until(true: Callable[[], bool], *, beside: Awaitable[object] | None = None) -> None:
    """Looks again a few times in each millisecond."""
    async with asyncio.timeout(WAIT_S):
        while not true():
            later = asyncio.Event()
            asyncio.get_running_loop().call_later(0.001, later.set)
            await later.wait()


def events(records: list[logging.LogRecord]) -> list[str]:
    """The names of our own events."""
    return [record.msg for record in records if record.name.startswith("tidegate.gateway.")]
