"""Does the support desk of `tidegate mcp serve` keep its books in the folder it runs in?"""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.test_task1_stdio import HELLO, READY, REFUND, call, lines, talk
from tidegate.cli import run

BOOKS = "tidegate-support.db"
LOOKUP = {"customer_id": "CUST-10001"}


@pytest.mark.full
def test_balances_and_keys_outlive_the_process(tmp_path: Path) -> None:
    keyed = call(1, "trigger_refund", REFUND | {"refund_id": "k-1"})
    (_, first), _ = talk(lines(HELLO, READY, keyed), cwd=tmp_path)
    # Whoever ends in order leaves one file.
    assert [path.name for path in tmp_path.iterdir()] == [BOOKS]
    answers, _ = talk(lines(HELLO, READY, keyed), cwd=tmp_path)
    assert first["result"]["structuredContent"]["balance"] == "248.50"
    assert "_meta" not in first["result"]
    assert answers[1]["result"].pop("_meta") == {"tidegate/replayed": True}
    assert answers[1] == first
    with sqlite3.connect(tmp_path / BOOKS) as raw:
        found = raw.execute("select cents, refund_id, left_cents from refunds").fetchall()
    raw.close()
    assert found == [(150, "k-1", 24_850)]


@pytest.mark.full
def test_a_store_that_breaks_tells_the_client_an_incident_and_no_more(tmp_path: Path) -> None:
    talk(lines(HELLO, READY), cwd=tmp_path)
    with sqlite3.connect(tmp_path / BOOKS) as raw:
        raw.execute("drop table refunds")
    raw.close()
    answers, errors = talk(lines(HELLO, READY, call(1, "trigger_refund", REFUND)), cwd=tmp_path)
    error = answers[1]["error"]
    assert (error["code"], set(error["data"])) == (-32603, {"incident"})
    assert "refunds" not in str(answers)
    assert f"incident={error['data']['incident']}" in errors


@pytest.mark.parametrize(
    ("spoil", "meaning"),
    [
        (lambda path: path.mkdir(), "it cannot be opened"),
        (lambda path: path.write_bytes(b"no database" * 100), "it is no database"),
    ],
)
def test_books_that_cannot_be_kept_are_one_line_on_stderr(
    spoil: object,
    meaning: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert callable(spoil)
    spoil(tmp_path / BOOKS)
    assert run(["mcp", "serve", "--http", "127.0.0.1:0"]) == 1
    told = capsys.readouterr()
    assert told.err == f"Error: {BOOKS} in this folder: {meaning}\n"
    assert told.out == ""


@pytest.mark.full
def test_a_folder_that_is_gone_is_a_clear_error_and_stdout_stays_pure(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone');"
        "done = subprocess.run([sys.executable, '-m', 'tidegate', 'mcp', 'serve'],"
        " capture_output=True, stdin=subprocess.DEVNULL, timeout=60);"
        "os.write(2, done.stderr); os.write(2, b'%d bytes, exit %d' % (len(done.stdout),"
        " done.returncode))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=tmp_path, timeout=90, check=True
    )
    assert done.stderr.decode() == (
        f"Error: {BOOKS} in this folder: it cannot be opened\n0 bytes, exit 1"
    )
