"""Does `mcp connect` come back for an answer whose stream the server let go?

MCP 2025-11-25, basic/transports, Resumability; SEP-1699. The conformance harness asks the same
(`sse-retry`).
"""

import asyncio
from typing import Any

import pytest

from tests.wire.bridged import bridged
from tests.wire.conftest import Run
from tests.wire.played import EVENTS, Answering, Played, Seen, played, result
from tidegate.testing.asgi import WAIT_S

PRIMING = b"id: s-0\nretry: 100\ndata: \n\n"


async def lets_go(_: Seen, answer: Answering) -> None:
    await answer.head(200, EVENTS)
    await answer.body(PRIMING, more=True)
    await answer.body(b"")


def returns(server: Played) -> list[str]:
    """The last event ids of those who came back."""
    ids = [seen.headers.get("last-event-id") for seen in server.seen if seen.method == "GET"]
    return [each for each in ids if each is not None]


def standing(came_back: Any) -> Any:
    """The stream for what the server sends by itself waits; who comes back is answered."""

    async def act(seen: Seen, answer: Answering) -> None:
        if "last-event-id" in seen.headers:
            await came_back(seen, answer)
        else:
            await answer.head(200, EVENTS)
            await answer.until_it_leaves()

    return act


async def shake_hands(client: Any) -> None:
    client.ask("hello", "initialize")
    assert (await client.hear())["id"] == "hello"
    client.note("notifications/initialized")


def test_the_answer_comes_on_the_stream_that_is_asked_for_again_and_again(run: Run) -> None:
    async def came_back(seen: Seen, answer: Answering) -> None:
        assert seen.headers["mcp-session-id"] == "session-1"
        await answer.head(200, EVENTS)
        if seen.headers["last-event-id"] == "s-0":
            note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
            await answer.body(b"id: s-1\ndata: " + note + b"\n\n", more=True)
            await answer.body(b"")
        else:
            await answer.event(result(1, done=True))
            await answer.until_it_leaves()

    async def body() -> None:
        async with played(tools__call=lets_go, GET=standing(came_back)) as server:
            async with bridged(server.url) as client:
                await shake_hands(client)
                client.ask(1, "tools/call", name="x")
                assert (await client.hear())["method"] == "notifications/progress"
                assert await client.hear() == result(1, done=True)
            assert returns(server) == ["s-0", "s-1"]

    run(body())


@pytest.mark.parametrize(
    "status", [404, *(pytest.param(x, marks=pytest.mark.full) for x in (405, 503))]
)
def test_a_stream_that_cannot_be_had_again_is_an_error_for_the_call(run: Run, status: int) -> None:
    async def gone(_: Seen, answer: Answering) -> None:
        await answer.head(status)
        await answer.body(b"")

    async def body() -> None:
        async with played(tools__call=lets_go, GET=standing(gone)) as server:
            async with bridged(server.url) as client:
                await shake_hands(client)
                client.ask(1, "tools/call", name="x")
                answer = await client.hear()
                assert (answer["id"], answer["error"]["code"]) == (1, -32603)
            assert returns(server) == ["s-0"] * (3 if status == 503 else 1)

    run(body())


def test_a_stream_without_ids_and_one_of_the_stateless_revision_are_not_asked_for_again(
    run: Run,
) -> None:
    async def silent(_: Seen, answer: Answering) -> None:
        await answer.head(200, EVENTS)
        await answer.body(b"data: \n\n", more=True)
        await answer.body(b"")

    async def body() -> None:
        async with played(tools__call=silent) as server, bridged(server.url) as client:
            await shake_hands(client)
            client.ask(1, "tools/call", name="x")
            assert (await client.hear())["error"]["code"] == -32603
            server.acts["tools/call"] = lets_go
            client.ask_modern(2, "tools/call", name="x")
            assert (await client.hear())["error"]["code"] == -32603
            assert returns(server) == []

    run(body())


@pytest.mark.full
def test_a_client_that_leaves_is_not_kept_by_a_stream_that_is_to_be_asked_for(run: Run) -> None:
    async def slow(_: Seen, answer: Answering) -> None:
        await answer.head(200, EVENTS)
        await answer.body(b"id: s-0\nretry: 30000\ndata: \n\n", more=True)
        await answer.body(b"")

    async def body() -> None:
        async with asyncio.timeout(WAIT_S):
            async with played(tools__call=slow) as server, bridged(server.url) as client:
                await shake_hands(client)
                client.ask(1, "tools/call", name="x")
                (answer,) = await client.rest()
                assert (answer["id"], "error" in answer) == (1, True)

    run(body())
