"""Does a client without a session learn that its server wants one?"""

from typing import Any

import pytest

from tests.app.mcp_world import Asked, World, ask, call, value
from tests.app.test_tool_traffic_sessions import Stateful, begin, run

BEGIN = {
    "code": -32600,
    "message": "The MCP server behind the gateway answers in a session only: begin with initialize",
}


def demanding(text: str, code: int = -32000, status: int = 400) -> Any:
    """A server that refuses what comes outside of its sessions, each as its library does."""

    async def script(asked: Asked) -> None:
        if "mcp-session-id" in asked.headers or asked.message["method"] == "initialize":
            await server(asked)
        else:
            error = {"code": code, "message": text}
            asked.whole({"jsonrpc": "2.0", "id": None, "error": error}, status)

    server = Stateful()
    return script


@pytest.mark.parametrize("hide", ["off", "full"])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32000, "Bad Request: Mcp-Session-Id header is required"),
        (-32000, "Bad Request: Server not initialized"),
        (-32000, "Bad Request: No valid session ID provided"),
        (-32600, "Bad Request: Missing session ID"),
        (-32000, "Session ID missing at /srv/app.js:12"),
    ],
)
def test_a_client_that_needs_a_session_is_told_how_to_begin_one(
    code: int, text: str, hide: Any
) -> None:
    async def body() -> None:
        world = World(demanding(text, code), hide_denied=hide)
        for message in (ask("tools/list", id="a"), call("get_status", id="a"), call("x", id="a")):
            answer = await world.post(message)
            assert (answer.status, value(answer)) == (
                400,
                {"jsonrpc": "2.0", "id": "a", "error": BEGIN},
            )
        session = await begin(world)
        assert "result" in value(await world.post(ask("ping"), mcp_session_id=session))

    run(body)


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("Missing session ID", -32000, 200),
        ("Obsession and depression", -32000, 400),
        ("Bad Request", -32000, 400),
        ("session", -32000, 404),
        ("session", -32603, 400),
    ],
)
def test_another_refusal_is_no_want_of_a_session(text: str, code: int, status: int) -> None:
    async def body() -> None:
        world = World(demanding(text, code, status), hide_denied="off")
        answer = await world.post(call("get_status"))
        assert (answer.status, value(answer)["error"]["code"]) == (200, -32603)

    run(body)


def test_in_a_session_no_other_one_is_asked_for() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            if asked.message["method"] == "initialize":
                await server(asked)
            else:
                error = {"code": -32000, "message": "Missing session ID"}
                asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}, 400)

        server = Stateful()
        world = World(script, hide_denied="off")
        session = await begin(world)
        answer = await world.post(call("get_status"), mcp_session_id=session)
        assert (answer.status, value(answer)["error"]["code"]) == (200, -32603)

    run(body)
