"""How is what a server prints beside its messages shown, and how much of it?

Lives here: the words of one line for a terminal, the rate, the counts. Does not live here: what
is junk (sorting). Time is an argument.
"""

from typing import Final

_BURST: Final = 50.0
_PER_S: Final = 20.0
_MOST_CHARS: Final = 400


class Junk:
    """Counts everything, shows at most 50 lines at once and 20 a second."""

    def __init__(self) -> None:
        self.lines = 0
        self.bytes = 0
        self.hidden = 0
        self._left = _BURST
        self._at_s: float | None = None

    def take(self, data: bytes, now_s: float) -> str | None:
        """What to print about `data`; None when it is too much. `now_s` is monotonic."""
        self.lines += 1
        self.bytes += len(data)
        if self._at_s is not None:
            self._left = min(_BURST, self._left + (now_s - self._at_s) * _PER_S)
        self._at_s = now_s
        if self._left < 1:
            self.hidden += 1
            return None
        self._left -= 1
        return f"stdout of the server: {shown(data)}"

    def summary(self) -> str | None:
        """The counts in a sentence; None if there was no junk."""
        if not self.lines:
            return None
        hidden = f"; {self.hidden} of them are not shown" if self.hidden else ""
        lines = "1 line" if self.lines == 1 else f"{self.lines} lines"
        return f"{lines} ({self.bytes} bytes) on the server's stdout were no messages{hidden}"


def shown(data: bytes) -> str:
    """`data` as one line of text that does nothing to a terminal, cut at 400 characters."""
    text = data[: 4 * _MOST_CHARS].decode(errors="backslashreplace")
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: _MOST_CHARS + 1])
    return plain if len(plain) <= _MOST_CHARS else plain[:_MOST_CHARS] + "..."


__all__ = ["Junk", "shown"]
