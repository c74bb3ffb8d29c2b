"""Which redaction applies to this direction, and what if it fails?

Lives here: the modes off, detect and enforce, and the guard that turns any failure inside the
redactor into our own error: nothing unredacted leaves. Does not live here: what is masked and
how (redaction), framing (pipeline).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, ParamSpec, TypeVar

from tidegate import strictjson
from tidegate.errors import ContentBlocked, RedactionFailed, TidegateError
from tidegate.providers.base import MalformedEvent
from tidegate.redaction import (
    BlockedContent,
    ChatStreamRedactor,
    Counts,
    RedactionPolicy,
    UpstreamAtFault,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)

Mode = Literal["off", "detect", "enforce"]
Body = dict[str, object]
P = ParamSpec("P")
T = TypeVar("T")

_WORD = re.compile(r"[A-Z]?[a-z']{0,20}[,.;:!?]?")
_TEXTS = ("delta", "message", "text")
_ARGUMENTS: Mapping[Mode, bool | Literal["detect"]] = MappingProxyType(
    {"off": False, "detect": "detect", "enforce": True}
)


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


@dataclass(frozen=True, slots=True)
class Masking:
    """The redaction of one route or one MCP server.

    `tool_arguments` and `tool_results` may be weaker or stronger than the rest of an answer.
    """

    policy: RedactionPolicy
    request: Mode = "detect"
    response: Mode = "enforce"
    tool_arguments: Mode = "detect"
    tool_results: Mode = "enforce"
    logprobs: Literal["drop", "refuse"] = "drop"
    tail_comment: bool = False

    def mask_request(self, body: Body) -> tuple[Body, Counts]:
        """The body to send upstream, the same object if nothing changes; what was found."""
        if self.request == "off":
            return body, Counts()
        masked, found = guarded(lambda: redact_chat_request(body, self.applied(self.request)))
        return (masked if self.request == "enforce" else body), found

    def mask_result(self, value: object) -> tuple[object, Counts]:
        """An MCP message from an upstream: the value that may leave, and what was found."""
        if self.tool_results == "off":
            return value, Counts()
        masked, found = guarded(lambda: redact_tree(value, self.applied(self.tool_results)))
        return (masked if self.tool_results == "enforce" else value), found

    def stream_filter(self) -> "PassThrough | Observed | Masked":
        """The stage for one answer's stream."""
        if self.response == "off":
            return PassThrough()
        redactor = guarded(
            lambda: ChatStreamRedactor(
                self.applied(self.response),
                logprobs=self.logprobs,
                tool_arguments=_ARGUMENTS[self.tool_arguments],
            )
        )
        return Masked(redactor) if self.response == "enforce" else Observed(redactor)

    def answer_filter(self) -> "WholeAnswer":
        """The stage for one whole answer."""
        return WholeAnswer(self)

    def mask_answer(self, document: Body) -> tuple[Body, Counts]:
        """A whole answer as it may leave, the same object if nothing changes; what was found."""
        masked, found = guarded(
            lambda: redact_chat_completion(
                document,
                self.applied(self.response),
                logprobs=self.logprobs,
                tool_arguments=_ARGUMENTS[self.tool_arguments],
            )
        )
        return (masked if self.response == "enforce" else document), found

    def applied(self, mode: Mode) -> RedactionPolicy:
        """The policy that `mode` applies: one that only counts, unless it is enforced."""
        return self.policy if mode == "enforce" else self.policy.observing()


class PassThrough:
    """Redaction is off: everything leaves as it came."""

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


class Masked:
    """Redaction is enforced: only what the redactor releases leaves."""

    def __init__(self, redactor: ChatStreamRedactor) -> None:
        self._redactor = redactor

    @property
    def counts(self) -> Counts:
        """What was masked so far, in first-seen order."""
        return self._redactor.counts

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that may leave now. Raises MalformedEvent for a payload that is at fault."""
        try:
            return guarded(self._redactor.feed, data)
        except RedactionFailed:
            _document(data)  # ambiguous JSON is the upstream's fault, not the redactor's
            raise

    def finish(self) -> list[bytes]:
        """What was held."""
        return guarded(self._redactor.finish)

    def part(self) -> list[bytes]:
        """What of the held text may leave although the rest of it will never come.

        It has passed the detectors as at an end; beyond that only ordinary words leave. Digits,
        capitals and signs could be the first half of a secret that no detector knows by half.
        """
        try:
            held = guarded(self._redactor.finish)
        except TidegateError:
            return []
        return [part for data in held if (part := _words_of(data))]


class Observed(Masked):
    """Redaction only counts: everything leaves as it came."""

    def feed(self, data: bytes) -> list[bytes]:
        """The payload itself, after the redactor has seen it."""
        super().feed(data)
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
    document = _document(data)
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
    """A non-stream answer: the same detectors over the whole document."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self.counts = Counts()

    def whole(self, body: bytes) -> bytes:
        """The document that may leave: the same bytes if nothing was found.

        Raises MalformedEvent for one that parsers may read differently.
        """
        if self._masking.response == "off":
            return body
        document = _document(body)
        masked, self.counts = self._masking.mask_answer(document)
        return body if masked is document else strictjson.dumps(masked)


def _document(data: bytes) -> Body:
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as error:
        raise MalformedEvent(error.reason) from None
    if not isinstance(value, dict):
        raise MalformedEvent("not a JSON object")
    return value
