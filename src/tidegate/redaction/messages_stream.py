"""What may a client see of this event of the Anthropic Messages API, and what waits?

Lives here: the texts of a streamed message (one for each content block and kind of delta), the
event that carries held text out before its block stops, and the fate of signatures. Does not live
here: server-sent events (sse), where an error goes (gateway), whole messages (messages_fields).
"""

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidegate.redaction.leaves import rewrite
from tidegate.redaction.messages_blocks import Block, Blocks
from tidegate.redaction.messages_fields import (
    MessageFields,
    Thinking,
    is_thought,
    treatment_of_thinking,
)
from tidegate.redaction.open_texts import Document, NamedEvent, OpenTexts, put
from tidegate.redaction.splice import dump, load, rewritten
from tidegate.redaction.template import Template
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

_NAME = re.compile(r"[a-z][a-z0-9_.]{0,127}")
_START, _DELTA, _STOP = "content_block_start", "content_block_delta", "content_block_stop"
_OTHERS = frozenset({"error", "message_delta", "message_start", "message_stop", "ping"})
_FIELDS = MappingProxyType(
    {
        "compaction_delta": "content",
        "input_json_delta": "partial_json",
        "text_delta": "text",
        "thinking_delta": "thinking",
    }
)
"""Kinds of deltas that are a piece of a text, and the field that it stands in."""
_KINDS = MappingProxyType({field: kind for kind, field in _FIELDS.items()})
_FIRST = MappingProxyType({"compaction": "content", "text": "text", "thinking": "thinking"})
"""Kinds of blocks that may begin with a piece of their text."""


class MessagesStreamRedactor:
    """Redacts the events of one streamed message, JSON in, JSON out.

    Raises BlockedContent; TooManyChannels; UpstreamAtFault for a delta of a block that is not
    open and for a block that begins twice; ValueError for an event that is no JSON or ambiguous.
    After an exception nothing of this object may be sent any more.
    """

    def __init__(
        self,
        policy: "RedactionPolicy | Treatment",
        *,
        thinking: Thinking = "mask",
        tool_arguments: ToolArguments = True,
    ) -> None:
        treatment = Treatment.of(policy, tool_arguments=tool_arguments)
        self.counts = treatment.counts
        self._fields = MessageFields(treatment, thinking=thinking)
        self._texts = OpenTexts(treatment)
        self._thoughts = OpenTexts(treatment_of_thinking(treatment, thinking))
        self._blocks = Blocks(lambda content: thinking == "drop" and is_thought(content))
        self._template: Template | None = None

    @property
    def pending(self) -> int:
        """Characters held over all texts."""
        return self._texts.pending + self._thoughts.pending

    def feed(self, data: bytes, event: str = "") -> list[NamedEvent]:
        """The events that may leave after this one. They are named by their type, not `event`."""
        del event
        template = self._template
        text = template.text_of(data) if template is not None else None
        if template is not None and text is not None:
            out = template.feed(text)
            return [NamedEvent(_DELTA, data if out == text else template.event(out))]
        self._template = None
        doc = load(data)
        if not isinstance(doc, dict):
            self.counts.unknown += 1
            new = rewrite(doc, self._fields)
            return [NamedEvent("", data if new is doc else rewritten(data, doc, new))]
        kind = doc.get("type")
        if kind == _START:
            return self._start(data, doc)
        if kind == _DELTA:
            return self._delta(data, doc)
        if kind == _STOP:
            return self._stop(data, doc)
        return self._other(data, doc, kind if isinstance(kind, str) else "")

    def finish(self) -> list[NamedEvent]:
        """What is still held when the stream ends without the end of its blocks."""
        return [event for block in self._blocks.open.values() for event in self._tails(block)]

    def drop(self) -> None:
        """Forget what is held: the upstream broke off, and half a secret must not leave."""
        self._texts.clear()
        self._thoughts.clear()
        self._template = None

    def _start(self, data: bytes, doc: Document) -> list[NamedEvent]:
        """A block starts; its text, mostly empty, is the first piece of what follows."""
        block, content = self._blocks.begin(doc), doc.get("content_block")
        if block.is_hidden:
            return []
        shown = doc
        # A signature that comes before the text cannot be taken back when the text changes.
        if block.is_thought and isinstance(content, dict) and content.get("signature"):
            shown = put(doc, ("content_block", "signature"), "")
        field = _FIRST.get(str(content.get("type"))) if isinstance(content, dict) else None
        text = content.get(field) if isinstance(content, dict) and field is not None else None
        if field is not None and isinstance(text, str):
            return [self._piece(data, doc, shown, block, ("content_block", field), text)]
        return [_shown(data, doc, self._whole(shown), block)]

    def _delta(self, data: bytes, doc: Document) -> list[NamedEvent]:
        block, delta = self._blocks.of(doc), doc.get("delta")
        if block.is_hidden:
            return []
        kind = str(delta.get("type")) if isinstance(delta, dict) else ""
        field = _FIELDS.get(kind)
        text = delta.get(field) if isinstance(delta, dict) and field is not None else None
        if field is not None and isinstance(text, str):
            return [self._piece(data, doc, doc, block, ("delta", field), text)]
        tails: list[NamedEvent] = []
        if kind == "signature_delta":
            tails = self._tails(block)
            if block.is_changed:
                return tails  # it signs what has not been sent
        elif kind != "citations_delta":
            self.counts.unknown += 1
        return [*tails, _shown(data, doc, self._whole(doc), block)]

    def _stop(self, data: bytes, doc: Document) -> list[NamedEvent]:
        block = self._blocks.of(doc)
        self._blocks.end(block)
        if block.is_hidden:
            return []
        return [*self._tails(block), _shown(data, doc, self._whole(doc), block)]

    def _other(self, data: bytes, doc: Document, kind: str) -> list[NamedEvent]:
        """An event that is about no block."""
        tails: list[NamedEvent] = []
        delta = doc.get("delta")
        stops = isinstance(delta, dict) and delta.get("stop_reason") is not None
        if kind == "error":
            self.drop()
        elif kind == "message_stop" or (kind == "message_delta" and stops):
            tails = self.finish()
        elif kind not in _OTHERS:
            self.counts.unknown += 1
        new = self._whole(doc)
        name = kind if _NAME.fullmatch(kind) else ""
        return [*tails, NamedEvent(name, data if new is doc else rewritten(data, doc, new))]

    def _piece(
        self,
        data: bytes,
        original: Document,
        doc: Document,
        block: Block,
        place: tuple[str, str],
        text: str,
    ) -> NamedEvent:
        """The event with what leaves for `text`, which is the piece of a text at `place`."""
        field = place[1]
        kind = _KINDS[field]
        blank = put(doc, place, "")
        shown = self._whole(blank)
        carrier: Document = {
            "type": _DELTA,
            "index": block.number,
            "delta": {"type": kind, field: ""},
        }
        texts = self._thoughts if block.is_thought else self._texts
        arguments = field == "partial_json"
        way = texts.way((block.index, field), carrier, ("delta", field), arguments=arguments)

        def feed(piece: str) -> str:
            out = piece if way is None else way.feed(piece)
            block.saw(piece, out)
            return out

        out = feed(text)
        is_alone = shown is blank and doc is original and block.number == block.index
        if is_alone and doc["type"] == _DELTA:
            self._template = Template.of(data, field, text, feed)
        new = original if is_alone and out == text else put(shown, place, out)
        return _shown(data, original, new, block)

    def _tails(self, block: Block) -> list[NamedEvent]:
        """What the texts of a block still hold; they end."""
        self._template = None
        events = []
        for carrier in (*self._texts.end((block.index,)), *self._thoughts.end((block.index,))):
            delta = carrier["delta"]
            block.saw("", str(delta.get("thinking", "")) if isinstance(delta, dict) else "")
            events.append(NamedEvent(_DELTA, dump(carrier)))
        block.ended()
        return events

    def _whole(self, doc: Document) -> Document:
        new = rewrite(doc, self._fields)
        return new if isinstance(new, dict) else doc


def _shown(data: bytes, doc: Document, new: Document, block: Block) -> NamedEvent:
    """The event `data`, which reads as `doc`, as `new`, and with the client's index."""
    if block.number != block.index:
        new = {**new, "index": block.number}
    return NamedEvent(str(doc["type"]), data if new is doc else rewritten(data, doc, new))
