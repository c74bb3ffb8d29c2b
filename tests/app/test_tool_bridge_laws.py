"""Whatever servers do: does a call run at most once, and its answer reach its caller alone?"""

import asyncio
import random
from typing import Any

import pytest

from tests.app.bridged import ADAM, CLIENTS, VERA, Bridged
from tests.app.mcp_answers import run
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Refusal, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.transport.upstream import Failure

WORDS = ("x", "Session not found", "Unsupported protocol version", "params._meta is missing")
CODES = (-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32020, -32021, -32022, -32042, 7)


class Whims:
    """What goes wrong, chosen by chance, and which calls ran."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - not for secrets
        self.ran: list[str] = []
        self.server = self.other()

    def other(self) -> Upstream:
        """Another server in the place of the one before."""
        if self.chance.random() < 0.5:
            return ModernUpstream(handler=self.handle)
        version = self.chance.choice([*LEGACY, "2024-11-05"])
        return LegacyUpstream(version, handler=self.handle, sessions=self.chance.random() < 0.8)

    async def __call__(self, asked: Got) -> None:
        """Before anything is looked at."""
        luck = self.chance.random()
        if luck < 0.05:
            self.server = self.other()
        elif luck < 0.10 and isinstance(self.server, LegacyUpstream):
            self.server.open.clear()
        elif luck < 0.13:
            asked.whole(b"<html>", self.chance.choice([400, 401, 404, 405, 429, 500, 502]))
            return
        elif luck < 0.15:
            asked.fail(self.chance.choice([Failure.RESET, Failure.UNREACHABLE]))
            return
        elif luck < 0.20 and asked.raw:
            error = self.refusal()
            body = {"jsonrpc": "2.0", "id": asked.message.get("id"), "error": error.error}
            asked.whole(body, error.status)
            return
        if "last-event-id" in asked.headers:
            asked.whole(b"", self.chance.choice([200, 404, 405, 500]))
            return
        await self.server(asked)

    def refusal(self) -> Refusal:
        return Refusal(
            self.chance.choice([200, 400, 400, 404]),
            self.chance.choice(CODES),
            self.chance.choice(WORDS),
            self.chance.choice([None, {"supported": [MODERN]}, {"supported": list(LEGACY)}]),
        )

    async def handle(self, upstream: Upstream, asked: Got, message: Any) -> Any:
        """A tool, which runs, and says or does what it likes."""
        del upstream
        if message["method"] != "tools/call":
            return None
        self.ran.append(message["params"]["arguments"]["text"])
        luck = self.chance.random()
        if luck < 0.25:
            raise self.refusal()
        if luck < 0.35:
            asked.head(200, "text/event-stream")
            asked.body(self.chance.choice([b"", b"id: 1\nretry: 1\ndata: \n\n", b": x\n\n"]))
            asked.end()
        if luck < 0.40:
            asked.fail()
        return None


async def one_life(seed: int, calls: int) -> None:
    whims = Whims(seed)
    chance = random.Random(~seed)  # noqa: S311 - not for secrets
    bridged = Bridged(whims, terminates=chance.random() < 0.7)  # type: ignore[arg-type]
    answered: list[str] = []

    async def say(number: int) -> None:
        text, client = f"{seed}-{number}", chance.choice(CLIENTS)
        message = call("echo", {"text": text}, id=number)
        if chance.random() < 0.2:
            message = ask(chance.choice(["tools/list", "server/discover", "ping"]), id=number)
        try:
            said = await bridged.say(message, client, owner=chance.choice([VERA, ADAM]))
        except ServerFailed:
            return
        answers = [each for each in said.values if "method" not in each]
        assert len(answers) <= 1
        if not answers:
            return
        assert answers[0].get("id") in (number, None)
        result = answers[0].get("result", {})
        if "content" in result:
            assert text in result["content"][0]["text"]
            answered.append(text)

    for number in range(0, calls, 4):
        await asyncio.gather(*(say(number + each) for each in range(4)))
    assert len(set(whims.ran)) == len(whims.ran), "a call ran twice"
    assert set(answered) <= set(whims.ran)
    await bridged.carrier.close()


@pytest.mark.parametrize("seed", range(25))
def test_no_call_runs_twice_and_no_answer_is_somebody_else_s(seed: int) -> None:
    run(lambda: one_life(seed, 24))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 400))
def test_no_call_runs_twice_in_longer_lives(seed: int) -> None:
    run(lambda: one_life(seed, 60))
