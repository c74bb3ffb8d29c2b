"""How do the tests of the demo upstreams ask for a chat, read its events, and wait?"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tidegate.sse import Decoder
from tidegate.testing.asgi import WAIT_S, ASGIClient, ASGIExchange


async def chat(client: ASGIClient, path: str, request: dict[str, Any]) -> ASGIExchange:
    """The finished exchange of one chat request."""
    return await client.request("POST", path, body=json.dumps(request).encode())


def events(body: bytes) -> list[dict[str, Any]]:
    """The JSON events of a stream, without `[DONE]`."""
    found = Decoder(1 << 20).feed(body)
    return [json.loads(event.data) for event in found if event.data != b"[DONE]"]


def texts(body: bytes) -> dict[int, str]:
    """The whole text of each choice."""
    whole: dict[int, str] = defaultdict(str)
    for event in events(body):
        for choice in event["choices"]:
            whole[choice["index"]] += choice["delta"].get("content", "")
    return dict(whole)


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until `condition` holds; TimeoutError after the bound of all waits."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
