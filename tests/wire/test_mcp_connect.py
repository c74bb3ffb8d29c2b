"""Does a stdio client get exactly the answers of the HTTP server behind a bridge, whatever it does?

The bridge runs in this process, over real pipes and sockets; the server is played here.
"""

import asyncio
import json
from typing import Any

from tests.ports import free_port
from tests.wire.bridged import bridged
from tests.wire.conftest import Run
from tests.wire.listening import turn
from tests.wire.played import EVENTS, JSON, Answering, Played, Seen, played, result, says
from tidegate.testing.asgi import WAIT_S

TOKEN = "-".join(("token", "of", "the", "test"))


def error_of(answer: Any) -> tuple[int, Any]:
    return answer["error"]["code"], answer["error"]["data"]["reason"]


def test_a_modern_call_has_its_headers_and_the_token_and_its_answer_comes_back(run: Run) -> None:
    async def body() -> None:
        async with played() as server, bridged(server.url, TOKEN) as client:
            client.ask_modern("a", "tools/call", name="x", arguments={})
            assert await client.hear() == result("a")
            (seen,) = server.seen
            assert seen.headers["authorization"] == f"Bearer {TOKEN}"
            assert seen.headers["mcp-protocol-version"] == "2026-07-28"
            assert (seen.headers["mcp-method"], seen.headers["mcp-name"]) == ("tools/call", "x")
            assert seen.headers["accept"] == "application/json, text/event-stream"
            assert seen.headers["content-type"] == "application/json"
            assert "mcp-session-id" not in seen.headers

    run(body())


def test_a_session_is_kept_listened_to_and_ended(run: Run) -> None:
    async def pushing(_: Seen, answer: Answering) -> None:
        await answer.head(200, EVENTS)
        await answer.event({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        await answer.event(result(1, stolen=True))
        await answer.until_it_leaves()

    async def body() -> None:
        async with played(GET=pushing) as server:
            async with bridged(server.url) as client:
                # All at once: what follows the handshake waits for the session.
                client.ask("hello", "initialize")
                client.note("notifications/initialized")
                assert (await client.hear())["id"] == "hello"
                assert (await client.hear())["method"] == "ping"
                client.say(result(7))
                client.ask(1, "tools/list")
                assert await client.hear() == result(1)
                assert await client.rest() == []
            assert server.names()[:2] == ["initialize", "notifications/initialized"]
            assert sorted(server.names()[2:]) == ["DELETE", "GET", "POST", "tools/list"]
            for seen in server.seen[1:]:
                assert seen.headers["mcp-session-id"] == "session-1"
                assert seen.headers["mcp-protocol-version"] == "2025-11-25"
            assert "mcp-session-id" not in server.seen[0].headers
            await asyncio.wait_for(server.left.wait(), WAIT_S)

    run(body())


def test_events_come_as_they_are_sent_and_only_the_answer_of_the_call_ends_it(run: Run) -> None:
    go = asyncio.Event()

    async def streaming(seen: Seen, answer: Answering) -> None:
        await answer.head(200, EVENTS)
        await answer.body(b": keep-alive\n\n", more=True)
        await answer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        await asyncio.wait_for(go.wait(), WAIT_S)
        await answer.event(result("9"))
        await answer.event(result(9))
        await answer.event(result(9, twice=True))
        await answer.until_it_leaves()

    async def body() -> None:
        async with played(tools__call=streaming) as server, bridged(server.url) as client:
            client.ask_modern(9, "tools/call", name="slow")
            assert (await client.hear())["method"] == "notifications/progress"
            client.ask_modern(10, "tools/list")
            assert await client.hear() == result(10)
            go.set()
            assert await client.hear() == result(9)
            assert await client.rest() == []

    run(body())


NO_ANSWER = (-32603, "no_answer")
LARGE = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (1 << 20) + b'"}'
LOCATION = (b"location", b"http://127.0.0.1:9/elsewhere")
LIES: list[tuple[Any, tuple[int, str]]] = [
    (says(b'{"jsonrpc":"2.0","id":2,"result":{}}'), NO_ANSWER),
    (says(b'{"jsonrpc":"2.0","id":"1","result":{}}'), NO_ANSWER),
    (says(b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}'), NO_ANSWER),
    (says(b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}'), NO_ANSWER),
    (says(b'{"jsonrpc":"2.0","id":1,"result":"secret"}'), NO_ANSWER),
    (says(b'{"jsonrpc":"2.0","id":1,"error":{"code":"secret","message":5}}'), NO_ANSWER),
    (says(b"<html>secret</html>"), NO_ANSWER),
    (says(b""), NO_ANSWER),
    (says(b"", 202), NO_ANSWER),
    (says(b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n'), NO_ANSWER),
    (says(LARGE), (-32603, "too_large")),
    (says(b"", 307, LOCATION), (-31002, "redirect")),
    (says(b"secret", 401), (-31003, "unauthenticated")),
    (says(b"<html>secret", 403), (-31003, "forbidden")),
    (says(b"", 404), (-31002, "no_endpoint")),
    (says(b"", 429, (b"retry-after", b"3")), (-31000, "rate_limited")),
    (says(b"<html>secret</html>", 502), (-31002, "server_failed")),
    (says(b"secret" * 20_000, 500), (-31002, "server_failed")),
]


def test_whatever_the_server_says_instead_of_an_answer_is_one_error_for_the_call(run: Run) -> None:
    async def body() -> None:
        async with played() as server, bridged(server.url) as client:
            for number, (act, expected) in enumerate(LIES):
                server.acts["tools/call"] = act
                client.ask_modern(1, "tools/call", name="x")
                answer = await client.hear()
                assert answer["id"] == 1, number
                assert error_of(answer) == expected, number
                assert "secret" not in json.dumps(answer), number
            assert server.names() == ["tools/call"] * len(LIES)
            assert await client.rest() == []

    run(body())


def test_an_error_of_the_server_passes_with_its_code_whatever_the_status(run: Run) -> None:
    refusal = {"code": -32020, "message": "Header mismatch", "data": {"header": "Mcp-Name"}}

    async def body() -> None:
        async with played() as server, bridged(server.url) as client:
            for identifier in (None, 1):
                text = {"jsonrpc": "2.0", "id": identifier, "error": refusal}
                data = json.dumps(text, indent=2).encode()
                server.acts["tools/list"] = says(data, 400, JSON)
                client.ask_modern(1, "tools/list")
                assert await client.hear() == {"jsonrpc": "2.0", "id": 1, "error": refusal}

    run(body())


def test_a_call_whose_headers_nobody_could_know_is_made_again_after_the_list(run: Run) -> None:
    schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    refusal = {"code": -32020, "message": "Header mismatch"}

    async def listed(seen: Seen, answer: Answering) -> None:
        second = "cursor" in seen.body["params"]
        tools = [{"name": "b" if second else "a", "inputSchema": schema}]
        more = {} if second else {"nextCursor": "2"}
        value = result(seen.id, tools=tools, **more)
        await answer.whole(json.dumps(value).encode(), 200, JSON)

    async def called(seen: Seen, answer: Answering) -> None:
        if seen.headers.get("mcp-param-region") == "eu":
            await answer.whole(json.dumps(result(seen.id)).encode(), 200, JSON)
            return
        text = {"jsonrpc": "2.0", "id": seen.id, "error": refusal}
        await answer.whole(json.dumps(text).encode(), 400, JSON)

    async def body() -> None:
        acts = {"tools__list": listed, "tools__call": called}
        async with played(**acts) as server, bridged(server.url, TOKEN) as client:
            client.ask_modern(1, "tools/call", name="b", arguments={"region": "eu"})
            assert await client.hear() == result(1)
            assert server.names() == ["tools/call", "tools/list", "tools/list", "tools/call"]
            assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {TOKEN}"}
            # Once only, and not for a tool that is known or nowhere in the list.
            for name, arguments in (("b", {"region": "us"}), ("c", {"region": "us"})):
                client.ask_modern(2, "tools/call", name=name, arguments=arguments)
                answer = await client.hear()
                assert (answer["id"], answer["error"]) == (2, refusal)
            assert server.names().count("tools/call") == 5
            assert await client.rest() == []

    run(body())


def test_a_connection_that_breaks_and_a_server_that_is_not_there_are_errors(run: Run) -> None:
    async def broken(_: Seen, answer: Answering) -> None:
        await answer.head(200, EVENTS)
        await answer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        raise ConnectionResetError

    async def body() -> None:
        async with played(tools__call=broken) as server, bridged(server.url) as client:
            client.ask_modern(1, "tools/call", name="x")
            assert (await client.hear())["method"] == "notifications/progress"
            assert error_of(await client.hear()) == (-31002, "broken")
        async with bridged(f"http://127.0.0.1:{free_port()}/mcp") as client:
            client.ask_modern(1, "tools/call", name="x")
            assert error_of(await client.hear()) == (-31002, "unreachable")

    run(body())


async def endless(_: Seen, answer: Answering) -> None:
    await answer.head(200, EVENTS)
    await answer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
    await answer.until_it_leaves()


def test_a_cancelled_modern_call_closes_its_request_and_has_no_answer(run: Run) -> None:
    async def body() -> None:
        async with played(tools__call=endless) as server, bridged(server.url) as client:
            client.ask_modern(1, "tools/call", name="x")
            await client.hear()
            client.note("notifications/cancelled", requestId=1)
            await asyncio.wait_for(server.left.wait(), WAIT_S)
            client.ask_modern(1, "tools/list")
            assert await client.hear() == result(1)
            assert await client.rest() == []
            assert server.names() == ["tools/call", "tools/list"]

    run(body())


def test_a_cancellation_in_a_session_is_passed_on_and_the_answer_may_still_come(run: Run) -> None:
    told = asyncio.Event()

    async def patient(seen: Seen, answer: Answering) -> None:
        await asyncio.wait_for(told.wait(), WAIT_S)
        await answer.whole(json.dumps(result(seen.id)).encode(), 200, JSON)

    async def cancelled(_: Seen, answer: Answering) -> None:
        await answer.whole(b"", 202)
        told.set()

    async def body() -> None:
        acts = {"tools__call": patient, "notifications__cancelled": cancelled}
        async with played(**acts) as server, bridged(server.url) as client:
            await client.shake_hands()
            client.ask(1, "tools/call", name="x")
            await server_saw(server, "tools/call")
            client.note("notifications/cancelled", requestId=1)
            assert await client.hear() == result(1)

    run(body())


async def server_saw(server: Played, name: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while name not in server.names():
            await turn()


def test_a_session_that_the_server_has_forgotten_is_an_error_and_not_begun_again(run: Run) -> None:
    async def body() -> None:
        async with played(tools__list=says(b"", 404)) as server, bridged(server.url) as client:
            await client.shake_hands()
            client.ask(1, "tools/list")
            assert error_of(await client.hear()) == (-31002, "session_ended")
            assert server.names().count("initialize") == 1

    run(body())


def test_many_calls_at_once_each_get_their_own_answer(run: Run) -> None:
    waiting: list[tuple[Seen, Answering]] = []
    all_there = asyncio.Event()

    async def together(seen: Seen, answer: Answering) -> None:
        waiting.append((seen, answer))
        if len(waiting) == 20:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), WAIT_S)
        await answer.whole(json.dumps(result(seen.id, of=seen.id)).encode(), 200, JSON)

    async def body() -> None:
        async with played(tools__call=together) as server, bridged(server.url) as client:
            identifiers: list[object] = [*range(10), *map(str, range(10))]
            for identifier in identifiers:
                client.ask_modern(identifier, "tools/call", name="x")
            answers = [await client.hear() for _ in identifiers]
            assert all(answer == result(answer["id"], of=answer["id"]) for answer in answers)
            assert {json.dumps(a["id"]) for a in answers} == set(map(json.dumps, identifiers))

    run(body())


def test_what_is_open_when_the_client_leaves_is_answered(run: Run) -> None:
    async def body() -> None:
        async with played(tools__call=endless) as server, bridged(server.url) as client:
            client.ask_modern(1, "tools/call", name="x")
            await client.hear()
            client.ask_modern(2, "tools/list")
            client.bridge.stop(15)
            last = {answer["id"]: answer for answer in await client.rest()}
            assert error_of(last[1]) == (-32603, "ended")
            await asyncio.wait_for(server.left.wait(), WAIT_S)

    run(body())


def test_bad_lines_are_answered_here_and_nothing_of_them_is_sent(run: Run) -> None:
    async def body() -> None:
        async with played() as server, bridged(server.url, max_bytes=4096) as client:
            client.say([], {"jsonrpc": "1.0"}, {"jsonrpc": "2.0", "id": None, "method": "x"})
            client.ask(1, "x" * 5000)
            told = [await client.hear() for _ in range(4)]
            assert {answer["id"] for answer in told} == {None}
            assert {answer["error"]["code"] for answer in told} == {-32600}
            assert server.seen == []

    run(body())
