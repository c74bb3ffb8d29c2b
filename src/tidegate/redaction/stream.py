"""What may leave now, and what must wait for more text?

Lives here: the walk over the text of one channel. It cuts at barriers, judges whole segments,
holds the open one, and swallows the rest of a value that is already certain. Does not live here:
what a value is (detectors), what stands in its place (outlet), several channels (chat_stream).

Every step is a function of the text alone, never of how it was cut on arrival, so feeding a
text in any pieces and feeding it whole give the same output. The states:

- between segments: text is cut at barriers; a segment that grows beyond HOLD is worked off in
  strides counted from its start, each with the full view of HOLD characters;
- in a segment: it is closed, but values may begin in it that go on beyond its end. Each is
  decided in turn, and what stands before it has left;
- run: a value is certain and already replaced; its rest is dropped without being kept.
"""

from bisect import insort
from collections.abc import Hashable
from dataclasses import replace as changed
from operator import itemgetter
from typing import TYPE_CHECKING

from tidegate.redaction.barriers import LOOSE, cut_after, cut_before, last_cut
from tidegate.redaction.folding import is_plain
from tidegate.redaction.held import TRIM_ABOVE, HeldText
from tidegate.redaction.hits import HOLD, Hit, Run, SpanningDetector, Verdict
from tidegate.redaction.outlet import Outlet, Piece, Replace
from tidegate.redaction.program import SHORT, Opening
from tidegate.redaction.spans import Counts, Span

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

__all__ = ["HOLD", "Piece", "Redactor", "RedactorSet"]

_PIECE = 16_384
_OPEN_WORD = 64  # looked at anew with each piece; beyond that the walk knows where it was
_BY_PLACE = itemgetter(0, 1)


class Redactor:
    """Redacts one stream of text: `feed` pieces, then `flush`.

    Holds at most HOLD characters and the beginning of an escape. `lead` is text that is thought
    to stand before the stream, for example `password:`. With `keep_spans=False` memory does not
    grow with the findings; `counts` (label to number, by first appearance) may be shared between
    redactors. `replace` is called with the kind and the original of each value that a placeholder
    is to replace, in text order, and what it returns stands there instead; a value whose end is
    not known yet (see `Hit.run`) gets the plain placeholder.
    """

    __slots__ = (
        "_end",
        "_held",
        "_hits",
        "_openings",
        "_outlet",
        "_plain",
        "_program",
        "_quick",
        "_resume",
        "_run",
        "_sealed",
        "_seen",
        "_stop",
        "_stride",
        "counts",
    )

    def __init__(
        self,
        policy: "RedactionPolicy",
        *,
        counts: Counts | None = None,
        keep_spans: bool = True,
        lead: str = "",
        replace: Replace | None = None,
    ) -> None:
        self.counts = Counts() if counts is None else counts
        self._program = policy.program
        self._plain = self._program.plain
        self._held = HeldText(lead)
        self._outlet = Outlet(
            self._held, self._program, self.counts, keep_spans=keep_spans, replace=replace
        )
        self._run: Run | None = None
        self._stop = -1  # the end of the segment that is being judged
        self._stride: tuple[int, int] | None = None  # of an over-long one: view, taken at its end
        # Values that begin in it, as they win, each with whether an opening led to it.
        self._hits: list[tuple[Hit, bool]] = []
        self._sealed = -1  # nothing that begins before this counts
        self._resume = -1  # where the next look begins
        self._openings: list[Opening] = []
        self._end = 0  # the last barrier known
        self._seen = 0  # no barrier lies between `_end` and here
        self._quick = True
        if lead:
            self._openings = self._program.leading(lead)
            self._stop = self._resume = len(lead) if self._openings else -1
            self._quick = self._stop < 0

    @property
    def pending(self) -> int:
        """Characters that arrived and have not left."""
        return self._held.pending

    @property
    def spans(self) -> tuple[Span, ...]:
        """What was found so far, in order; the last one grows while its value goes on."""
        return tuple(self._outlet.spans)

    def feed(self, text: str) -> str:
        """What may leave after `text` arrived. Raises BlockedContent."""
        if self._quick:
            held = self._held
            at = held.at
            whole = held.text + text
            found = self._plain(whole, at)
            cut = found.end(1) if found is not None else self._cut(whole, at, text)
            if cut >= 0:
                held.text = whole
                held.at = cut
                if cut > TRIM_ABOVE:
                    self._settle()
                return whole[at:cut]
        return self._walk(text)

    def _cut(self, whole: str, at: int, text: str) -> int:
        """Up to where `whole` may leave because no value can be there; -1 if that is not clear."""
        program, size = self._program, len(whole)
        if size - len(text) - at >= _OPEN_WORD or len(text) > _PIECE or not is_plain(text):
            return -1
        if size - at >= SHORT or program.trigger(whole, at, size) is not None:
            if program.anchor(whole, at, size) is not None:
                return -1
        elif text.isascii():
            return size if text[-1:] in LOOSE else whole.rfind(" ", at) + 1 or at
        cut = last_cut(whole, at) or at
        return cut if size - cut < _OPEN_WORD else -1

    def _walk(self, text: str) -> str:
        """`feed` for text in which something might be."""
        if len(text) <= _PIECE:
            return self._work(text, final=False)
        pieces = range(0, len(text), _PIECE)
        return "".join(self._work(text[i : i + _PIECE], final=False) for i in pieces)

    def feed_pieces(self, text: str) -> list[Piece]:
        """Like `feed`, as pieces that say which part of the original each stands for."""
        self._work(text, final=False)
        return self._outlet.pieces()

    def flush_pieces(self) -> list[Piece]:
        """Like `flush`, as pieces."""
        self._work("", final=True)
        self.drop()
        return self._outlet.pieces()

    def flush(self) -> str:
        """The rest, judged as text that has ended. A later `feed` begins a new text."""
        rest = self._work("", final=True)
        self.drop()
        return rest

    def drop(self) -> None:
        """Forget what is held; offsets go on, nothing else is remembered."""
        self._held = HeldText(taken=self._held.taken + self._held.pending)
        self._outlet.restart(self._held)
        self._run = None
        self._leave_segment()
        self._end = self._seen = 0
        self._quick = True

    def _work(self, text: str, *, final: bool) -> str:
        held = self._held
        held.append(text, final=final)
        self._outlet.begin()
        between = self._run is None and self._stop < 0
        if between and not final and held.size <= HOLD and self._closed() <= held.at:
            self._quick = self._quick and held.same
            return ""  # only more of an open segment
        while self._step(final=final):
            pass
        self._settle()
        return self._outlet.text()

    def _step(self, *, final: bool) -> bool:
        """Do one thing; False if nothing more can be done with the text that is here."""
        if self._run is not None:
            return self._swallow(self._run, final=final)
        if self._stop >= 0:
            return self._judge(final=final)
        return self._scan(final=final)

    def _scan(self, *, final: bool) -> bool:
        """Take closed segments up to one that needs a decision, or a stride of the open one."""
        held, outlet, program = self._held, self._outlet, self._program
        text = held.text
        while (end := len(text) if final else self._closed()) > held.at:
            anchor = program.anchor(text, held.at, end)
            if anchor is None:
                outlet.release(end)
                continue
            start = cut_before(text, held.at, anchor.start())
            if start > held.at:
                outlet.release(start)
            stop = cut_after(text, anchor.start(), end)
            if held.span(stop) > HOLD:
                break
            hits, openings = program.judge(text, held.at, stop)
            if hits or openings:
                self._enter(stop, hits, openings)
                return True
            outlet.release(stop)
        if held.size > HOLD:
            view = held.index_after(HOLD)
            chars = program.stride(text, held.at, view)
            self._stride = view, held.taken + chars
            stop = held.index_after(chars)
            self._enter(stop, *program.judge_part(text, held.at, stop, view))
            return True
        if final and held.size:
            outlet.release_chars(held.size)
        return False

    def _closed(self) -> int:
        """The last barrier in the held text."""
        held = self._held
        if self._end <= held.at:
            self._end = last_cut(held.text, max(held.at, self._seen))
            self._seen = max(held.at, len(held.text) - 1)
        return self._end

    def _enter(self, stop: int, hits: list[Hit], openings: list[Opening]) -> None:
        """Something was found, or may begin, before `stop`: in a closed segment or a stride."""
        self._hits = [(hit, False) for hit in hits]
        self._openings = openings
        self._stop = self._resume = stop

    def _judge(self, *, final: bool) -> bool:
        """Decide what begins in the segment, one after the other, then let it leave."""
        while self._openings:
            place = self._openings[0][0]
            if place < self._sealed:
                del self._openings[0]
                continue
            if self._masked(before=place):
                return True
            if place > self._held.at:
                self._outlet.release(place)
            if not self._decide(*self._openings[0], final=final):
                return False
        if self._masked():
            return True
        self._outlet.release(self._resume)
        if self._stride is not None and self._held.taken < self._stride[1]:
            self._outlet.release_chars(self._stride[1] - self._held.taken)
        self._leave_segment()
        return True

    def _decide(self, place: int, rank: int, detector: SpanningDetector, *, final: bool) -> bool:
        """Let `detector` decide about a value at `place`; False if it must wait."""
        held = self._held
        ended = final or held.size > HOLD
        verdict = detector.decide(held.text, place, held.index_after(HOLD), ended=ended)
        if verdict is Verdict.WAIT:
            return False
        del self._openings[0]
        after = place + 1
        if isinstance(verdict, Hit) and self._program.accepts(held.text, verdict):
            insort(self._hits, (verdict, True), key=lambda found: self._program.order(found[0]))
            after = max(after, verdict.end)
        if after <= self._stop:
            again = detector.opens(held.text, after, self._stop)
            if again is not None and not (again == self._stop and self._stride):
                insort(self._openings, (again, rank, detector), key=_BY_PLACE)
        return True

    def _masked(self, *, before: int | None = None) -> bool:
        """Replace the values that begin there; True if one goes on beyond what is here."""
        while self._hits and (before is None or self._hits[0][0].start < before):
            hit, led_to = self._hits.pop(0)
            if hit.start < self._sealed:
                continue
            goes_on = hit.run is not None and (led_to or self._stride is not None)
            if self._outlet.mask(hit, whole=not goes_on) and goes_on:
                self._outlet.release(hit.end)
                self._run = hit.run
                self._leave_segment()
                return True
            if hit.sealed:
                self._sealed = hit.end
            # Inside an over-long segment, and behind a gap, the next look begins after the value.
            if hit.sealed or hit.start > self._stop or self._stride is not None:
                self._resume = max(self._resume, hit.end)
        return False

    def _leave_segment(self) -> None:
        self._stop = -1
        self._stride = None
        self._hits, self._openings = [], []
        self._sealed = self._resume = -1

    def _swallow(self, run: Run, *, final: bool) -> bool:
        held = self._held
        end, done = run.eat(held.text, held.at, final=final)
        self._outlet.swallow(held.take(end) if done and run.exact else held.take_before(end))
        if done:
            self._run = None
        return done

    def _settle(self) -> None:
        """Shorten the buffer, and see whether the short way is open for the next piece."""
        held = self._held
        shift = held.settle()
        if shift:
            self._end -= shift
            self._seen -= shift
            self._outlet.cover -= shift
            if self._stop >= 0:
                self._shift_segment(shift)
        self._quick = (
            self._stop < 0
            and self._run is None
            and held.same
            and self._outlet.cover <= held.at
            # A space between two digits is no barrier, so the short way needs to know its left.
            and not held.text[held.at - 1 : held.at].isdigit()
        )

    def _shift_segment(self, shift: int) -> None:
        self._stop -= shift
        if self._stride is not None:
            self._stride = self._stride[0] - shift, self._stride[1]
        self._sealed -= shift
        self._resume -= shift
        self._hits = [
            (changed(hit, start=hit.start - shift, end=hit.end - shift), led_to)
            for hit, led_to in self._hits
        ]
        self._openings = [(place - shift, rank, each) for place, rank, each in self._openings]


class RedactorSet:
    """One redactor for each key, all under one policy, with shared counts."""

    def __init__(self, policy: "RedactionPolicy") -> None:
        self.counts = Counts()
        self._policy = policy
        self._redactors: dict[Hashable, Redactor] = {}

    def feed(self, key: Hashable, text: str) -> str:
        """What may leave on channel `key`."""
        redactor = self._redactors.get(key)
        if redactor is None:
            redactor = Redactor(self._policy, counts=self.counts)
            self._redactors[key] = redactor
        return redactor.feed(text)

    def flush(self, key: Hashable) -> str:
        """The rest of channel `key`; empty if there is no such channel."""
        redactor = self._redactors.get(key)
        return redactor.flush() if redactor else ""

    def flush_all(self) -> dict[Hashable, str]:
        """The rest of every channel that held something."""
        rest = {key: redactor.flush() for key, redactor in self._redactors.items()}
        return {key: text for key, text in rest.items() if text}

    @property
    def spans(self) -> dict[Hashable, tuple[Span, ...]]:
        """What was found, by channel."""
        return {key: redactor.spans for key, redactor in self._redactors.items()}
