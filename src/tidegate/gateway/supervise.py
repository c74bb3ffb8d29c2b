"""Who starts and stops the listeners of one process, and what happens on a signal?

Lives here: the order in which one process comes up, serves and leaves. Does not live here: what
a connection may do (server), what is served (app), how running requests end (ending), when the
configuration is read again (reloads), several processes (workers).

SIGTERM or SIGINT: accept no more, let running requests end for `drain_s`, then end what still
streams honestly, settle, leave with 0. A second one: at once. SIGHUP, or a change of the file:
reload.
"""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tidegate.config import Config
from tidegate.errors import StoreUnavailable
from tidegate.gateway.app import Gateway
from tidegate.gateway.binding import announce, bind
from tidegate.gateway.ending import FAILED, Ending
from tidegate.gateway.listener import ASGIApp, Listener
from tidegate.gateway.logs import set_up
from tidegate.gateway.process import (
    Counters,
    attend,
    have_room,
    listen_to_signals,
    loop_factory,
    refusals,
)
from tidegate.gateway.reloads import Reloads
from tidegate.gateway.respond import Receive, Scope, Send
from tidegate.gateway.settings import Companion, Load, OnReady, Settings, settings_of

logger = logging.getLogger(__name__)


class Readiness(Protocol):
    """What the supervisor says on /readyz."""

    draining: bool
    reload_failed: bool


class ReloadCounters(Counters, Protocol):
    """What the supervisor counts."""

    def reload_failed(self) -> None:
        """A configuration that was not taken."""


class Service(Protocol):
    """What is run: `Gateway`, seen from here."""

    @property
    def admin(self) -> ASGIApp:
        """The application of the second listener."""

    @property
    def readiness(self) -> Readiness:
        """See there."""

    @property
    def metrics(self) -> ReloadCounters:
        """See there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application of the first listener."""

    async def open(self) -> None:
        """Raises StoreUnavailable."""

    async def close(self) -> None:
        """After the last request."""

    def let_go(self) -> None:
        """A drain begins: end what would never end by itself."""

    def cut(self) -> None:
        """End every answer that still runs."""

    def reload(self, config: Config) -> tuple[str, ...]:
        """The parts that need a restart; raises ConfigInvalid when it is not taken."""


def run(
    config: Config,
    *,
    load: Load,
    watch: Path | None = None,
    companion: Companion | None = None,
    on_ready: OnReady | None = None,
) -> int:
    """Serve `config` in this process until a signal; returns the exit code.

    `load` is called again for each reload (SIGHUP, or a change of the file `watch`) and may raise
    ConfigInvalid. `companion` is entered before the listeners accept and left after the drain.
    `on_ready` runs beside the gateway once they accept, until it ends or the drain begins; if it
    raises, the gateway stops with 1.
    """
    handler = set_up(config.telemetry.log, config.telemetry.level)
    gateway = Gateway(config)
    gateway.metrics.watched = replace(
        gateway.metrics.watched, log_fields_dropped=lambda: handler.dropped_fields
    )
    settings = settings_of(config)
    have_room(config, settings)
    supervision = Supervision(gateway, settings, load=load, watch=watch, config=config)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(supervision.serve(companion=companion, on_ready=on_ready))


class Supervision:
    """One run of one service. `serve` once."""

    def __init__(
        self,
        service: Service,
        settings: Settings,
        *,
        load: Load,
        watch: Path | None = None,
        config: Config | None = None,
    ) -> None:
        self._service, self._settings = service, settings
        self._ending = Ending()
        self._reloads = Reloads(load, self._take, self, settings, watch=watch, config=config)
        told = refusals(service.metrics)
        self._main = Listener(service, settings.caps, refused=told)
        self._admin = Listener(service.admin, settings.caps, refused=told)

    async def serve(
        self, *, companion: Companion | None = None, on_ready: OnReady | None = None
    ) -> int:
        """Run until stopped; returns the exit code."""
        async with AsyncExitStack() as stack:
            # First of all: who starts us may send a signal as soon as it sees the ready line.
            listen_to_signals(stack, stop=self._ending.ask, reload=self._reloads.ask)
            try:
                main = bind("main", self._settings.host, self._settings.port)
                stack.callback(main.close)
                admin = bind("admin", self._settings.admin_host, self._settings.admin_port)
                stack.callback(admin.close)
            except OSError:
                return FAILED
            if companion is not None:
                await stack.enter_async_context(companion)
            try:
                await self._service.open()
            except StoreUnavailable as error:
                logger.exception("store_unavailable", extra={"problem": error.detail})
                return FAILED
            stack.push_async_callback(self._service.close)
            await self._admin.open(admin)
            stack.push_async_callback(self._admin.close)
            await self._main.open(main)
            stack.push_async_callback(self._main.close)
            ready = announce(main, admin, self._settings, self._ending.ask)
            await attend(ready, self._ending, self._reloads, on_ready, self._drain)
        return self._ending.code

    def reload_ended(self, *, failed: bool) -> None:
        """See reloads.Outcome."""
        self._service.readiness.reload_failed = failed
        if failed:
            self._service.metrics.reload_failed()

    async def _take(self, config: Config) -> tuple[str, ...]:
        return self._service.reload(config)

    async def _drain(self) -> None:
        self._service.readiness.draining = True
        await self._ending.drain(self._main, self._service, self._settings)


__all__ = ["Service", "Supervision", "run"]
