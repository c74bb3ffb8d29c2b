"""How does one of several processes serve?

Started by the parent, with its place and inherited descriptors as arguments. Lives here: carrying
out what duty decides, with a service and one listener. Does not live here: any decision about the
process (duty), what is served (app), how running requests end (ending).
"""

import asyncio
import logging
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol, assert_never

from tidegate.config import Config, ConfigInvalid
from tidegate.errors import StoreUnavailable
from tidegate.gateway.admin import Readiness
from tidegate.gateway.app import Gateway
from tidegate.gateway.ending import FAILED, Ending
from tidegate.gateway.listener import Listener
from tidegate.gateway.logs import set_up
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.process import keep_what_is_there, loop_factory, refusals
from tidegate.gateway.respond import Receive, Scope, Send
from tidegate.gateway.revision import Revision
from tidegate.gateway.settings import settings_of
from tidegate.gateway.target_rows import TargetsReport
from tidegate.gateway.workers import duty, words
from tidegate.gateway.workers.channel import Channel, Ends
from tidegate.gateway.workers.numbers import families_of
from tidegate.gateway.workers.seats import Seat, Table
from tidegate.gateway.workers.starting import SIGNALS

logger = logging.getLogger(__name__)

_USAGE = 2
_LAST_WORDS_S = 1.0


class Service(Protocol):
    """What is run: `Gateway`, seen from here."""

    @property
    def readiness(self) -> Readiness:
        """See there."""

    @property
    def metrics(self) -> Metrics:
        """See there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application of the listener."""

    async def open(self) -> None:
        """Raises StoreUnavailable."""

    async def close(self) -> None:
        """After the last request."""

    def let_go(self) -> None:
        """A drain begins: end what would never end by itself."""

    def cut(self) -> None:
        """End every answer that still runs."""

    def prepare(self, config: Config) -> Revision:
        """What `adopt` needs; changes nothing. Raises ConfigInvalid."""

    def adopt(self, revision: Revision) -> None:
        """Put it in force."""

    def targets_report(self) -> TargetsReport:
        """How every target is doing here."""


Make = Callable[[Config, bytes], Service]
"""Makes the service of a configuration and a secret that all workers share."""


class Worker:
    """One run of one worker: `serve` once.

    `ends` leads to the parent, `listening` is the socket that all share, `seat` our place in
    the table of connections.
    """

    def __init__(self, make: Make, *, ends: Ends, listening: socket.socket, seat: Seat) -> None:
        self._make, self._ends, self._listening, self._seat = make, ends, listening, seat
        self._duty = duty.Duty()
        self._orders: asyncio.Queue[duty.Order] = asyncio.Queue()
        self._ending = Ending()
        self._begun: asyncio.Future[duty.Open] = asyncio.get_running_loop().create_future()
        self._built: dict[int, Revision] = {}
        self._service: Service | None = None
        self._listener: Listener | None = None

    async def serve(self) -> int:
        """Come up, serve, drain; returns the exit code."""
        self._channel = Channel(self._ends, words.for_worker, heard=self._heard, lost=self._lost)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._signaled)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        obeying = self._ending.beside(self._obey())
        ended = asyncio.ensure_future(self._ending.asked.wait())
        try:
            await asyncio.wait((self._begun, ended), return_when=asyncio.FIRST_COMPLETED)
            if self._begun.done():
                await self._serve(self._begun.result())
        finally:
            ended.cancel()
            obeying.cancel()
            await self._channel.closed(within_s=_LAST_WORDS_S)
        return self._ending.code

    async def _serve(self, begin: duty.Open) -> None:
        config: Config = pickle.loads(begin.config)  # noqa: S301 - our parent made it
        settings = settings_of(config)
        async with AsyncExitStack() as stack:
            service = self._make(config, begin.secret)
            try:
                await service.open()
            except StoreUnavailable as error:
                await self._do_all(self._duty.not_opened(error.detail))
                self._ending.code = FAILED
                return
            stack.callback(self._tell_numbers, 0, service)
            stack.push_async_callback(service.close)
            self._service = service
            self._listener = Listener(
                service, settings.caps, refused=refusals(service.metrics), seats=self._seat
            )
            stack.push_async_callback(self._listener.close)
            self._put(self._duty.opened())
            await self._ending.asked.wait()
            service.readiness.draining = True
            await self._ending.drain(self._listener, service, settings)

    # What happens to us.

    def _heard(self, message: words.ToWorker) -> None:
        self._put(self._duty.heard(message))

    def _lost(self) -> None:
        logger.warning("parent_gone")
        self._put(self._duty.end())

    def _signaled(self) -> None:
        self._put(self._duty.end())

    # What we do about it.

    def _put(self, orders: Sequence[duty.Order]) -> None:
        for order in orders:
            self._orders.put_nowait(order)

    async def _obey(self) -> None:
        """One order after the other; what goes wrong in one ends the process."""
        while True:
            await self._do(await self._orders.get())

    async def _do_all(self, orders: Sequence[duty.Order]) -> None:
        for order in orders:
            await self._do(order)

    async def _do(self, order: duty.Order) -> None:
        match order:
            case duty.Open():
                self._begun.set_result(order)
            case duty.Say():
                self._channel.send(order.message)
            case duty.Listen():
                await self._listen()
            case duty.Build():
                self._ending.beside(self._build(order))
            case duty.Swap() | duty.Forget():
                self._swap_or_forget(order)
            case duty.Report():
                self._report(order)
            case duty.End():
                self._ending.ask()
            case duty.Force():
                self._ending.force()
            case _:
                assert_never(order)

    async def _listen(self) -> None:
        if self._listener is not None and not self._listener.draining:
            await self._listener.open(self._listening)
            keep_what_is_there()
            self._put(self._duty.listens())

    async def _build(self, order: duty.Build) -> None:
        if (service := self._service) is None:
            return
        config: Config = pickle.loads(order.config)  # noqa: S301 - our parent made it
        # It may take a while; streams go on meanwhile.
        building = asyncio.create_task(asyncio.to_thread(service.prepare, config))
        await asyncio.wait((building,))
        if (error := building.exception()) is None:
            self._built[order.generation] = building.result()
            self._put(self._duty.built(order.generation))
        elif isinstance(error, ConfigInvalid):
            self._put(self._duty.not_built(order.generation, str(error.problems[0])))
        else:
            logger.error("reload_not_built", exc_info=error)
            self._put(self._duty.not_built(order.generation, type(error).__name__))

    def _swap_or_forget(self, order: duty.Swap | duty.Forget) -> None:
        revision = self._built.pop(order.generation, None)
        if isinstance(order, duty.Swap) and revision is not None and self._service is not None:
            self._service.adopt(revision)
            self._built.clear()

    def _report(self, order: duty.Report) -> None:
        if self._service is not None and order.about == "metrics":
            self._tell_numbers(order.number, self._service)
            return
        readiness = targets = None
        if self._service is not None and order.about == "readiness":
            readiness = self._service.readiness.report()
        elif self._service is not None and order.about == "targets":
            targets = self._service.targets_report().targets
        self._channel.send(words.Told(order.number, readiness, targets=targets))

    def _tell_numbers(self, number: int, service: Service) -> None:
        self._channel.send(words.Told(number, families=families_of(service.metrics)))


def main(arguments: Sequence[str]) -> int:
    """One worker, from the arguments that its parent gives it; returns the exit code."""
    try:
        slot, *fds = map(int, arguments)
        read, write, listening, seats, *owner = fds
        line = socket.socket(fileno=owner[0]) if owner else None
    except ValueError:
        sys.stderr.write("A worker is started by `tidegate serve --workers`, not by hand.\n")
        return _USAGE
    # What a terminal sends to all of its processes is the parent's to understand.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for fd in fds:
        os.set_inheritable(fd, False)

    async def serve() -> int:
        worker = Worker(
            lambda config, secret: _gateway(slot, config, secret, line),
            ends=Ends(read, write),
            listening=socket.socket(fileno=listening),
            seat=Seat(Table(seats), slot),
        )
        return await worker.serve()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve())


def _gateway(slot: int, config: Config, secret: bytes, owner: socket.socket | None) -> Gateway:
    handler = set_up(config.telemetry.log, config.telemetry.level, worker=slot)
    gateway = Gateway(config, secret=secret, owner=owner)
    gateway.metrics.watched = replace(
        gateway.metrics.watched, log_fields_dropped=lambda: handler.dropped_fields
    )
    return gateway


__all__ = ["Service", "Worker", "main"]
