"""Which lines of a wrapped server are messages for its client, and which are not?

Lives here: the decision over every line of both sides, and which calls are open. An answer
passes only to a call that the client made and that has no answer yet; everything that is no
message is junk. Does not live here: processes and pipes (wrap), how junk is shown (junk).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.bridges import reading
from tidegate.bridges.reading import Key
from tidegate.jsonrpc import (
    Batch,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    typed,
)
from tidegate.lines import LineTooLong
from tidegate.mcp.server_lines import FROM_CLIENTS
from tidegate.tools.stdio import MAX_LINE_BYTES, BadLine, error_line

ENDED: Final = "The wrapped server ended before it answered."
UNREADABLE: Final = "The answer of the wrapped server was not valid JSON-RPC."
TOO_LONG: Final = "The answer of the wrapped server was too long."

_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from one line: whole lines for either side, what of it was junk, our note."""

    to_client: bytes = b""
    to_server: bytes = b""
    junk: bytes = b""
    note: str = ""


class Sorter:
    """Both directions of one wrapped server. Cost of a line: one strict parse of it."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._open: dict[Key, str] = {}
        self._cancelled: dict[Key, None] = {}
        self._asked: dict[Key, None] = {}
        self._over = False

    @property
    def open_calls(self) -> int:
        """How many calls of the client wait for an answer."""
        return len(self._open)

    def from_client(self, line: bytes | LineTooLong) -> Step:
        """A line of the client: on to the server, or answered by us."""
        try:
            message = reading.read_client(line, self._max_line_bytes)
            return self._pass_on(message, line)
        except BadLine as bad:
            note = f"dropped a line of the client: {bad.reason}"
            return Step(to_client=error_line(bad.code, bad.reason), note=note)

    def from_server(self, line: bytes | LineTooLong) -> Step:
        """A line of the server's stdout."""
        if isinstance(line, LineTooLong):
            note = f"dropped a line of {line.length} bytes of the server"
            return Step(self._give_up(line, TOO_LONG), junk=line.head, note=note)
        step = self._sort(line)
        if step is not None:
            return step
        # What was printed without a line end stands before the message in the same line.
        for start in reading.starts(line):
            messages = reading.sequence(line[start:])
            step = self._all(messages)
            if step.to_client:
                return Step(step.to_client, junk=line[:start] + step.junk, note=step.note)
        return Step(self._give_up(line, UNREADABLE), junk=line)

    def server_ended(self) -> bytes:
        """An error for every call that is still open; later calls get the same."""
        self._over = True
        lines = [reading.failed(key, ENDED) for key in self._open]
        self._open.clear()
        return b"".join(lines)

    def _pass_on(self, message: Message, line: bytes | LineTooLong) -> Step:
        if isinstance(message, Request):
            key = typed(message.id)
            if key in self._open:
                raise BadLine(-32600, "this id is already in flight")
            if self._over:
                return Step(to_client=reading.failed(key, ENDED))
            self._cancelled.pop(key, None)
            self._open[key] = message.method
        elif isinstance(message, Response):
            if not _took(self._asked, typed(message.id)):
                return Step(note="dropped an answer of the client to no question of the server")
        elif message.method == "notifications/cancelled":
            key_or_none = reading.cancelled_key(message.params)
            # A late answer to it may still pass, but nobody waits for one.
            if key_or_none in self._open and key_or_none is not None:
                del self._open[key_or_none]
                _remember(self._cancelled, key_or_none)
        return Step(to_server=reading.one_line(line) if isinstance(line, bytes) else b"")

    def _sort(self, line: bytes) -> Step | None:
        """The step for a line that is a message or several; None if it is none at all."""
        try:
            message = reading.read(line, max_depth=reading.SERVER_DEPTH)
        except BadLine:
            return None
        if isinstance(message, Malformed):
            return None
        if not isinstance(message, Batch):
            return self._deliver(message, reading.one_line(line))
        return self._all([(each, reading.line_of(_value(each))) for each in message.messages])

    def _all(self, messages: Sequence[tuple[Message, bytes]]) -> Step:
        steps = [self._deliver(each, reading.one_line(line)) for each, line in messages]
        notes = "; ".join(dict.fromkeys(step.note for step in steps if step.note))
        junk = b" ".join(step.junk for step in steps if step.junk)
        return Step(b"".join(step.to_client for step in steps), junk=junk, note=notes)

    def _deliver(self, message: Message, line: bytes) -> Step:
        junk = line.rstrip(b"\n")
        if isinstance(message, Response):
            key = typed(message.id)
            if not _took(self._open, key) and not _took(self._cancelled, key):
                return Step(junk=junk, note="an answer to a call that is not open")
            if not reading.is_fit(message.value):
                return Step(reading.failed(key, UNREADABLE), junk=junk)
            return Step(line)
        if message.method in FROM_CLIENTS or self._is_echo(message):
            return Step(junk=junk, note="a message that only a client sends")
        if isinstance(message, Request):
            _remember(self._asked, typed(message.id))
        elif message.method == "notifications/cancelled":
            key_or_none = reading.cancelled_key(message.params)
            if key_or_none is not None:
                self._asked.pop(key_or_none, None)
        return Step(line)

    def _is_echo(self, message: Request | Notification) -> bool:
        """Whether it is an open call of the client, come back. Both sides may send a ping."""
        if not isinstance(message, Request) or message.method == "ping":
            return False
        return self._open.get(typed(message.id)) == message.method

    def _give_up(self, line: bytes | LineTooLong, why: str) -> bytes:
        """The error for the call that an unreadable line answers, so that nobody waits for it."""
        claims = [line]
        if isinstance(line, bytes):
            claims += [line[start:] for start in reading.starts(line)]
        for key in map(reading.claimed_key, claims):
            if key is not None and _took(self._open, key):
                return reading.failed(key, why)
        return b""


def _remember(keys: dict[Key, None], key: Key) -> None:
    """Bounded: the other side decides how many there are."""
    if len(keys) >= _MOST_REMEMBERED:
        del keys[next(iter(keys))]
    keys[key] = None


def _took(keys: dict[Key, None] | dict[Key, str], key: Key) -> bool:
    if key not in keys:
        return False
    del keys[key]
    return True


def _value(message: Message) -> dict[str, object]:
    return message.value if isinstance(message, Response) else message.encode()


__all__ = ["ENDED", "TOO_LONG", "UNREADABLE", "Sorter", "Step"]
