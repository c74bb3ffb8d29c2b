"""Start, drain, stop and reload of one process, with signals, files and sockets as they are."""

import asyncio
import logging
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import turn
from tests.wire.supervised import (
    HUP,
    INT,
    TERM,
    FakeService,
    demo_config,
    events,
    send_signal,
    supervised,
    until,
)
from tidegate.config import Config, ConfigInvalid, Problem, load_config_text
from tidegate.gateway.reloads import Reloads
from tidegate.gateway.settings import Ready, Settings
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import RawClient, request_bytes


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_both_listeners_answer_and_one_line_says_where(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    async def body() -> None:
        async with supervised(FakeService()) as running:
            ready = await running.ready()
            for host, port, text in (
                (ready.host, ready.port, b"main"),
                (ready.admin_host, ready.admin_port, b"ready"),
            ):
                async with await RawClient.connect(host, port) as client:
                    assert (await client.ask("GET", "/")).body == text
            out, err = capfd.readouterr()
            here = "http://127.0.0.1"
            line = f"tidegate ready: {here}:{ready.port} admin: {here}:{ready.admin_port}\n"
            assert (out, line in err) == ("", True)
            ready.stop()
            assert await running.code() == 0
            assert running.service.told == ["open", "let go", "close"]

    run(body())


@pytest.mark.parametrize("number", [TERM, INT])
def test_a_signal_lets_running_requests_end_and_readiness_says_so(
    run: Run, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        service = FakeService()
        async with supervised(service) as running:
            ready = await running.ready()
            async with (
                await RawClient.connect("127.0.0.1", ready.port) as client,
                await RawClient.connect("127.0.0.1", ready.admin_port) as admin,
            ):
                assert (await admin.ask("GET", "/readyz")).body == b"ready"
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                send_signal(number)
                await until(lambda: service.readiness.draining)
                with pytest.raises(ConnectionRefusedError):
                    await RawClient.connect("127.0.0.1", ready.port)
                assert (await admin.ask("GET", "/readyz")).body == b"draining"
                service.go.set()
                answered = await client.answer()
                assert (answered.status, answered.header("connection")) == (200, "close")
            assert await running.code() == 0
            assert service.told == ["open", "let go", "close"]
        assert events(caplog.records) == ["ready", "ready", "draining"]

    run(body())


@pytest.mark.parametrize("ignores_cut", [False, True])
def test_what_still_runs_at_the_limit_is_cut(
    run: Run, caplog: pytest.LogCaptureFixture, *, ignores_cut: bool
) -> None:
    async def body() -> None:
        service = FakeService()
        service.ignores_cut = ignores_cut
        # One that obeys has all the time it needs on a busy machine.
        cut_s = 0.01 if ignores_cut else WAIT_S
        async with supervised(service, drain_s=0.01, cut_s=cut_s) as running:
            ready = await running.ready()
            async with await RawClient.connect("127.0.0.1", ready.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                send_signal(TERM)
                answered = await client.answer()
                assert answered.status == 503
                assert (b"gateway.overloaded" in answered.body) == ignores_cut
            assert await running.code() == 0
            assert service.told == ["open", "let go", "cut", "close"]
        assert "drain_limit_reached" in events(caplog.records)

    run(body())


def test_a_second_signal_ends_the_drain_at_once(run: Run) -> None:
    async def body() -> None:
        service = FakeService()
        async with supervised(service, drain_s=3600.0) as running:
            ready = await running.ready()
            async with await RawClient.connect("127.0.0.1", ready.port) as client:
                await client.send(request_bytes("GET", "/hold"))
                await service.holding.wait()
                send_signal(TERM)
                await until(lambda: service.readiness.draining)
                send_signal(INT)
                assert await running.code() == 130
                assert (await client.answer()).status == 503
            assert service.told == ["open", "let go", "close"]

    run(body())


def _invalid() -> Config:
    wrong = [Problem("tidegate.yaml", n, 1, "limit", "unknown key", "limits?") for n in (3, 4)]
    raise ConfigInvalid(wrong)


def _exposed() -> Config:
    guest = "{ principal: guest, tenant: demo, roles: [viewer] }"
    text = f"server: {{ host: 0.0.0.0 }}\nidentity: {{ anonymous: {guest} }}\n"
    return load_config_text(text, {})


def _crash() -> Config:
    raise LookupError("a value of the file")


def test_a_hangup_takes_the_new_configuration(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        service = FakeService()
        service.stale = ("server", "store")
        service.readiness.reload_failed = True
        async with supervised(service) as running:
            await running.ready()
            send_signal(HUP)
            await until(lambda: "restart_needed" in events(caplog.records))
            assert [config.revision for config in service.reloaded] == [demo_config().revision]
            assert not service.readiness.reload_failed
            (stale,) = [record for record in caplog.records if record.msg == "restart_needed"]
            assert vars(stale)["problem"] == "changes of: server, store"

    run(body())


@pytest.mark.parametrize("load", [_invalid, _exposed, _crash])
def test_a_bad_configuration_changes_nothing_but_one_line(
    run: Run, load: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        service = FakeService()
        async with supervised(service, load=load) as running:
            ready = await running.ready()
            send_signal(HUP)
            await until(lambda: service.readiness.reload_failed)
            assert service.reloaded == []
            assert service.metrics.failed_reloads == 1
            async with await RawClient.connect("127.0.0.1", ready.port) as client:
                assert (await client.ask("GET", "/")).body == b"main"
        lines = [record for record in caplog.records if record.msg.startswith("reload")]
        assert [line.msg for line in lines] == ["reload_failed_last_good_configuration_kept"]
        if load is _invalid:
            assert vars(lines[0])["problem"] == ("tidegate.yaml:3:1: limit: unknown key: limits?")
            assert vars(lines[0])["count"] == 2
        assert "a value of the file" not in caplog.text

    run(body())


class Outcome:
    def __init__(self) -> None:
        self.failed: list[bool] = []

    def reload_ended(self, *, failed: bool) -> None:
        self.failed.append(failed)


def test_a_reload_cannot_open_a_listener_that_strangers_reach(run: Run) -> None:
    # The address of the file counts only after a restart; this one is listened on.
    async def body() -> None:
        taken: list[Config] = []
        outcome = Outcome()

        async def take(config: Config) -> tuple[str, ...]:
            taken.append(config)
            return ()

        everywhere = Settings(host="0.0.0.0")  # noqa: S104 - never bound here
        await Reloads(demo_config, take, outcome, everywhere).once()
        assert (taken, outcome.failed) == ([], [True])
        await Reloads(demo_config, take, outcome, Settings()).once()
        assert (len(taken), outcome.failed) == (1, [True, False])

    run(body())


def test_a_bug_in_taking_it_over_leaves_the_gateway_running(run: Run) -> None:
    async def body() -> None:
        service = FakeService()
        service.reload_bug = LookupError("bug")
        async with supervised(service) as running:
            await running.ready()
            send_signal(HUP)
            await until(lambda: service.readiness.reload_failed)
            service.reload_bug = None
            send_signal(HUP)
            await until(lambda: len(service.reloaded) == 1)
            assert not running.task.done()

    run(body())


def test_a_change_of_the_file_is_taken_once_it_rests(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text("demo: true\n")
        service = FakeService()
        async with supervised(service, watch=path) as running:
            await running.ready()
            path.write_text("demo: true\nmcp: {}\n")
            await until(lambda: len(service.reloaded) == 1)
            # Editors and config maps replace the file; for a moment there is none.
            path.unlink()
            newer = tmp_path / "newer"
            newer.write_text("demo: true\nmcp: {}\n")
            newer.rename(path)
            await until(lambda: len(service.reloaded) == 2)

    run(body())


def test_a_file_that_is_still_being_written_is_not_read(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text("{}")
        service = FakeService()
        async with supervised(service, watch=path) as running:
            await running.ready()
            written = asyncio.Event()
            asyncio.get_running_loop().call_later(0.1, written.set)
            while not written.is_set():  # as often as the loop turns, and it looks every 5 ms
                path.write_text(path.read_text() + " ")
                await turn()
                assert service.reloaded == []
            await until(lambda: len(service.reloaded) == 1)

    run(body())


def test_a_change_while_the_stores_open_is_taken_as_well(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text("{}")

        class Slow(FakeService):
            async def open(self) -> None:
                await super().open()
                path.write_text("{ demo: true }")

        service = Slow()
        async with supervised(service, watch=path) as gateway:
            await gateway.ready()
            await until(lambda: bool(service.reloaded))

    run(body())


def test_a_taken_port_is_said_and_ends_with_1(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for settings in ({"port": port}, {"admin_port": port}):
                async with supervised(FakeService(), **settings) as running:
                    assert await running.code() == 1
                    assert running.service.told == []
        said = [record for record in caplog.records if record.msg == "cannot_listen"]
        assert [vars(record)["listener"] for record in said] == ["main", "admin"]
        assert {vars(record)["port"] for record in said} == {port}

    run(body())


def test_a_store_that_cannot_open_ends_with_1(run: Run) -> None:
    async def body() -> None:
        service = FakeService()
        service.store_fails = True
        async with supervised(service) as running:
            assert await running.code() == 1

    run(body())


def test_what_runs_beside_starts_before_and_ends_after_the_gateway(run: Run) -> None:
    async def body() -> None:
        service = FakeService()

        @asynccontextmanager
        async def companion() -> Any:
            service.told.append("companion")
            yield None
            service.told.append("companion left")

        async def show(ready: Ready) -> None:
            service.told.append("shown")
            ready.stop()

        async with supervised(service, companion=companion(), also=show) as running:
            assert await running.code() == 0
            assert service.told == [
                "companion",
                "open",
                "shown",
                "let go",
                "close",
                "companion left",
            ]

    run(body())


def test_a_show_that_fails_ends_the_gateway_with_1(run: Run) -> None:
    async def body() -> None:
        async def show(_ready: Ready) -> None:
            raise LookupError("bug")

        async with supervised(FakeService(), also=show) as running:
            assert await running.code() == 1

    run(body())


def test_refusals_of_the_connection_are_counted(run: Run) -> None:
    async def body() -> None:
        service = FakeService()
        async with supervised(service) as running:
            ready = await running.ready()
            for port in (ready.port, ready.admin_port):
                async with await RawClient.connect("127.0.0.1", port) as client:
                    await client.send(b"nonsense\r\n\r\n")
                    await client.rest()
            assert service.metrics.codes == ["gateway.invalid_request"] * 2

    run(body())
