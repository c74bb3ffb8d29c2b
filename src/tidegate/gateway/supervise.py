"""Who starts and stops the listeners, and what happens on a signal?

One process: the client listener, the admin listener, the drain, the reload. Lives here: their
order. Does not live here: what a connection may do (server), what is served (app), what the
configuration says (config).

SIGTERM or SIGINT: accept no more, let running requests end for `drain_s`, then end what still
streams honestly, settle, leave with 0. A second one: at once. SIGHUP, or a change of the file:
reload; an invalid file changes nothing and is one line in the log.
"""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tidegate.clock import SystemClock
from tidegate.config import Config, ConfigInvalid, serving_problems
from tidegate.errors import StoreUnavailable, TidegateError
from tidegate.gateway.app import Gateway
from tidegate.gateway.descriptors import make_room
from tidegate.gateway.filewatch import FileWatch
from tidegate.gateway.listener import ASGIApp, Listener, WireCaps
from tidegate.gateway.logs import RefusalLog, set_up
from tidegate.gateway.respond import Receive, Scope, Send

logger = logging.getLogger(__name__)

_CUT_S = 2.0
_POLL_S = 0.5
_FAILED = 1
_INTERRUPTED = 130
_OWN_FILES = 256


@dataclass(frozen=True, slots=True)
class Ready:
    """Both listeners accept: their addresses as they really are, and a way to stop."""

    host: str
    port: int
    admin_host: str
    admin_port: int
    stop: Callable[[], None]


class Readiness(Protocol):
    """What the supervisor says on /readyz."""

    draining: bool
    reload_failed: bool


class Counters(Protocol):
    """What the supervisor counts."""

    def refused(self, *, code: str) -> None:
        """A request that no handler saw."""

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
    def metrics(self) -> Counters:
        """See there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application of the first listener."""

    async def open(self) -> None:
        """Raises StoreUnavailable."""

    async def close(self) -> None:
        """After the last request."""

    def cut(self) -> None:
        """End every answer that still runs."""

    def reload(self, config: Config) -> tuple[str, ...]:
        """The parts that need a restart; raises ConfigInvalid when it is not taken."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen and how long things may take. Ports may be 0."""

    host: str = "127.0.0.1"
    port: int = 8080
    admin_host: str = "127.0.0.1"
    admin_port: int = 8081
    caps: WireCaps = field(default_factory=WireCaps)
    drain_s: float = 30.0
    cut_s: float = _CUT_S
    poll_s: float = _POLL_S
    line: bool = True
    """Whether the ready line is printed beside the log."""


Load = Callable[[], Config]
OnReady = Callable[[Ready], Awaitable[None]]
Companion = AbstractAsyncContextManager[object]


def run(
    config: Config,
    *,
    load: Load,
    watch: Path | None = None,
    companion: Companion | None = None,
    on_ready: OnReady | None = None,
) -> int:
    """Serve `config` until a signal; returns the exit code.

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
    # Both listeners, an upstream for each request, and what the process itself has open.
    wanted = 2 * settings.caps.connections + config.server.caps.requests_in_flight + _OWN_FILES
    if (room := make_room(wanted)) < wanted:
        logger.warning("few_open_files", extra={"count": room})
    supervision = Supervision(gateway, settings, load=load, watch=watch)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(supervision.serve(companion=companion, on_ready=on_ready))


def settings_of(config: Config) -> Settings:
    """What the file says about listeners and bounds."""
    server, caps = config.server, config.server.caps
    return Settings(
        host=server.host,
        port=server.port,
        admin_host=server.admin.host,
        admin_port=server.admin.port,
        caps=WireCaps(
            header_bytes=caps.header_bytes,
            header_timeout_s=caps.header_timeout_s,
            body_idle_s=caps.body_idle_s,
            write_stall_s=caps.write_stall_s,
            # One for each request and as many that are idle; some for clients that only hold on.
            connections=2 * caps.requests_in_flight + 1024,
        ),
        drain_s=server.drain_s,
        line=config.telemetry.log != "json",
    )


class Supervision:
    """One run of one service. `serve` once."""

    def __init__(
        self, service: Service, settings: Settings, *, load: Load, watch: Path | None = None
    ) -> None:
        self._service, self._settings = service, settings
        self._load = load
        # As it was read, or nearly so: what is written while the stores open is a change, too.
        self._watch = FileWatch(watch) if watch is not None else None
        self._stopping, self._forced = asyncio.Event(), asyncio.Event()
        self._reload_wanted = asyncio.Event()
        self._code = 0
        refusals = RefusalLog(logger, SystemClock())

        def refused(error: TidegateError, request_id: str) -> None:
            service.metrics.refused(code=error.code)
            refusals.refused(error.code, status=error.status, request_id=request_id)

        self._main = Listener(service, settings.caps, refused=refused)
        self._admin = Listener(service.admin, settings.caps, refused=refused)

    async def serve(
        self, *, companion: Companion | None = None, on_ready: OnReady | None = None
    ) -> int:
        """Run until stopped; returns the exit code."""
        async with AsyncExitStack() as stack:
            # First of all: who starts us may send a signal as soon as it sees the ready line.
            self._listen_to_signals(stack)
            try:
                main = _bind("main", self._settings.host, self._settings.port)
                stack.callback(main.close)
                admin = _bind("admin", self._settings.admin_host, self._settings.admin_port)
                stack.callback(admin.close)
            except OSError:
                return _FAILED
            if companion is not None:
                await stack.enter_async_context(companion)
            try:
                await self._service.open()
            except StoreUnavailable as error:
                logger.exception("store_unavailable", extra={"problem": error.detail})
                return _FAILED
            stack.push_async_callback(self._service.close)
            await self._admin.open(admin)
            stack.push_async_callback(self._admin.close)
            await self._main.open(main)
            stack.push_async_callback(self._main.close)
            await self._attend(self._ready(main, admin), on_ready)
        return self._code

    def stop(self) -> None:
        """As SIGTERM: drain and leave; called again: leave at once."""
        if self._stopping.is_set():
            self._forced.set()
            self._code = _INTERRUPTED
        self._stopping.set()

    def ask_reload(self) -> None:
        """As SIGHUP. Requests for it that come while one is done become one more."""
        self._reload_wanted.set()

    async def _attend(self, ready: Ready, on_ready: OnReady | None) -> None:
        beside: list[asyncio.Task[None]] = [self._beside(self._reloads())]
        if self._watch is not None:
            beside.append(self._beside(self._look_at_file(self._watch)))
        shown = None if on_ready is None else self._beside(_awaited(on_ready(ready)))
        if shown is not None:
            beside.append(shown)
        try:
            await self._stopping.wait()
            # Not after the drain: what it asks of a gateway that ends would fail.
            if shown is not None:
                shown.cancel()
            await self._drain()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    def _listen_to_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        signals = {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
            signal.SIGHUP: self.ask_reload,
        }
        for number, react in signals.items():
            loop.add_signal_handler(number, react)
            stack.callback(loop.remove_signal_handler, number)

    def _beside(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._beside_ended)
        return task

    def _beside_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error("task_failed", exc_info=bug)
            self._code = _FAILED
            self._stopping.set()

    def _ready(self, main: socket.socket, admin: socket.socket) -> Ready:
        host, port = main.getsockname()[:2]
        admin_host, admin_port = admin.getsockname()[:2]
        logger.info("ready", extra={"listener": "main", "host": host, "port": port})
        logger.info("ready", extra={"listener": "admin", "host": admin_host, "port": admin_port})
        if self._settings.line:
            line = f"tidegate ready: {_url(host, port)} admin: {_url(admin_host, admin_port)}\n"
            sys.stderr.write(line)
            sys.stderr.flush()
        return Ready(host, port, admin_host, admin_port, self.stop)

    async def _drain(self) -> None:
        self._service.readiness.draining = True
        self._main.stop()
        logger.info("draining", extra={"running": self._main.running})
        if await self._quiet_within(self._settings.drain_s) or self._forced.is_set():
            return
        logger.warning("drain_limit_reached", extra={"running": self._main.running})
        self._service.cut()
        await self._quiet_within(self._settings.cut_s)

    async def _quiet_within(self, seconds: float) -> bool:
        """Whether all handlers ended in time; false at once when a second signal came."""
        quiet = asyncio.create_task(self._main.quiet())
        forced = asyncio.create_task(self._forced.wait())
        await asyncio.wait((quiet, forced), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (quiet, forced):
            task.cancel()
        return quiet.done() and not quiet.cancelled()

    async def _reloads(self) -> None:
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            # A task of its own: whatever fails in it, the gateway goes on with what it has.
            reload = asyncio.create_task(self._reload())
            await asyncio.wait((reload,))
            if (bug := reload.exception()) is not None:
                self._kept(type(bug).__name__, 1)

    async def _reload(self) -> None:
        try:
            config, stale = await self._take_over()
        except ConfigInvalid as invalid:
            self._kept(str(invalid.problems[0]), len(invalid.problems))
            return
        self._service.readiness.reload_failed = False
        logger.info("reloaded", extra={"revision": config.revision})
        for finding in (*config.warnings, *config.not_in_effect):
            logger.warning("config_warning", extra={"problem": str(finding)})
        if stale:
            parts = ", ".join(stale)
            logger.warning("restart_needed", extra={"problem": f"changes of: {parts}"})

    async def _take_over(self) -> tuple[Config, tuple[str, ...]]:
        """What is in force now, and what of it needs a restart. Raises ConfigInvalid."""
        # Reading and checking may take a while; streams go on meanwhile.
        config = await asyncio.to_thread(self._load)
        if problems := serving_problems(config, listening_on=self._settings.host):
            raise ConfigInvalid(problems)
        return config, self._service.reload(config)

    def _kept(self, problem: str, count: int) -> None:
        self._service.readiness.reload_failed = True
        self._service.metrics.reload_failed()
        logger.error(
            "reload_failed_last_good_configuration_kept",
            extra={"problem": problem, "count": count},
        )

    async def _look_at_file(self, watch: FileWatch) -> None:
        clock_turn = asyncio.Event()
        while True:
            asyncio.get_running_loop().call_later(self._settings.poll_s, clock_turn.set)
            await clock_turn.wait()
            clock_turn.clear()
            seen = watch.look()
            if seen == "changed":
                self.ask_reload()
            elif seen == "missing":
                logger.warning("config_file_missing", extra={"path": str(watch.path)})


def _bind(listener: str, host: str, port: int) -> socket.socket:
    """A bound socket, not yet accepting. Raises OSError, after logging it."""
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=kind, backlog=2048)
    except OSError as error:
        logger.error(  # noqa: TRY400 - the trace says nothing more
            "cannot_listen",
            extra={
                "listener": listener,
                "host": host,
                "port": port,
                "problem": error.strerror or type(error).__name__,
            },
        )
        raise


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


__all__ = ["Ready", "Settings", "Supervision", "run", "settings_of"]
