"""How do lines come from the client and go to it?

Lives here: the client's end of a bridge, over the private copies of stdin and stdout. Does not
live here: what a line says (reading).
"""

import signal
from collections.abc import AsyncIterator

from tidegate.lines import LineSplitter, LineTooLong
from tidegate.tools.blocking import BlockingThread
from tidegate.tools.stdio import Wire, read_some, write_all


class ClientEnd:
    """The client of this process; made inside of a running loop."""

    def __init__(self, wire: Wire, max_line_bytes: int) -> None:
        self._wire = wire
        self._max_line_bytes = max_line_bytes
        self._reader, self._writer = BlockingThread("stdin"), BlockingThread("stdout")
        self.gone = False

    async def lines(self) -> AsyncIterator[bytes | LineTooLong]:
        """The client's lines until it closes its end."""
        async for line in lines_of(self._reader, self._wire.read_fd, self._max_line_bytes):
            yield line

    async def send(self, lines: bytes) -> None:
        """Whole lines to the client, in the order of the calls; slow while it is slow.

        A client that has closed its end is `gone` from then on; nobody is told.
        """
        if not lines or self.gone:
            return
        try:
            await self._writer.run(write_all, self._wire.write_fd, lines)
        except OSError:
            self.gone = True


async def lines_of(
    reader: BlockingThread, fd: int, max_line_bytes: int
) -> AsyncIterator[bytes | LineTooLong]:
    """The lines of a descriptor that cannot be watched, until its end."""
    splitter = LineSplitter(max_line_bytes)
    while chunk := await reader.run(read_some, fd):
        for line in splitter.feed(chunk):
            yield line
    for line in splitter.finish():
        yield line


def signals_of_an_end() -> list[signal.Signals]:
    """The signals that end a bridge, without those that whoever started it has it ignore."""
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return [number for number in ends if signal.getsignal(number) is not signal.SIG_IGN]


__all__ = ["ClientEnd", "lines_of", "signals_of_an_end"]
