"""`tidegate providers` against what may listen there: ours, nothing, somebody else."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.ports import free_port
from tests.wire.listening import listening
from tidegate.cli import run
from tidegate.config import load_config
from tidegate.gateway.app import Gateway
from tidegate.gateway.target_rows import TargetsReport

TOKEN, OTHER = ("-".join((word, "token", "of", "an", "operator")) for word in ("right", "wrong"))
SECRETS = ["-".join(("sk", "provider", str(number), "secret")) for number in range(2)]
ENVIRON = {"ADMIN_TOKEN": TOKEN, "OTHER_TOKEN": OTHER, "ONE": SECRETS[0], "TWO": SECRETS[1]}
TREE: dict[str, Any] = {
    "identity": {"keys": [{"sha256": "0" * 64, "principal": "vera", "tenant": "acme"}]},
    "providers": {
        "primary": {
            "base_url": "http://127.0.0.1:1/v1",
            "credentials": ["${env:ONE}", "${env:TWO}"],
        },
        "backup": {"base_url": "http://127.0.0.1:1/v1"},
    },
    "store": {"url": "memory:"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_CONFIG", raising=False)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def write(folder: Path, port: int, token: str | None = None, host: str | None = None) -> Path:
    """The file; a `host` beside loopback comes with a name by which it wants to be asked."""
    named = {"token": token, "host": host}
    admin = {"port": port} | {name: value for name, value in named.items() if value is not None}
    path = folder / "tidegate.yaml"
    names = {} if host is None else {"allowed_hosts": ["gw.example"]}
    tree = TREE | {"server": {"admin": admin, **names}}
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    return path


async def asked(*arguments: str) -> int:
    return await asyncio.to_thread(run, ["providers", *arguments])


def beside_a_gateway(
    folder: Path,
    token: str | None,
    body: Callable[[int], Awaitable[None]],
    host: str | None = None,
) -> None:
    """`body` is given the port of the admin listener of a gateway whose file names `token`."""

    async def around() -> None:
        gateway = Gateway(load_config(write(folder, 0, token, host), ENVIRON))
        async with listening(gateway.admin) as scene:
            await body(scene.port)

    asyncio.run(around())


def test_the_targets_of_the_file_are_shown_also_those_never_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body(port: int) -> None:
        write(folder, port, "${env:ADMIN_TOKEN}")
        assert await asked() == 0
        assert await asked("--json") == 0

    beside_a_gateway(folder, "${env:ADMIN_TOKEN}", body)
    shown = capsys.readouterr()
    table, _, document = shown.out.partition("{")
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["target", "primary", "primary", "backup"]
    assert all("never asked" in line for line in lines[1:])
    assert "\x1b" not in shown.out
    targets = json.loads("{" + document)["targets"]
    assert [(one["provider"], one["state"]) for one in targets] == [
        ("primary", "closed"),
        ("primary", "closed"),
        ("backup", "closed"),
    ]
    assert [one["credential"] and one["credential"]["index"] for one in targets] == [0, 1, None]
    assert not any(secret in shown.out + shown.err for secret in (*SECRETS, TOKEN))


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (None, "wants a token, and the file names none"),
        ("${env:OTHER_TOKEN}", "does not take the server.admin.token of the file"),
    ],
)
def test_without_the_right_token_it_says_so(
    token: str | None, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body(port: int) -> None:
        write(folder, port, token)
        assert await asked() == 1

    beside_a_gateway(folder, "${env:ADMIN_TOKEN}", body)
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""
    assert TOKEN not in shown.err
    assert OTHER not in shown.err


def test_a_listener_for_other_machines_is_asked_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body(port: int) -> None:
        write(folder, port, "${env:ADMIN_TOKEN}", everywhere)
        assert await asked() == 0
        write(folder, port, "${env:ADMIN_TOKEN}")
        assert await asked() == 1

    everywhere = "0.0.0.0"  # noqa: S104 - a file's word; the test listens on loopback
    beside_a_gateway(folder, "${env:ADMIN_TOKEN}", body, everywhere)
    shown = capsys.readouterr()
    assert "backup" in shown.out
    assert "refuses with 421" in shown.err


def test_where_nothing_listens_it_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    write(folder, port)
    assert run(["providers"]) == 1
    says = f"http://127.0.0.1:{port}/targets: nothing listens there (Connection refused)."
    assert says in capsys.readouterr().err


FOREIGN = {
    "a web page": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "its own 401": b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}",
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
    "another protocol": b"SSH-2.0-Something\r\n",
    "nothing at all": b"",
    "a page without end": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (1 << 25),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_server_is_called_one(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(FOREIGN[kind])
        writer.close()

    async def body() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            write(folder, server.sockets[0].getsockname()[1])
            assert await asked() == 1

    asyncio.run(body())
    assert "what listens there is not the admin listener of tidegate" in capsys.readouterr().err


def test_what_is_missing_is_said_beside_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = msgspec.json.encode(TargetsReport(revision="r", missing=(2,), targets=()))
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(report)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + report)
        writer.close()

    async def body() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            write(folder, server.sockets[0].getsockname()[1])
            assert await asked() == 0

    asyncio.run(body())
    shown = capsys.readouterr()
    assert shown.out.split()[0] == "target"
    assert "Worker 2 did not answer in time" in shown.err
    assert "no targets" in shown.err


@pytest.mark.full
def test_a_server_that_says_nothing_is_not_waited_for_long(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body() -> None:
        hanging: list[asyncio.StreamWriter] = []
        async with await asyncio.start_server(
            lambda _reader, writer: hanging.append(writer), "127.0.0.1", 0
        ) as server:
            write(folder, server.sockets[0].getsockname()[1])
            assert await asked() == 1
            for writer in hanging:
                writer.close()

    asyncio.run(body())
    assert "no answer within 5 s" in capsys.readouterr().err


def test_a_token_that_the_shell_does_not_have_is_a_mistake_of_the_file_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ADMIN_TOKEN")
    write(folder, 1, "${env:ADMIN_TOKEN}")
    assert run(["providers"]) == 3
    assert "ADMIN_TOKEN" in capsys.readouterr().err


def test_the_providers_own_secrets_are_not_needed_to_ask(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body(port: int) -> None:
        for name in ("ONE", "TWO"):
            monkeypatch.delenv(name)
        write(folder, port)
        assert await asked() == 0

    beside_a_gateway(folder, None, body)
    assert "primary" in capsys.readouterr().out
