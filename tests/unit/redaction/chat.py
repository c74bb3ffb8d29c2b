"""How does a client add up the events of a streamed chat completion?"""

import json
from collections import defaultdict
from typing import Any

from tidegate.redaction import ChatStreamRedactor, RedactionPolicy

POLICY = RedactionPolicy.preset("default")


def chunk(delta: dict[str, Any], index: int = 0, **fields: Any) -> bytes:
    """The payload of one event."""
    choice = {"index": index, "delta": delta, "finish_reason": None, **fields}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode()


def content(text: str, index: int = 0) -> bytes:
    """An event with a piece of text."""
    return chunk({"content": text}, index)


def finish(reason: str = "stop", index: int = 0) -> bytes:
    """An event that ends a choice."""
    return chunk({"content": ""}, index, finish_reason=reason)


class Client:
    """Adds deltas up; `late` counts texts that came after the finish of their choice."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.fields: dict[int, dict[str, str]] = defaultdict(dict)
        self.arguments: dict[tuple[int, int], str] = defaultdict(str)
        self.finished: dict[int, str] = {}
        self.late = 0

    @property
    def texts(self) -> dict[int, str]:
        """The content of each choice."""
        return {index: fields["content"] for index, fields in self.fields.items()}

    def read(self, data: bytes) -> None:
        """One payload."""
        frame = json.loads(data)
        self.frames.append(frame)
        for choice in frame.get("choices") or ():
            index = choice.get("index", 0)
            for key, value in (choice.get("delta") or {}).items():
                if isinstance(value, str) and key != "role":
                    self.fields[index][key] = self.fields[index].get(key, "") + value
                    self.late += bool(value) and index in self.finished
                for item in value if key == "tool_calls" else ():
                    text = item.get("function", {}).get("arguments", "")
                    self.arguments[index, item.get("index", 0)] += text
            if choice.get("finish_reason"):
                assert index not in self.finished
                self.finished[index] = choice["finish_reason"]

    def joined(self, index: int) -> str:
        """Every leaf under a name of text, in order, of deltas that hold nested objects."""
        found: list[str] = []

        def walk(value: Any) -> None:
            if isinstance(value, dict):
                for key, inner in value.items():
                    if isinstance(inner, str) and key in {"text", "transcript", "input"}:
                        found.append(inner)
                    walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    walk(inner)

        for frame in self.frames:
            for choice in frame["choices"]:
                if choice["index"] == index:
                    walk(choice["delta"])
        return "".join(found)


def run(events: list[bytes], **options: Any) -> tuple[Client, ChatStreamRedactor]:
    """What a client makes of the redacted events."""
    redactor = ChatStreamRedactor(POLICY, **options)
    client = Client()
    for event in events:
        for data in redactor.feed(event):
            client.read(data)
    for data in redactor.finish():
        client.read(data)
    return client, redactor
