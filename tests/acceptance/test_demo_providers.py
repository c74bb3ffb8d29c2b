"""Does `tidegate demo providers` serve somebody else's gateway, port by port?"""

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.acceptance.processes import HOST, Running, started
from tidegate.demo.leaks import LEAKS
from tidegate.testing.sockets import Answer, RawClient

pytestmark = pytest.mark.full
_SHARED = re.compile(r"^providers at http://127\.0\.0\.1:(\d+)/primary/v1/", re.MULTILINE)
_ALONE = re.compile(r"^(primary|backup) alone at http://127\.0\.0\.1:(\d+)/v1$", re.MULTILINE)


async def ask(port: int, target: str, body: bytes = b"{}") -> Answer:
    async with await RawClient.connect(HOST, port) as client:
        answer: Answer = await client.ask("POST", target, body=body)
        return answer


async def ports(running: Running) -> tuple[int, dict[str, int]]:
    """The shared port, and each provider's own, as the output says."""
    await running.until(lambda: len(_ALONE.findall(running.stdout.decode())) == 2)
    text = running.stdout.decode()
    shared = _SHARED.search(text)
    assert shared is not None
    return int(shared[1]), {name: int(port) for name, port in _ALONE.findall(text)}


def test_the_providers_answer_fail_and_refuse_as_they_are_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with started(tmp_path, "demo", "providers", "--port", "0") as running:
            shared, own = await ports(running)
            assert (await ask(own["primary"], "/v1/chat/completions")).status == 200
            order = "/_set?provider=primary&behaviour=503,429-retry-after&form=ms&wait=1.5"
            assert (await ask(shared, order)).status == 200
            assert (await ask(shared, "/primary/v1/chat/completions")).status == 503
            answer = await ask(own["primary"], "/v1/chat/completions")
            assert (answer.status, answer.header("retry-after-ms")) == (429, "1500")
            assert any(leak.encode() in answer.body for leak in LEAKS)
            assert (await ask(own["primary"], "/v1/chat/completions")).status == 200
            await ask(shared, "/_set?provider=backup&behaviour=refused")
            with pytest.raises(ConnectionRefusedError):
                await ask(own["backup"], "/v1/chat/completions")
            async with await RawClient.connect(HOST, shared) as client:
                state = json.loads((await client.ask("GET", "/_state")).body)
            assert state == {
                "primary": {"behaviour": "ok", "calls": 4, "gone": 0},
                "backup": {"behaviour": "refused", "calls": 0, "gone": 0},
            }
            assert await running.stop() == 0

    asyncio.run(body())
