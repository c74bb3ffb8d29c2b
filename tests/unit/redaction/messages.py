"""What does an upstream of the Messages API send for these texts, and what does a client read?"""

import json
from typing import Any

from tidegate.redaction import MessagesStreamRedactor, RedactionPolicy

POLICY = RedactionPolicy.preset("default")
_DELTAS = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}


class Upstream:
    """Makes the events of one message; every text is given as the pieces it is cut into."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._blocks = 0
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        }
        self.say("message_start", message=message)
        self.say("ping")

    def text(self, pieces: list[str]) -> None:
        """A block of text."""
        self._block({"type": "text", "text": ""}, "text", pieces)

    def thinking(self, pieces: list[str], signature: str = "c2lnbmVk") -> None:
        """A block of thinking, signed at its end."""
        block = {"type": "thinking", "thinking": "", "signature": ""}
        signed = {"type": "signature_delta", "signature": signature}
        self._block(block, "thinking", pieces, signed)

    def encrypted(self, data: str) -> None:
        """A block of thinking that only the upstream can read."""
        self._block({"type": "redacted_thinking", "data": data}, "text", [])

    def tool(self, pieces: list[str], kind: str = "tool_use") -> None:
        """A call of a tool."""
        block = {"type": kind, "id": "toolu_1", "name": "send", "input": {}}
        self._block(block, "partial_json", ["", *pieces])

    def stopped(self, reason: str = "end_turn") -> list[bytes]:
        """The whole stream."""
        delta = {"stop_reason": reason, "stop_sequence": None}
        self.say("message_delta", delta=delta, usage={"output_tokens": 9})
        self.say("message_stop")
        return [json.dumps(event, separators=(",", ":")).encode() for event in self.events]

    def say(self, kind: str, **fields: Any) -> None:
        """One event."""
        self.events.append({"type": kind, **fields})

    def _block(
        self, block: dict[str, Any], field: str, pieces: list[str], *more: dict[str, Any]
    ) -> None:
        index = self._blocks
        self._blocks += 1
        self.say("content_block_start", index=index, content_block=block)
        deltas = [{"type": _DELTAS[field], field: piece} for piece in pieces]
        for delta in (*deltas, *more):
            self.say("content_block_delta", index=index, delta=delta)
        self.say("content_block_stop", index=index)


class Client:
    """Adds deltas up as the SDK does."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.content: list[dict[str, Any]] = []
        self.stop_reason: str | None = None
        self._open: int | None = None

    def read(self, name: str, data: bytes) -> None:
        """One event; what no server may do fails."""
        event = json.loads(data)
        assert name == event["type"]
        self.events.append(event)
        if name == "content_block_start":
            assert event["index"] == len(self.content)
            assert self._open is None
            self._open = event["index"]
            self.content.append({**event["content_block"], "partial_json": ""})
        elif name == "content_block_delta":
            assert event["index"] == self._open
            self._add(self.content[event["index"]], event["delta"])
        elif name == "content_block_stop":
            assert event["index"] == self._open
            self._open = None
        elif name == "message_delta":
            assert self._open is None
            self.stop_reason = event["delta"]["stop_reason"]

    @staticmethod
    def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
        for field in ("text", "thinking", "partial_json"):
            block[field] = block.get(field, "") + delta.get(field, "")
        if "signature" in delta:
            block["signature"] = delta["signature"]
        if "citation" in delta:
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def texts(self) -> list[str]:
        """The text of each block."""
        return [
            block[{"text": "text", "thinking": "thinking"}.get(block["type"], "partial_json")]
            for block in self.content
        ]


def run(
    events: list[bytes], policy: Any = POLICY, **options: Any
) -> tuple[Client, MessagesStreamRedactor]:
    """What a client makes of the redacted events."""
    redactor = MessagesStreamRedactor(policy, **options)
    client = Client()
    for event in events:
        for name, data in redactor.feed(event):
            client.read(name, data)
    for name, data in redactor.finish():
        client.read(name, data)
    return client, redactor
