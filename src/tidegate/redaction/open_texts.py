"""Which texts of a stream of named events are open, and in which event does the rest leave?

Lives here: the treatment of every open text, the bound on their number, the end of texts, and the
event that carries held text out. Made for dialects in which one event is one piece of one text
(OpenAI Responses, Anthropic Messages). Does not live here: chat completions, whose events hold
many texts (channels), what an event means (responses_stream, messages_stream).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.redaction.spans import TooManyChannels, UpstreamAtFault

if TYPE_CHECKING:
    from tidegate.redaction.treatment import Text, Treatment

MAX_OPEN = 64
_MAX_ENDED = 8192

Key = tuple[Hashable, ...]
"""Where a text stands, from the outside in: all texts of one item begin with the same steps."""
Path = tuple[str | int, ...]
Document = dict[str, object]


class NamedEvent(NamedTuple):
    """One event for the client: the name of its `event:` line and its payload."""

    name: str
    data: bytes


@dataclass(slots=True)
class _Open:
    """One open text; `carrier` is an event of its kind, with the text at `place`."""

    way: "Text | ArgumentsRedactor"
    carrier: Document
    place: Path


class OpenTexts:
    """The open texts of one response; at most MAX_OPEN, beyond that TooManyChannels."""

    def __init__(self, treatment: "Treatment") -> None:
        self._treatment = treatment
        self._open: dict[Key, _Open] = {}
        self._ended: set[Key] = set()

    @property
    def pending(self) -> int:
        """Characters held over all texts."""
        return sum(each.way.pending for each in self._open.values())

    def way(
        self, key: Key, carrier: Document, place: Path, *, arguments: bool = False
    ) -> "Text | ArgumentsRedactor | None":
        """The treatment of the text `key`, a piece of which `carrier` holds at `place`.

        None if it passes unread, as arguments may. Raises UpstreamAtFault for a text that has
        ended.
        """
        known = self._open.get(key)
        if known is not None:
            return known.way
        if any(key[:steps] in self._ended for steps in range(1, len(key) + 1)):
            raise UpstreamAtFault("a piece of a text that has ended")
        treatment = self._treatment.for_arguments if arguments else self._treatment
        if treatment is None:
            return None
        if len(self._open) >= MAX_OPEN:
            raise TooManyChannels(f"more than {MAX_OPEN} open texts in one response")
        way = ArgumentsRedactor(treatment) if arguments else treatment.text()
        self._open[key] = _Open(way, carrier, place)
        return way

    def end(self, within: Key) -> list[Document]:
        """End every text whose key begins with `within`: the events that carry the rest out."""
        found = [key for key in self._open if key[: len(within)] == within]
        carriers = []
        for key in found:
            each = self._open.pop(key)
            rest = each.way.flush()
            if rest:
                carriers.append(put(each.carrier, each.place, rest))
        if within:
            if len(self._ended) >= _MAX_ENDED:
                raise UpstreamAtFault(f"more than {_MAX_ENDED} texts in one response")
            self._ended.add(within)
        return carriers

    def clear(self) -> None:
        """Forget what is held."""
        self._open.clear()


def put(document: Document, place: Path, value: object) -> Document:
    """A copy of `document` with `value` at `place`; what is not on the way there is shared."""
    key, *rest = place
    holder: Any = document
    copy: Any = list(holder) if isinstance(holder, list) else dict(holder)
    copy[key] = put(holder[key], tuple(rest), value) if rest else value
    result: Document = copy
    return result
