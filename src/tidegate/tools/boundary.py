"""What does a client learn of code that failed?

Nothing but an id: the trace is in the log, under the same id. Without this the SDK shows the text
of an exception to clients of the older revisions, and input in some of its own errors. Lives here:
where the code of a tool, of a handler, of the SDK ends. Does not live here: the words (profiles).
"""

import asyncio
import logging
import secrets
from dataclasses import replace
from types import TracebackType
from typing import Any

import mcp_types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from tidegate.tools.profiles import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Crashed,
    RpcError,
    tell,
    wrong_params,
)
from tidegate.tools.strict import InvalidArguments, ToolFailure, faults_of

logger = logging.getLogger(__name__)


class ToolError(MCPError):
    """An error that is the answer of a tool, not of MCP; `in_result`: HTTP is fine (200)."""

    def __init__(self, code: int, message: str, data: Any = None, *, in_result: bool) -> None:
        if data is None:
            super().__init__(code, message)
        else:
            super().__init__(code, message, data)
        self.in_result = in_result


class tool_boundary:  # noqa: N801 - used like a function, in `with`
    """Where the code of a tool ends: its crash becomes a constant answer.

    Only a call that really is cancelled passes. Nothing else that a tool raises ends the server:
    not `sys.exit`, not a KeyboardInterrupt (a real one has cancelled everything by then), not the
    panic of a library, not the cancellation of a task of the tool's own.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        expected = (InvalidArguments, ToolFailure, MCPError)
        if error is not None and not isinstance(error, expected) and _is_crash(error):
            raise crash(error) from None


class _sdk_boundary:  # noqa: N801 - as above
    """Where a handler of a method ends, ours or the SDK's."""

    def __init__(self, method: str) -> None:
        self._method = method

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ValidationError):
            faults = faults_of(error)
            # The SDK checks a message as a whole or its params alone; the client sees params.
            told = tuple(replace(f, pointer=f.pointer.removeprefix("/params")) for f in faults)
            raise _error(wrong_params(told)) from None
        if isinstance(error, MCPError):
            if (instead := _without_input(error, self._method)) is not None:
                raise instead from None
        elif error is not None and _is_crash(error):
            raise crash(error) from None


def plain_error() -> _sdk_boundary:
    """The boundary around a whole request: what leaves it is an MCPError that quotes nothing."""
    return _sdk_boundary("")


async def guard(
    ctx: ServerRequestContext[Any, Any],
    call_next: CallNext,
) -> HandlerResult:
    """Middleware of the SDK's server: the boundary around every method."""
    with _sdk_boundary(ctx.method):
        return await call_next(ctx)


def as_json(message: mcp_types.JSONRPCMessage) -> bytes:
    """A message of the SDK's on the wire; one that has no JSON is a crash of who made it."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError as error:
        told = crash(error).error
    # An answer keeps its id; to anything else there is nothing to say.
    made = mcp_types.JSONRPCError(jsonrpc="2.0", id=getattr(message, "id", None), error=told)
    return made.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _is_crash(error: BaseException) -> bool:
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or not task.cancelling()
    return not isinstance(error, GeneratorExit)  # how a coroutine is thrown away


def crash(error: BaseException) -> MCPError:
    """The answer to a crash, which is logged under the id that it names."""
    incident = secrets.token_hex(8)
    logger.error("tool_crashed", extra={"incident": incident}, exc_info=error)
    told = tell(Crashed(incident), "brief")
    assert isinstance(told, RpcError)  # noqa: S101 - for the type checker
    return _error(told)


def _without_input(error: MCPError, method: str) -> MCPError | None:
    """What to say instead of an error of the SDK's that quotes the input or hides a crash."""
    told = error.error
    if told.code == METHOD_NOT_FOUND and told.data == method:
        return MCPError(METHOD_NOT_FOUND, "Method not found")
    if told.code == INVALID_PARAMS and told.data == "":
        # All the SDK says of a request that comes before the handshake.
        return MCPError(INVALID_REQUEST, "A session of this era begins with initialize")
    if told.code == INTERNAL_ERROR and not (
        isinstance(told.data, dict) and "incident" in told.data
    ):
        return crash(error)
    return None


def _error(told: RpcError) -> MCPError:
    if told.data is None:
        return MCPError(told.code, told.message)
    return MCPError(told.code, told.message, told.data)


__all__ = ["ToolError", "as_json", "crash", "guard", "plain_error", "tool_boundary"]
