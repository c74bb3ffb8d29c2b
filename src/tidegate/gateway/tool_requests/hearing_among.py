"""How does one standing stream of a client hear several servers?

Lives here: a stream to each of them, the one stream that comes of it, and its end. Does not live
here: one stream (hearing), who may have one (streams), which servers (among).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tidegate.gateway.servers.carrier import Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.hearing import Hearing, Over
from tidegate.gateway.tool_requests.turn import ToolServer, Turn

NOTHING_HEARD: Final = "no_stream"
"""The word for the end of a stream that no server gives."""

_OF_ALL: Final = frozenset(
    {"session_ended", "draining", "configuration_changed", "credential_ended"}
)


@dataclass(slots=True, eq=False)
class Part:
    """One server of the stream; `opened` once it gives one."""

    server: ToolServer
    hearing: Hearing
    listening: Callable[[], Exchange]
    opened: asyncio.Event = field(default_factory=asyncio.Event)


async def hear_all(
    turn: Turn,
    parts: Sequence[Part],
    admit: Callable[[int, Mapping[str, str]], None],
    *,
    part_s: float,
) -> str:
    """Pass on what all of them say, until one of them ends; the word for why.

    A server that gives no stream within `part_s` is left out. Once it has given one it belongs to
    the whole: when it ends the client hears so, comes back, and loses nothing without knowing.
    """
    begun = asyncio.Event()
    tasks = [asyncio.ensure_future(_hear(part, admit, begun)) for part in parts]
    try:
        open_parts = await _gathered(turn, parts, tasks, part_s)
        if not open_parts:
            whys = {task.result() for task in tasks if task.done() and not task.cancelled()}
            # What concerns the session and not a server is why for all of them.
            return next((why for why in whys if why in _OF_ALL), NOTHING_HEARD)
        await turn.responder.start_stream()
        begun.set()
        done, _ = await asyncio.wait(open_parts, return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for task in done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _hear(
    part: Part, admit: Callable[[int, Mapping[str, str]], None], begun: asyncio.Event
) -> str:
    """One server's stream; the word for its end."""
    try:
        with part.hearing, part.listening() as exchange:
            admit(*await part.hearing.head(exchange))
            part.opened.set()
            await begun.wait()
            await part.hearing.pass_on(exchange, None)
    except Over as over:
        return over.why
    except ServerFailed as failed:
        return failed.reason
    raise AssertionError("a standing stream has no answer")


async def _gathered(
    turn: Turn, parts: Sequence[Part], tasks: list["asyncio.Task[str]"], part_s: float
) -> list["asyncio.Task[str]"]:
    """Those that give a stream; the others are steps of the record."""
    opening = [asyncio.ensure_future(part.opened.wait()) for part in parts]
    try:
        waits = [
            asyncio.ensure_future(_first(event, task))
            for event, task in zip(opening, tasks, strict=True)
        ]
        try:
            await asyncio.wait(waits, timeout=part_s)
        finally:
            for wait in waits:
                wait.cancel()
    finally:
        for each in opening:
            each.cancel()
    missing = [part for part in parts if not part.opened.is_set()]
    for part, task in zip(parts, tasks, strict=True):
        if part in missing:
            why = task.result() if task.done() else "timeout"
            turn.trail.step("federation", "missing", server=part.server.name, reason=why)
            task.cancel()
    return [task for part, task in zip(parts, tasks, strict=True) if part.opened.is_set()]


async def _first(opened: "asyncio.Task[Literal[True]]", over: "asyncio.Task[str]") -> None:
    await asyncio.wait((opened, over), return_when=asyncio.FIRST_COMPLETED)


__all__ = ["Part", "hear_all"]
