"""Who may write to stdout?

Nobody but the protocol: `seize_stdio` takes both standard streams away before anything else is
imported, and `serve_lines` moves messages over the private copies. Does not live here: what a
message means (server.py). At import nothing is needed beside the standard library, so that it can
run first; the SDK is imported by the functions that use it.
"""

import os
import select
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from math import isinf

from tidegate import strictjson
from tidegate.jsonrpc import Malformed, classify, error_body
from tidegate.lines import ENDS_BYTES, LineSplitter, LineTooLong
from tidegate.tools.written import Written

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
MAX_LINE_BYTES = 4 * 1024 * 1024
_READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Wire:
    """The two private descriptors that carry the protocol."""

    read_fd: int
    write_fd: int


def seize_stdio() -> Wire:
    """The real stdin and stdout, moved to private descriptors; from then on 1 is stderr.

    A stray write reaches stderr whatever makes it: print, os.write, a child process, C code,
    something at import or at exit. Nothing is ever restored, because what is still buffered then
    (a print without flush, C stdio) would come out on the wire after all.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    _close_in_forks([read_fd, write_fd])
    os.dup2(2, 1)
    # What was printed before goes to stderr as well: sitecustomize and .pth files come first.
    with suppress(OSError):
        sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    return Wire(read_fd, write_fd)


def _close_in_forks(fds: list[int]) -> None:
    """A forked process must not keep the client's pipes open when we have gone.

    Programs that are started do not get them anyway (PEP 446).
    """

    def close() -> None:
        # Emptied, for in a fork of the fork the numbers may be somebody else's.
        while fds:
            with suppress(OSError):
                os.close(fds.pop())

    os.register_at_fork(after_in_child=close)


def note(text: str) -> None:
    """One line of ours on stderr, unless that would wait for somebody to read it."""
    if not text:
        return
    with suppress(OSError, ValueError):
        if select.select([], [sys.stderr], [], 0)[1]:
            sys.stderr.write(f"tidegate: {text}\n")


def size(number: int) -> str:
    """A number of bytes for people: whole MiB or KiB where it is."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number} bytes"


class BadLine(ValueError):
    """A line that is no message: `code` is the JSON-RPC error, `reason` our constant phrase."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def read_message(line: bytes) -> dict[str, object]:
    """The JSON-RPC object in `line`; raises BadLine, which quotes nothing of it.

    Numbers with a fraction or an exponent are Written. One that is no finite float stands at most
    in the arguments of a tool, whose own rules refuse it with the id of the call.
    """
    infinite: list[Written] = []

    def real(literal: str) -> Written:
        number = Written(literal)
        if isinf(number):
            infinite.append(number)
        return number

    try:
        value = strictjson.loads(line, real=real)
    except strictjson.StrictJSONError as error:
        code = PARSE_ERROR if error.kind == "syntax" else INVALID_REQUEST
        raise BadLine(code, error.reason) from None
    message = checked(value)
    if infinite and len(infinite) != _infinite_arguments(message):
        raise BadLine(PARSE_ERROR, "a number is too large")
    return message


def read_batch(line: bytes) -> list[dict[str, object]]:
    """The messages of the array in `line`, at least one; raises BadLine if any of them is none."""

    def real(literal: str) -> Written:
        if isinf(number := Written(literal)):
            raise strictjson.StrictJSONError("syntax", "a number is too large")
        return number

    try:
        value = strictjson.loads(line, real=real)
    except strictjson.StrictJSONError as error:
        code = PARSE_ERROR if error.kind == "syntax" else INVALID_REQUEST
        raise BadLine(code, error.reason) from None
    if not isinstance(value, list) or not value:
        raise BadLine(INVALID_REQUEST, "a batch must not be empty")
    return [checked(each) for each in value]


def checked(value: object) -> dict[str, object]:
    """`value`, if it is a message of JSON-RPC as MCP narrows it; raises BadLine."""
    found = classify(value)
    if isinstance(found, Malformed):
        raise BadLine(INVALID_REQUEST, found.reason)
    if not isinstance(value, dict):
        raise BadLine(INVALID_REQUEST, "an array is a batch, which has no place here")
    return value


def _infinite_arguments(message: dict[str, object]) -> int:
    """How many infinite numbers the arguments of this call of a tool hold."""
    params = message.get("params") if message.get("method") == "tools/call" else None
    stack = [params.get("arguments")] if isinstance(params, dict) else []
    found = 0
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        else:
            found += isinstance(node, Written) and isinf(node)
    return found


def error_line(code: int, reason: str) -> bytes:
    """The answer to a line whose id cannot be known."""
    return strictjson.dumps(error_body(None, code, reason)) + b"\n"


def write_all(fd: int, data: bytes) -> None:
    """Writes all of `data`; blocks while the reader is slow. Raises BrokenPipeError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_some(fd: int) -> bytes:
    """The next bytes; b"" at the end. Blocks."""
    return os.read(fd, _READ_BYTES)


def is_read_to_the_end(fd: int) -> bool:
    """Whether `fd` is a file of which nothing is left to read; of a pipe nobody can say."""
    status = os.fstat(fd)
    return stat.S_ISREG(status.st_mode) and os.lseek(fd, 0, os.SEEK_CUR) >= status.st_size


__all__ = [
    "ENDS_BYTES",
    "MAX_LINE_BYTES",
    "BadLine",
    "LineSplitter",
    "LineTooLong",
    "Wire",
    "checked",
    "error_line",
    "is_read_to_the_end",
    "note",
    "read_batch",
    "read_message",
    "read_some",
    "seize_stdio",
    "size",
    "write_all",
]
