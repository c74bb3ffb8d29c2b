"""Which shell lines does the README promise, and which request is each of them?

The lines stand here as they stand in the README; the tests run them as parsed here, on the ports
of the test.
"""

import shlex
from dataclasses import dataclass

CURL_LINES = {
    "denied tool call": """\
curl -s localhost:9000/mcp -H 'Authorization: Bearer viewer-token-xyz' \\
  -H 'Content-Type: application/json' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin_reset_key"}}'""",
    "masked stream": """\
curl -N localhost:9100/v1/chat/completions -H 'Content-Type: application/json' \\
  -d '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'""",
    "routed chat": """\
curl -s localhost:9200/v1/chat/completions -i \\
  -H 'Authorization: Bearer sk-tenant-acme' -H 'Content-Type: application/json' \\
  -d '{"messages":[{"role":"user","content":"hello"}],"max_tokens":100}'""",
    "provider switch": """\
curl -X POST 'localhost:9201/_set?provider=primary&behaviour=429'""",
}


@dataclass(frozen=True, slots=True)
class CurlRequest:
    """What one curl line sends: method, port, target, headers, body."""

    method: str
    port: int
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def parse(line: str) -> CurlRequest:
    """The request of a line of the four options that our lines use."""
    words = shlex.split(line.replace("\\\n", " "))
    if words.pop(0) != "curl":
        raise ValueError("not a curl line")
    headers: list[tuple[str, str]] = []
    method, url, body = "", "", b""
    while words:
        word = words.pop(0)
        match word:
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers.append((name, value))
            case "-d":
                body = words.pop(0).encode()
            case "-X":
                method = words.pop(0)
            case "-s" | "-N" | "-i":
                pass
            case _:
                url = word
    address, slash, target = url.removeprefix("http://").partition("/")
    port = int(address.rpartition(":")[2])
    return CurlRequest(
        method or ("POST" if body else "GET"), port, slash + target, (*headers,), body
    )
