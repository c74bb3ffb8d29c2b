"""One worker in this process, its parent played by the test: start, reload, reports, the end."""

import asyncio
import logging
import os
import pickle
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.supervised import TERM, FakeService, demo_config, send_signal, until
from tidegate.config import Config, ConfigInvalid, Problem
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.target_rows import TargetsReport, target_rows
from tidegate.gateway.workers import words
from tidegate.gateway.workers.channel import Channel, Ends, make_ends
from tidegate.gateway.workers.seats import Seat, Table, make_table
from tidegate.gateway.workers.worker import Worker, main
from tidegate.routing import Route, Target, Targets
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import RawClient, request_bytes

SECRET = b"s" * 32


class FakeWorkerService(FakeService):
    """What a worker asks of its service, beside what one process does."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics: Any = Metrics()
        self.prepare_fails: Exception | None = None
        self.adopt_fails: Exception | None = None
        self.adopted: list[Config] = []
        self.made: list[tuple[Config, bytes]] = []

    def prepare(self, config: Config) -> Any:
        if self.prepare_fails is not None:
            raise self.prepare_fails
        return config

    def adopt(self, revision: Any) -> None:
        if self.adopt_fails is not None:
            raise self.adopt_fails
        self.adopted.append(revision)


class Parent:
    """The other end of the channel: says things and waits for what comes."""

    def __init__(self, ends: Ends, task: "asyncio.Task[int]", port: int) -> None:
        self.heard: list[Any] = []
        self.task, self.port = task, port
        self.channel = Channel(ends, words.for_parent, heard=self.heard.append, lost=lambda: None)

    async def says(self, message: words.ToWorker) -> None:
        self.channel.send(message)

    async def hears(self, *messages: words.ToParent) -> None:
        """All that came since the last time, which must be this."""
        await until(lambda: len(self.heard) >= len(messages))
        assert self.heard == list(messages)
        self.heard.clear()

    async def told(self) -> words.Told:
        await until(lambda: bool(self.heard))
        (told,) = self.heard
        self.heard.clear()
        assert isinstance(told, words.Told)
        return told

    async def code(self) -> int:
        async with asyncio.timeout(WAIT_S):
            return await self.task


@asynccontextmanager
async def worker(service: FakeWorkerService, *, started: bool = True) -> AsyncIterator[Parent]:
    """A worker, accepting unless it is not `started`."""
    ours, theirs = make_ends()
    fd = make_table(1)
    table = Table(fd)
    listening = socket.create_server(("127.0.0.1", 0))

    def make(config: Config, secret: bytes) -> Any:
        service.made.append((config, secret))
        return service

    task = asyncio.create_task(
        Worker(make, ends=theirs, listening=listening, seat=Seat(table, 1)).serve()
    )
    parent = Parent(ours, task, listening.getsockname()[1])
    try:
        if started:
            await parent.says(begin())
            await parent.hears(words.Opened(1))
            await parent.says(words.Accept())
            await parent.hears(words.Accepting())
        yield parent
    finally:
        parent.channel.close()
        task.cancel()
        await asyncio.wait((task,), timeout=WAIT_S)
        listening.close()
        table.close()
        os.close(fd)


def begin(drain_s: float = WAIT_S) -> words.Begin:
    config = demo_config()
    server = config.server.model_copy(update={"drain_s": drain_s})
    config = config.model_copy(update={"server": server})
    return words.Begin(1, pickle.dumps(config), SECRET)


def test_it_opens_accepts_when_told_and_drains_when_told(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service) as parent:
            ((config, secret),) = service.made
            assert (config.identity, secret) == (demo_config().identity, SECRET)
            async with await RawClient.connect("127.0.0.1", parent.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                await parent.says(words.Drain())
                await parent.hears(words.Leaving())
                await until(lambda: service.readiness.draining)
                with pytest.raises(ConnectionRefusedError):
                    await RawClient.connect("127.0.0.1", parent.port)
                service.go.set()
                assert (await client.answer()).header("connection") == "close"
            assert await parent.code() == 0
            assert service.told == ["open", "let go", "close"]
            # Its numbers, when nothing can be added to them any more.
            told = await parent.told()
            assert told.number == 0
            assert told.families is not None

    run(body())


def test_at_once_means_at_once(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service) as parent:
            async with await RawClient.connect("127.0.0.1", parent.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                await parent.says(words.Drain())
                await parent.hears(words.Leaving())
                await parent.says(words.Leave())
                assert (await client.answer()).status == 503
            assert await parent.code() == 130
            assert service.told == ["open", "let go", "close"]

    run(body())


def test_what_still_runs_at_the_limit_is_cut(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service, started=False) as parent:
            await parent.says(begin(drain_s=0.01))
            await parent.hears(words.Opened(1))
            await parent.says(words.Accept())
            async with await RawClient.connect("127.0.0.1", parent.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                await parent.says(words.Drain())
                assert (await client.answer()).status == 503
            assert await parent.code() == 0
            assert service.told == ["open", "let go", "cut", "close"]

    run(body())


def test_a_parent_that_is_gone_and_signals_of_the_whole_group_are_one_end(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service) as parent:
            async with await RawClient.connect("127.0.0.1", parent.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                send_signal(TERM)
                await parent.hears(words.Leaving())
                send_signal(TERM)
                await parent.says(words.Drain())
                parent.channel.close()
                await until(lambda: "parent_gone" in caplog.text)
                assert not parent.task.done()
                service.go.set()
                assert (await client.answer()).status == 200
            assert await parent.code() == 0

    with caplog.at_level(logging.WARNING):
        run(body())


@pytest.mark.parametrize("first", [words.Drain(), words.Leave(), None])
def test_an_end_before_the_beginning_opens_nothing(run: Run, first: words.ToWorker | None) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service, started=False) as parent:
            if first is None:
                parent.channel.close()
            else:
                await parent.says(first)
            assert await parent.code() == (130 if first == words.Leave() else 0)
            assert service.told == []

    run(body())


def test_an_end_while_it_opens_closes_again(run: Run) -> None:
    async def body() -> None:
        class Slow(FakeWorkerService):
            async def open(self) -> None:
                await self.go.wait()
                await super().open()

        service = Slow()
        async with worker(service, started=False) as parent:
            await parent.says(begin())
            await parent.says(words.Drain())
            await parent.hears(words.Leaving())
            service.go.set()
            assert await parent.code() == 0
            assert service.told == ["open", "let go", "close"]

    run(body())


def test_a_store_that_cannot_open_is_told_and_ends_with_1(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        service.store_fails = True
        async with worker(service, started=False) as parent:
            await parent.says(begin())
            assert await parent.code() == 1
            await parent.hears(words.CannotStart("the disk is gone"))

    run(body())


def test_a_configuration_is_built_first_and_adopted_when_told(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        async with worker(service) as parent:
            newer = demo_config()
            await parent.says(words.Offer(2, pickle.dumps(newer)))
            await parent.hears(words.Willing(2))
            assert service.adopted == []
            await parent.says(words.Take(2))
            await parent.hears(words.Took(2))
            assert service.adopted == [newer]
            await parent.says(words.Offer(3, pickle.dumps(newer)))
            await parent.hears(words.Willing(3))
            await parent.says(words.Drop(3))
            await parent.says(words.Take(3))
            await parent.hears(words.Unwilling(3, "it was never built here"))
            assert len(service.adopted) == 1

    run(body())


INVALID = ConfigInvalid([Problem("f", 3, 1, "limit", "unknown key", "limits?")])


@pytest.mark.parametrize(
    ("fault", "words_of_it"),
    [(INVALID, "f:3:1: limit: unknown key: limits?"), (LookupError("a secret"), "LookupError")],
)
def test_what_cannot_be_built_is_refused_and_the_worker_goes_on(
    run: Run, fault: Exception, words_of_it: str
) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        service.prepare_fails = fault
        async with worker(service) as parent:
            await parent.says(words.Offer(2, pickle.dumps(demo_config())))
            await parent.hears(words.Unwilling(2, words_of_it))
            async with await RawClient.connect("127.0.0.1", parent.port) as client:
                assert (await client.ask("GET", "/")).status == 200

    run(body())


def test_a_bug_in_adopting_ends_it_for_its_parent_to_start_another(run: Run) -> None:
    async def body() -> None:
        service = FakeWorkerService()
        service.adopt_fails = LookupError("bug")
        async with worker(service) as parent:
            await parent.says(words.Offer(2, pickle.dumps(demo_config())))
            await parent.hears(words.Willing(2))
            await parent.says(words.Take(2))
            assert await parent.code() == 1
            assert words.Took(2) not in parent.heard

    run(body())


def test_it_answers_what_it_is_asked(run: Run) -> None:
    async def body() -> None:
        class Reporting(FakeWorkerService):
            def __init__(self) -> None:
                super().__init__()
                self.readiness: Any = self
                self.draining = False

            def report(self) -> dict[str, object]:
                return {"ready": True}

            def targets_report(self) -> TargetsReport:
                return TargetsReport(revision="r", targets=rows)

        rows = target_rows([Route("default", (Target("primary"),))], Targets(), 0.0)

        service = Reporting()
        async with worker(service, started=False) as parent:
            await parent.says(words.Ask(1, "metrics"))
            assert await parent.told() == words.Told(1)
            await parent.says(begin())
            await parent.hears(words.Opened(1))
            await parent.says(words.Ask(2, "pulse"))
            assert await parent.told() == words.Told(2)
            await parent.says(words.Ask(3, "readiness"))
            assert await parent.told() == words.Told(3, {"ready": True})
            service.metrics.refused(code="gateway.not_found")
            await parent.says(words.Ask(4, "metrics"))
            told = await parent.told()
            assert told.families is not None
            refused = {f.name: f for f in told.families}["tidegate_refused"]
            assert [sample.value for sample in refused.samples] == [1.0]
            await parent.says(words.Ask(5, "targets"))
            assert await parent.told() == words.Told(5, targets=rows)

    run(body())


@pytest.mark.parametrize("arguments", [[], ["1"], ["1", "2", "3", "4"], ["1", "2", "3", "4", "x"]])
def test_it_is_not_to_be_started_by_hand(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "tidegate serve --workers" in capsys.readouterr().err
