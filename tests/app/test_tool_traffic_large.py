"""Does one large message leave the loop free for everybody else?"""

import asyncio
from typing import Any

from tests.app.mcp_world import Asked, World, call, value
from tidegate import sse
from tidegate.gateway.masking import Masking
from tidegate.redaction import RedactionPolicy

LARGE = "x" * 300_000


class Watched:
    """A policy that notes whether it is asked in the thread of the loop."""

    def __init__(self) -> None:
        self._policy = RedactionPolicy.preset()
        self.in_loop: list[bool] = []

    @property
    def program(self) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.in_loop.append(False)
        else:
            self.in_loop.append(True)
        return self._policy.program

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def test_large_arguments_are_masked_beside_the_loop_and_small_ones_at_once() -> None:
    async def body() -> None:
        for text, in_loop in (("x", True), (LARGE, False)):
            policy: Any = Watched()
            world = World(masking=Masking(policy, tool_arguments="enforce", tool_results="off"))
            answer = await world.post(call("get_status", {"text": text}))
            assert value(answer)["result"]["echo"]["arguments"] == {"text": text}
            assert set(policy.in_loop) == {in_loop}

    asyncio.run(body())


def test_large_results_and_notifications_are_masked_beside_the_loop() -> None:
    async def body() -> None:
        for text, in_loop in (("x", True), (LARGE, False)):
            progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"m": text}}

            async def script(asked: Asked, text: str = text, note: Any = progress) -> None:
                asked.head(200, "text/event-stream")
                asked.event(note)
                asked.event({"jsonrpc": "2.0", "id": 1, "result": {"text": text}})
                asked.end()

            policy: Any = Watched()
            masking = Masking(policy, tool_arguments="off", tool_results="enforce")
            world = World(script, masking=masking)
            answer = await world.post(call("get_status"), accept="text/event-stream")
            assert len(sse.Decoder(1 << 20).feed(answer.body)) == 2
            assert set(policy.in_loop) == {in_loop}

    asyncio.run(body())


def test_what_all_requests_share_is_never_written_beside_the_loop() -> None:
    async def body() -> None:
        result = {"taskId": "t1", "text": LARGE}

        async def script(asked: Asked) -> None:
            asked.head(200, "text/event-stream")
            asked.event({"jsonrpc": "2.0", "id": 1, "result": result})
            asked.end()

        world = World(script, masking=Masking(RedactionPolicy.preset()))
        sessions = world.traffic.relay.sessions
        written: list[object] = []

        def begin_task(*_about: object) -> None:
            written.append(asyncio.get_running_loop())  # raises in any other thread

        sessions.begin_task = begin_task  # type: ignore[method-assign]
        answer = await world.post(call("get_status"))
        assert value(answer)["result"]["taskId"] == "t1"
        assert written == [asyncio.get_running_loop()]

    asyncio.run(body())
