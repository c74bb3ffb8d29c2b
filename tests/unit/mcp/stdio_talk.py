"""How does a test speak with the clients' side of a server on stdio, in lines?"""

import json
from typing import Any

from tidegate.jsonrpc import Request
from tidegate.mcp.stdio_upstream import Call, Conversation, Event, read_line

ALICE, BOB = ("issuer", "acme", "alice", ""), ("issuer", "acme", "bob", "")


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def answer(identifier: object, text: object = "") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": {"text": text}}


def note(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def hear(talk: Conversation, *lines: object) -> list[Event]:
    """What follows from these lines; values are written as JSON."""
    events: list[Event] = []
    for line in lines:
        events += talk.hear(read_line(line if isinstance(line, bytes) else encoded(line)))
    return events


def asked(
    talk: Conversation, client_id: Any = 1, owner: object = ALICE, **params: object
) -> tuple[Call, dict[str, Any]]:
    request = Request(client_id, "tools/call", params or None)
    call, line = talk.ask(request, client_id=client_id, owner=owner)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return call, json.loads(line)
