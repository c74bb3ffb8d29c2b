"""What of a server's stderr may stand in our log?

Lives here: lines, their pace, and the masks over them. Pure: time is an argument. Does not live
here: reading the pipe (child), the form of our log (logs).

The redactor sees the lines as one text, because a private key spans several. Values of the
server's own environment are masked by name first: no detector can know what they look like.
"""

from collections.abc import Mapping
from typing import Final

from tidegate.lines import LineSplitter, LineTooLong
from tidegate.redaction import RedactionPolicy, Redactor

MOST_CHARS: Final = 800
_MOST_BYTES: Final = 4096
_BURST: Final = 50.0
_PER_S: Final = 10.0
_SHORTEST_SECRET: Final = 6


class StderrWords:
    """Bytes of stderr in, lines for the log out: at most 50 at once and 10 a second."""

    def __init__(self, policy: RedactionPolicy, environment: Mapping[str, str]) -> None:
        self._policy = policy
        self._splitter = LineSplitter(_MOST_BYTES)
        self._redactor = Redactor(policy, keep_spans=False)
        # The longest first: a value may begin with another one.
        secrets = sorted(environment.items(), key=lambda item: -len(item[1]))
        self._own = [(value, name) for name, value in secrets if len(value) >= _SHORTEST_SECRET]
        self._rest = ""
        self._left = _BURST
        self._at_s: float | None = None
        self._after_gap = False
        self.hidden = 0

    def feed(self, chunk: bytes, now_s: float) -> list[str]:
        """The lines that `chunk` completes, as far as there is room; `now_s` is monotonic."""
        if self._at_s is not None:
            self._left = min(_BURST, self._left + (now_s - self._at_s) * _PER_S)
        self._at_s = now_s
        return [shown for line in self._splitter.feed(chunk) for shown in self._take(line)]

    def finish(self) -> list[str]:
        """What was still held back; at the end of the stream."""
        shown = [each for line in self._splitter.finish() for each in self._take(line)]
        return [*shown, *self._flushed()]

    @property
    def is_flooded(self) -> bool:
        """Whether more comes than is shown: then it need not be read quickly."""
        return self._left < 1

    def _take(self, line: bytes | LineTooLong) -> list[str]:
        if isinstance(line, LineTooLong) or self._left < 1 or not self._may_follow(line):
            self.hidden += 1
            held = [] if self._after_gap else self._flushed()
            self._after_gap = True
            return held
        self._left -= 1
        self._after_gap = False
        text = line.decode(errors="backslashreplace").strip()
        for value, name in self._own:
            text = text.replace(value, f"[{name}]")
        return self._lines(self._redactor.feed(text + "\n"))

    def _may_follow(self, line: bytes) -> bool:
        # Behind a gap the first line of a key may be missing, and the others look like nothing.
        return not self._after_gap or b" " in line.strip()

    def _flushed(self) -> list[str]:
        text = self._redactor.flush()
        self._redactor = Redactor(self._policy, keep_spans=False)
        return self._lines(text + "\n")

    def _lines(self, text: str) -> list[str]:
        *whole, self._rest = (self._rest + text).split("\n")
        return [_shown(line) for line in whole if line.strip()]


def _shown(line: str) -> str:
    """The line, with nothing in it that does something to a terminal, cut at 800 characters."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line[: MOST_CHARS + 1])
    return plain if len(plain) <= MOST_CHARS else plain[:MOST_CHARS] + "..."


__all__ = ["MOST_CHARS", "StderrWords"]
