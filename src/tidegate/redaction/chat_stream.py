"""What may a client see of this chat completion event, and what waits for the next?

Lives here: the channels of a streamed chat completion (one redactor for each choice and field,
one lexer for each tool call), the event that carries held text out before a choice finishes, and
the short way for events that differ from the last one in a single string. Does not live here:
server-sent events (sse), where an error goes (gateway), whole answers (chat_fields).
"""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from tidegate.redaction.channels import Channels, Delta
from tidegate.redaction.chat_fields import (
    FINISH_REASONS,
    Logprobs,
    WholeFields,
    is_arguments,
    is_streamed,
    is_structural,
    without_logprobs,
)
from tidegate.redaction.leaves import Holder, Path, rewrite
from tidegate.redaction.spans import UpstreamAtFault
from tidegate.redaction.splice import dump, load, rewritten
from tidegate.redaction.template import Template
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.arguments import ArgumentsRedactor
    from tidegate.redaction.policy import RedactionPolicy
    from tidegate.redaction.treatment import Text

_TEMPLATES = 8
_ROOTS = ("delta", "message", "text")
_ENVELOPE = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")


class ChatStreamRedactor:
    """Redacts the events of one streamed chat completion, JSON in, JSON out.

    Raises BlockedContent; TooManyChannels; UpstreamAtFault for text after a known finish reason
    and for a choice without a proper index; ValueError for an event that is no JSON or ambiguous.
    After an exception nothing of this object may be sent any more.
    """

    def __init__(
        self,
        policy: "RedactionPolicy | Treatment",
        *,
        logprobs: Logprobs = "drop",
        tool_arguments: ToolArguments = True,
    ) -> None:
        treatment = Treatment.of(policy, tool_arguments=tool_arguments)
        self.counts = treatment.counts
        self._logprobs: Logprobs = logprobs
        self._fields = WholeFields(treatment)
        self._channels = Channels(treatment)
        self._envelope: dict[str, object] = {}
        self._templates: list[Template] = []  # the last used one first

    @property
    def pending(self) -> int:
        """Characters held over all channels."""
        return self._channels.pending

    def feed(self, data: bytes) -> list[bytes]:
        """The events that may leave after this one; `data` itself when nothing changed."""
        for place, template in enumerate(self._templates):
            text = template.text_of(data)
            if text is not None:
                if place:
                    self._templates.insert(0, self._templates.pop(place))
                out = template.feed(text)
                return [data] if out == text else [template.event(data, out)]
        doc = load(data)
        if not isinstance(doc, dict):
            new = rewrite(doc, self._fields.visit)
            return [data if new is doc else rewritten(data, doc, new)]
        return self._read(data, doc)

    def _read(self, data: bytes, doc: dict[str, object]) -> list[bytes]:
        """An event that has to be read in full."""
        if "choices" in doc:
            self._envelope = {key: doc[key] for key in _ENVELOPE if key in doc}
        changes = self._channels.changes
        event = _Event(self._channels, self._fields, self._logprobs)
        new = event.rewrite(doc)
        added = self._added(event.tails)
        if self._channels.changes != changes:
            self._templates.clear()  # a template feeds the channel that its event belonged to
        template = None
        # The text must be the only thing that an event of this shape can change.
        if event.texts == 1 and not event.others and not event.finished:
            template = Template.of(data, *event.fed)
        if template is None:
            return [*added, data if new is doc else rewritten(data, doc, new)]
        self._templates.insert(0, template)
        del self._templates[_TEMPLATES:]
        return [*added, data if new is doc else template.event(data, event.shown)]

    def finish(self) -> list[bytes]:
        """What is still held when the stream ends without a finish reason."""
        return self._added(self._channels.tails())

    def drop(self) -> None:
        """Forget what is held: the upstream broke off, and half a secret must not leave."""
        self._channels.clear()
        self._templates.clear()

    def _added(self, tails: list[tuple[int, Delta]]) -> list[bytes]:
        if not tails:
            return []
        choices = [{"index": index, **held, "finish_reason": None} for index, held in tails]
        return [dump({**self._envelope, "choices": choices})]


class _Event:
    """One event on its way through: what was fed, what else changed, what must leave before it."""

    def __init__(self, channels: Channels, fields: WholeFields, logprobs: Logprobs) -> None:
        self._channels = channels
        self._fields = fields
        self._logprobs: Logprobs = logprobs
        self.tails: list[tuple[int, Delta]] = []
        self.texts = 0  # fields that were fed to a channel
        self.fed: tuple[str, str, Callable[[str], str]] = ("", "", str)  # the last such field
        self.shown = ""  # what leaves in its place
        self.others = False  # something changed that is no streamed text
        self.finished = False

    def rewrite(self, doc: dict[str, object]) -> object:
        """The event as it may be seen; the same object when nothing changed."""
        changed: dict[str, object] | None = None
        for key, value in doc.items():
            if key == "choices" and isinstance(value, list):
                new: object = self._choices(value)
            else:
                new = rewrite(value, self._whole, (key,), doc)
            if new is not value:
                changed = dict(doc) if changed is None else changed
                changed[key] = new
        return doc if changed is None else changed

    def _choices(self, choices: list[object]) -> list[object]:
        new = [
            self._one(choice, place)
            if isinstance(choice, dict)
            else rewrite(choice, self._whole, ("choices", place), choices)
            for place, choice in enumerate(choices)
        ]
        same = all(one is other for one, other in zip(new, choices, strict=True))
        return choices if same else new

    def _one(self, original: dict[str, object], place: int) -> dict[str, object]:
        choice, finish = _number(original, place), original.get("finish_reason")
        ends = isinstance(finish, str) and finish in FINISH_REASONS
        result = without_logprobs(original, self._logprobs)
        self.others = self.others or result is not original
        for key, value in original.items():
            if key == "logprobs":
                continue
            if key in _ROOTS and isinstance(value, dict | str):
                new = self._streamed(choice, original, key, ends=ends)
            else:
                new = rewrite(value, self._whole, ("choices", place, key), original)
            if new is not value:
                result = {**result, key: new}
        if ends:
            self.finished = True
            self.tails += self._channels.tails(choice)
            self._channels.end(choice)
        return result

    def _streamed(self, choice: int, original: Delta, root: str, *, ends: bool) -> object:
        """The member `root` of a choice, whose texts go on in later events."""
        value, over = original[root], self._channels.ended(choice)
        slots = self._slots(choice, root, value)

        def visit(text: str, path: Path, holder: Holder) -> str:
            channel: Text | ArgumentsRedactor | None = None
            if is_structural(path, text):
                return text
            arguments = is_arguments(path)
            if over and (arguments or is_streamed(path)):
                if text:
                    raise UpstreamAtFault("text of a choice that has finished")
                return text
            if arguments:
                slot = slots.get(path[1], path[:1]) if path[0] == "tool_calls" else path[:1]
                channel = self._channels.arguments(choice, slot, (root, *path), original)
            elif is_streamed(path):
                channel = self._channels.text(choice, (root, *path), original)
            if channel is None:
                return self._whole(text, path, holder)
            self.texts += 1
            self.fed = (str(path[-1] if path else root), text, channel.feed)
            self.shown = channel.feed(text)
            # A text that came with the finish reason may leave with it; an older one goes before.
            if ends and text:
                self.shown += channel.flush()
            return self.shown

        return rewrite(value, visit)

    def _slots(self, choice: int, root: str, value: object) -> dict[object, Hashable]:
        slots: dict[object, Hashable] = {}
        calls = value.get("tool_calls") if isinstance(value, dict) else None
        for position, item in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(item, dict):
                slots[position], tail = self._channels.call_slot(choice, root, position, item)
                if tail:
                    self.tails.append((choice, tail))
        return slots

    def _whole(self, text: str, path: Path, holder: Holder) -> str:
        new = self._fields.visit(text, path, holder)
        self.others = self.others or new != text
        return new


def _number(choice: dict[str, object], place: int) -> int:
    """Which choice this is. Clients differ in how they read an index that is no plain number."""
    index = choice.get("index")
    if index is None:
        return place
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise UpstreamAtFault("the index of a choice is not a number from 0")
    return index
