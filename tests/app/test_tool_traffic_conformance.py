"""Does a server that conforms to MCP still conform when it is reached through the gateway?

One test for each finding of the public conformance suite that an intermediary can cause.
"""

from typing import Any

import pytest

from tests.app.mcp_answers import BOTH, META, MODERN, STREAM, modern, result, run
from tests.app.mcp_world import Asked, World, ask, call, events, tell, value
from tidegate.mcp.eras import SUPPORTED

EVENTS_FIRST = "text/event-stream, application/json"
ABSENT = "test://absent"
UNSUPPORTED = -32022


async def prefers(asked: Asked) -> None:
    """Answers in the form that is asked for first."""
    asked.head(200, asked.headers["accept"].split(",")[0])
    if asked.headers["accept"].startswith(STREAM):
        asked.event(result({"tools": []}))
    else:
        asked.body(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')
    asked.end()


def test_a_list_asked_for_as_a_stream_is_one() -> None:
    async def body() -> None:
        world = World(prefers)
        streamed = await world.post(ask("tools/list"), accept=EVENTS_FIRST)
        assert streamed.header("content-type") == "text/event-stream; charset=utf-8"
        assert events(streamed) == [result({"tools": []})]
        plain = await world.post(ask("tools/list"), accept=BOTH)
        assert plain.header("content-type") == "application/json"
        assert value(plain) == result({"tools": []})

    run(body)


def test_a_tool_is_never_asked_for_a_stream_that_its_server_may_end_early() -> None:
    async def body() -> None:
        world = World()
        await world.post(call("get_status"), accept=EVENTS_FIRST)
        await world.post(tell("notifications/initialized"), accept=EVENTS_FIRST)
        await world.post(ask("tools/list", _meta=META), accept=EVENTS_FIRST, **modern("tools/list"))
        assert [asked.headers["accept"] for asked in world.transport.asked] == [BOTH] * 3

    run(body)


@pytest.mark.parametrize("method", ["initialize", "resources/subscribe", "resources/unsubscribe"])
@pytest.mark.parametrize("params", [{}, {"uri": "test://a"}])
def test_what_the_stateless_revision_removed_is_not_found(
    method: str, params: dict[str, Any]
) -> None:
    async def body() -> None:
        request = ask(method, **params, _meta=META)
        for hide in ("off", "full"):
            world = World(hide_denied=hide, errors="spec")
            answer = await world.post(request, **modern(method))
            assert answer.status == 404
            assert value(answer)["error"] == {"code": -32601, "message": "Method not found"}
            assert world.sent == []
        await world.post(ask(method, uri="test://a"))
        assert len(world.sent) == 1

    run(body)


@pytest.mark.parametrize("batch", [True, False])
def test_nobody_listens_for_ever_who_cannot_hear(*, batch: bool) -> None:
    """Only 2026-07-28 has subscriptions; the answer to a batch is one array, which waits for all.

    Such a request had no bound: neither on its time nor on how many of them there may be.
    """

    async def body() -> None:
        world = World(errors="spec")
        listen = ask("subscriptions/listen", id=1, notifications={"toolsListChanged": True})
        answer = await world.post([listen, ask("tools/list", id=2)] if batch else listen)
        first = value(answer)[0] if batch else value(answer)
        assert first["error"] == {"code": -32601, "message": "Method not found"}
        assert [message["method"] for message in world.sent] == ["tools/list"] * batch

    run(body)


async def _unsupported(world: World) -> list[str]:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "v999"}
    headers = {"mcp_protocol_version": "v999", "mcp_method": "server/discover"}
    answer = await world.post(ask("server/discover", _meta=meta), **headers)
    error = value(answer)["error"]
    assert (answer.status, error["code"]) == (400, UNSUPPORTED)
    assert error["data"]["requested"] == "v999"
    supported: list[str] = error["data"]["supported"]
    return supported


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ([MODERN], [MODERN]),
        (["2025-06-18", MODERN, "2099-01-01"], [MODERN, "2025-06-18"]),
        (["2099-01-01"], list(SUPPORTED)),
        ([], list(SUPPORTED)),
        (MODERN, list(SUPPORTED)),
        ([{"a": 1}, None], list(SUPPORTED)),
    ],
)
def test_an_unsupported_revision_is_told_what_its_server_listed(
    listed: object, told: list[str]
) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.result({"supportedVersions": listed, "capabilities": {}})

        world = World(script)
        assert await _unsupported(world) == list(SUPPORTED)
        await world.post(ask("server/discover", _meta=META), **modern("server/discover"))
        assert await _unsupported(world) == told

    run(body)


def test_only_a_discovery_says_which_revisions_a_server_has() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.result({"supportedVersions": [MODERN], "content": []})

        world = World(script)
        await world.post(call("get_status"))
        assert await _unsupported(world) == list(SUPPORTED)

    run(body)


@pytest.mark.parametrize("hide", ["off", "list"])
@pytest.mark.parametrize("errors", ["brief", "spec"])
def test_a_resource_that_is_not_there_is_named_by_the_uri_asked_for(hide: str, errors: str) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            error = {"code": -32602, "message": "Resource not found", "data": {"uri": ABSENT}}
            asked.whole({"jsonrpc": "2.0", "id": 1, "error": error}, status=400)

        world = World(script, hide_denied=hide, errors=errors)
        request = ask("resources/read", uri=ABSENT, _meta=META)
        answer = await world.post(request, **modern("resources/read", mcp_name=ABSENT))
        assert answer.status == 400
        assert value(answer)["error"]["code"] == -32602
        assert value(answer)["error"]["data"] == {"uri": ABSENT}

    run(body)
