"""What does an upstream of the Responses API send for these texts, and what does a client read?"""

import json
from typing import Any

from tidegate.redaction import RedactionPolicy, ResponsesStreamRedactor

POLICY = RedactionPolicy.preset("default")
_FIELDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.code_interpreter_call_code": "code",
    "response.shell_call_command": "command",
}
_USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 8,
}


class Upstream:
    """Makes the events of one response; every text is given as the pieces it is cut into."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._output: list[dict[str, Any]] = []
        self._say("response.created", response=self._response("in_progress"))
        self._say("response.in_progress", response=self._response("in_progress"))

    def message(self, pieces: list[str], *, refusal: bool = False) -> None:
        """A message with one part."""
        kind = "refusal" if refusal else "output_text"
        field = "refusal" if refusal else "text"
        extra: dict[str, Any] = {} if refusal else {"annotations": [], "logprobs": []}
        at = self._begin({"type": "message", "role": "assistant", "content": []}, "msg")
        part = {**at, "content_index": 0}
        empty = {"type": kind, field: "", **extra}
        self._say("response.content_part.added", **part, part=empty)
        more = {} if refusal else {"logprobs": []}
        for piece in pieces:
            self._say(f"response.{kind}.delta", **part, delta=piece, **more)
        whole = {**empty, field: "".join(pieces)}
        self._say(f"response.{kind}.done", **part, **{field: whole[field]}, **more)
        self._say("response.content_part.done", **part, part=whole)
        self._end(at, {"content": [whole]})

    def reasoning(self, pieces: list[str], *, summary: bool = True) -> None:
        """A reasoning item with one summary, or with its own text."""
        list_name = "summary" if summary else "content"
        at = self._begin({"type": "reasoning", "summary": [], "encrypted_content": "QUJD"}, "rs")
        if summary:
            part = {**at, "summary_index": 0}
            empty = {"type": "summary_text", "text": ""}
            names = ("response.reasoning_summary_part", "response.reasoning_summary_text")
        else:
            part = {**at, "content_index": 0}
            empty = {"type": "reasoning_text", "text": ""}
            names = ("response.content_part", "response.reasoning_text")
        self._say(f"{names[0]}.added", **part, part=empty)
        for piece in pieces:
            self._say(f"{names[1]}.delta", **part, delta=piece)
        whole = {**empty, "text": "".join(pieces)}
        self._say(f"{names[1]}.done", **part, text=whole["text"])
        self._say(f"{names[0]}.done", **part, part=whole)
        self._end(at, {list_name: [whole]})

    def call(self, pieces: list[str], kind: str = "function_call") -> None:
        """A call of a tool: function_call, mcp_call, custom_tool_call or code_interpreter_call."""
        base, field = {
            "function_call": ("response.function_call_arguments", "arguments"),
            "mcp_call": ("response.mcp_call_arguments", "arguments"),
            "custom_tool_call": ("response.custom_tool_call_input", "input"),
            "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
        }[kind]
        item = {"type": kind, "name": "send", "call_id": "call_1", field: ""}
        at = self._begin(item, "fc")
        for piece in pieces:
            self._say(f"{base}.delta", **at, delta=piece)
        self._say(f"{base}.done", **at, **{field: "".join(pieces)})
        self._end(at, {field: "".join(pieces)})

    def completed(self, kind: str = "completed") -> list[bytes]:
        """The whole stream."""
        self._say(f"response.{kind}", response=self._response(kind))
        return [json.dumps(event, separators=(",", ":")).encode() for event in self.events]

    def _say(self, kind: str, **fields: Any) -> None:
        self.events.append({"type": kind, "sequence_number": len(self.events), **fields})

    def _begin(self, item: dict[str, Any], prefix: str) -> dict[str, Any]:
        index = len(self._output)
        ident = f"{prefix}_{index}"
        self._output.append({"id": ident, "status": "in_progress", **item})
        self._say("response.output_item.added", output_index=index, item=dict(self._output[-1]))
        return {"item_id": ident, "output_index": index}

    def _end(self, at: dict[str, Any], fields: dict[str, Any]) -> None:
        index = at["output_index"]
        self._output[index] = {**self._output[index], **fields, "status": "completed"}
        self._say("response.output_item.done", output_index=index, item=self._output[index])

    def _response(self, status: str) -> dict[str, Any]:
        done = status != "in_progress"
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1764500000,
            "status": status,
            "model": "m-1",
            "output": list(self._output) if done else [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": _USAGE if done else None,
        }


class Client:
    """Adds deltas up as SDKs do, and remembers every text that was said to be whole."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.joined: dict[tuple[Any, ...], str] = {}
        self.done: dict[tuple[Any, ...], str] = {}
        self.final: dict[str, Any] = {}
        self._items: set[Any] = set()

    def read(self, name: str, data: bytes) -> None:
        """One event; what no server may do fails."""
        event = json.loads(data)
        if self.events and "sequence_number" in event:
            assert event["sequence_number"] > self.events[-1]["sequence_number"]
        assert name == event["type"]
        self.events.append(event)
        self.names.append(name)
        base, _, kind = name.rpartition(".")
        index = event.get("output_index")
        assert index not in self._items
        part = event.get("content_index", event.get("summary_index", event.get("command_index")))
        key = (index, part, base)
        if kind == "delta" and isinstance(event["delta"], str):
            assert key not in self.done
            self.joined[key] = self.joined.get(key, "") + event["delta"]
        elif base in _FIELDS and kind == "done":
            self.done[key] = event[_FIELDS[base]]
        elif name == "response.output_item.done":
            self._items.add(index)
        elif "response" in event:
            self.final = event["response"]

    def texts(self) -> list[str]:
        """The texts, which every copy of them agrees on, in the order of the output."""
        assert self.joined == self.done
        copies = [text for item in self.final["output"] for text in _texts(item)]
        assert copies == list(self.done.values())
        items = [e["item"] for e in self.events if e["type"] == "response.output_item.done"]
        assert [text for item in items for text in _texts(item)] == copies
        parts = [e["part"] for e in self.events if e["type"].endswith("_part.done")]
        assert {part.get("text", part.get("refusal")) for part in parts} <= set(copies)
        return copies


def _texts(item: dict[str, Any]) -> list[str]:
    found = [item[name] for name in ("arguments", "input", "code") if name in item]
    for part in (*item.get("summary", ()), *item.get("content", ())):
        found.append(part.get("text", part.get("refusal")))
    return found


def run(
    events: list[bytes], policy: Any = POLICY, **options: Any
) -> tuple[Client, ResponsesStreamRedactor]:
    """What a client makes of the redacted events."""
    redactor = ResponsesStreamRedactor(policy, **options)
    client = Client()
    for event in events:
        for name, data in redactor.feed(event):
            client.read(name, data)
    for name, data in redactor.finish():
        client.read(name, data)
    return client, redactor


def event(kind: str, **fields: Any) -> bytes:
    """The payload of one event."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()


def delta(text: str, **fields: Any) -> bytes:
    """A piece of the text of one part."""
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": [], **fields}
    return event("response.output_text.delta", delta=text, **where)


def shown(redactor: ResponsesStreamRedactor, *events: bytes) -> list[dict[str, Any]]:
    """What leaves for these events."""
    return [json.loads(data) for each in events for _, data in redactor.feed(each)]
