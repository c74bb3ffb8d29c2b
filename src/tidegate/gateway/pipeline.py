"""What may leave for these upstream bytes, and is the answer complete?

The response side of one attempt, sans-IO and synchronous: `feed(bytes) -> bytes` once per
upstream read, `finish() -> bytes` at its end, `fail(error) -> bytes` when it broke. Two shapes
share the interface: ChatStream (events) and ChatAnswer (one JSON document).

Lives here: framing, the commit point, what counts as an answer, the order of redaction and
framing. Does not live here: sockets, clocks and failover (attempts), what is masked (redaction).
"""

from typing import Protocol

from tidegate import sse, strictjson
from tidegate.errors import TidegateError, UpstreamError, envelope
from tidegate.gateway.spent import Spent
from tidegate.providers.base import Glance, MalformedEvent
from tidegate.providers.openai import glance, glance_completion, without_usage
from tidegate.providers.usage import reported_usage
from tidegate.redaction import Counts
from tidegate.redaction.holes import Holes
from tidegate.routing.outcome import Outcome

_DONE = b"data: [DONE]\n\n"
_MOST_CHOICES = 1024  # providers take an `n` of 128; all of them are remembered


class StreamFilter(Protocol):
    """The redaction stage of a stream: payloads of events in, payloads that may leave out."""

    @property
    def counts(self) -> Counts:
        """What was found so far, in first-seen order."""

    @property
    def holes(self) -> Holes | None:
        """What is to be filled before anything leaves; None without a classifier."""

    def feed(self, data: bytes) -> list[bytes]:
        """What may leave after this payload; raises MalformedEvent as `whole` does."""

    def finish(self) -> list[bytes]:
        """What was still held when the stream ended well."""

    def part(self) -> list[bytes]:
        """What may leave of the held text when the stream broke; half a secret is not among it."""

    def tally(self) -> str:
        """How much was hidden, as it reads at the end."""


class AnswerFilter(Protocol):
    """The redaction stage of a whole answer."""

    @property
    def counts(self) -> Counts:
        """What was found."""

    @property
    def holes(self) -> Holes | None:
        """As of StreamFilter."""

    def whole(self, body: bytes) -> bytes:
        """The body that may leave; raises MalformedEvent for one that cannot be understood."""


class ResponseStage(Protocol):
    """What attempts see of an answer, whatever its shape."""

    spent: Spent
    tokens_seen: int
    complete: bool
    broken: Outcome | None

    @property
    def held_bytes(self) -> int:
        """Bytes kept that a later call has to work on at once."""

    @property
    def is_whole(self) -> bool:
        """Whether an end at this point, however it comes, would take nothing from the answer."""

    @property
    def found(self) -> Counts:
        """How often each detector matched so far."""

    @property
    def holes(self) -> Holes | None:
        """What the bytes for the client are to be filled from; None if they are whole."""

    def feed(self, chunk: bytes) -> bytes:
        """Bytes for the client, also those before a fault; then look at `broken`."""

    def finish(self) -> bytes:
        """The rest, at the upstream's clean end; then look at `broken`."""

    def fail(self, error: TidegateError, request_id: str) -> bytes:
        """The last bytes of an answer that broke after its first bytes had left."""


class ChatStream:
    """An event stream. Nothing leaves before the first content leaves.

    Content is text, reasoning, a refusal, a tool call or a finish reason; comments, role chunks,
    empty deltas and usage are not. `tokens_seen` counts content events of the upstream: it is what
    deadlines watch. Content that the filter holds back shows nobody anything, so another target
    may still answer; unless what waits with it becomes too much. `broken` says why the answer is
    none, or is cut; what was good before it has been returned. After `[DONE]` further bytes are
    ignored. With `strip_usage` the client did not ask
    for usage and we did: the event that reports it, and the members called usage, do not leave.
    `choices` is how many were asked for, 0 if that is not clear.
    Nor do events that are none of the dialect: clients look for choices in every one.
    Cost: one pass over the bytes; held text and one unfinished event in memory. Raises only what
    the filter raises.
    """

    __slots__ = (
        "_before_commit",
        "_before_commit_bytes",
        "_choices",
        "_decoder",
        "_filter",
        "_finished",
        "_opened",
        "_shows",
        "_strip_usage",
        "_tail_comment",
        "_words",
        "broken",
        "complete",
        "spent",
        "tokens_seen",
    )

    def __init__(
        self,
        stream_filter: StreamFilter,
        *,
        max_event_bytes: int,
        before_commit_bytes: int,
        tail_comment: bool = False,
        strip_usage: bool = False,
        choices: int = 1,
    ) -> None:
        self._filter = stream_filter
        self._choices = choices
        self._strip_usage = strip_usage
        self._decoder = sse.Decoder(max_event_bytes)
        self._before_commit = b""
        self._before_commit_bytes = before_commit_bytes
        self._tail_comment = tail_comment
        self._shows = False  # something that a client can see has passed the filter
        self._words: list[bytes] = []  # what may leave of the held text of a stream that broke
        self._opened: set[int] = set()
        self._finished: set[int] = set()
        self.spent = Spent()
        self.tokens_seen = 0
        self.complete = False
        self.broken: Outcome | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of the event that is not complete yet."""
        return self._decoder.held_bytes

    @property
    def is_whole(self) -> bool:
        """Whether every choice that was asked for has its finish reason: the end mark is form."""
        return 0 < self._choices <= len(self._finished) and not self._opened - self._finished

    @property
    def found(self) -> Counts:
        """How often each detector matched so far, in first-seen order."""
        return self._filter.counts

    @property
    def holes(self) -> Holes | None:
        """What the bytes for the client are to be filled from."""
        return self._filter.holes

    def feed(self, chunk: bytes) -> bytes:
        """All that may leave after this read, as one buffer; b"" before the commit point."""
        if self.complete or self.broken:
            return b""
        out: list[bytes] = []
        try:
            for event in self._decoder.feed(chunk):
                if event.data.strip() == b"[DONE]":
                    self._close(out)
                    break
                self._event(event, out)
                if self.broken or self.complete:
                    break
        except (sse.EventTooLarge, MalformedEvent):
            self.broken = Outcome.MALFORMED
        return self._release(out)

    def finish(self) -> bytes:
        """The upstream closed: whole if each choice had its finish reason, else cut."""
        if self.complete or self.broken:
            return b""
        out: list[bytes] = []
        if not self._finished or self._opened - self._finished:
            self.broken = Outcome.INTERRUPTED
        else:
            self._close(out)
        return self._release(out)

    def fail(self, error: TidegateError, request_id: str) -> bytes:
        """One error event and no `[DONE]`, after what cannot be half a secret of the held text.

        When the fault is our own, nothing more of the text leaves.
        """
        held = self._words or self._filter.part() if isinstance(error, UpstreamError) else []
        self.complete = True
        event = sse.encode(strictjson.dumps(envelope(error, request_id)))
        return b"".join([*map(sse.encode, held), event])

    def _look(self, event: sse.Event) -> Glance | None:
        """None: nothing but form was to come, and this is none."""
        try:
            return glance(event.data, event=event.event)
        except MalformedEvent:
            if self.is_whole:
                return None
            raise

    def _event(self, event: sse.Event, out: list[bytes]) -> None:
        seen = self._look(event)
        if seen is None:
            self._close(out)
            return
        if seen.error is not None:
            self.spent.saw("", seen.usage)
            self.broken = seen.error
            return
        if seen.foreign:
            return
        self.spent.saw(seen.text, seen.usage)
        if seen.content:
            self.tokens_seen += 1
        if seen.open_choices:
            self._opened.update(seen.open_choices)
        if seen.finished:
            self._finished.update(seen.finished)
        if len(self._opened) + len(self._finished) > 2 * _MOST_CHOICES:
            raise MalformedEvent("more choices than anybody asks for")
        payload = event.data
        if self._strip_usage:
            if seen.only_usage:
                return
            payload = without_usage(payload)
        self._put(self._filter.feed(payload), out)

    def _put(self, payloads: list[bytes], out: list[bytes]) -> None:
        for data in payloads:
            self._shows = self._shows or glance(data).content
            out.append(sse.encode(data))  # without its name: no field of the dialect, and unread

    def _close(self, out: list[bytes]) -> None:
        self._put(self._filter.finish(), out)
        if self._tail_comment:
            # Directly above the data line of the same event: a comment with a blank line of its
            # own would be an event without data to some clients.
            out.append(f": guardrail redactions={self._filter.tally()}\n".encode())
        out.append(_DONE)
        self.complete = True

    def _release(self, out: list[bytes]) -> bytes:
        if self.broken and self.tokens_seen and not self._shows:
            # Words that were only held back are an answer that has begun; digits are none yet.
            self._words = self._filter.part()
            self._shows = bool(self._words)
        ready = b"".join(out)
        limit = max(self._before_commit_bytes, *map(len, out), 0)
        waiting = len(self._before_commit) + len(ready)
        if self._shows or (self.tokens_seen and (self.complete or waiting > limit)):
            self._shows = True
            if self._before_commit:
                ready, self._before_commit = self._before_commit + ready, b""
            return ready
        if self.complete:
            # A stream that ends without an answer is no answer: the next target may have one.
            self.complete, self.broken = False, Outcome.MALFORMED
            return b""
        self._before_commit += ready
        if waiting > limit:
            self.broken = Outcome.MALFORMED
        return b""


class ChatAnswer:
    """One JSON document, collected whole before anything leaves.

    With `acceptable` false only the error in it matters: a stream was asked for.
    """

    __slots__ = (
        "_acceptable",
        "_body",
        "_filter",
        "_max_bytes",
        "broken",
        "complete",
        "held_bytes",
        "spent",
        "tokens_seen",
    )

    def __init__(
        self, answer_filter: AnswerFilter, *, max_bytes: int, acceptable: bool = True
    ) -> None:
        self._filter = answer_filter
        self._acceptable = acceptable
        self._body: list[bytes] = []
        self._max_bytes = max_bytes
        self.held_bytes = 0
        self.spent = Spent()
        self.tokens_seen = 0
        self.complete = False
        self.broken: Outcome | None = None

    @property
    def found(self) -> Counts:
        """How often each detector matched."""
        return self._filter.counts

    @property
    def holes(self) -> Holes | None:
        """What the bytes for the client are to be filled from."""
        return self._filter.holes

    @property
    def is_whole(self) -> bool:
        """Never before its end: half a document is none."""
        return False

    def feed(self, chunk: bytes) -> bytes:
        """Collects; nothing leaves before the document is whole."""
        self.held_bytes += len(chunk)
        if self.held_bytes > self._max_bytes:
            self.broken = Outcome.MALFORMED
            self._body.clear()
        elif self.broken is None:
            self._body.append(chunk)
        return b""

    def finish(self) -> bytes:
        """The redacted document, if it is a completion with a choice; else look at `broken`."""
        if self.broken:
            return b""
        body = b"".join(self._body)
        seen = glance_completion(body)
        if not isinstance(seen, Glance):
            self.spent.saw("", reported_usage(body))
            self.broken = seen
            return b""
        if not self._acceptable:
            self.broken = Outcome.MALFORMED
            return b""
        self.spent.saw(seen.text, seen.usage)
        try:
            ready = self._filter.whole(body)
        except MalformedEvent:
            self.broken = Outcome.MALFORMED
            return b""
        self.tokens_seen = 1
        self.complete = True
        return ready

    def fail(self, error: TidegateError, request_id: str) -> bytes:
        """Nothing has left, so nothing is owed: the path answers with an error of its own."""
        del error, request_id
        return b""
