"""Do questions, tasks and cancellations find their session through every process?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.mcp_world import Asked, ask, call, echo, events, tell, value
from tests.app.shelves import crew, run
from tests.app.test_tool_traffic_sessions import ANSWER, BOTH, QUESTION, Asking, Stateful, begin


def test_a_question_is_answered_through_any_process_and_once() -> None:
    async def body() -> None:
        server = Asking()
        async with crew(server) as here:
            session = await begin(here.one)
            headers = {"accept": BOTH, "mcp_session_id": session}
            async with here.one.exchange(call("get_status"), **headers) as exchange:
                assert json.loads((await exchange.chunk()).split(b"data: ")[1]) == QUESTION
                wrong = await here.other.post({**ANSWER, "id": 1}, mcp_session_id=session)
                assert (wrong.status, server.answers) == (202, [])
                for world in (here.other, here.one, here.other):
                    assert (await world.post(ANSWER, mcp_session_id=session)).status == 202
                assert server.answers == [ANSWER]
                await exchange.read()
            assert events(exchange)[-1]["result"] == {"ok": 1}

    run(body)


@pytest.mark.parametrize("returns", [True, False])
def test_without_the_store_a_question_is_answered_through_the_process_that_showed_it(
    *, returns: bool
) -> None:
    async def body() -> None:
        server = Asking()
        async with crew(server) as here:
            session = await begin(here.one)
            here.store.away = True
            headers = {"accept": BOTH, "mcp_session_id": session}
            async with here.one.exchange(call("get_status"), **headers) as exchange:
                assert await exchange.chunk()
                here.store.away = not returns
                for _ in range(2):
                    assert (await here.one.post(ANSWER, mcp_session_id=session)).status == 202
                assert server.answers == [ANSWER]
                await exchange.read()

    run(body)


def test_a_call_is_cancelled_through_any_process_by_nobody_else() -> None:
    async def body() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()
        told: list[Any] = []

        async def script(asked: Asked) -> None:
            if asked.message["method"] == "tools/call":
                begun.set()
                await cancelled.wait()
                asked.result({"ok": 1})
            elif asked.message["method"] == "notifications/cancelled":
                told.append((asked.headers["mcp-session-id"], asked.message["params"]))
                asked.head(202)
                asked.end()
                cancelled.set()
            else:
                await server(asked)

        server = Stateful()
        async with crew(script) as here:
            session, others = await begin(here.one), await begin(here.one, "admin")
            notice = tell("notifications/cancelled", requestId="c1")
            async with here.one.exchange(
                call("get_status", id="c1"), mcp_session_id=session
            ) as exchange:
                await begun.wait()
                foreign = await here.other.post(notice, role="admin", mcp_session_id=session)
                bare = await here.other.post(notice, role="admin")
                assert (foreign.status, bare.status, told) == (404, 202, [])
                own = await here.other.post(notice, role="admin", mcp_session_id=others)
                assert (own.status, told.pop()[0]) == (202, "theirs-1")
                cancelled.clear()
                await here.other.post(notice, mcp_session_id=session)
                assert told == [("theirs-0", {"requestId": "c1"})]
                await exchange.read()

    run(body)


async def tasks(asked: Asked) -> None:
    """A server whose tools begin tasks."""
    match asked.message["method"]:
        case "tools/call":
            asked.result({"task": {"taskId": "t1", "status": "working"}})
        case "tasks/list":
            asked.result({"tasks": [{"taskId": "t1"}, {"taskId": "t2"}]})
        case _:
            await echo(asked)


def test_a_task_belongs_to_whoever_began_it_in_every_process() -> None:
    async def body() -> None:
        async with crew(tasks) as here:
            poll = ask("tasks/get", taskId="t1")
            assert value(await here.other.post(poll))["error"]["message"] == "Unknown task"
            await here.one.post(call("get_status"))
            for role in ("admin", "second"):
                assert value(await here.other.post(poll, role=role))["error"]["code"] == -32602
            assert "result" in value(await here.other.post(poll))
            last = here.more()
            mine = value(await last.post(ask("tasks/list")))["result"]
            theirs = value(await last.post(ask("tasks/list"), role="second"))["result"]
            assert (mine, theirs) == ({"tasks": [{"taskId": "t1"}]}, {"tasks": []})
            here.store.away = True
            assert (await here.more().post(poll)).status == 503
            assert "result" in value(await here.one.post(poll))
            # It has run: to say that it did not would have it run again.
            assert "result" in value(await here.one.post(call("get_status")))

    run(body)
