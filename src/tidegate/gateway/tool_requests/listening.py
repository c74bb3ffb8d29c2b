"""How does one subscription of a client hear of several servers?

Lives here: a stream to each server, one acknowledgment for all of them, and the end of it. Does
not live here: what may be heard (among, answer), the merged acknowledgment
(mcp.federation_merging).
"""

import asyncio
from typing import Final

from tidegate import strictjson
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.answer import Answer
from tidegate.gateway.tool_requests.client_side import ClientSide, Collected
from tidegate.gateway.tool_requests.failures import note_failed
from tidegate.gateway.tool_requests.relay import ToolRelay
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.jsonrpc import Tree, result_body
from tidegate.mcp.answers import generic
from tidegate.mcp.federation_merging import acknowledged, with_missing
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.stream_places import UNMARKED, Mark

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class _Ear(Collected):
    """The client's side of one server's stream: it waits for the others' acknowledgments first."""

    __slots__ = ("_client", "_opened", "ack", "acked")

    def __init__(self, client: ClientSide, opened: asyncio.Event) -> None:
        super().__init__()
        self._client = client
        self._opened = opened
        self.acked = asyncio.Event()
        self.ack: Tree | None = None

    async def live(self, data: bytes, mark: Mark = UNMARKED) -> None:
        """Keep the acknowledgment; pass on what follows it, once the client has had ours."""
        del mark
        if self.ack is None:
            self._take(strictjson.loads(data, max_depth=_MAX_DEPTH))
            return
        await self._opened.wait()
        await self._client.live(data)

    def _take(self, message: object) -> None:
        if not isinstance(message, dict) or message.get("method") != _ACKNOWLEDGED:
            return  # nothing may precede it
        params = message.get("params")
        heard = params.get("notifications") if isinstance(params, dict) else None
        self.ack = heard if isinstance(heard, dict) else {}
        self.acked.set()


_MAX_DEPTH: Final = 192
"""More than any message of a server may have, plus what we put around it."""


class Listening:
    """Serves subscriptions/listen for several servers; it has no state."""

    def __init__(self, relay: ToolRelay, *, part_s: float) -> None:
        self._relay = relay
        self._part_s = part_s

    async def serve(self, turn: Turn, plan: Plan, client: ClientSide) -> str:
        """Until the client leaves or the servers end it; the word for its end.

        A server that does not acknowledge in time is left out and named. Once it has, its stream
        belongs to the client's: when it breaks the client hears that the whole is over, asks
        again, and loses nothing without knowing.
        """
        opened = asyncio.Event()
        parts = plan.parts or ()
        ears = [_Ear(client, opened) for _ in parts]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._relay.forward(turn, part, ear))
                for part, ear in zip(parts, ears, strict=True)
            ]
            try:
                word = await self._run(turn, plan, client, ears, tasks, opened)
            finally:
                for task in tasks:
                    task.cancel()
        return word

    async def _run(
        self,
        turn: Turn,
        plan: Plan,
        client: ClientSide,
        ears: list[_Ear],
        tasks: list[asyncio.Task[str]],
        opened: asyncio.Event,
    ) -> str:
        missing = await self._gather(turn, plan, ears, tasks)
        if missing and len(missing) == len(ears):
            failed = Answer(generic(plan.request.id, turn.responder.request_id))
            await client.final(failed, streamed=False)
            return "gateway.upstream_failed"
        await client.live(strictjson.dumps(_ack(plan, ears, missing)))
        opened.set()
        running = {task for task, ear in zip(tasks, ears, strict=True) if ear.ack is not None}
        # With nothing to hear of it is still a subscription, until the client leaves.
        while running or not any(ear.ack is not None for ear in ears):
            done, running = await client.waiting_for(_some_end(running))
            words = [task.result() for task in done]
            if any(word != "ok" for word in words):
                answer = Answer(generic(plan.request.id, turn.responder.request_id))
                await client.final(answer, streamed=True)
                return "gateway.upstream_failed"
        result = {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: plan.request.id}}
        await client.final(Answer(result_body(plan.request.id, result)), streamed=True)
        return "ok"

    async def _gather(
        self,
        turn: Turn,
        plan: Plan,
        ears: list[_Ear],
        tasks: list[asyncio.Task[str]],
    ) -> list[str]:
        """Wait for every acknowledgment; the names of the servers that failed to give one."""
        waits = [
            asyncio.ensure_future(_first_of(ear.acked, task))
            for ear, task in zip(ears, tasks, strict=True)
        ]
        try:
            if waits:
                await asyncio.wait(waits, timeout=self._part_s)
        finally:
            for wait in waits:
                wait.cancel()
        missing = []
        for part, ear, task in zip(plan.parts or (), ears, tasks, strict=True):
            if ear.ack is not None:
                continue
            if not task.done():
                task.cancel()
                note_failed(turn, part.server, ServerFailed("timeout"), 0)
            elif task.result() == "ok":
                continue  # it has no such thing to tell: a refusal is an answer
            turn.trail.step("federation", "missing", server=part.server.name)
            missing.append(part.server.name)
        return missing


def _ack(plan: Plan, ears: list[_Ear], missing: list[str]) -> Tree:
    wanted = (plan.request.params or {}).get("notifications")
    heard = acknowledged(
        wanted if isinstance(wanted, dict) else {},
        [ear.ack for ear in ears if ear.ack is not None],
    )
    params: Tree = {"notifications": heard, "_meta": {SUBSCRIPTION_KEY: plan.request.id}}
    return {"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": with_missing(params, missing)}


async def _first_of(event: asyncio.Event, task: asyncio.Task[str]) -> None:
    """Returns when the event is set or the task is over."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _some_end(
    running: set[asyncio.Task[str]],
) -> tuple[set[asyncio.Task[str]], set[asyncio.Task[str]]]:
    """Those that are over, once some are, and the others; of none nothing ever is."""
    if not running:
        await asyncio.Event().wait()
    return await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)


__all__ = ["Listening"]
