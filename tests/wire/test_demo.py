"""Does the demo show its three scenes through a real gateway, stay up, and end when told to?"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from tests.seed.lines import CurlRequest, parse
from tidegate.demo.leaky_provider import MASKED
from tidegate.demo.listener import bind, port_of

TIDEGATE = [sys.executable, "-m", "tidegate"]
WAIT_S = 60.0  # a whole process tree, on a machine that is busy with other tests


@contextmanager
def started(
    folder: Path, *arguments: str, errors: Path = Path(os.devnull)
) -> Iterator[tuple[subprocess.Popen[bytes], Queue[str]]]:
    """A process and the lines of its stdout as they come; killed if it outlives the block."""
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [*TIDEGATE, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    lines: Queue[str] = Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line.decode().rstrip("\n"))

    reader = Thread(target=read)
    reader.start()
    try:
        yield process, lines
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=WAIT_S)
        reader.join(timeout=WAIT_S)
        if process.stdout is not None:
            process.stdout.close()


def until(lines: Queue[str], wanted: str) -> list[str]:
    """The lines up to the first with `wanted` in it."""
    seen: list[str] = []
    while not seen or wanted not in seen[-1]:
        seen.append(lines.get(timeout=WAIT_S))
    return seen


def commands(shown: list[str]) -> list[str]:
    """What follows each prompt, continuation lines joined."""
    text = "\n".join(shown).replace("\\\n", " ")
    return [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--exit",), 130)], ids=["stay", "exit"])
@pytest.mark.full
def test_ctrl_c_during_the_scenes_ends_it_quietly(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    with started(tmp_path, "demo", "--port", "0", *options, errors=tmp_path / "stderr") as (
        process,
        lines,
    ):
        until(lines, "the client receives:")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT_S) == code
    assert [line[:15] for line in (tmp_path / "stderr").read_text().splitlines()] == [
        "tidegate ready:"
    ]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('"$0" -m tidegate demo --exit --port 0 >&-; echo code $? >&2', 0),
        ('( "$0" -m tidegate demo --port 0; echo code $? >&2 ) | true', 1),
    ],
    ids=["closed", "left"],
)
@pytest.mark.full
def test_an_output_that_nobody_sees_is_no_traceback(
    command: str, code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=WAIT_S,
    )
    ready, *rest = done.stderr.decode().splitlines()
    assert ready.startswith("tidegate ready:")
    assert rest == [f"code {code}"]


@pytest.mark.full
def test_three_scenes_play_and_it_stays_up_for_the_same_requests(tmp_path: Path) -> None:
    with started(tmp_path, "demo", "--port", "0") as (process, lines):
        shown = until(lines, "stays up")
        text = "\n".join(shown)
        assert "\033" not in text
        assert f"   {MASKED}" in shown
        assert ": guardrail redactions=" in text
        assert '"message":"Unauthorized Tool Call"' in text
        assert "   []" in shown
        assert "primary=ok   -> 200 provider=primary attempts=primary:ok" in text
        assert "-> 200 provider=backup attempts=primary:rate_limited,backup:ok" in text
        typed = commands(shown)
        requests = [parse(line) for line in typed if line.startswith("curl")]
        assert [request.method for request in requests] == ["POST"] * 4
        assert "Unauthorized Tool Call" in fetch(requests[1])
        explained = [line.split()[-1] for line in typed if " explain " in line]
        assert len(explained) == 3
        for identifier in explained:
            done = subprocess.run(
                [*TIDEGATE, "explain", identifier],
                cwd=tmp_path,
                capture_output=True,
                timeout=WAIT_S,
                check=True,
            )
            assert identifier in done.stdout.decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT_S) == 0


@pytest.mark.full
def test_with_exit_it_ends_after_the_scenes_and_steps_aside_for_ports_that_are_taken(
    tmp_path: Path,
) -> None:
    with bind(9101, fall_back=True), bind(9201, fall_back=True), bind(9001, fall_back=True):
        done = subprocess.run(
            [*TIDEGATE, "demo", "--port", "0", "--exit"],
            cwd=tmp_path,
            capture_output=True,
            timeout=WAIT_S,
            check=True,
        )
    assert b"provider=backup" in done.stdout
    assert b":9201/_set" not in done.stdout


def fetch(request: CurlRequest) -> str:
    """The body that a printed curl line would show."""
    command = "import sys, http.client, json\n" + (
        "r = json.load(sys.stdin)\n"
        "c = http.client.HTTPConnection('127.0.0.1', r['port'], timeout=5)\n"
        "c.request(r['method'], r['target'], r['body'], dict(r['headers']))\n"
        "sys.stdout.write(c.getresponse().read().decode())"
    )
    described = {
        "port": request.port,
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "body": request.body.decode(),
    }
    done = subprocess.run(
        [sys.executable, "-c", command],
        input=json.dumps(described).encode(),
        capture_output=True,
        timeout=WAIT_S,
        check=True,
    )
    return done.stdout.decode()


@pytest.mark.parametrize(
    "part",
    [
        "providers",
        *(pytest.param(p, marks=pytest.mark.full) for p in ("mcp-backend", "leaky-provider")),
    ],
)
def test_a_part_alone_says_where_it_is_and_ends_on_sigterm(part: str, tmp_path: Path) -> None:
    with started(tmp_path, "demo", part, "--port", "0") as (process, lines):
        line = until(lines, "http://")[-1]
        assert re.fullmatch(rf"{part} at http://127\.0\.0\.1:[1-9]\d*/\S+ \(Ctrl-C ends it\)", line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAIT_S) == 0


@pytest.mark.full
def test_a_part_whose_port_is_taken_says_so_and_fails(tmp_path: Path) -> None:
    with bind(0) as taken:
        port = port_of(taken)
        done = subprocess.run(
            [*TIDEGATE, "demo", "providers", "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
    assert done.returncode == 1
    assert f"port {port}" in done.stderr.decode()
