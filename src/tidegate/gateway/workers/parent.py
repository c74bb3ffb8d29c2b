"""How do a parent and its workers serve one configuration?

Lives here: carrying out what plan decides, the sockets that all share, signals, reload. Does not
live here: any decision about workers (plan), the processes (crew), the admin listener's answers
(overview), a worker's own work (worker).
"""

import asyncio
import logging
import os
import pickle
import secrets
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from tidegate.clock import SystemClock
from tidegate.config import (
    Config,
    ConfigInvalid,
    Problem,
    as_taken_over,
    reload_problems,
    restart_parts,
)
from tidegate.gateway.admin import admin_of
from tidegate.gateway.binding import announce, bind
from tidegate.gateway.closing_time import let_no_one_begin
from tidegate.gateway.ending import FAILED, Ending
from tidegate.gateway.listener import Listener
from tidegate.gateway.logs import set_up
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.process import attend, have_room, listen_to_signals, loop_factory, refusals
from tidegate.gateway.reloads import Reloads
from tidegate.gateway.settings import Companion, Load, OnReady, Settings, settings_of
from tidegate.gateway.stores import owner_for
from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import (
    Action,
    Adopted,
    Kept,
    Kill,
    Note,
    OfferTo,
    Over,
    Ready,
    Spawn,
    Tell,
)
from tidegate.gateway.workers.crew import Crew
from tidegate.gateway.workers.health import Own
from tidegate.gateway.workers.members import Times
from tidegate.gateway.workers.overview import Overview
from tidegate.gateway.workers.plan import Plan
from tidegate.gateway.workers.seats import make_table
from tidegate.gateway.workers.starting import Inherited, Start, start
from tidegate.gateway.workers.survey import Survey

logger = logging.getLogger(__name__)

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_ANSWER_S = 1.0
# Settling, the last records, and handlers that will not be cancelled: see app and listener.
_CLOSING_S = 35.0
_SECRET_BYTES = 32


def run(
    config: Config,
    *,
    load: Load,
    watch: Path | None = None,
    companion: Companion | None = None,
    on_ready: OnReady | None = None,
) -> int:
    """Serve `config` with `server.workers` processes until a signal; returns the exit code.

    The arguments are those of supervise.run. This process itself serves no client.
    """
    handler = set_up(config.telemetry.log, config.telemetry.level)
    settings = settings_of(config)
    have_room(config, settings)
    parent = Parent(config, settings, load=load, watch=watch)
    parent.metrics.watched = replace(
        parent.metrics.watched, log_fields_dropped=lambda: handler.dropped_fields
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(parent.serve(companion=companion, on_ready=on_ready))


class Parent:
    """One run of one gateway of several processes. `serve` once, in a running loop."""

    _main: socket.socket
    _crew: Crew

    def __init__(
        self,
        config: Config,
        settings: Settings,
        *,
        load: Load,
        watch: Path | None = None,
        times: Times | None = None,
        start: Start = start,
    ) -> None:
        self._first, self._settings, self._start = config, settings, start
        if times is None:
            drain_s = settings.drain_s + settings.cut_s + _CLOSING_S
            times = Times(drain_s=drain_s, leave_s=_CLOSING_S)
        self._plan = Plan(config.server.workers, times)
        self._configs = {self._plan.in_force: pickle.dumps(config)}
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._ending = Ending()
        self._ready, self._over = asyncio.Event(), asyncio.Event()
        self._code = 0
        self._reloads = Reloads(load, self._take, self, settings, watch=watch, config=config)
        self._offered: asyncio.Future[Adopted | Kept] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.metrics = Metrics()
        self.metrics.revision(config.revision)
        self._overview = Overview(
            Survey(self._send, wait_s=_ANSWER_S),
            metrics=self.metrics,
            standing=lambda: self._plan.standing,
            runs=lambda: self._plan.reachable,
            own=Own(config.revision, reload_failed=False, demo=config.demo),
        )

    async def serve(
        self, *, companion: Companion | None = None, on_ready: OnReady | None = None
    ) -> int:
        """Run until stopped; returns the exit code."""
        async with AsyncExitStack() as stack:
            listen_to_signals(stack, stop=self.stop, reload=self._reloads.ask)
            try:
                self._main = bind("main", self._settings.host, self._settings.port)
                stack.callback(self._main.close)
                admin = bind("admin", self._settings.admin_host, self._settings.admin_port)
                stack.callback(admin.close)
            except OSError:
                return FAILED
            if companion is not None:
                await stack.enter_async_context(companion)
            seats = make_table(self._first.server.workers)
            stack.callback(os.close, seats)
            # Behind the workers: what they still settle when they leave is written.
            owner = await stack.enter_async_context(owner_for(self._first, SystemClock()))
            inherited = Inherited(self._main, seats, owner)
            self._crew = Crew(inherited, self._start, heard=self._heard, ended=self._ended)
            stack.push_async_callback(self._crew.close)
            await self._open_admin(stack, admin)
            stack.callback(self._stop_timer)
            self._obey(self._plan.begin(self._now_s()))
            await _either(self._ready, self._over)
            if self._ready.is_set():
                ready = announce(self._main, admin, self._settings, self.stop)
                beside = self._ending.beside(self._overview.collect())
                stack.callback(beside.cancel)
                await attend(ready, self._ending, self._reloads, on_ready, self._drain)
        return self._code or self._ending.code

    def stop(self) -> None:
        """As SIGTERM: drain and leave; called again: leave at once."""
        self._ending.ask()
        # Before the workers accept what waits: after the last of them nobody would.
        let_no_one_begin(self._main)
        self._obey(self._plan.stop(self._now_s()))

    def reload_ended(self, *, failed: bool) -> None:
        """See reloads.Outcome."""
        self._overview.own = replace(self._overview.own, reload_failed=failed)
        if failed:
            self.metrics.reload_failed()

    async def _open_admin(self, stack: AsyncExitStack, sock: socket.socket) -> None:
        seen = self._overview
        app = admin_of(self._first, seen, seen, seen.targets_report, refresh=seen.refresh)
        listener = Listener(app, self._settings.caps, refused=refusals(self.metrics))
        await listener.open(sock)
        stack.push_async_callback(listener.close)

    async def _drain(self) -> None:
        if self._ending.code == FAILED:
            self._obey(self._plan.fail(self._now_s()))
        await self._over.wait()

    async def _take(self, config: Config) -> tuple[str, ...]:
        """See reloads.Take: all workers take it, or none does."""
        if problems := reload_problems(config, running=self._first):
            raise ConfigInvalid(problems)
        taken = as_taken_over(config, running=self._first)
        self._offered = asyncio.get_running_loop().create_future()
        generation, actions = self._plan.offer(self._now_s())
        self._configs[generation] = pickle.dumps(taken)
        self._obey(actions)
        outcome = await self._offered
        if isinstance(outcome, Kept):
            del self._configs[generation]
            raise ConfigInvalid([_refusal(config, outcome)])
        self._configs = {generation: self._configs[generation]}
        self._overview.own = replace(self._overview.own, revision=config.revision)
        self.metrics.revision(config.revision)
        return restart_parts(config, running=self._first)

    # What the crew reports, and what is done about it.

    def _heard(self, run: int, message: words.ToParent) -> None:
        # First of all a sign of life: what one says who was silent counts again.
        self._obey(self._plan.heard(run, message, self._now_s()))
        if isinstance(message, words.Told):
            self._overview.heard(run, message)

    def _ended(self, run: int, code: int) -> None:
        self._overview.gone(run)
        self._obey(self._plan.ended(run, code, self._now_s()))

    def _obey(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self._do(action)
        if self._plan.standing.draining:
            # The socket is gone for all only when nobody holds it any more.
            self._main.close()
        self._stop_timer()
        if not self._over.is_set():
            self._timer = asyncio.get_running_loop().call_at(self._plan.due_s, self._tick)

    def _tick(self) -> None:
        self._obey(self._plan.tick(self._now_s()))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _do(self, action: Action) -> None:
        match action:
            case Spawn():
                self._crew.start(action.slot, action.run)
                begin = words.Begin(
                    action.generation, self._configs[action.generation], self._secret
                )
                self._send(action.run, begin)
            case OfferTo():
                config = self._configs[action.generation]
                self._send(action.run, words.Offer(action.generation, config))
            case Tell():
                self._send(action.run, action.message)
            case Kill():
                self._crew.kill(action.run)
            case Note():
                logger.log(_LEVELS[action.level], action.event, extra=dict(action.fields))
            case Ready():
                self._ready.set()
            case Adopted() | Kept():
                if self._offered is not None and not self._offered.done():
                    self._offered.set_result(action)
            case Over():
                self._code = action.code
                self._over.set()
                self._ending.asked.set()
            case _:
                assert_never(action)

    def _send(self, run: int, message: words.ToWorker) -> None:
        self._crew.send(run, message)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()


def _refusal(config: Config, kept: Kept) -> Problem:
    return Problem(config.source, 0, 0, "", kept.problem, "nothing was changed")


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


__all__ = ["Parent", "run"]
