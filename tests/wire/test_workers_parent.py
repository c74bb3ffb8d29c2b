"""A parent in this process with workers that do one thing wrong, each a process of its own."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.supervised import HUP, INT, TERM, demo_config, events, send_signal, until
from tidegate.config import Config, ConfigInvalid, Problem
from tidegate.gateway.settings import Ready, Settings
from tidegate.gateway.workers.members import Times
from tidegate.gateway.workers.parent import Parent
from tidegate.gateway.workers.restarts import Pace
from tidegate.gateway.workers.starting import Inherited, Started, start
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import RawClient

FAKE = [sys.executable, str(Path(__file__).with_name("fake_worker.py"))]
START_S = 60.0  # for interpreters to start, on a busy machine
QUICK = Times(
    start_s=START_S,
    vote_s=30.0,
    beat_s=0.05,
    # On a busy machine a good worker may say nothing for a while.
    silent_after=600,
    dead_after=900,
    drain_s=30.0,
    leave_s=30.0,
    pace=Pace(short_life_s=60.0, first_delay_s=0.01, most_delay_s=0.05),
)
IMPATIENT = replace(QUICK, silent_after=20, dead_after=40)


class Starting:
    """Starts workers in the modes given; `later` is the mode of those that replace them."""

    def __init__(self, modes: Sequence[str], later: str = "good") -> None:
        self.modes, self.later = list(modes), later
        self.started: list[Started] = []

    def __call__(self, slot: int, inherited: Inherited) -> Started:
        mode = self.modes.pop(0) if self.modes else self.later
        if mode == "no_room":
            raise OSError(11, "Resource temporarily unavailable")
        started = start(slot, inherited, command=[*FAKE, mode])
        self.started.append(started)
        return started


class Running:
    def __init__(self, task: "asyncio.Task[int]", parent: Parent, starting: Starting) -> None:
        self.task, self.parent, self.starting = task, parent, starting
        self.addresses: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()

    async def ready(self) -> Ready:
        async with asyncio.timeout(START_S):
            await asyncio.wait((self.addresses, self.task), return_when=asyncio.FIRST_COMPLETED)
        return self.addresses.result()

    async def admin(self, path: str) -> tuple[int, bytes]:
        ready = await self.ready()
        async with await RawClient.connect("127.0.0.1", ready.admin_port) as client:
            answer = await client.ask("GET", path)
            return answer.status, answer.body

    async def report(self) -> Any:
        return json.loads((await self.admin("/readyz"))[1])

    async def targets(self) -> Any:
        return json.loads((await self.admin("/targets"))[1])

    async def until_report(self, true: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(WAIT_S):
            while not true(report := await self.report()):
                pass
        return report

    async def code(self) -> int:
        async with asyncio.timeout(WAIT_S):
            return await self.task


def config(workers: int) -> Config:
    demo = demo_config()
    return demo.model_copy(update={"server": demo.server.model_copy(update={"workers": workers})})


@asynccontextmanager
async def parent(
    *modes: str,
    later: str = "good",
    times: Times = QUICK,
    load: Callable[[], Config] = demo_config,
    **serve: Any,
) -> AsyncIterator[Running]:
    starting = Starting(modes, later)
    ours = Parent(
        config(len(modes)),
        Settings(port=0, admin_port=0, drain_s=WAIT_S, poll_s=0.005),
        load=load,
        times=times,
        start=starting,
    )
    also = serve.pop("also", None)

    async def on_ready(ready: Ready) -> None:
        running.addresses.set_result(ready)
        if also is not None:
            await also(ready)

    task = asyncio.create_task(ours.serve(on_ready=on_ready, **serve))
    running = Running(task, ours, starting)
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.wait((task,), timeout=WAIT_S)
        running.addresses.cancel()
        assert [one.process.poll() is not None for one in starting.started].count(False) == 0


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_it_is_ready_when_all_accept_answers_for_all_and_ends_with_them(
    run: Run, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def body() -> None:
        async with parent("good", "good") as running:
            ready = await running.ready()
            assert f"tidegate ready: http://127.0.0.1:{ready.port} " in capfd.readouterr().err
            report = await running.report()
            assert report["ready"] is True
            assert report["records"] == {"dropped": 2}
            _, numbers = await running.admin("/metrics")
            assert b"tidegate_x_total 10.0\n" in numbers
            assert await running.admin("/healthz") == (200, b'{"alive":true}')
            send_signal(TERM)
            assert await running.code() == 0
            for port in (ready.port, ready.admin_port):
                with pytest.raises(ConnectionRefusedError):
                    await RawClient.connect("127.0.0.1", port)
        assert events(caplog.records) == ["worker_spawned", "worker_spawned", "ready", "ready"]

    run(body())


@pytest.mark.full
@pytest.mark.parametrize(
    ("mode", "event"),
    [
        ("cannot", "worker_cannot_start"),
        ("crashes", "worker_ended"),
        ("never_opens", "worker_start_late"),
        ("no_room", "worker_not_started"),
    ],
)
def test_one_that_does_not_come_up_ends_all_with_1(
    run: Run, mode: str, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        start_s = 0.3 if mode == "never_opens" else QUICK.start_s
        async with parent("good", mode, times=replace(QUICK, start_s=start_s)) as running:
            assert await running.code() == 1
            assert not running.addresses.done()
        assert event in events(caplog.records)
        assert "ready" not in events(caplog.records)

    run(body())


@pytest.mark.full
def test_a_refusal_of_one_keeps_it_for_all_and_a_later_reload_is_taken(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with parent("good", "refuses") as running:
            await running.ready()
            send_signal(HUP)
            report = await running.until_report(lambda r: r["reasons"] != [])
            assert report["reasons"] == ["config_reload_failed"]
            assert report["ready"] is True
            (line,) = [r for r in caplog.records if r.msg.startswith("reload_failed")]
            assert "f:1:1: a word: is wrong" in vars(line)["problem"]
            _, numbers = await running.admin("/metrics")
            assert b"tidegate_config_reload_failures_total 1.0\n" in numbers
            # Its place is taken by one that does not refuse.
            running.starting.started[1].process.kill()
            await until(lambda: "worker_started" in events(caplog.records))
            send_signal(HUP)
            await running.until_report(lambda r: r["config"]["last_reload"] == "ok")

    run(body())


@pytest.mark.full
def test_a_configuration_that_kills_all_who_read_it_is_refused(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with parent("dies_of_it", "dies_of_it") as running:
            await running.ready()
            send_signal(HUP)
            await until(lambda: events(caplog.records).count("worker_started") == 2)
            report = await running.report()
            assert report["config"]["last_reload"] == "failed"

    run(body())


@pytest.mark.full
def test_one_that_hangs_is_seen_waited_for_no_longer_and_replaced(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with parent("hangs", "good", times=replace(IMPATIENT, dead_after=100)) as running:
            await running.ready()
            report = await running.until_report(lambda r: r["workers"]["silent"] == [1])
            assert report["ready"] is True
            assert set(report["reasons"]) == {"worker_missing", "worker_silent"}
            _, numbers = await running.admin("/metrics")
            assert b"tidegate_x_total 5.0\n" in numbers
            assert (await running.targets())["missing"] == [1]
            await running.until_report(lambda r: r["workers"]["accepting"] == 2)
            async with asyncio.timeout(WAIT_S):
                while (targets := await running.targets())["missing"]:
                    pass
            assert [(row["provider"], row["worker"]) for row in targets["targets"]] == [
                ("p", 1),
                ("p", 2),
            ]
        assert "worker_does_not_answer" in events(caplog.records)

    run(body())


@pytest.mark.full
def test_one_that_will_not_drain_is_killed_at_the_limit(run: Run) -> None:
    async def body() -> None:
        async with parent("stubborn", "good", times=replace(QUICK, drain_s=0.2)) as running:
            await running.ready()
            send_signal(TERM)
            assert await running.code() == 0
            assert running.starting.started[0].process.returncode == -signal.SIGKILL

    run(body())


@pytest.mark.full
def test_a_second_signal_ends_at_once_with_130(run: Run) -> None:
    async def body() -> None:
        async with parent("stubborn", "stubborn") as running:
            await running.ready()
            send_signal(TERM)
            await running.until_report(lambda r: r["draining"])
            send_signal(INT)
            assert await running.code() == 130

    run(body())


@pytest.mark.full
def test_a_signal_while_they_start_ends_all_of_them(run: Run) -> None:
    async def body() -> None:
        async with parent("never_opens", "never_opens") as running:
            await until(lambda: len(running.starting.started) == 2)
            send_signal(TERM)
            assert await running.code() == 0
            assert not running.addresses.done()

    run(body())


@pytest.mark.full
def test_a_crash_loop_is_seen_while_the_other_serves(run: Run) -> None:
    async def body() -> None:
        async with parent("good", "good", later="crashes") as running:
            await running.ready()
            running.starting.started[1].process.kill()
            report = await running.until_report(lambda r: r["workers"]["crash_loop"] == [2])
            assert report["ready"] is True
            assert "worker_crash_loop" in report["reasons"]
            running.starting.later = "good"
            await running.until_report(lambda r: r["workers"]["accepting"] == 2)

    run(body())


@pytest.mark.full
def test_what_runs_beside_starts_before_and_ends_after_all_of_them(run: Run) -> None:
    async def body() -> None:
        told: list[str] = []

        @asynccontextmanager
        async def companion() -> Any:
            told.append("companion")
            yield None
            told.append("companion left")

        async def show(ready: Ready) -> None:
            told.append("shown")
            ready.stop()

        async with parent("good", "good", companion=companion(), also=show) as running:
            assert await running.code() == 0
        assert told == ["companion", "shown", "companion left"]

    run(body())


@pytest.mark.full
def test_a_show_that_fails_ends_them_with_1(run: Run) -> None:
    async def body() -> None:
        async def show(_ready: Ready) -> None:
            raise LookupError("bug")

        async with parent("good", "good", also=show) as running:
            assert await running.code() == 1

    run(body())


def _invalid() -> Config:
    raise ConfigInvalid([Problem("tidegate.yaml", 3, 1, "limit", "unknown key", "limits?")])


@pytest.mark.full
@pytest.mark.parametrize(
    "load", [_invalid, lambda: demo_config().model_copy(update={"demo": False})]
)
def test_a_bad_file_reaches_no_worker(
    run: Run, load: Callable[[], Config], caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with parent("dies_of_it", "dies_of_it", load=load) as running:
            await running.ready()
            send_signal(HUP)
            await running.until_report(lambda r: r["config"]["last_reload"] == "failed")
            assert "worker_ended" not in events(caplog.records)

    run(body())


@pytest.mark.full
def test_a_port_that_is_taken_starts_nobody(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with parent("good", "good") as running:
            taken = (await running.ready()).port
            ours = Parent(config(2), Settings(port=taken, admin_port=0), load=demo_config)
            assert await ours.serve() == 1
        assert events(caplog.records).count("cannot_listen") == 1

    run(body())


@pytest.mark.full
def test_a_worker_runs_on_our_interpreter_and_finds_the_same_modules(tmp_path: Path) -> None:
    # A file in the working directory must not become a module of the gateway.
    (tmp_path / "msgspec.py").write_text("raise SystemExit(99)\n")
    program = (
        "import sys; sys.path.remove('') if '' in sys.path else None;"
        "from tidegate.gateway.workers.starting import own_command; import subprocess;"
        "sys.exit(subprocess.run(own_command(), stderr=subprocess.DEVNULL).returncode)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, check=False)
    assert done.returncode == 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("entry", "stranger"),
    [
        ("tidegate.gateway.supervise", "tidegate.gateway.workers"),
        ("tidegate.gateway.workers.parent", "tidegate.gateway.app"),
    ],
    ids=["one process", "a parent"],
)
def test_one_process_knows_of_no_workers_and_a_parent_of_nothing_that_serves(
    entry: str, stranger: str
) -> None:
    program = f"import sys, {entry}; sys.exit({stranger!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 0
