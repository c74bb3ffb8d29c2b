"""When does `serve` refuse to run, and with which words and exit codes does it end?"""

import asyncio
import json
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import HOST, started, tidegate
from tests.acceptance.worlds import KEY, chat, configuration, write
from tidegate.demo.listener import bind, port_of

PUBLIC = {"host": "0.0.0.0", "port": 0, "admin": {"port": 0}}  # noqa: S104 - what is refused here
NOWHERE = "http://127.0.0.1:9"


def refusal(folder: Path, tree: dict[str, Any] | None, *arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a `serve` that must end by itself."""
    if tree is not None:
        write(folder, tree)
    done = tidegate(folder, "serve", *arguments)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "tidegate ready" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.full
def test_the_demo_world_is_not_served_to_a_network(tmp_path: Path) -> None:
    code, said = refusal(tmp_path, None, "--host", PUBLIC["host"], "--port", "0")
    assert code == 3
    assert said.count("everybody knows this demo key") == 3
    assert "listen on 127.0.0.1" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_neither_an_anonymous_principal_nor_an_open_admin_listener_is(tmp_path: Path) -> None:
    guest = {"principal": "guest", "tenant": "t", "roles": ["r"]}
    server = PUBLIC | {"admin": {"host": PUBLIC["host"], "port": 0}}
    tree = configuration(NOWHERE, server=server, identity={"anonymous": guest})
    code, said = refusal(tmp_path, tree)
    assert code == 3
    lines = said.splitlines()
    assert any("identity.anonymous: anybody on the network may call" in line for line in lines)
    assert any("server.admin.host: " in line and "no token" in line for line in lines)
    assert all(line.startswith("tidegate.yaml:") for line in lines)


@pytest.mark.full
def test_a_careful_file_is_served_to_a_network_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    async def body() -> None:
        digest = sha256(KEY.encode()).hexdigest()
        key = {"sha256": digest, "principal": "p", "tenant": "t", "roles": ["r"]}
        tree = configuration(NOWHERE, server=PUBLIC, identity={"keys": [key]})
        write(tmp_path, tree)
        async with started(tmp_path, "serve") as gateway:
            await gateway.ready()
            # Nobody listens behind it: the request got as far as it could.
            assert (await chat(gateway)).status == 502
            gateway.signal(signal.SIGINT)
            assert await gateway.ended() == 0
            assert "Traceback" not in gateway.said
            assert gateway.stdout == b""

    asyncio.run(body())


@pytest.mark.parametrize("listener", ["main", pytest.param("admin", marks=pytest.mark.full)])
def test_a_taken_port_is_exit_code_1_and_named(tmp_path: Path, listener: str) -> None:
    with bind(0) as taken:
        port = port_of(taken)
        server = {
            "port": port if listener == "main" else 0,
            "admin": {"port": port if listener == "admin" else 0},
        }
        code, said = refusal(tmp_path, configuration(NOWHERE, server=server))
    assert code == 1
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    (event,) = [event for event in events if event["event"] == "cannot_listen"]
    assert (event["listener"], event["host"], event["port"]) == (listener, HOST, port)
    assert event["problem"].startswith("Address already in use")


@pytest.mark.full
@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"store": {"url": "sqlite:///missing/l.db"}}, id="ledger"),
        pytest.param({"records": {"path": "missing/r.db"}}, id="records", marks=pytest.mark.full),
    ],
)
def test_a_store_that_does_not_open_is_exit_code_1(tmp_path: Path, part: dict[str, Any]) -> None:
    code, said = refusal(tmp_path, configuration(NOWHERE, **part))
    assert code == 1
    (event,) = [json.loads(line) for line in said.splitlines() if "store_unavailable" in line]
    assert event["problem"].startswith(next(iter(part)))
    assert event["problem"].endswith("the directory does not exist")


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--port", "x"), 2, "Invalid value for '--port'"),
        (("--workers", "0"), 2, "Invalid value for '--workers'"),
        (("--config", "missing.yaml"), 3, "there is no such file"),
    ],
    ids=["value", "workers", "file"],
)
def test_wrong_usage_is_2_and_a_wrong_file_3(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    seen, said = refusal(tmp_path, None, *arguments)
    assert seen == code
    assert words in said
