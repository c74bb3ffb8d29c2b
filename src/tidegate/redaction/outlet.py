"""What leaves in place of a value, and what is said about it?

Lives here: placeholders, the covered stretch behind one, output pieces, spans and counts. Does
not live here: what a value is (detectors), which one wins and when it is certain (stream).
"""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2s
from typing import TYPE_CHECKING, NamedTuple

from tidegate.redaction.held import HeldText
from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import BlockedContent, Counts, Kind, Span

if TYPE_CHECKING:
    from tidegate.redaction.program import Program

Replace = Callable[[Kind, str], str]
"""From kind and value to the text that stands in the value's place."""

_PARTIAL_SHOWN = 4
_PARTIAL_LEAST = 9
_DIGEST_BYTES = 4


class Piece(NamedTuple):
    """Output that stands for the next `taken` characters of input; verbatim unless `replaced`."""

    text: str
    taken: int
    replaced: bool


class Outlet:
    """The way out of one channel. Text before `held.at` has left; up to `cover` none will."""

    __slots__ = (
        "_gaps",
        "_growth",
        "_keep",
        "_out",
        "_program",
        "_replace",
        "_shown",
        "_value",
        "counts",
        "cover",
        "held",
        "spans",
    )

    def __init__(
        self,
        held: HeldText,
        program: "Program",
        counts: Counts,
        *,
        keep_spans: bool,
        replace: Replace | None,
    ) -> None:
        self.held = held
        self.counts = counts
        self.cover = 0  # up to this index text belongs to the last value
        self.spans: list[Span] = []
        self._program = program
        self._keep = keep_spans
        self._replace = replace
        self._out: list[str] = []
        self._gaps: list[tuple[int, int]] = []
        self._growth = 0  # characters sent less characters taken
        self._shown = False  # the last value is only reported
        self._value: _Value | None = None  # the last value, while its replacement must wait

    def begin(self) -> None:
        """Collect anew."""
        self._out, self._gaps = [], []

    def text(self) -> str:
        """What was collected."""
        return "".join(self._out)

    def pieces(self) -> list[Piece]:
        """What was collected, with the lengths of the originals."""
        gaps = dict(self._gaps)
        return [
            Piece(piece, gaps.get(place, len(piece)), place in gaps)
            for place, piece in enumerate(self._out)
        ]

    def restart(self, held: HeldText) -> None:
        """Another text follows; what the old one held never leaves."""
        self._growth -= self.held.pending
        self.held = held
        self.cover = 0
        self._value = None

    def release(self, end: int) -> None:
        """Let the text before index `end` leave, less what a value covers."""
        held = self.held
        if self.cover > held.at:
            self._take_value(min(end, self.cover))
        if end > held.at:
            self._emit(held.take(end))

    def release_chars(self, chars: int) -> None:
        """Let the next `chars` original characters leave, less what a value covers."""
        held = self.held
        if self.cover > held.at:
            self._take_value(min(held.index_after(chars), self.cover))
        elif chars:
            self._emit(held.take_chars(chars))

    def _take_value(self, end: int) -> None:
        """Drop the text before `end`, which belongs to the last value."""
        held, value = self.held, self._value
        if value is None:
            self.swallow(held.take(end))
            return
        folded = held.text[held.at : end]
        original = held.take(end)
        value.add(original, folded)
        self.swallow(original)
        if held.at >= self.cover:
            self._replace_value()

    def _replace_value(self) -> None:
        """All of the last value is known: say what stands in its place."""
        value, self._value = self._value, None
        if value is not None:
            self._drop(0, self._instead(value))
            if self._keep:
                end_out = self.held.taken + self._growth
                self.spans[-1] = replace(self.spans[-1], end_out=end_out)

    def swallow(self, dropped: str) -> None:
        """More of the last value was taken."""
        if not dropped:
            return
        if self._shown:
            self._emit(dropped)
        else:
            self._drop(len(dropped), "")
        if self._keep:
            end_in = self.held.taken
            end_out = end_in + self._growth
            self.spans[-1] = replace(self.spans[-1], end_in=end_in, end_out=end_out)

    def mask(self, hit: Hit, *, whole: bool) -> bool:
        """Put the placeholder where `hit` starts, or lengthen the value before it.

        `whole` says that the value ends where the hit ends. False if an earlier value contains
        this one. Hits come in the order in which they win. Raises BlockedContent.
        """
        held = self.held
        action = self._program.actions[hit.family]
        inside = hit.start < self.cover
        if inside and hit.end <= self.cover and (not self._shown or action == "report"):
            return False
        if action == "block":
            raise BlockedContent(hit.family)
        if inside and (not self._shown or action == "report"):
            self.cover = hit.end
            if not whole:
                self._give_up()
            return True
        self.cover = min(self.cover, hit.start)  # a value that is only reported hides no other
        self._release_before(hit.start)
        self._shown = action == "report"
        start_in, start_out = held.taken, held.taken + self._growth
        if not self._shown:
            self._value = _Value(hit.kind, action)
            if not whole or (action == "mask" and self._replace is None):
                self._give_up()
        self.cover = hit.end
        label = hit.kind.label
        self.counts.found(label, shown=self._shown)
        if self._keep:
            self.spans.append(
                Span(
                    kind=hit.kind.word,
                    label=label,
                    start_in=start_in,
                    end_in=start_in,
                    start_out=start_out,
                    end_out=held.taken + self._growth,
                    detector=hit.rule,
                    family=hit.family,
                )
            )
        return True

    def _give_up(self) -> None:
        """The plain placeholder, which need not know the value."""
        if self._value is not None:
            self._drop(0, self._value.kind.placeholder)
            self._value = None

    def _release_before(self, start: int) -> None:
        if self.cover > self.held.at:
            self._take_value(self.cover)
        self._emit(self.held.take_before(start))

    def _instead(self, value: "_Value") -> str:
        """The text in place of a value, all of which is known."""
        plain, folded = value.kind.placeholder, "".join(value.folded)
        if self._replace is not None:
            return self._replace(value.kind, "".join(value.original))
        if value.action == "partial":
            shown = [char for char in folded if char.isalnum()]
            if len(shown) >= _PARTIAL_LEAST and folded.isascii():
                return f"{plain[:-1]}_{''.join(shown[-_PARTIAL_SHOWN:])}]"
        elif value.action == "hash":
            digest = blake2s(
                folded.encode(errors="surrogatepass"),
                key=self._program.hash_key,
                digest_size=_DIGEST_BYTES,
            )
            return f"{plain[:-1]}_{digest.hexdigest()}]"
        return plain

    def _drop(self, taken: int, instead: str) -> None:
        self._growth += len(instead) - taken
        self._gaps.append((len(self._out), taken))
        self._out.append(instead)

    def _emit(self, piece: str) -> None:
        if piece:
            self._out.append(piece)


class _Value:
    """A value, parts of which have not been seen or may be lengthened yet."""

    __slots__ = ("action", "folded", "kind", "original")

    def __init__(self, kind: Kind, action: str) -> None:
        self.kind = kind
        self.action = action
        self.original: list[str] = []
        self.folded: list[str] = []

    def add(self, original: str, folded: str) -> None:
        """The next part."""
        self.original.append(original)
        self.folded.append(folded)
