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
from tidegate.tools.line_batches import BATCHING, MOST, Batches

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
        self._version: object = None
        self._batches = Batches()
        self._write_lock = Lock()
        self._pid = os.getpid()
        self._hard_end = hard_end
        hard_end.farewell = self._farewell

    async def read(self) -> None:
        """Lines to messages, until stdin ends and what was asked is answered."""
        # Not only when the loop hears of it: a tool may be blocking that.
        self._hard_end.watch(self._wire.read_fd)
        with self._hard_end.armed_by_interrupt():
            await self._read_to_the_end()

    async def _read_to_the_end(self) -> None:
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
                message = answer.message
                identifier = getattr(message, "id", None)
                if self._version is None and isinstance(message, mcp_types.JSONRPCResponse):
                    self._version = message.result.get("protocolVersion")
                data = as_json(message)
                answered = None if isinstance(message, mcp_types.JSONRPCRequest) else identifier
                await self._send(self._batches.answered(answered, data), answered)
                if self._at_end and not self._open_ids:
                    self._all_answered.set()

    def _read(self) -> bytes:
        chunk = stdio.read_some(self._wire.read_fd)
        if not chunk or stdio.is_read_to_the_end(self._wire.read_fd):
            # Here and not in the loop, which a tool may be blocking.
            self._hard_end.arm()
        return chunk

    async def _take(self, line: bytes | stdio.LineTooLong) -> None:
        try:
            for message in self._messages(line):
                await self._to_sdk.send(SessionMessage(message))
                await self._settle_cancelled(message)
        except stdio.BadLine as bad:
            stdio.note(f"dropped a line: {bad.reason}")
            await self._send(stdio.error_line(bad.code, bad.reason))

    def _messages(self, line: bytes | stdio.LineTooLong) -> list[mcp_types.JSONRPCMessage]:
        if isinstance(line, stdio.LineTooLong):
            cap = stdio.size(self._max_line_bytes)
            raise stdio.BadLine(stdio.INVALID_REQUEST, f"the line is longer than {cap}")
        if self._version == BATCHING and line.lstrip(b" \t\r").startswith(b"["):
            return self._batch(stdio.read_batch(line))
        value = stdio.read_message(line)
        message = _parsed(value)
        self._open_ids |= self._new_ids([value]).keys()
        return [message]

    def _batch(self, values: list[dict[str, object]]) -> list[mcp_types.JSONRPCMessage]:
        if len(values) > MOST:
            raise stdio.BadLine(stdio.INVALID_REQUEST, "the batch has too many messages")
        if any(value.get("method") == "initialize" for value in values):
            raise stdio.BadLine(stdio.INVALID_REQUEST, "initialize must not be part of a batch")
        messages = list(map(_parsed, values))
        ids = self._new_ids(values)
        if ids:
            self._batches.begin(list(ids))
        self._open_ids |= ids.keys()
        return messages

    def _new_ids(self, values: list[dict[str, object]]) -> dict[int | str, None]:
        """The ids of the requests among `values`, in their order; raises BadLine."""
        ids: dict[int | str, None] = {}
        for value in values:
            identifier = value.get("id")
            if "method" not in value or not isinstance(identifier, int | str):
                continue
            if identifier in self._open_ids or identifier in ids:
                raise stdio.BadLine(stdio.INVALID_REQUEST, "this id is already in flight")
            ids[identifier] = None
        return ids

    async def _settle_cancelled(self, message: mcp_types.JSONRPCMessage) -> None:
        """A cancelled request has no answer: it holds up neither its id, its batch nor the end."""
        if not isinstance(message, mcp_types.JSONRPCNotification):
            return
        if message.method != "notifications/cancelled":
            return
        identifier = (message.params or {}).get("requestId")
        if isinstance(identifier, int | str):
            self._open_ids.discard(identifier)
            await self._send(self._batches.left_out(identifier))

    async def _send(self, data: bytes, answered: int | str | None = None) -> None:
        if os.getpid() != self._pid:
            # A tool has forked, and its copy has come back out of the tool: it is no server.
            os._exit(1)
        try:
            await self._writer.run(self._write, data, answered)
        except BrokenPipeError:
            # Nobody listens any more: there is nothing left to do, and nobody to tell.
            self._hard_end.arm()
            self._scope.cancel()

    def _write(self, data: bytes, answered: int | str | None) -> None:
        with self._write_lock:
            stdio.write_all(self._wire.write_fd, data)
            # Here and not in the loop: a call must not be answered again by the farewell.
            if answered is not None:
                self._open_ids.discard(answered)

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


def _parsed(value: dict[str, object]) -> mcp_types.JSONRPCMessage:
    try:
        message: mcp_types.JSONRPCMessage = mcp_types.jsonrpc_message_adapter.validate_python(
            value, by_name=False
        )
    except ValidationError:
        raise stdio.BadLine(stdio.INVALID_REQUEST, "not a JSON-RPC message") from None
    return message


__all__ = ["LineSession"]
