"""An MCP server on stdio with every bad habit; run as a script, standard library only.

The name of a tool says what it does. `--wait FILE`: start slowly, when the file is there;
`--exit CODE`: end at once.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

seen: list[dict[str, Any]] = []
held: dict[str, Any] = {}


def out(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def answer(identifier: object, value: object = "done") -> bytes:
    content = [{"type": "text", "text": json.dumps(value, ensure_ascii=False)}]
    return line({"jsonrpc": "2.0", "id": identifier, "result": {"content": content}})


def introduction(message: dict[str, Any]) -> dict[str, Any] | None:
    """What a client asks before it calls anything; None if this is something else."""
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "nasty", "version": "1"},
            }
        case "tools/list":
            names = ("echo", "hold", "release", "surroundings", "fork", "stubborn", "die", "tell")
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case _:
            return None


def note(method: str, **params: object) -> bytes:
    return line({"jsonrpc": "2.0", "method": method, "params": params})


def stay_deaf() -> None:
    while True:
        time.sleep(60)


def fork() -> int:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    return subprocess.Popen([sys.executable, "-c", code]).pid


def say_beside(arguments: dict[str, Any]) -> None:
    sys.stderr.write(f"using {arguments['secret']} now\n" + "a line of many\n" * arguments["lines"])
    sys.stderr.flush()


def strange(name: str, identifier: Any, arguments: dict[str, Any]) -> bool:  # noqa: C901, PLR0912, PLR0915
    """Do it; whether it was one of these."""
    match name:
        case "junk":
            out(b"listening\n\n{]\n[1]\n\xff\xfe\n" + answer(identifier))
        case "glued":
            out(b"no line end: " + answer(identifier))
        case "torn":
            for byte in answer(identifier, "b\u00fcro"):
                out(bytes((byte,)))
        case "long":
            out(b"x" * arguments["bytes"] + b"\n" + answer(identifier))
        case "huge":
            out(answer(identifier, "x" * arguments["bytes"]))
        case "die":
            out(answer(identifier)[:20])
            os._exit(3)
        case "answer and die":
            out(answer(identifier))
            os._exit(0)
        case "twice":
            out(answer(identifier, "first") + answer(identifier, "second"))
        case "for another":
            out(answer(identifier + 1, "stolen") + answer(str(identifier)) + answer(None))
            out(answer(identifier - 1, "late") + answer(identifier, "own"))
        case "ask":
            for number, method in enumerate(("ping", "roots/list", "sampling/createMessage")):
                out(line({"jsonrpc": "2.0", "id": f"q{number}", "method": method}))
            out(answer(identifier))
        case "slow":
            time.sleep(arguments["seconds"])
            out(answer(identifier, "late"))
        case "tell":
            out(note("notifications/tools/list_changed") + answer(identifier))
        case "deaf":
            out(answer(identifier))
            stay_deaf()
        case "close stdin":
            out(answer(identifier))
            os.close(0)
            stay_deaf()
        case "close stdout":
            os.close(1)
            stay_deaf()
        case _:
            return False
    return True


def act(message: dict[str, Any]) -> None:  # noqa: C901, PLR0912
    params, identifier = message.get("params", {}), message.get("id")
    name, arguments = params.get("name", ""), params.get("arguments", {})
    if identifier is None or "method" not in message or strange(name, identifier, arguments):
        return
    if (known := introduction(message)) is not None:
        out(line({"jsonrpc": "2.0", "id": identifier, "result": known}))
        return
    if message["method"] != "tools/call":
        error = {"code": -32601, "message": "Method not found"}
        out(line({"jsonrpc": "2.0", "id": identifier, "error": error}))
        return
    value: object = "done"
    match name:
        case "hold":
            held[arguments["key"]] = identifier
            return
        case "release":
            for key in arguments["keys"]:
                out(answer(held.pop(key), key))
        case "progress":
            token = params["_meta"]["progressToken"]
            for number in range(arguments["steps"]):
                out(note("notifications/progress", progressToken=token, progress=number))
        case "seen":
            value = seen
        case "surroundings":
            value = {"pid": os.getpid(), "env": dict(os.environ), "cwd": os.getcwd()}
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            value = os.getpid()
        case "fork":
            value = fork()
        case "stderr":
            say_beside(arguments)
        case _:
            value = arguments
    out(answer(identifier, value))


def main() -> None:
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    if "--exit" in options:
        sys.exit(int(options["--exit"]))
    while "--wait" in options and not os.path.exists(options["--wait"]):
        time.sleep(0.01)
    for data in sys.stdin.buffer:
        message = json.loads(data)
        seen.append(message)
        act(message)


if __name__ == "__main__":
    main()
