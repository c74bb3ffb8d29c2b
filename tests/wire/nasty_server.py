"""A third-party MCP server with every bad habit on stdout; run as a script, standard library only.

Methods of requests say what it does; anything else is answered with an empty result.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

print("junk: print at import, not flushed", end=" ")  # noqa: T201 - that is the point
os.write(1, b"junk: raw at import\n")
atexit.register(print, "junk: print at exit")


def answer(identifier: object, text: str = "") -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}).encode() + b"\n"


def out(data: bytes) -> None:
    sys.stdout.flush()
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def noisy(identifier: object) -> None:
    print("junk: print in a call")  # noqa: T201
    sys.stdout.flush()
    subprocess.run(["/bin/echo", "junk: a child"], check=False)
    out(b"\xef\xbb\xbfjunk: BOM\r\n")
    out(b"junk: half UTF-8 \xc3\n")
    out(b'{"junk": "JSON"}\n')
    out(answer("nobody asked"))
    out(answer(str(identifier)))
    out(b"junk: no line end ..." + answer(identifier)[:20])
    out(answer(identifier)[20:].replace(b"\n", b"\r\n"))
    out(answer(identifier))
    out(b"junk: \x1b[31m the last\n")


def deaf(identifier: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", DEAF_CHILD])
    out(answer(identifier))
    while True:
        time.sleep(60)


def close_stdout(identifier: object) -> None:
    out(answer(identifier))
    os.close(1)
    while True:
        time.sleep(60)


def act(message: dict[str, Any]) -> None:
    identifier, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case "noisy":
            noisy(identifier)
        case "large":
            out(answer(identifier, "x" * params["bytes"]))
        case "nan":
            out(answer(identifier).replace(b'""', b"NaN"))
        case "exit":
            sys.exit(params["code"])
        case "deaf":
            deaf(identifier)
        case "close stdout":
            close_stdout(identifier)
        case "silent":
            pass
        case _ if identifier is not None:
            out(answer(identifier))


DEAF_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"

with contextlib.suppress(BrokenPipeError):
    for line in sys.stdin.buffer:
        act(json.loads(line))
