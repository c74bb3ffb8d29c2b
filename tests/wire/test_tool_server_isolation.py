"""Is stdout of a tool server pure, and its stdin its own, whatever runs in it? (S1 of the research)

A real process over real pipes, with PYTHONUNBUFFERED unset (what a client starts) and set.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.noisy_tools import WAYS, junk
from tests.wire.test_task1_stdio import (
    HELLO,
    READY,
    SERVE,
    WAIT_S,
    call,
    environment,
    lines,
    talk,
)

ROOT = Path(__file__).parent.parent.parent
NOISY = [*SERVE, "tests.wire.noisy_tools:tools"]


@pytest.mark.full
@pytest.mark.parametrize("unbuffered", [False, pytest.param(True, marks=pytest.mark.full)])
def test_whatever_writes_to_stdout_writes_to_stderr(*, unbuffered: bool) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        NOISY,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=ROOT,
        env=environment(unbuffered=unbuffered),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(HELLO, READY, call(1, "noisy", {}), call(2, "noisy", {})))
        process.stdin.flush()
        # The client leaves when it has its answers; what is printed after that has to be junk, too.
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        rest, said = process.communicate(timeout=WAIT_S)
    errors = said.decode()
    assert rest == b""
    assert process.returncode == 0
    assert [answer["id"] for answer in answers] == ["hello", 1, 2]
    # Nobody but the server reads its stdin: for all others it is empty.
    assert [answer["result"]["content"][0]["text"] for answer in answers[1:]] == ["''", "''"]
    assert f"{junk('a child')} ''" in errors
    assert {way: errors.count(junk(way)) > 0 for way in WAYS} == dict.fromkeys(WAYS, True)
    assert "most recent call first" in errors


@pytest.mark.full
def test_what_the_interpreter_prints_while_it_starts_goes_to_stderr(tmp_path: Path) -> None:
    # With PYTHONUNBUFFERED it has left before a line of ours runs; only a wrap can hold that back.
    (tmp_path / "sitecustomize.py").write_text("print('junk of sitecustomize')\n")
    answers, errors = talk(
        lines(HELLO),
        env=environment(unbuffered=False, PYTHONPATH=":".join((str(tmp_path), *sys.path))),
    )
    assert [answer["id"] for answer in answers] == ["hello"]
    assert "junk of sitecustomize" in errors
