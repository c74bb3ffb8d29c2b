"""When is a subscription of 2026-07-28 over, whatever its server says?

Lives here: the client's side of one, which hears nothing more once what it was granted under has
changed, and its end in good order. Does not live here: who may subscribe (call, among),
whether that still holds (streams), whence the messages come (relay, listening).

Source: MCP 2026-07-28, basic/utilities/subscriptions: a server that ends a subscription in good
order answers the request with a result; the client may ask again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tidegate.gateway.tool_requests.answer import Answer
from tidegate.gateway.tool_requests.client_side import ClientSide
from tidegate.gateway.tool_requests.hearing import Over
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.jsonrpc import result_body
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.stream_places import UNMARKED, Mark


class Subscriber(ClientSide):
    """The client of one subscription. `is_current`: what it was opened under still holds."""

    __slots__ = ("_is_current", "over")

    def __init__(self, turn: Turn, *, keep_alive_s: float, is_current: Callable[[], bool]) -> None:
        super().__init__(turn, keep_alive_s=keep_alive_s)
        self._is_current = is_current
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, why: str) -> None:
        """End it, at the next turn of the loop."""
        if not self.over.done():
            self.over.set_result(why)

    async def live(self, data: bytes, mark: Mark = UNMARKED) -> None:
        """Pass it on, unless the subscription is over: then this waits for its end."""
        if not self._is_current():
            self.end("configuration_changed")
        if self.over.done():
            await asyncio.Event().wait()
        await super().live(data, mark)


async def serve_until_over(
    turn: Turn,
    plan: Plan,
    client: Subscriber,
    work: Awaitable[str],
    beat: Callable[[], Awaitable[None]],
    *,
    every_s: float,
) -> str:
    """What `work` comes to, unless the subscription is over before; the word for its end.

    `beat` is called again and again, and raises Over once the subscription would not be granted
    any more.
    """
    task = asyncio.ensure_future(work)
    try:
        while True:
            waiting = (task, client.over)
            await asyncio.wait(waiting, timeout=every_s, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if client.over.done():
                break
            try:
                await beat()
            except Over as over:
                client.end(over.why)
    finally:
        task.cancel()
        # It still gives back what it holds, and must not write beside us.
        await asyncio.wait((task,))
    turn.trail.step("stream", "ended", reason=client.over.result())
    if not turn.responder.complete:
        call_id = plan.request.id
        result = {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: call_id}}
        await client.final(Answer(result_body(call_id, result)), streamed=True)
    return "ok"


__all__ = ["Subscriber", "serve_until_over"]
