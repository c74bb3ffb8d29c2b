"""What happens between the start of a tool server's process and its end?

Lives here: its pipes, its end in order or by itself, and what is logged of it. Does not live
here: when it is started (children), which call a line belongs to (mcp.stdio_upstream), the
process and its guard (transport.child).
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO, Final, Literal

from tidegate.clock import Clock
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.child_words import StderrWords
from tidegate.gateway.servers.mailbox import Mailbox
from tidegate.gateway.servers.outlet import Outlet
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Id, Notification, Request, Tree
from tidegate.lines import LineSplitter
from tidegate.mcp.stdio_upstream import (
    Call,
    Conversation,
    Delivered,
    Failed,
    Line,
    Told,
    read_line,
)
from tidegate.transport.child import Child

logger = logging.getLogger(__name__)

_READ_BYTES: Final = 65_536
_LAST_WORDS_S: Final = 0.5
"""How long the pipes of a process that has ended are read on; helpers may hold them open."""
_POLITE_S: Final = 1.0
"""From the end of its stdin to SIGTERM, and from there to SIGKILL."""
_FLOOD_PAUSE_S: Final = 0.05
_SIGNALED: Final = 128
_KILLED: Final = _SIGNALED + signal.SIGKILL

EndReason = Literal["closed", "exited", "failed", "killed", "hung"]
"""We wanted it; status 0; another status; a signal; or it had closed a pipe or read nothing any
more, and had to be ended."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a line of the server, and for how long it may read nothing of what waits for it."""

    line_bytes: int
    stall_s: float


class Life:
    """One process of one server; made inside of a running loop, `open` once.

    `ended` is called when it answers nobody any more, for whatever reason; `left` when nothing
    is left of it.
    """

    def __init__(
        self, name: str, child: Child, clock: Clock, words: StderrWords, bounds: Bounds
    ) -> None:
        self.name = name
        self.began_s = clock.monotonic_s()
        self.ended: Callable[[Life], None] = lambda _: None
        self.left: Callable[[EndReason], None] = lambda _: None
        self.listener: Callable[[Tree], None] = lambda _: None
        self.is_over = self._is_closing = False
        self._child, self._clock, self._words = child, clock, words
        self._max_line_bytes = bounds.line_bytes
        self._conversation = Conversation()
        self._mailboxes: dict[Call, Mailbox] = {}
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._outlet = Outlet(bounds.stall_s)
        self._inlets: list[asyncio.ReadTransport] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._child.pid

    @property
    def is_open(self) -> bool:
        """Whether it can be sent anything."""
        ends = self.is_over or self._is_closing or self._exited.done()
        return not ends and not self._outlet.lost.done()

    @property
    def running(self) -> int:
        """Calls without an answer."""
        return len(self._mailboxes)

    async def open(self) -> None:
        """Take its pipes over and watch for its end. Raises OSError if that cannot be done; then
        it is ended."""
        Thread(target=self._wait, name="tool server", daemon=True).start()
        child = self._child
        out, err = asyncio.StreamReader(_READ_BYTES), asyncio.StreamReader(_READ_BYTES)
        left = [child.stdin, child.stdout, child.stderr]
        try:
            await self._loop.connect_write_pipe(lambda: self._outlet, child.stdin)
            left.pop(0)
            for reader, pipe in ((out, child.stdout), (err, child.stderr)):
                transport, _ = await self._loop.connect_read_pipe(
                    lambda reader=reader: asyncio.StreamReaderProtocol(reader),  # type: ignore[misc]
                    pipe,
                )
                self._inlets.append(transport)
                left.pop(0)
        except BaseException:
            self._abandon(left)
            raise
        said, beside = self._task(self._read(out)), self._task(self._read_beside(err))
        self._task(self._see_the_end(said, beside))

    def ask(self, request: Request, *, client_id: Id, owner: object) -> tuple[Call, Mailbox]:
        """Send a request; its answer comes into the mailbox. Raises ServerFailed."""
        call, line = self._conversation.ask(request, client_id=client_id, owner=owner)
        try:
            self._write(line)
        except ServerFailed:
            self._conversation.forget(call)
            raise
        mailbox = self._mailboxes[call] = Mailbox()
        return call, mailbox

    def tell(self, note: Notification, *, owner: object) -> None:
        """Send a notification. Raises ServerFailed."""
        if line := self._conversation.tell(note, owner=owner):
            self._write(line)

    def leave(self, call: Call) -> None:
        """Nobody waits for this call any more; the server is told if it is still at it."""
        if (mailbox := self._mailboxes.pop(call, None)) is not None:
            mailbox.fail("cancelled")
        if line := self._conversation.leave(call):
            # One that does not read would not read this either.
            with suppress(ServerFailed):
                self._write(line)

    @property
    def has_sent_all(self) -> bool:
        """Whether all that was written is in the hands of the system."""
        return self._outlet.empty.is_set()

    async def sent(self) -> None:
        """Return when it is, or the life is over."""
        await self._outlet.empty.wait()

    async def close(self) -> None:
        """End it: its stdin, SIGTERM, SIGKILL; each has its time. Returns when it is gone."""
        self._is_closing = True
        self._outlet.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.wait((self._exited,), timeout=_POLITE_S)
            if self._exited.done():
                break
            self._child.signal(number)
        await self._gone.wait()

    async def gone(self) -> None:
        """Return when nothing is left of it: a second process may stand in its way."""
        await self._gone.wait()

    def _abandon(self, pipes: list[IO[bytes]]) -> None:
        """End a process that nobody can talk to, and close those of its pipes that nobody took."""
        self._child.signal(signal.SIGKILL)
        self._child.leave()
        self._outlet.abort()
        for inlet in self._inlets:
            inlet.close()
        for pipe in pipes:
            pipe.close()

    def _write(self, line: bytes) -> None:
        if not self.is_open:
            raise ServerFailed("crashed")
        self._outlet.write(line)

    async def _read(self, pipe: asyncio.StreamReader) -> None:
        splitter = LineSplitter(self._max_line_bytes)
        while chunk := await pipe.read(_READ_BYTES):
            for line in splitter.feed(chunk):
                size = len(line) if isinstance(line, bytes) else 0
                # Nobody else hears meanwhile: the order of the lines is that of the pipe.
                self._hear(await beside_the_loop(size, read_line, line))
        for line in splitter.finish():
            self._hear(read_line(line))

    def _hear(self, line: Line) -> None:
        first_junk = line.junk_bytes and not self._conversation.tally.junk_lines
        for event in self._conversation.hear(line):
            match event:
                case Delivered(call, incoming, last, lossy):
                    if (mailbox := self._mailboxes.get(call)) is not None:
                        mailbox.put(incoming, line.size, last=last, lossy=lossy)
                case Failed(call, reason):
                    if (mailbox := self._mailboxes.get(call)) is not None:
                        mailbox.fail(reason)
                case Told(answer):
                    with suppress(ServerFailed):
                        self._write(answer)
                case _:
                    self.listener(event.message)
        if first_junk:
            # Its bytes are nobody's business; once is enough to find out what prints there.
            logger.warning("tool_server_junk", extra={"server": self.name})

    async def _read_beside(self, pipe: asyncio.StreamReader) -> None:
        while chunk := await pipe.read(_READ_BYTES):
            self._log(self._words.feed(chunk, self._clock.monotonic_s()))
            if self._words.is_flooded:
                # Who writes more than anybody reads waits for us, not we for it.
                await pause(_FLOOD_PAUSE_S)
        self._log(self._words.finish())

    def _log(self, lines: list[str]) -> None:
        for line in lines:
            logger.info("tool_server_said", extra={"server": self.name, "said": line})

    async def _see_the_end(self, said: "asyncio.Task[None]", beside: "asyncio.Task[None]") -> None:
        signs = (said, self._exited, self._outlet.lost)
        await asyncio.wait(signs, return_when=asyncio.FIRST_COMPLETED)
        # It has ended, says nothing any more or hears nothing any more: what it said still counts.
        await asyncio.wait((said,), timeout=_LAST_WORDS_S)
        self.is_over = True
        self._outlet.close()
        running = len(self._conversation.end())
        # First: who hears that its call has failed may try again at once.
        self.ended(self)
        for mailbox in self._mailboxes.values():
            mailbox.fail("crashed")
        await asyncio.wait((self._exited,), timeout=_LAST_WORDS_S)
        by_itself = self._exited.done()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._exited.done():
                self._child.signal(number)
                await asyncio.wait((self._exited,), timeout=_POLITE_S)
        code = self._exited.result() if self._exited.done() else _KILLED
        await asyncio.wait((beside,), timeout=_LAST_WORDS_S)
        self._child.leave()
        self._outlet.abort()
        for task in (said, beside):
            _settle(task)
        for inlet in self._inlets:
            inlet.close()
        self._summarize(code, running)
        self.left(self._reason(code, by_itself=by_itself))
        self._gone.set()

    def _reason(self, code: int, *, by_itself: bool) -> EndReason:
        if self._is_closing:
            return "closed"
        if not by_itself:
            return "hung"
        if code > _SIGNALED:
            return "killed"
        return "failed" if code else "exited"

    def _summarize(self, code: int, running: int) -> None:
        lived_s = round(self._clock.monotonic_s() - self.began_s, 3)
        extra = {"server": self.name, "status": code, "seconds": lived_s, "running": running}
        logger.log(
            logging.INFO if self._is_closing else logging.WARNING, "tool_server_ended", extra=extra
        )
        tally = self._conversation.tally
        hidden = {
            "junk_lines": tally.junk_lines,
            "stray_answers": tally.stray_answers,
            "stray_notifications": tally.stray_notes,
            "stderr_lines_not_shown": self._words.hidden,
        }
        for reason, count in hidden.items():
            if count:
                told = {"server": self.name, "reason": reason, "dropped": count}
                logger.info("tool_server_dropped", extra=told)

    def _wait(self) -> None:
        code = self._child.wait()
        # The loop may be closed: then nobody waits for it any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._exited.set_result, code)

    def _task(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(work)
        self._tasks.append(task)
        return task


def _settle(task: "asyncio.Task[None]") -> None:
    """A reader that has ended in a fault of ours must be seen."""
    if not task.done():
        task.cancel()
    elif not task.cancelled() and (bug := task.exception()) is not None:
        logger.error("task_failed", exc_info=bug)


__all__ = ["Bounds", "EndReason", "Life"]
