"""Where does the reader of an event stream stand, should it have to come back?

A server of the revisions up to 2025-11-25 may let a stream go before the answer; the client asks
for the rest, after the time that the server names, with the id of the last event. Lives here: that
id and that time, read from the bytes as they come. Does not live here: what the events say.

Sources: MCP 2025-11-25, basic/transports, Resumability; WHATWG HTML, server-sent events.
"""

import re
from typing import Final

_ID: Final = re.compile(rb"[\x21-\x7e]{1,512}")
_MOST_LINE_BYTES: Final = 1024
"""What is longer is no line that matters here; the rest of it is not kept."""
_SOONEST_S, _USUAL_S, _LATEST_S = 0.1, 1.0, 30.0


class Place:
    """The last whole event of a stream, and of those that went on with it."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_s = _USUAL_S
        self._rest = b""
        self._named: bytes | None = None

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the body, cut anywhere. Linear in their length."""
        data = self._rest + chunk
        # The second half of a line's end may still come.
        held = b"\r" if data.endswith(b"\r") else b""
        data = data[: len(data) - len(held)]
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()[:_MOST_LINE_BYTES] + held
        for line in lines:
            self._line(line)

    def begin(self) -> None:
        """A new body: what was left of the one before is no event."""
        self._rest, self._named = b"", None

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if self._named is not None and _ID.fullmatch(self._named):
                self.last_id = self._named.decode("ascii")
            self._named = None
        elif name == b"id":
            self._named = value
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_s = min(max(int(value) / 1000, _SOONEST_S), _LATEST_S)


__all__ = ["Place"]
