"""A tool server on stdio without a process: all lines in, then the end, then every answer."""

import json
import os
from collections.abc import Sequence
from threading import Thread
from typing import Any

from tests.unit.tools.web import message, modern
from tidegate.tools import ToolServer
from tidegate.tools.stdio import Wire


def over_stdio(server: ToolServer, lines: Sequence[object]) -> list[Any]:
    """The answers in their order; `lines` are bytes or what becomes JSON, 64 kB in all."""
    to_server, from_server = os.pipe(), os.pipe()
    data = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    os.write(to_server[1], b"".join(line + b"\n" for line in data))
    os.close(to_server[1])
    try:
        server.run_stdio(Wire(to_server[0], from_server[1]))
    finally:
        os.close(from_server[1])
        os.close(to_server[0])
    with os.fdopen(from_server[0], "rb") as answers:
        return [json.loads(line) for line in answers.read().splitlines()]


def after_hello(server: ToolServer, version: str, lines: Sequence[object]) -> list[Any]:
    """The answers to `lines`, which are sent when the handshake, if there is one, is over."""
    to_server, from_server = os.pipe(), os.pipe()
    hello = opening(version)

    def client() -> None:
        with os.fdopen(to_server[1], "wb", buffering=0) as sink:
            sink.write(b"".join(json.dumps(line).encode() + b"\n" for line in hello))
            with os.fdopen(from_server[0], "rb") as source:
                if hello:
                    source.readline()
                sink.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
                sink.close()
                found.extend(json.loads(line) for line in source.read().splitlines())

    found: list[Any] = []
    thread = Thread(target=client, daemon=True)
    thread.start()
    try:
        server.run_stdio(Wire(to_server[0], from_server[1]))
    finally:
        os.close(from_server[1])
        os.close(to_server[0])
    thread.join(5.0)
    return found


def opening(era: str) -> list[Any]:
    """What a client of the era says before it asks."""
    if era == "2026-07-28":
        return []
    params = {
        "protocolVersion": era,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return [
        message("initialize", params, "hello"),
        message("notifications/initialized", id=None),
    ]


def asked(era: str, method: str, params: dict[str, Any], number: int) -> dict[str, Any]:
    """A request of the era."""
    made = modern if era == "2026-07-28" else message
    return made(method, params, number)


def by_id(answers: list[Any]) -> list[Any]:
    """The answers to numbered requests, by their number."""
    numbered = [answer for answer in answers if isinstance(answer["id"], int)]
    return sorted(numbered, key=lambda answer: answer["id"])
