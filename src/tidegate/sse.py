"""Which events are in these bytes?

Lives here: server-sent events from bytes and back, as the WHATWG HTML standard (9.2) parses
them. Does not live here: what the data of an event means (providers), when bytes are read or
sent. Works on bytes because text line splitting breaks on U+2028, which JSON may carry raw.
"""

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event: its data lines joined by a line feed; its type.

    `id` and `retry_ms` are told by a decoder that keeps marks, and only there can data be empty:
    in an event with an id, after which a client that lost the stream asks for the rest.
    """

    data: bytes
    event: str | None = None
    id: str | None = None
    retry_ms: int | None = None


class EventTooLarge(ValueError):
    """The sender did not end an event within the bound; the decoder is of no further use."""

    def __init__(self) -> None:
        super().__init__("an event is larger than the bound")


class Decoder:
    """Bytes in, events out; the cuts between the chunks make no difference.

    Line ends may be LF, CR or CRLF, mixed. Dropped: a byte order mark at the start, comments,
    `id`, `retry` and unknown fields, events without data or with only one empty data line.
    `max_event_bytes` bounds the lines of one event that have to be kept (raw length plus one
    each) and the line being read. Cost: linear in the bytes, however they are cut.

    `marks`: `id` and `retry` are kept. An id counts for the event it stands in, and makes one even
    without data; a `retry` that stands alone is told with the next event.
    """

    __slots__ = (
        "_broken",
        "_cr",
        "_data",
        "_first",
        "_held",
        "_id",
        "_marks",
        "_max",
        "_pieces",
        "_retry_ms",
        "_size",
        "_type",
    )

    def __init__(self, max_event_bytes: int, *, marks: bool = False) -> None:
        self._max = max_event_bytes
        self._marks = marks
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._first = True  # no line was read yet: a byte order mark may come
        self._cr = False  # the last chunk ended in CR: a LF now belongs to it
        self._pieces: list[bytes] = []  # of the unfinished line
        self._size = 0  # bytes in _pieces
        self._data: bytes | bytearray | None = None
        self._type: str | None = None
        self._held = 0  # bytes of the lines that went into _data and _type
        self._broken = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes, in order.

        Raises EventTooLarge, then and at every later call; events that the same chunk completed
        before the one too large are lost with it.
        """
        if self._broken:
            raise EventTooLarge
        if not chunk:
            return []
        if self._cr and chunk[0] == 10:
            chunk = chunk[1:]
            self._cr = False
            if not chunk:
                return []
        self._cr = chunk[-1] == 13
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events: list[Event] = []
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
        for line in lines:
            self._line(line, events)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._held + self._size > self._max:
                self._break()
        return events

    def finish(self) -> list[Event]:
        """The input is over: nothing more comes out.

        An event that no blank line ended is not dispatched, as the standard demands; `pending`
        tells that there was one.
        """
        return []

    @property
    def pending(self) -> bool:
        """Whether an event was begun and not ended; comments do not count."""
        if self._data is not None:
            return True
        return bool(self._pieces) and not self._pieces[0].startswith(b":")

    @property
    def held_bytes(self) -> int:
        """Bytes kept of the event that is not ended yet."""
        return self._held + self._size

    def _line(self, line: bytes, events: list[Event]) -> None:
        if line and self._held + len(line) > self._max:
            self._break()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data or self._id is not None:
                events.append(self._event())
            self._data = self._type = None
            self._held = 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._append(value.removeprefix(b" "))
            self._held += len(line) + 1
        elif name == b"event":
            self._type = value.removeprefix(b" ").decode(errors="replace") or None
            self._held += len(line) + 1
        elif self._marks and name in (b"id", b"retry"):
            self._mark(name, value.removeprefix(b" "))
            self._held += len(line) + 1

    def _event(self) -> Event:
        event = Event(bytes(self._data or b""), self._type, self._id, self._retry_ms)
        self._id = self._retry_ms = None
        return event

    def _mark(self, name: bytes, value: bytes) -> None:
        if name == b"id":
            # The standard ignores an id with NUL, and an empty one takes back what was told.
            self._id = None if b"\0" in value else value.decode(errors="replace") or None
        elif value.isdigit():
            self._retry_ms = int(value[:_MOST_DIGITS])

    def _append(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            # A bytearray grows in place: a list would cost a pointer for each empty line.
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value

    def _break(self) -> None:
        self._broken = True
        self._pieces.clear()
        self._data = self._type = None
        raise EventTooLarge


def encode(
    data: bytes,
    *,
    event: str | None = None,
    id: str | None = None,  # noqa: A002 - the field's own name
    retry_ms: int | None = None,
) -> bytes:
    """One event for the weakest of clients: optional fields, data lines, a blank line.

    A line end in `data` (LF, CR or CRLF) starts a further data line. Raises ValueError for
    empty data without an id, which clients drop or stumble over, and for a field with a line end.
    """
    if not data and id is None:
        raise ValueError("an event needs data")
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    head = b""
    if id is not None:
        head = b"id: " + _one_line(id) + b"\n"
    if retry_ms is not None:
        head += b"retry: %d\n" % retry_ms
    if event is not None:
        head += b"event: " + _one_line(event) + b"\n"
    return head + b"data: " + data + b"\n\n"


def _one_line(value: str) -> bytes:
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError("a field of an event is one line")
    return value.encode()


__all__ = ["Decoder", "Event", "EventTooLarge", "encode"]
