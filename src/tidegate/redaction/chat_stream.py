"""What may a client see of this chat completion event, and what waits for the next?

Lives here: the channels of a streamed chat completion (one redactor for each choice and field,
one lexer for each tool call), the event that carries held text out before a choice finishes, and
the short way for events that differ from the last one in a single string. Does not live here:
server-sent events (sse), where an error goes (gateway), whole answers (chat_fields).
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

from tidegate.redaction.channels import Channels, Delta
from tidegate.redaction.chat_fields import (
    FINISH_REASONS,
    NAMES,
    Audio,
    Logprobs,
    is_streamed,
    without_copies,
)
from tidegate.redaction.fields import WholeFields
from tidegate.redaction.leaves import Holder, Path, rewrite
from tidegate.redaction.spans import UpstreamAtFault
from tidegate.redaction.splice import dump, load, rewritten, without_padding
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
        audio: Audio = "drop",
        tool_arguments: ToolArguments = True,
    ) -> None:
        treatment = Treatment.of(policy, tool_arguments=tool_arguments)
        self.counts = treatment.counts
        self._bare = partial(without_copies, logprobs=logprobs, audio=audio)
        self._fields = WholeFields(treatment, NAMES)
        self._channels = Channels(treatment)
        self._envelope: dict[str, object] = {}
        self._templates: list[Template] = []  # the last used one first

    @property
    def pending(self) -> int:
        """Characters held over all channels."""
        return self._channels.pending

    def feed(self, data: bytes) -> list[bytes]:
        """The events that may leave after this one; `data` itself when nothing changed."""
        data = without_padding(data)
        for place, template in enumerate(self._templates):
            text = template.text_of(data)
            if text is not None:
                if place:
                    self._templates.insert(0, self._templates.pop(place))
                out = template.feed(text)
                return [data] if out == text else [template.event(out)]
        doc = load(data)
        if not isinstance(doc, dict):
            new = rewrite(doc, self._fields)
            return [data if new is doc else rewritten(data, doc, new)]
        return self._read(data, doc)

    def _read(self, data: bytes, doc: dict[str, object]) -> list[bytes]:
        """An event that has to be read in full."""
        changes = self._channels.changes
        event = _Event(self._channels, self._fields, self._bare)
        new = event.rewrite(doc)
        if "choices" in new:
            self._envelope = {key: new[key] for key in _ENVELOPE if key in new}
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
        return [*added, data if new is doc else template.event(event.shown)]

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
    """One event on its way through: what was fed, what else changed, what must leave before it.

    A `Visitor` of everything in it that does not go on in later events.
    """

    def __init__(
        self, channels: Channels, fields: WholeFields, bare: Callable[[Delta], Delta]
    ) -> None:
        self.channels = channels
        self._fields = fields
        self._bare = bare
        self.key = fields.key
        self.members = fields.members
        self.tails: list[tuple[int, Delta]] = []
        self.texts = 0  # fields that were fed to a channel
        self.fed: tuple[str, str, Callable[[str], str]] = ("", "", str)  # the last such field
        self.shown = ""  # what leaves in its place
        self.others = False  # something changed that is no streamed text
        self.finished = False

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        new = self._fields.text(text, path, holder)
        self.others = self.others or new != text
        return new

    def number(self, number: int | float, path: Path) -> object:
        """See `Visitor`."""
        new = self._fields.number(number, path)
        self.others = self.others or new is not number
        return new

    def passes(self, text: str, path: Path, holder: Holder) -> bool:
        """The leaf is no text."""
        return self._fields.passes(text, path, holder)

    def rewrite(self, doc: dict[str, object]) -> dict[str, object]:
        """The event as it may be seen; the same object when nothing changed."""
        changed: dict[str, object] | None = None
        for key, value in doc.items():
            self.key(key)
            if key == "choices" and isinstance(value, list):
                new: object = self._choices(value)
            else:
                new = rewrite(value, self, (key,), doc)
            if new is not value:
                changed = dict(doc) if changed is None else changed
                changed[key] = new
        return doc if changed is None else changed

    def _choices(self, choices: list[object]) -> list[object]:
        new = [
            self._one(choice, place)
            if isinstance(choice, dict)
            else rewrite(choice, self, ("choices", place), choices)
            for place, choice in enumerate(choices)
        ]
        same = all(one is other for one, other in zip(new, choices, strict=True))
        return choices if same else new

    def _one(self, original: dict[str, object], place: int) -> dict[str, object]:
        choice, finish = _number(original, place), original.get("finish_reason")
        ends = isinstance(finish, str) and finish in FINISH_REASONS
        result = bare = self._bare(original)
        self.others = self.others or bare is not original
        for key, value in bare.items():
            self.key(key)
            if key in _ROOTS and isinstance(value, dict | str):
                root = _Root(self, choice, bare, key, ends=ends)
                new = rewrite(value, root)
            else:
                new = rewrite(value, self, ("choices", place, key), bare)
            if new is not value:
                result = {**result, key: new}
        if ends:
            self.finished = True
            self.tails += self.channels.tails(choice)
            self.channels.end(choice)
        return result

    def feed(self, channel: "Text | ArgumentsRedactor", name: str, text: str, *, ends: bool) -> str:
        """What leaves for a piece of a text under the key `name`."""
        self.texts += 1
        self.fed = (name, text, channel.feed)
        if not ends:
            self.shown = channel.feed(text)
        elif text:
            # What came with the finish reason may leave with it, and what is older before it.
            self.shown = channel.feed(text) + channel.flush()
        else:
            self.shown = ""  # all that is left goes before
        return self.shown


class _Root:
    """The member of a choice whose texts go on in later events; a `Visitor` of it."""

    def __init__(
        self, event: _Event, choice: int, original: Delta, root: str, *, ends: bool
    ) -> None:
        self._event = event
        self._choice = choice
        self._original = original
        self._root = root
        self._ends = ends
        self._over = event.channels.ended(choice)
        self._slots = self._calls(original[root])
        self.key = event.key
        self.number = event.number

    def members(self, items: list[object], path: Path) -> None:
        """The parts of a list are pieces of one text here, so nothing is cut over two of them."""

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        event, channels = self._event, self._event.channels
        if path and event.passes(text, path, holder):
            return text
        arguments = NAMES.is_arguments(path, holder)
        if not arguments and not is_streamed(path):
            return event.text(text, path, holder)
        if self._over:
            if text:
                raise UpstreamAtFault("text of a choice that has finished")
            return text
        where = (self._root, *path)
        channel: Text | ArgumentsRedactor | None
        if arguments:
            slot = self._slots.get(path[1], path[:1]) if path[0] == "tool_calls" else path[:1]
            channel = channels.arguments(self._choice, slot, where, self._original)
        else:
            channel = channels.text(self._choice, where, self._original)
        if channel is None:
            return text
        return event.feed(channel, str(where[-1]), text, ends=self._ends)

    def _calls(self, value: object) -> dict[object, Hashable]:
        slots: dict[object, Hashable] = {}
        calls = value.get("tool_calls") if isinstance(value, dict) else None
        for position, item in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(item, dict):
                slots[position], tail = self._event.channels.call_slot(
                    self._choice, self._root, position, item
                )
                if tail:
                    self._event.tails.append((self._choice, tail))
        return slots


def _number(choice: dict[str, object], place: int) -> int:
    """Which choice this is. Clients differ in how they read an index that is no plain number."""
    index = choice.get("index")
    if index is None:
        return place
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise UpstreamAtFault("the index of a choice is not a number from 0")
    return index
