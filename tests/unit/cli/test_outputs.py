"""What does a command do whose output is full, closed, or no longer read?"""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import cli
from tidegate.cli import run

pytestmark = pytest.mark.full

FULL = Path("/dev/full")
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """`command` in a shell, "$0" being Python; its stdout is buffered, as for a user."""
    return subprocess.run(
        ["sh", "-c", command, sys.executable],
        capture_output=True,
        env=BUFFERED,
        check=False,
        timeout=15,
    )


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("command", ["schema", "check", "--version"])
@pytest.mark.full
def test_a_full_output_is_one_line_and_exit_code_1(command: str) -> None:
    done = shell(f'"$0" -m tidegate {command} > /dev/full')
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        b"Error: the output cannot be written: No space left on device"
    ]


def test_a_reader_that_leaves_is_no_news() -> None:
    done = shell('( "$0" -m tidegate schema; echo code $? >&2 ) | true')
    assert done.stderr.splitlines() == [b"code 1"]


def test_a_closed_output_takes_nothing_and_is_not_taken_by_a_file() -> None:
    done = shell('"$0" -m tidegate schema >&-')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = shell(
        'exec "$0" -c \'import sys; from tidegate import cli; sys.argv[1:] = ["--version"]\n'
        "try: cli.main()\n"
        'finally: sys.stderr.write(str(open("/dev/null").fileno() > 2))\' >&- <&-'
    )
    assert done.stderr == b"True"


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(errno.ENOENT, "no such file", "a.yaml"), OSError(errno.EMFILE, "too many")],
    ids=["of a file", "of something else"],
)
def test_other_errors_of_the_system_are_not_taken_for_it(
    error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: object, **_options: object) -> int:
        raise error

    monkeypatch.setattr(cli.command_line, "main", fails)
    with pytest.raises(OSError, match=error.strerror):
        run(["check"])
