"""Do the make targets of the README exist, and do the pairs of terminals they stand for work?"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.acceptance.processes import START_S, Running, started
from tests.seed.harness import deltas
from tests.seed.lines import CURL_LINES, parse
from tidegate.demo.leaky_provider import MASKED
from tidegate.testing.sockets import Answer, RawClient

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "demo": "demo",
    "task1": "mcp serve",
    "task2-downstream": "demo mcp-backend --port 9001",
    "task2-gateway": "serve --config examples/mcp-gateway.yaml --port 9000",
    "task3-provider": "demo leaky-provider --port 9101",
    "task3-gateway": "serve --config examples/guardrail.yaml --port 9100",
    "task4-providers": "demo providers --port 9201",
    "task4-gateway": "serve --config examples/router.yaml --port 9200",
}
_OF_OUTER_MAKE = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS"})
_PART_READY = re.compile(r" at http://127\.0\.0\.1:(\d+)/")


def recipe(target: str) -> list[str]:
    """What make would run, the set-up left out; also when make is what runs this test."""
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/.ready", target],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in _OF_OUTER_MAKE},
        capture_output=True,
        text=True,
        timeout=START_S,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("target", COMMANDS)
def test_a_target_runs_its_command_on_the_ports_of_the_readme(target: str) -> None:
    assert recipe(target) == [f".venv/bin/tidegate {COMMANDS[target]}"]


@pytest.mark.parametrize("target", ["setup", "test", "test-1", "test-2", "test-3", "test-4"])
def test_the_targets_for_tests_exist_and_each_pillar_has_some(target: str) -> None:
    lines = recipe(target)
    if target != "setup":
        assert "-m pytest" in lines[-1]
    if "-" in target:
        paths = [word for word in lines[-1].split() if word.startswith("tests/")]
        assert paths
        assert all((ROOT / path).exists() for path in paths)


@asynccontextmanager
async def terminal(folder: Path, target: str) -> AsyncIterator[Running]:
    """The command of a target on a free port, told to end as by Ctrl-C or a closed terminal."""
    command = COMMANDS[target].split()
    usual, command[-1] = command[-1], "0"
    tidegate = Path(sys.executable).parent / "tidegate"
    async with started(folder, *command, program=(str(tidegate),)) as running:
        if command[0] == "serve":
            await running.ready()
        else:
            await running.until(lambda: _PART_READY.search(running.stdout.decode()) is not None)
            found = _PART_READY.search(running.stdout.decode())
            assert found is not None
            running.port = int(found[1])
        if command[0] == "demo":
            point_examples_at(folder, usual, running.port)
        yield running
        assert await running.stop() == 0


def point_examples_at(folder: Path, usual: str, port: int) -> None:
    """The profiles, with a free port in place of the one a part usually has."""
    (folder / "examples").mkdir()
    for path in (ROOT / "examples").glob("*.yaml"):
        text = path.read_text().replace(f":{usual}/", f":{port}/")
        text = re.sub(r"admin: \{ port: \d+ \}", "admin: { port: 0 }", text)
        (folder / "examples" / path.name).write_text(text)


async def curl(running: Running, name: str) -> Answer:
    """One of the README's curl lines, at the port of `running`."""
    request = parse(CURL_LINES[name])
    async with await RawClient.connect("127.0.0.1", running.port) as client:
        answer: Answer = await client.ask(
            request.method, request.target, headers=request.headers, body=request.body
        )
        return answer


async def denied(gateway: Running, _part: Running) -> None:
    answer = json.loads((await curl(gateway, "denied tool call")).body)
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": -32001,
            "message": "Unauthorized Tool Call",
            "data": {
                "tool": "admin_reset_key",
                "required_role": "admin",
                "your_role": "viewer",
            },
        },
    }


async def masked(gateway: Running, _part: Running) -> None:
    answer = await curl(gateway, "masked stream")
    assert deltas(answer.body) == {0: MASKED}
    counts = "{'email': 1, 'ssn': 1, 'credit_card': 1, 'api_key': 1}"
    tail = f": guardrail redactions={counts}\ndata: [DONE]\n\n"
    assert answer.body.endswith(tail.encode())
    assert answer.header("x-accel-buffering") == "no"
    assert answer.header("cache-control") == "no-cache"


async def routed(gateway: Running, part: Running) -> None:
    answer = await curl(gateway, "routed chat")
    assert answer.header("x-tidegate-attempts") == "primary:ok"
    assert (await curl(part, "provider switch")).status == 200
    answer = await curl(gateway, "routed chat")
    assert answer.status == 200
    assert answer.header("x-tidegate-attempts") == "primary:rate_limited,backup:ok"


@pytest.mark.full
@pytest.mark.parametrize(
    ("part", "gateway", "scene"),
    [
        ("task2-downstream", "task2-gateway", denied),
        ("task3-provider", "task3-gateway", masked),
        ("task4-providers", "task4-gateway", routed),
    ],
    ids=["task2", "task3", "task4"],
)
def test_two_terminals_and_a_curl_line_show_what_the_readme_shows(
    tmp_path: Path,
    part: str,
    gateway: str,
    scene: Callable[[Running, Running], Awaitable[None]],
) -> None:
    async def body() -> None:
        async with terminal(tmp_path, part) as behind, terminal(tmp_path, gateway) as front:
            await scene(front, behind)

    asyncio.run(body())
