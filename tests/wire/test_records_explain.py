"""Does `tidegate explain` answer from the file alone?"""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.records.traffic import answered, called, request_id
from tidegate.cli import run
from tidegate.clock import SystemClock
from tidegate.records import Recorder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, without any configuration of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return tmp_path


async def one_request(path: Path) -> None:
    recorder = Recorder(path, SystemClock())
    await recorder.open()
    answered(recorder, 1)
    await recorder.close()


Capture = pytest.CaptureFixture[str]


def test_without_a_configuration_the_default_file_is_read(folder: Path, capsys: Capture) -> None:
    asyncio.run(one_request(folder / "tidegate-records.db"))
    assert run(["explain", request_id(1)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"request    {request_id(1)}\noutcome    chat, ok, HTTP 200, ")
    assert "   2  attempt   ok    provider primary\n" in out


def test_the_configuration_names_the_file(folder: Path, capsys: Capture) -> None:
    (folder / "tidegate.yaml").write_text("records: { path: other.db }\n")
    asyncio.run(one_request(folder / "other.db"))
    assert run(["explain", "--json", request_id(1)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["request_id"], document["state"]) == (request_id(1), "ended")


def test_it_works_while_the_gateway_runs(folder: Path, capsys: Capture) -> None:
    async def body() -> int:
        recorder = Recorder(folder / "tidegate-records.db", SystemClock())
        await recorder.open()
        await called(recorder, 1)
        code = await asyncio.to_thread(run, ["explain", request_id(1)])
        await recorder.close()
        return code

    assert asyncio.run(body()) == 0
    assert "outcome    mcp, running\n" in capsys.readouterr().out


def test_secrets_of_the_service_are_not_needed_to_read_its_records(
    folder: Path, capsys: Capture
) -> None:
    config = folder / "service.yaml"
    config.write_text(
        "records: { path: other.db }\n"
        "identity:\n"
        "  keys: [{ key: '${env:NOT_SET_HERE}', principal: a, tenant: a, roles: [r] }]\n"
    )
    asyncio.run(one_request(folder / "other.db"))
    assert run(["explain", "--config", str(config), request_id(1)]) == 0
    assert "outcome    chat, ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("records: { path: '' }\n", "records.path"),
        ("records: { pth: other.db }\n", "records.pth"),
        ("records: [\n", "service.yaml:"),
    ],
)
def test_a_records_section_that_is_wrong_is_exit_code_3(
    folder: Path, capsys: Capture, text: str, words: str
) -> None:
    config = folder / "service.yaml"
    config.write_text(text)
    assert run(["explain", "--config", str(config), request_id(1)]) == 3
    assert words in capsys.readouterr().err


def test_an_unknown_id_is_said_clearly(folder: Path, capsys: Capture) -> None:
    asyncio.run(one_request(folder / "tidegate-records.db"))
    assert run(["explain", "no-such\x1b[2J"]) == 1
    assert capsys.readouterr().err == (
        "Error: No record of the request 'no-such\\x1b[2J' in tidegate-records.db. Authenticated"
        " requests have one, for as long as records.keep_days and records.max_bytes say.\n"
    )


def test_a_missing_file_and_a_foreign_one_are_said_clearly(folder: Path, capsys: Capture) -> None:
    assert run(["explain", request_id(1)]) == 1
    assert capsys.readouterr().err == (
        "Error: No records at tidegate-records.db: there is no such file.\n"
    )
    (folder / "tidegate-records.db").write_bytes(b"not a database " * 100)
    assert run(["explain", request_id(1)]) == 1
    assert "it cannot be read (it is no database)" in capsys.readouterr().err
    (folder / "tidegate-records.db").write_bytes(b"")
    assert run(["explain", request_id(1)]) == 1
    assert "this release cannot read it (foreign file)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["one", "two"]])
def test_anything_but_one_id_is_a_usage_error(words: list[str], capsys: Capture) -> None:
    assert run(["explain", *words]) == 2
    assert "Give one request id" in capsys.readouterr().err
