"""How does one client over stdio reach the SDK's server, and how does that end?

Lives here: lines to messages and back, ids in flight, and the end: what was asked is answered,
and the process does not outlive its client by more than two seconds. Does not live here: what a
line is (stdio.py), what a message means (server.py), the last resort (ends.py).
"""

import os
import select
from threading import Lock

import anyio
import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tidegate import strictjson
from tidegate.tools import stdio
from tidegate.tools.blocking import BlockingThread
from tidegate.tools.boundary import as_json
from tidegate.tools.ends import HardEnd

_GRACE_S = 1.4
_FAILED = -32603
_ENDED = "The client left before the tool was done."


class LineSession:
    """The two ends of the SDK's streams, joined to the wire; `scope` is what runs on it.

    Made inside of a running loop. `max_line_bytes` bounds one message of the client, without its
    line end. `hard_end` is armed when the client has gone.
    """

    def __init__(
        self,
        wire: stdio.Wire,
        scope: anyio.CancelScope,
        hard_end: HardEnd,
        *,
        max_line_bytes: int = stdio.MAX_LINE_BYTES,
    ) -> None:
        self._wire = wire
        self._scope = scope
        self._max_line_bytes = max_line_bytes
        self._reader, self._writer = BlockingThread("stdin"), BlockingThread("stdout")
        self._to_sdk, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](
            0
        )
        self.answers, self._from_sdk = anyio.create_memory_object_stream[SessionMessage](0)
        self._open_ids: set[int | str] = set()
        self._all_answered = anyio.Event()
        self._at_end = False
        self._write_lock = Lock()
        self._hard_end = hard_end
        hard_end.farewell = self._farewell

    async def read(self) -> None:
        """Lines to messages, until stdin ends and what was asked is answered."""
        splitter = stdio.LineSplitter(self._max_line_bytes)
        try:
            async with self._to_sdk:
                # A thread, because neither epoll nor kqueue can watch a redirected file.
                while chunk := await self._reader.run(self._read):
                    for line in splitter.feed(chunk):
                        await self._take(line)
                for line in splitter.finish():
                    await self._take(line)
                # The SDK gives up running calls when its stream closes; a call that was taken
                # may already have moved money, so its answer is worth a short wait.
                self._at_end = True
                if self._open_ids:
                    with anyio.move_on_after(_GRACE_S):
                        await self._all_answered.wait()
        except anyio.get_cancelled_exc_class():
            # Stopped from outside, by ctrl-C: a tool that cannot be left must not hold it up.
            self._hard_end.arm(130)
            raise

    async def write(self) -> None:
        """Answers to lines."""
        async with self._from_sdk:
            async for answer in self._from_sdk:
                identifier = getattr(answer.message, "id", None)
                await self._send(as_json(answer.message) + b"\n")
                self._open_ids.discard(identifier if identifier is not None else "")
                if self._at_end and not self._open_ids:
                    self._all_answered.set()

    def _read(self) -> bytes:
        chunk = stdio.read_some(self._wire.read_fd)
        if not chunk:
            # Here and not in the loop, which a tool may be blocking.
            self._hard_end.arm()
        return chunk

    async def _take(self, line: bytes | stdio.LineTooLong) -> None:
        try:
            await self._to_sdk.send(SessionMessage(self._message(line)))
        except stdio.BadLine as bad:
            stdio.note(f"dropped a line: {bad.reason}")
            await self._send(stdio.error_line(bad.code, bad.reason))

    def _message(self, line: bytes | stdio.LineTooLong) -> mcp_types.JSONRPCMessage:
        if isinstance(line, stdio.LineTooLong):
            cap = stdio.size(self._max_line_bytes)
            raise stdio.BadLine(stdio.INVALID_REQUEST, f"the line is longer than {cap}")
        value = stdio.read_message(line)
        identifier = value.get("id")
        is_request = "method" in value and isinstance(identifier, int | str)
        if is_request and identifier in self._open_ids:
            raise stdio.BadLine(stdio.INVALID_REQUEST, "this id is already in flight")
        try:
            message: mcp_types.JSONRPCMessage = mcp_types.jsonrpc_message_adapter.validate_python(
                value, by_name=False
            )
        except ValidationError:
            raise stdio.BadLine(stdio.INVALID_REQUEST, "not a JSON-RPC message") from None
        if is_request and isinstance(identifier, int | str):
            self._open_ids.add(identifier)
        if value.get("method") == "notifications/cancelled":
            self._forget(value.get("params"))
        return message

    def _forget(self, params: object) -> None:
        """A cancelled request has no answer: it holds up neither its id nor the end."""
        identifier = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(identifier, int | str):
            self._open_ids.discard(identifier)

    async def _send(self, data: bytes) -> None:
        try:
            await self._writer.run(self._write, data)
        except BrokenPipeError:
            # Nobody listens any more: there is nothing left to do, and nobody to tell.
            self._hard_end.arm()
            self._scope.cancel()

    def _write(self, data: bytes) -> None:
        with self._write_lock:
            stdio.write_all(self._wire.write_fd, data)

    def _farewell(self) -> None:
        """From the thread of the hard end: an error for whatever is still open."""
        # The lock is kept: no line of ours may get into one that is being written, nor any after.
        if not self._write_lock.acquire(blocking=False):
            return
        for identifier in tuple(self._open_ids):
            if not select.select([], [self._wire.write_fd], [], 0)[1]:
                return
            error = {"code": _FAILED, "message": _ENDED}
            answer = {"jsonrpc": "2.0", "id": identifier, "error": error}
            os.write(self._wire.write_fd, strictjson.dumps(answer) + b"\n")


__all__ = ["LineSession"]
