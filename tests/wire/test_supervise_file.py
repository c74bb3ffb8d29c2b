"""A configuration file that is emptied, turned into the demo world, or gone while we serve."""

import logging
from pathlib import Path

import pytest

from tests.wire.conftest import Run
from tests.wire.supervised import HUP, FakeService, events, send_signal, supervised, until
from tidegate.config import Config, load_config

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


OWN = "identity: { anonymous: { principal: guest, tenant: demo, roles: [viewer] } }\n"


@pytest.mark.parametrize("way", ["signal", "change"])
@pytest.mark.parametrize(
    ("text", "words"), [("", "the file is empty"), ("# soon\n", "is empty"), ("demo: true", "demo")]
)
def test_a_file_that_becomes_the_demo_world_is_not_taken(
    run: Run, tmp_path: Path, way: str, text: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text(OWN)
        service = FakeService()
        service.demo = False

        def load() -> Config:
            return load_config(path, {}, empty_is_demo=False)

        watch = path if way == "change" else None
        async with supervised(service, load=load, watch=watch) as running:
            await running.ready()
            path.write_text(text)
            if way == "signal":
                send_signal(HUP)
            await until(lambda: service.readiness.reload_failed)
            assert service.reloaded == []
            assert service.metrics.failed_reloads == 1
            path.write_text(OWN + "\n")
            if way == "signal":
                send_signal(HUP)
            await until(lambda: len(service.reloaded) == 1)
            assert not service.readiness.reload_failed
        (line,) = [record for record in caplog.records if record.msg.startswith("reload_failed")]
        assert words in vars(line)["problem"]

    run(body())


def test_a_file_that_vanishes_is_said_once_each_time_and_changes_nothing(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> int:
        return events(caplog.records).count("config_file_missing")

    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text(OWN)
        service = FakeService()
        async with supervised(service, watch=path) as running:
            await running.ready()
            path.unlink()
            await until(lambda: said() == 1)
            path.write_text(OWN + "\n")
            await until(lambda: len(service.reloaded) == 1)
            assert said() == 1
            path.unlink()
            await until(lambda: said() == 2)
            assert not service.readiness.reload_failed
            assert len(service.reloaded) == 1
        missing = [record for record in caplog.records if record.msg == "config_file_missing"]
        assert [(line.levelname, vars(line)["path"]) for line in missing] == [
            ("WARNING", str(path)),
            ("WARNING", str(path)),
        ]

    run(body())


def test_a_change_that_a_hangup_has_taken_is_not_taken_again(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        path = tmp_path / "tidegate.yaml"
        path.write_text(OWN)
        service = FakeService()
        async with supervised(service, watch=path) as running:
            await running.ready()
            path.write_text(OWN + "\n")
            send_signal(HUP)
            await until(lambda: len(service.reloaded) == 1)
            looks = iter(range(100))
            await until(lambda: next(looks) == 60)  # some twelve looks at the file
            assert len(service.reloaded) == 1
            path.write_text(OWN + "\n\n")
            await until(lambda: len(service.reloaded) == 2)
        assert events(caplog.records).count("reloaded") == 2

    run(body())


def test_a_deny_list_that_changes_is_a_reload(run: Run, tmp_path: Path) -> None:
    async def body() -> None:
        path, names = tmp_path / "tidegate.yaml", tmp_path / "names.txt"
        names.write_text("Jane Doe\n")
        path.write_text(OWN + "redaction: { deny_list: [names.txt] }\n")
        service = FakeService()
        service.demo = False

        def load() -> Config:
            return load_config(path, {})

        async with supervised(service, load=load, watch=path, config=load()) as running:
            await running.ready()
            names.write_text("Jane Doe\nMax Roe\n")
            await until(lambda: len(service.reloaded) == 1)
            assert service.reloaded[0].deny_files["names.txt"].everybody == ("Jane Doe", "Max Roe")
            names.unlink()
            await until(lambda: service.readiness.reload_failed)
            names.write_text("Max Roe\n")
            await until(lambda: len(service.reloaded) == 2)
            assert not service.readiness.reload_failed

    run(body())


RULES_DIR = OWN + "mcp: { rules_dir: tenants, rules: [{ allow: { roles: [viewer] } }] }\n"


def test_rules_of_a_tenant_are_taken_when_they_are_right_and_kept_when_not(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        path, tenants = tmp_path / "tidegate.yaml", tmp_path / "tenants"
        tenants.mkdir()
        path.write_text(RULES_DIR)
        service = FakeService()
        service.demo = False
        known = load_config(path, {})

        def load() -> Config:
            return load_config(path, {}, known=known.rules_dir)

        def put(name: str, text: str) -> None:
            aside = tenants / f".{name}"
            aside.write_text(text)
            aside.rename(tenants / name)

        async with supervised(service, load=load, watch=path, config=known) as running:
            await running.ready()
            put("acme.yaml", "rules: [{ deny: { tools: [a] } }]")
            await until(lambda: len(service.reloaded) == 1)
            known = service.reloaded[-1]
            assert [len(file.rules) for file in known.rules_dir.files.values()] == [1]
            put("acme.yaml", "rules: [{ deny: { tools: [a")
            await until(lambda: len(service.reloaded) == 2)
            known = service.reloaded[-1]
            # Another tenant is served meanwhile, and the fault is not said again.
            put("other.yaml", "rules: []")
            await until(lambda: len(service.reloaded) == 3)
            known = service.reloaded[-1]
            assert [file.tenant for file in known.rules_dir.files.values()] == ["acme", "other"]
            assert known.rules_dir.broken == ["tenants/acme.yaml"]
            assert not service.readiness.reload_failed
            (tenants / "acme.yaml").unlink()
            await until(lambda: len(service.reloaded) == 4)
            assert list(service.reloaded[-1].rules_dir.files) == ["other"]
        kept = [one for one in caplog.records if one.msg == "last_good_rules_of_tenant_kept"]
        assert events(caplog.records).count("rules_of_tenants_removed") == 1
        (line,) = kept
        assert vars(line)["problem"].startswith("tenants/acme.yaml:1:26: ")

    run(body())
