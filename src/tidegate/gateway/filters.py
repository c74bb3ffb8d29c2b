"""What may leave of this answer, by the mode of its redaction?

Lives here: the stages that stand between the framing of an answer and the redactor, one for each
mode. Does not live here: which of them applies (masking), what is masked (redaction), framing
(pipeline).
"""

import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tidegate import strictjson
from tidegate.errors import ContentBlocked, RedactionFailed, TidegateError
from tidegate.providers.base import MalformedEvent
from tidegate.redaction import BlockedContent, ChatStreamRedactor, Counts, UpstreamAtFault
from tidegate.redaction.holes import Holes, Judged

Body = dict[str, object]
P = ParamSpec("P")
T = TypeVar("T")

_WORD = re.compile(r"[A-Z]?[a-z']{0,20}[,.;:!?]?")
_TEXTS = ("delta", "message", "text")


def guarded(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`call`, with every failure turned into RedactionFailed and a block into ContentBlocked.

    What the upstream is to blame for becomes MalformedEvent.

    Detectors are plug-ins: whatever one raises, the request ends with our error and not with
    the text it was to look at. The detail is a type name; a message could quote the text.
    """
    try:
        return call(*args, **kwargs)
    except BlockedContent as blocked:
        raise ContentBlocked(blocked.kind) from None
    except UpstreamAtFault as fault:
        raise MalformedEvent(str(fault)) from None
    except TidegateError:
        raise
    except Exception as error:  # noqa: BLE001 - plug-in call
        raise RedactionFailed(type(error).__name__) from None


def read_document(data: bytes) -> Body:
    """A JSON object that every parser reads alike; MalformedEvent for anything else."""
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as error:
        raise MalformedEvent(error.reason) from None
    if not isinstance(value, dict):
        raise MalformedEvent("not a JSON object")
    return value


def unread(found: Counts) -> dict[str, int]:
    """For the record: what passed unread, and how much of it because a classifier was silent."""
    released = found.passed.get("unclassified", 0)
    figures = {"unscanned": found.unscanned}
    return {**figures, "unclassified": released} if released else figures


class PassThrough:
    """Redaction is off: everything leaves as it came."""

    holes: Holes | None = None

    def __init__(self) -> None:
        self.counts = Counts()

    def feed(self, data: bytes) -> list[bytes]:
        """The payload itself."""
        return [data]

    def finish(self) -> list[bytes]:
        """Nothing was held."""
        return []

    def part(self) -> list[bytes]:
        """Nothing was held."""
        return []

    def tally(self) -> str:
        """How much was hidden, as it reads at the end."""
        return str(self.counts.hidden)


class Masked:
    """Redaction is enforced: only what the redactor releases leaves.

    With `holes` that is markers, which are to be filled before anything leaves.
    """

    def __init__(self, redactor: ChatStreamRedactor, holes: Holes | None = None) -> None:
        self._redactor = redactor
        self.holes = holes

    @property
    def counts(self) -> Counts:
        """What was masked so far, in first-seen order."""
        return self._redactor.counts

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that may leave now. Raises MalformedEvent for a payload that is at fault."""
        try:
            return guarded(self._redactor.feed, data)
        except RedactionFailed:
            read_document(data)  # ambiguous JSON is the upstream's fault, not the redactor's
            raise

    def finish(self) -> list[bytes]:
        """What was held."""
        return guarded(self._redactor.finish)

    def part(self) -> list[bytes]:
        """What of the held text may leave although the rest of it will never come.

        It has passed the detectors as at an end; beyond that only ordinary words leave. Digits,
        capitals and signs could be the first half of a secret that no detector knows by half.
        Nothing leaves that a classifier has not read.
        """
        if self.holes is not None:
            return []
        try:
            held = guarded(self._redactor.finish)
        except TidegateError:
            return []
        return [part for data in held if (part := _words_of(data))]

    def tally(self) -> str:
        """How much was hidden, as it reads at the end, when a classifier has answered, too."""
        if self.holes is None:
            return str(self.counts.hidden)

        def late(judged: Judged) -> str:
            del judged
            return str(self.counts.hidden)

        return self.holes.open((), late)


class Observed(Masked):
    """Redaction only counts: everything leaves as it came."""

    def feed(self, data: bytes) -> list[bytes]:
        """The payload itself, after the redactor has seen it."""
        try:
            guarded(self._redactor.feed, data)
        except MalformedEvent:
            # Text after the end of its choice: clients may read it or not, and so may we.
            self.counts.passes("late")
        except RedactionFailed:
            read_document(data)
            raise
        return [data]

    def finish(self) -> list[bytes]:
        """Nothing of the text was withheld."""
        super().finish()
        return []

    def part(self) -> list[bytes]:
        """Nothing of the text was withheld."""
        return []


def _words_of(data: bytes) -> bytes:
    """The choices of a payload whose texts are ordinary words; b"" if there are none."""
    document = read_document(data)
    choices = document.get("choices")
    if not isinstance(choices, list):
        return b""
    plain = [choice for choice in choices if _is_plain(choice)]
    if len(plain) == len(choices):
        return data
    return strictjson.dumps({**document, "choices": plain}) if plain else b""


def _is_plain(choice: Body) -> bool:
    held = [choice[key] for key in _TEXTS if key in choice]
    texts = [
        text for root in held for text in (root.values() if isinstance(root, dict) else [root])
    ]
    return all(
        isinstance(text, str) and all(_WORD.fullmatch(word) for word in text.split())
        for text in texts
    )


class WholeAnswer:
    """A non-stream answer: the same detectors over the whole document; `redact` None is off."""

    def __init__(
        self,
        redact: Callable[[Body], tuple[Body, Counts]] | None,
        holes: Holes | None = None,
    ) -> None:
        self._redact = redact
        self.holes = holes
        self.counts = Counts()

    def whole(self, body: bytes) -> bytes:
        """The document that may leave: the same bytes if nothing was found.

        Raises MalformedEvent for one that parsers may read differently.
        """
        if self._redact is None:
            return body
        document = read_document(body)
        masked, self.counts = guarded(self._redact, document)
        return body if masked is document else strictjson.dumps(masked)


__all__ = [
    "Body",
    "Masked",
    "Observed",
    "PassThrough",
    "WholeAnswer",
    "guarded",
    "read_document",
    "unread",
]
