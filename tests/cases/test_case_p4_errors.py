"""Does nothing of an upstream show in an error, over real sockets?

One function for each case, named by its id; tests.casebook calls and cites them.
"""
# ruff: noqa: N802 - the id of a case has capitals

import asyncio
import re

import pytest

from tests.casebook import behaviors
from tests.casebook.seen import Exchange, check, equal, short
from tests.casebook.waiting import passing
from tests.casebook.world import World, lacks, play
from tests.ports import free_port

pytestmark = pytest.mark.full
FORBIDDEN = (
    "-".join(("sk", "proj", "abc")),
    "db-3.us-east-1.internal",
    "127.0.0.1",
    "internal-gw.example",
    "Traceback",
    "X-Internal-Node",
    "x-internal-node",
    "dep-7731",
)
# What an error answer of the gateway may carry.
PASSING = {
    "x-request-id",
    "x-should-retry",
    "x-tidegate-provider",
    "x-tidegate-attempts",
    "content-type",
    "content-length",
    "retry-after",
    "retry-after-ms",
    "date",
    "connection",
    "cache-control",
    "vary",
}
NODE = ("X-Internal-Node", "db-3.us-east-1.internal")
TRACE = (
    'Traceback (most recent call last):\n  File "/srv/app.py", line 3, at db-3.us-east-1.internal'
)


def test_case_P4_30() -> None:
    async def body() -> None:
        closed = free_port()
        # A server that speaks no TLS, for the provider that is configured with https.
        plain = await asyncio.start_server(no_tls, "127.0.0.1", 0)
        port = plain.sockets[0].getsockname()[1]
        config = unreachable(f"http://127.0.0.1:{closed}/v1", f"https://127.0.0.1:{port}/v1")
        async with plain, World(providers=PROVIDERS, config=config) as world:
            # A refused key opens its target at once, so the stream asks another one.
            for name, answerer in ANSWERS.items():
                world.behave("primary", answerer)
                world.behave("streams", answerer)
                await clean(world, await world.chat(), name)
                streamed = await world.chat(stream=True, model="streams")
                await clean(world, streamed, f"{name} for a stream")
            await clean(world, await world.chat(model="refused"), "refused", forbidden=str(closed))
            await clean(world, await world.chat(model="tls"), "TLS failure", forbidden=str(port))

    play(body)


PROVIDERS = ("primary", "streams")
ANSWERS = {
    "500": behaviors.error(500, message=TRACE, headers=[NODE]),
    "302": behaviors.error(302, headers=[("Location", "http://internal-gw.example/v1"), NODE]),
    "400": behaviors.error(400, message="deployment dep-7731 refuses it"),
    "401": behaviors.error(401, message=f"Incorrect API key provided: {FORBIDDEN[0]}***xyz"),
}


async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


def unreachable(refused: str, tls: str) -> dict[str, object]:
    """Two more providers; all but the first of them all with a model of its own."""
    bad = {"refused": {"base_url": refused}, "tls": {"base_url": tls}}
    names = (*bad, *PROVIDERS[1:])
    routes = [{"name": n, "model": n, "candidates": [{"provider": n}]} for n in names]
    default = {"name": "default", "candidates": [{"provider": "primary"}]}
    return {"providers": bad, "routes": [*routes, default]}


async def clean(world: World, exchange: Exchange, what: str, *, forbidden: str = "\x00") -> None:
    check(exchange.status >= 400, f"{what}: status {exchange.status}")
    error = exchange.chat.errors[0]["error"] if exchange.chat.errors else {}
    keys = {"type", "code", "message", "request_id"}
    check(keys <= set(error) <= keys | {"param"}, f"{what}: {short(exchange.text)}")
    equal(error["request_id"], exchange.header("x-request-id"), f"{what}: request_id")
    heads = "\n".join(f"{name}: {value}" for name, value in exchange.headers)
    lacks([*FORBIDDEN, forbidden], f"{exchange.text}\n{heads}", what)
    extra = {name for name, _ in exchange.headers} - PASSING
    check(not extra, f"{what}: headers {sorted(extra)}")
    told = await logged(world, error["request_id"])
    check(told, f"{what}: the log has no detail under this request id")


async def logged(world: World, request_id: str) -> bool:
    """Whether the log has a detail under this id; its lines come through a pipe of their own."""
    for _ in range(100):
        lines = [line for line in world.gateway.log.splitlines() if request_id in line]
        if any(re.search(r"outcome|attempt", line) for line in lines):
            return True
        await passing(0.02)
    return False
