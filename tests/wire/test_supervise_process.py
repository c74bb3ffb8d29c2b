"""The gateway as a process of its own: start, readiness, reload, drain, exit code, silence."""

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import STREAM_HEAD, ScriptedUpstream, chunk_bytes, steps
from tidegate.testing.sockets import RawClient, request_bytes

EVENT = (
    b'data: {"id":"1","object":"chat.completion.chunk","choices":'
    b'[{"index":0,"delta":{"content":"hello to all of you, "}}]}\n\n'
)


def _file(folder: Path, upstream: str, more: str = "") -> Path:
    path = folder / "tidegate.yaml"
    path.write_text(
        f"server: {{ port: 0, admin: {{ port: 0 }}, drain_s: 0.05 }}\n"
        f"identity: {{ anonymous: {{ principal: p, tenant: t, roles: [tenant] }} }}\n"
        f"store: {{ url: 'memory:' }}\n"
        f"records: {{ path: {folder / 'records.db'} }}\n"
        f"providers: {{ primary: {{ base_url: {upstream}/v1, credentials: [k] }} }}\n"
        f"routes: [{{ name: all, candidates: [{{ provider: primary }}] }}]\n{more}"
    )
    return path


async def _line(process: Process, wanted: str) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(WAIT_S):
        while line := (await process.stderr.readline()).decode():
            if re.search(wanted, line):
                return line
    raise AssertionError(f"the process ended without {wanted!r}")


async def _refuses_the_demo_world(process: Process, path: Path) -> None:
    whole = path.read_text()
    for text, words in (("# emptied\n", "is empty"), (f"{whole}demo: true\n", ": demo: ")):
        path.write_text(text)
        process.send_signal(signal.SIGHUP)
        assert "last_good_configuration_kept" in await _line(process, words)


@pytest.mark.full
def test_a_process_serves_keeps_its_configuration_drains_and_leaves_with_0(tmp_path: Path) -> None:
    async def body() -> None:
        async with ScriptedUpstream(
            steps(STREAM_HEAD, chunk_bytes(EVENT), asyncio.Event())
        ) as upstream:
            path = _file(tmp_path, upstream.url)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tidegate", "serve", "--config", str(path)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env={**os.environ, "PYTHONWARNINGS": "error"},
            )
            try:
                ready = await _line(process, "^tidegate ready")
                port, admin_port = (int(number) for number in re.findall(r":(\d+)\b", ready))
                async with (
                    await RawClient.connect("127.0.0.1", port) as client,
                    await RawClient.connect("127.0.0.1", admin_port) as admin,
                ):
                    _file(tmp_path, upstream.url, "limitz: []\n")
                    process.send_signal(signal.SIGHUP)
                    kept = await _line(process, "last_good_configuration_kept")
                    assert "limitz" in json.loads(kept)["problem"]
                    _file(tmp_path, upstream.url)
                    await _refuses_the_demo_world(process, path)
                    report = json.loads((await admin.ask("GET", "/readyz")).body)
                    assert report["ready"]
                    assert report["config"]["last_reload"] == "failed"

                    ask = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
                    json_type = [("Content-Type", "application/json")]
                    request = request_bytes(
                        "POST", "/v1/chat/completions", headers=json_type, body=ask
                    )
                    await client.send(request)
                    assert (await client.head()).status == 200
                    assert b"hello" in await client.chunk()
                    process.send_signal(signal.SIGTERM)
                    rest = await client.rest()
                    # Cut by the drain: an honest end, and the frame is complete.
                    assert b"gateway.upstream_interrupted" in rest
                    assert b"[DONE]" not in rest
                    assert rest.endswith(b"0\r\n\r\n")
                    async with asyncio.timeout(WAIT_S):
                        out, _ = await process.communicate()
                    assert (process.returncode, out) == (0, b"")
                    await upstream.until(lambda: upstream.open_connections == 0)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.communicate()

    asyncio.run(body())
