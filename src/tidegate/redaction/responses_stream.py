"""What may a client see of this event of the OpenAI Responses API, and what waits for the next?

Lives here: the texts of a streamed response (one for each output item, part and field), the event
that carries held text out before its text is said to be done, and the numbers of the events. Does
not live here: server-sent events (sse), where an error goes (gateway), whole responses
(responses_fields).

A `.delta` event is a piece of a text; its `.done` event says the whole text again, and so do the
part, the item and the response that contain it. Each copy is redacted by itself and comes out
equal to the joined pieces, because redaction does not depend on how a text is cut.
"""

import re
from functools import partial
from typing import TYPE_CHECKING

from tidegate.redaction.fields import WholeFields
from tidegate.redaction.leaves import rewrite
from tidegate.redaction.open_texts import Document, Key, NamedEvent, OpenTexts, Path, put
from tidegate.redaction.responses_begun import Begun, begun_in
from tidegate.redaction.responses_fields import ARGUMENT_EVENTS, NAMES, without_copies
from tidegate.redaction.responses_items import Items, is_name, part_of
from tidegate.redaction.spans import BlockedContent, UpstreamAtFault
from tidegate.redaction.splice import dump, load, renumbered, rewritten, without_padding
from tidegate.redaction.template import NumberedTemplate
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.redaction.arguments import ArgumentsRedactor
    from tidegate.redaction.chat_fields import Audio, Logprobs
    from tidegate.redaction.policy import RedactionPolicy
    from tidegate.redaction.treatment import Text

_NAME = re.compile(r"[a-z][a-z0-9_.]{0,127}")
_NUMBER = "sequence_number"
_ENDS = frozenset(
    {"response.cancelled", "response.completed", "response.failed", "response.incomplete"}
)
_PART_ENDS = frozenset({"response.content_part.done", "response.reasoning_summary_part.done"})
_PLAIN = frozenset(
    {
        "error",
        "keepalive",
        "response.created",
        "response.in_progress",
        "response.queued",
        *_ENDS,
    }
)
_FAMILIES = (
    "response.audio.",
    "response.code_interpreter_call",
    "response.compaction.",
    "response.content_part.",
    "response.custom_tool_call_input.",
    "response.file_search_call.",
    "response.function_call_arguments.",
    "response.image_generation_call.",
    "response.mcp_",
    "response.output_item.",
    "response.output_text.",
    "response.reasoning",
    "response.refusal.",
    "response.shell_call_",
    "response.web_search_call.",
)


class ResponsesStreamRedactor:
    """Redacts the events of one streamed response, JSON in, JSON out.

    Raises BlockedContent; TooManyChannels; UpstreamAtFault for a piece of a text that is done;
    ValueError for an event that is no JSON or ambiguous. After an exception nothing of this
    object may be sent any more.
    """

    def __init__(
        self,
        policy: "RedactionPolicy | Treatment",
        *,
        logprobs: "Logprobs" = "drop",
        audio: "Audio" = "drop",
        tool_arguments: ToolArguments = True,
    ) -> None:
        treatment = Treatment.of(policy, tool_arguments=tool_arguments)
        self.counts = treatment.counts
        self._bare = partial(without_copies, logprobs=logprobs, audio=audio)
        self._audio: Audio = audio
        self._fields = WholeFields(treatment, NAMES)
        self._texts = OpenTexts(treatment)
        self._items = Items()
        self._template: NumberedTemplate | None = None
        self._fed: Callable[[str], str] | None = None  # if the last event was nothing but a text
        self._kind = ""  # the name of that event
        self._over = False
        self._added = 0  # events that we have put into the stream
        self._last = -1  # the upstream's number of the last event

    @property
    def pending(self) -> int:
        """Characters held over all texts."""
        return self._texts.pending

    def feed(self, data: bytes, event: str = "") -> list[NamedEvent]:
        """The events that may leave after this one. They are named by their type, not `event`."""
        del event
        data = without_padding(data)
        short = self._short(data)
        if short is not None:
            return [short]
        doc = load(data)
        if not isinstance(doc, dict):
            self.counts.unknown += 1
            new = rewrite(doc, self._fields)
            return [NamedEvent("", data if new is doc else rewritten(data, doc, new))]
        kind, number = doc.get("type"), doc.get(_NUMBER)
        if not isinstance(kind, str) or not _NAME.fullmatch(kind):
            kind = ""
        if isinstance(number, bool) or not isinstance(number, int):
            number = None
        tails = self._carried(self._tails(kind, doc), self._last + 1 if number is None else number)
        new = self._rewritten(kind, doc)
        self._template = self._template_of(data, doc) if self._fed is not None else None
        data = data if new is doc else rewritten(data, doc, new)
        if number is not None:
            self._last = number
            data = renumbered(data, _NUMBER, number, self._added)
        return [*tails, NamedEvent(kind, data)]

    def _short(self, data: bytes) -> NamedEvent | None:
        """The event, if it differs from the last one only in its text and its number."""
        template = self._template
        read = template.read(data) if template is not None else None
        if template is None or read is None:
            return None
        text, number = read
        out = template.inner.feed(text)
        self._last = number
        if out != text or self._added:
            data = template.event(out, number + self._added)
        return NamedEvent(self._kind, data)

    def _template_of(self, data: bytes, doc: Document) -> NumberedTemplate | None:
        fed, delta = self._fed, doc.get("delta")
        self._kind = str(doc["type"])
        if fed is None or not isinstance(delta, str):
            return None
        return NumberedTemplate.of(data, "delta", delta, fed)

    def finish(self) -> list[NamedEvent]:
        """What is still held when the stream ends without the end of the response."""
        self._template = None
        return self._carried(self._texts.end(()), self._last + 1)

    def drop(self) -> None:
        """Forget what is held: the upstream broke off, and half a secret must not leave."""
        self._texts.clear()
        self._template = None

    def _tails(self, kind: str, doc: Document) -> list[Document]:
        """What has to leave before an event of this kind."""
        if kind in _ENDS:
            self._over = True
            return self._texts.end(())
        if kind == "error":
            self._texts.clear()
            return []
        if kind == "response.output_item.added":
            replaced = self._items.begin(doc)
            return [carrier for slot in replaced for carrier in self._texts.end((slot,))]
        if kind == "response.output_item.done":
            return self._texts.end((self._items.slot(doc),))
        if kind in _PART_ENDS:
            part = part_of(kind.removesuffix("_part.done"), doc)
            return self._texts.end((self._items.slot(doc), part))
        if kind.endswith(".done"):
            return self._texts.end(self._key(kind.removesuffix(".done"), doc))
        return []

    def _rewritten(self, kind: str, doc: Document) -> object:
        self._fed = None
        bare = self._bare(doc)
        if not kind.endswith(".delta") or "delta" not in bare:
            if kind not in _PLAIN and not kind.startswith(_FAMILIES):
                self.counts.unknown += 1
            return self._whole(kind, bare)
        delta = bare["delta"]
        others = {key: value for key, value in bare.items() if key != "delta"}
        shown = rewrite(others, self._fields)
        alone = bare is doc and shown is others
        if isinstance(shown, dict) and shown is not others:
            bare = {key: shown.get(key, delta) for key in bare}
        # What carries the rest of the text out is this event as the client sees it.
        new = self._delta(kind.removesuffix(".delta"), bare, delta, ("delta",))
        self._fed = self._fed if alone else None
        return bare if new is delta else {**bare, "delta": new}

    def _whole(self, kind: str, doc: Document) -> object:
        """An event that is no piece of a text; but it may hold the first piece of some."""
        firsts = begun_in(kind, doc)
        if not firsts:
            return rewrite(doc, self._fields)
        blank = doc
        for first in firsts:
            blank = put(blank, first.place, "")
        shown = rewrite(blank, self._fields)
        new = shown if isinstance(shown, dict) else blank
        for first in firsts:
            new = put(new, first.place, self._begin(first, doc))
        return new

    def _begin(self, first: Begun, doc: Document) -> str:
        """What leaves of the first piece of a text; the rest waits for the next."""
        # Ids that are no ids are not repeated in an event that nobody reads again.
        names = {name: value for name, value in first.names.items() if is_name(value)}
        carrier: Document = {"type": f"{first.base}.delta", **names, "delta": ""}
        if _NUMBER in doc:
            carrier[_NUMBER] = 0
        if first.base == "response.output_text":
            carrier["logprobs"] = []
        way = self._way(first.base, first.names, carrier, ("delta",))
        return first.text if way is None else way.feed(first.text)

    def _way(
        self, base: str, names: Document, carrier: Document, place: Path
    ) -> "Text | ArgumentsRedactor | None":
        key = (*self._key(base, names), place)
        return self._texts.way(key, carrier, place, arguments=base in ARGUMENT_EVENTS)

    def _delta(self, base: str, doc: Document, value: object, place: Path) -> object:
        """A piece of a text, or an object with pieces of several."""
        if isinstance(value, dict):
            new = {}
            for key, inner in value.items():
                self._fields.key(key)
                new[key] = self._delta(base, doc, inner, (*place, key))
            return value if all(new[key] is value[key] for key in value) else new
        if not isinstance(value, str):
            return rewrite(value, self._fields, place, doc)
        if base == "response.audio":
            return self._sound(value)
        if not value:
            return value
        if self._over:
            raise UpstreamAtFault("a piece of a text after the end of the response")
        way = self._way(base, doc, doc, place)
        if way is None:
            return value
        shown, self._fed = way.feed(value), way.feed
        return value if shown == value else shown

    def _sound(self, value: str) -> str:
        """Bytes of audio, which nobody can redact."""
        if self._audio == "refuse":
            raise BlockedContent("audio")
        if self._audio == "drop":
            return ""
        self.counts.passes("base64")
        return value

    def _key(self, base: str, doc: Document) -> Key:
        return (self._items.slot(doc), part_of(base, doc), base)

    def _carried(self, carriers: list[Document], number: int) -> list[NamedEvent]:
        """The events `carriers`, numbered as if the upstream went on with `number`."""
        events = []
        for carrier in carriers:
            numbered = carrier
            if _NUMBER in carrier:
                numbered = {**carrier, _NUMBER: number + self._added}
                self._added += 1
            events.append(NamedEvent(str(carrier["type"]), dump(numbered)))
        return events
