"""What may leave now, and what must wait for more text?

Lives here: the walk over the text of one channel. It cuts at barriers, redacts whole segments,
holds the open one, and swallows the rest of a value that is already certain. Does not live here:
what a value is (detectors, modes), several channels (chat_stream).

Every step is a function of the text alone, never of how it was cut on arrival, so feeding a
text in any pieces and feeding it whole give the same output. The four states:

- text: segments between barriers; one that grows beyond HOLD is worked off in strides counted
  from its start, each with the full view of HOLD characters;
- mode: an opening such as `password:` was seen, and what follows is not decided yet;
- run: a value is certain and already replaced; its rest is dropped without being kept.
"""

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tidegate.redaction.barriers import LOOSE, cut_after, cut_before, last_cut
from tidegate.redaction.held import HeldText
from tidegate.redaction.hits import Hit, Run
from tidegate.redaction.modes import PEM_OPENING, IbanNumber, Mode, PrivateKey, Verdict, opens_iban
from tidegate.redaction.spans import BlockedContent, Counts, Span

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

HOLD = 500
"""Characters that may wait; every value shows what it is within this many."""
STRIDE = 148
"""Characters that an over-long segment gives up at a time: HOLD less the longest address."""

_PIECE = 16_384
_SHORT = 20
# What text shorter than _SHORT needs to contain if it is to contain or to open a value.
_TRIGGER = re.compile(r"[0-9@:=/%\-](?:(?<!-)|BEGIN)").search


class Piece(NamedTuple):
    """Output that stands for the next `taken` characters of input; verbatim unless `replaced`."""

    text: str
    taken: int
    replaced: bool


class Redactor:
    """Redacts one stream of text: `feed` pieces, then `flush`.

    Holds at most HOLD characters. `lead` is text that is thought to stand before the stream,
    for example `password:`. With `keep_spans=False` memory does not grow with the findings;
    `counts` (label to number, by first appearance) may be shared between redactors.
    """

    __slots__ = (
        "_actions",
        "_end",
        "_gaps",
        "_growth",
        "_held",
        "_keep",
        "_mode",
        "_out",
        "_program",
        "_quick",
        "_run",
        "_seen",
        "_shown",
        "_skip",
        "_spans",
        "counts",
    )

    def __init__(
        self,
        policy: "RedactionPolicy",
        *,
        counts: Counts | None = None,
        keep_spans: bool = True,
        lead: str = "",
    ) -> None:
        self.counts = Counts() if counts is None else counts
        self._program = policy.program
        self._actions = self._program.actions
        self._held = HeldText(lead)
        self._keep = keep_spans
        self._spans: list[Span] = []
        self._out: list[str] = []
        self._gaps: list[tuple[int, int]] = []
        self._growth = 0  # characters sent less characters taken
        self._run: Run | None = None
        self._shown = False
        self._mode: Mode | None = self._program.openings.before(lead, len(lead)) if lead else None
        self._skip = -1  # where a mode that starts at a segment has already said "text"
        self._end = 0  # the last barrier known
        self._seen = 0  # no barrier lies between `_end` and here
        self._quick = self._mode is None

    @property
    def pending(self) -> int:
        """Characters that arrived and have not left."""
        return self._held.size

    @property
    def spans(self) -> tuple[Span, ...]:
        """What was found so far, in order; the last one grows while its value goes on."""
        return tuple(self._spans)

    def feed(self, text: str) -> str:
        """What may leave after `text` arrived. Raises BlockedContent."""
        if self._quick and text.isascii() and text:
            held = self._held
            whole, at = held.text + text, held.at
            if len(whole) - at < _SHORT and not _TRIGGER(whole, at):
                held.text = whole
                cut = len(whole) if whole[-1] in LOOSE else whole.rfind(" ", at) + 1 or at
                held.at = cut
                if cut > _PIECE >> 4:
                    self._settle()
                return whole[at:cut]
        if len(text) <= _PIECE:
            return self._work(text, final=False)
        pieces = range(0, len(text), _PIECE)
        return "".join(self._work(text[i : i + _PIECE], final=False) for i in pieces)

    def feed_pieces(self, text: str) -> list[Piece]:
        """Like `feed`, as pieces that say which part of the original each stands for."""
        self._work(text, final=False)
        return self._pieces()

    def flush_pieces(self) -> list[Piece]:
        """Like `flush`, as pieces."""
        self._work("", final=True)
        self.drop()
        return self._pieces()

    def flush(self) -> str:
        """The rest, judged as text that has ended. A later `feed` begins a new text."""
        rest = self._work("", final=True)
        self.drop()
        return rest

    def drop(self) -> None:
        """Forget what is held; offsets go on, nothing else is remembered."""
        size = self._held.size
        self._held = HeldText(taken=self._held.taken + size)
        self._growth -= size
        self._mode = self._run = None
        self._end = self._seen = 0
        self._skip = -1
        self._quick = True

    def _work(self, text: str, *, final: bool) -> str:
        self._held.append(text)
        self._out, self._gaps = [], []
        while self._step(final=final):
            pass
        self._settle()
        return "".join(self._out)

    def _pieces(self) -> list[Piece]:
        gaps = dict(self._gaps)
        return [
            Piece(piece, gaps.get(place, len(piece)), place in gaps)
            for place, piece in enumerate(self._out)
        ]

    def _step(self, *, final: bool) -> bool:
        """Do one thing; False if nothing more can be done with the text that is here."""
        if self._run is not None:
            return self._swallow(self._run, final=final)
        if self._mode is not None:
            return self._decide(self._mode, final=final)
        return self._scan(final=final)

    def _scan(self, *, final: bool) -> bool:
        """Take the next closed segment in which a value is possible, or judge the open one."""
        held = self._held
        text, at = held.text, held.at
        end = len(text) if final else self._closed()
        if end > at:
            anchor = self._program.anchor(text, at, end)
            if anchor is None:
                self._emit(held.take(end))
                return True
            start = cut_before(text, at, anchor.start())
            if start > at:
                self._emit(held.take(start))
            return self._segment(cut_after(text, anchor.start(), end))
        if held.size > HOLD:
            return self._stride()
        if final and held.size:
            self._emit(held.take_chars(held.size))
        return False

    def _closed(self) -> int:
        """The last barrier in the held text."""
        held = self._held
        if self._end <= held.at:
            self._end = last_cut(held.text, max(held.at, self._seen))
            self._seen = max(held.at, len(held.text) - 1)
        return self._end

    def _segment(self, stop: int) -> bool:
        """Redact the segment from `at` to `stop` and see what it opens."""
        held = self._held
        if held.span(stop) > HOLD:
            return self._stride()
        if self._starts_iban(stop):
            return True
        text, openings = held.text, self._program.openings
        pem = stop - len(PEM_OPENING)
        if (
            openings.pem is None
            or pem < held.at
            or pem == self._skip
            or not text.startswith(PEM_OPENING, pem)
        ):
            pem = -1
        for hit in self._program.find(text, held.at, stop if pem < 0 else pem):
            self._mask(hit)
        self._emit(held.take(stop if pem < 0 else pem))
        self._mode = openings.before(text, stop) if pem < 0 else openings.pem
        return True

    def _stride(self) -> bool:
        """Work off the head of a segment that is longer than HOLD."""
        held = self._held
        view, limit = held.index_after(HOLD), held.index_after(STRIDE)
        if self._starts_iban(view):
            return True
        goal = held.taken + STRIDE
        for hit in self._program.find(held.text, held.at, view):
            if hit.start >= limit:
                break
            self._mask(hit)
            if hit.run and held.text[hit.end : view] in {"", "."}:
                self._run = hit.run  # it may go on beyond what was looked at
                return True
        if held.taken < goal:
            self._emit(held.take_chars(goal - held.taken))
        return True

    def _starts_iban(self, end: int) -> bool:
        held, mode = self._held, self._program.openings.iban
        if mode is None or held.at == self._skip:
            return False
        if opens_iban(held.text, held.at, end):
            self._mode = mode
            return True
        return False

    def _decide(self, mode: Mode, *, final: bool) -> bool:
        held = self._held
        ended = final or held.size > HOLD
        verdict = mode.decide(held.text, held.at, held.index_after(HOLD), ended=ended)
        if verdict is Verdict.WAIT:
            return False
        self._mode = None
        if isinstance(verdict, Hit) and not self._program.allowed(held.text, verdict):
            self._mask(verdict)
            self._run = verdict.run
        elif isinstance(mode, IbanNumber | PrivateKey):
            self._skip = held.at
        return True

    def _swallow(self, run: Run, *, final: bool) -> bool:
        held = self._held
        end, done = run.eat(held.text, held.at, final=final)
        dropped = held.take(end) if done and run.exact else held.take_before(end)
        if self._shown:
            self._emit(dropped)
        elif dropped:
            self._growth -= len(dropped)
            self._gaps.append((len(self._out), len(dropped)))
            self._out.append("")
        if done:
            self._run = None
        if self._keep and dropped:
            end_in, end_out = held.taken, held.taken + self._growth
            self._spans[-1] = replace(self._spans[-1], end_in=end_in, end_out=end_out)
        return done

    def _mask(self, hit: Hit) -> None:
        """Let the text before `hit` leave and the placeholder in place of the value."""
        held = self._held
        action = self._actions[hit.family]
        if action == "block":
            raise BlockedContent(hit.family)
        self._emit(held.take_before(hit.start))
        start_in, start_out = held.taken, held.taken + self._growth
        value = held.take(hit.end)
        self._shown = action == "report"
        if self._shown:
            self._emit(value)
        else:
            placeholder = hit.kind.placeholder
            self._growth += len(placeholder) - len(value)
            self._gaps.append((len(self._out), len(value)))
            self._emit(placeholder)
        label = hit.kind.label
        self.counts[label] = self.counts.get(label, 0) + 1
        if self._keep:
            self._spans.append(
                Span(
                    kind=hit.kind.word,
                    label=label,
                    start_in=start_in,
                    end_in=held.taken,
                    start_out=start_out,
                    end_out=held.taken + self._growth,
                    detector=hit.rule,
                )
            )

    def _emit(self, piece: str) -> None:
        if piece:
            self._out.append(piece)

    def _settle(self) -> None:
        """Shorten the buffer, and see whether the short way is open for the next piece."""
        held = self._held
        shift = held.settle()
        if shift:
            self._end -= shift
            self._seen -= shift
            self._skip -= shift
        self._quick = (
            self._mode is None
            and self._run is None
            and held.same
            # A space between two digits is no barrier, so the short way needs to know its left.
            and not held.text[held.at - 1 : held.at].isdigit()
        )


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
