"""Where does a line of a byte stream end, and which line is too long to be kept?

Lives here: the cut at LF and nothing else, bounded. Does not live here: what a line says.
"""

from collections.abc import Iterator

ENDS_BYTES = 256


class LineTooLong(ValueError):
    """A line beyond the cap; it was dropped but for its first and last bytes (`ENDS_BYTES`)."""

    def __init__(self, length: int, head: bytes, tail: bytes) -> None:
        super().__init__("line longer than the cap")
        self.length = length
        self.head = head
        self.tail = tail


class LineSplitter:
    """Cuts bytes into lines at LF only; a line beyond the cap is given as LineTooLong, once."""

    def __init__(self, max_line_bytes: int = 4 * 1024 * 1024) -> None:
        self._max = max_line_bytes
        self._line = bytearray()
        self._head: bytes | None = None  # of a line that is being dropped; _line is its tail
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | LineTooLong]:
        """The lines that `chunk` completes, without their ends."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            yield from self._end(piece)
        self._add(rest)

    def finish(self) -> Iterator[bytes | LineTooLong]:
        """The last line, if its end is missing."""
        yield from self._end(b"")

    def _add(self, piece: bytes) -> None:
        self._line += piece
        self._length += len(piece)
        if self._length <= self._max:
            return
        if self._head is None:
            self._head = bytes(self._line[:ENDS_BYTES])
        del self._line[:-ENDS_BYTES]

    def _end(self, piece: bytes) -> Iterator[bytes | LineTooLong]:
        self._add(piece)
        line, head, length = bytes(self._line), self._head, self._length
        self._line.clear()
        self._head, self._length = None, 0
        if head is not None:
            yield LineTooLong(length, head, line)
        elif line.strip(b" \t\r"):
            yield line


__all__ = ["ENDS_BYTES", "LineSplitter", "LineTooLong"]
