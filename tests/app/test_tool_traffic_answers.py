"""Does an answer reach its client whole and filtered, or as one honest error?"""

import json
from typing import Any

import pytest

from tests.app.mcp_answers import (
    ADMIN,
    BOTH,
    META,
    NOTE,
    STATUS,
    STREAM,
    answering,
    called,
    generic,
    modern,
    result,
    run,
    unlisted,
)
from tests.app.mcp_world import Asked, World, ask, call, events, value
from tidegate import sse
from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.transport.upstream import Failure

# What is a list allowed to show?

LISTED = json.dumps(result({"tools": [STATUS, ADMIN], "nextCursor": "c2"})).encode()
NOISY = b"".join(
    (
        b"event: message\r\ndata: " + json.dumps(NOTE).encode() + b"\r\n\r\n",
        b": keep\n\ndata: not json\n\n",
        b"event: message\ndata: " + LISTED + b"\n\n",
    )
)
FORMS = {
    "json": ((LISTED,), "application/json"),
    "bare json called a stream": ((LISTED,), STREAM),
    "a stream called json": ((NOISY,), "application/json"),
    "a stream": ((NOISY,), STREAM),
    "a stream byte by byte": (tuple(NOISY[n : n + 1] for n in range(len(NOISY))), STREAM),
    "data in lines": (
        (b"data: " + LISTED.replace(b", ", b",\ndata: ") + b"\n\n",),
        STREAM,
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("accept", [None, "*/*", "application/json", BOTH])
@pytest.mark.parametrize("hide", ["list", "full"])
def test_a_list_is_filtered_in_every_form(form: str, accept: str | None, hide: str) -> None:
    async def body() -> None:
        parts, content_type = FORMS[form]
        world = World(answering(*parts, content_type=content_type), hide_denied=hide)
        headers = {} if accept is None else {"accept": accept}
        answer = await world.post(ask("tools/list"), **headers)
        assert b"admin_reset_key" not in answer.body
        shown = result({"tools": [STATUS], "nextCursor": "c2"})
        if answer.header("content-type") == "application/json":
            assert value(answer) == shown
            assert accept != BOTH or form in ("json", "bare json called a stream")
        else:
            assert events(answer) == ([NOTE, shown] if "data in" not in form else [shown])
            assert accept != "application/json"

    run(body)


NO_LISTS: list[Any] = [
    lambda _member: [ADMIN],
    lambda _member: "admin_reset_key",
    lambda _member: None,
    lambda _member: {},
    lambda _member: {"content": []},
    lambda member: {member.capitalize(): [ADMIN]},
    lambda member: {member.upper(): [ADMIN], "nextCursor": "2"},
    lambda member: {member: [], member.capitalize(): [ADMIN]},
    lambda member: {member.replace("s", "\u017f"): [ADMIN]},
    lambda member: {f"\u200b{member}": [ADMIN], member: []},
    lambda member: {member: None},
    lambda member: {member: {"admin_reset_key": ADMIN}},
    lambda member: {member: "admin_reset_key"},
    lambda member: {member: ["admin_reset_key"]},
    lambda member: {member: [{}, None]},
    lambda member: {member: [[ADMIN]]},
]


@pytest.mark.parametrize(("method", "member"), list(LISTED_MEMBER.items()))
@pytest.mark.parametrize("number", range(len(NO_LISTS)))
@pytest.mark.parametrize("content_type", ["application/json", STREAM])
def test_what_is_no_list_is_a_failure_and_not_shown(
    method: str, member: str, number: int, content_type: str
) -> None:
    """Case 35 of the adversarial ones: never an empty success."""

    async def body() -> None:
        data = json.dumps(result(NO_LISTS[number](member))).encode()
        data = data if content_type != STREAM else sse.encode(data)
        for hide in ("list", "full"):
            world = World(answering(data, content_type=content_type), hide_denied=hide)
            answer = await world.post(ask(method), accept="application/json")
            assert generic(answer)
            assert b"admin" not in answer.body
            assert world.records.ends[0].snapshot().outcome == "gateway.upstream_failed"

    run(body)


@pytest.mark.parametrize("number", range(len(NO_LISTS)))
def test_without_hiding_what_is_no_list_is_the_servers_own_affair(number: int) -> None:
    """Nothing is taken away from it. Tasks are: those of others are nobody's to see."""

    async def body() -> None:
        for method, member in LISTED_MEMBER.items():
            raw = json.dumps(result(NO_LISTS[number](member))).encode()
            world = World(answering(raw))
            answer = await world.post(ask(method))
            if method == "tasks/list":
                assert generic(answer)
            elif b"nextCursor" in raw:
                shown = {
                    **NO_LISTS[number](member),
                    "nextCursor": value(answer)["result"]["nextCursor"],
                }
                assert value(answer) == result(shown)
            else:
                assert answer.body == raw

    run(body)


def test_without_hiding_a_list_is_the_bytes_of_the_server() -> None:
    async def body() -> None:
        raw = b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "x": 0.10, "y": 1E2}}'
        answer = await World(answering(raw)).post(ask("tools/list"))
        assert answer.body == raw

    run(body)


def test_an_emptied_page_stays_a_page_and_cursors_are_opaque() -> None:
    async def body() -> None:
        pages = {None: ([ADMIN], "c 2/=="), "c 2/==": ([STATUS], None)}

        async def script(asked: Asked) -> None:
            tools, following = pages[asked.message.get("params", {}).get("cursor")]
            asked.result({"tools": tools, **({"nextCursor": following} if following else {})})

        world = World(script, hide_denied="list")
        first = value(await world.post(ask("tools/list")))["result"]
        assert first == {"tools": [], "nextCursor": "c 2/=="}
        second = value(await world.post(ask("tools/list", cursor=first["nextCursor"])))["result"]
        assert second == {"tools": [STATUS]}
        assert world.sent[1]["params"] == {"cursor": "c 2/=="}

    run(body)


def test_each_principal_sees_its_own_list_and_no_cache_may_share_it() -> None:
    async def body() -> None:
        world = World(
            answering(
                json.dumps(result({"tools": [STATUS, ADMIN], "cacheScope": "public"})).encode()
            ),
            hide_denied="full",
        )
        seen = {}
        for role in ("admin", "viewer"):
            shown = value(await world.post(ask("tools/list"), role=role))["result"]
            seen[role] = [tool["name"] for tool in shown["tools"]]
            assert shown["cacheScope"] == "private"
        assert seen == {"admin": ["get_status", "admin_reset_key"], "viewer": ["get_status"]}

    run(body)


@pytest.mark.parametrize("hide", ["off", "list", "full"])
def test_who_may_use_nothing_gets_an_empty_list_from_nobody(hide: str) -> None:
    async def body() -> None:
        world = World(hide_denied=hide)
        old = await world.post(ask("tools/list"), role="guest")
        assert value(old) == result({"tools": []})
        new = await world.post(ask("tools/list", _meta=META), role="guest", **modern("tools/list"))
        assert value(new)["result"]["resultType"] == "complete"
        assert world.sent == []

    run(body)


# Can a hidden tool be told from one that does not exist?

UNKNOWN_ANSWERS = [
    {"error": {"code": -32601, "message": "Method not found: tools/call"}},
    {"error": {"code": -32602, "message": "Unknown tool: no_such"}},
    {"error": {"code": -32602, "message": "Tool no_such not found", "data": {"x": 1}}},
    {
        "result": {
            "isError": True,
            "content": [{"type": "text", "text": "MCP error -32602: Tool no_such not found"}],
        }
    },
]


@pytest.mark.parametrize("said", UNKNOWN_ANSWERS)
@pytest.mark.parametrize("form", ["json", "stream", "status"])
@pytest.mark.parametrize("is_modern", [True, False])
def test_hidden_and_missing_tools_have_the_same_answer(
    said: Any, form: str, *, is_modern: bool
) -> None:
    async def body() -> None:
        data = json.dumps({"jsonrpc": "2.0", "id": 1, **said}).encode()
        script = {
            "json": answering(data),
            "stream": answering(sse.encode(data), content_type=STREAM),
            "status": answering(data, status=400),
        }[form]
        world = World(unlisted(script), hide_denied="full")
        answers = []
        for name in ("no_such", "admin_reset_key"):
            extra = modern("tools/call", mcp_name=name) if is_modern else {}
            params = {"_meta": META} if is_modern else {}
            answers.append(await world.post(call(name, **params), **extra))
        missing, hidden = answers
        assert missing.body == hidden.body
        assert (missing.status, hidden.status) == (200, 200)
        assert [h for h in missing.headers if h[0] != "x-request-id"] == [
            h for h in hidden.headers if h[0] != "x-request-id"
        ]
        assert called(world) == ["no_such"]

    run(body)


# What of a failure behind us may be seen?

LEAK = b"secret db-3.internal"
FAILURES = {
    "html": answering(b"<html>" + LEAK + b"</html>", content_type="text/html"),
    "html 502": answering(b"<html>" + LEAK, content_type="text/html", status=502),
    "text 500": answering(LEAK, content_type="text/plain", status=500),
    "json 500": answering(json.dumps({"detail": LEAK.decode()}).encode(), status=500),
    "error 500": answering(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"' + LEAK + b'"}}', status=500
    ),
    "internal error": answering(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"' + LEAK + b'"}}'
    ),
    "code zero": answering(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"' + LEAK + b'"}}', status=400
    ),
    "unauthorized": answering(LEAK, status=401),
    "forbidden": answering(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"' + LEAK + b'"}}', status=403
    ),
    "redirect": answering(LEAK, status=302),
    "nothing": answering(),
    "accepted": answering(status=202),
    "another id": answering(b'{"jsonrpc":"2.0","id":2,"result":{"x":"' + LEAK + b'"}}'),
    "another type": answering(b'{"jsonrpc":"2.0","id":"1","result":{"x":"' + LEAK + b'"}}'),
    "no id": answering(b'{"jsonrpc":"2.0","result":{"x":"' + LEAK + b'"}}'),
    "doubled": answering(
        b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],"tools":["' + LEAK + b'"]}}'
    ),
    "half": answering(b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + LEAK),
    "too large": answering(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (2 << 20) + b'"}'),
    "a stream without answer": answering(b"data: {}\n\n", content_type=STREAM),
    "a large event": answering(b"data: " + b"x" * (2 << 20), content_type=STREAM),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("hide", ["off", "full"])
def test_whatever_fails_behind_us_is_one_generic_error(failure: str, hide: str) -> None:
    async def body() -> None:
        world = World(FAILURES[failure], hide_denied=hide)
        answer = await world.post(call("get_status"))
        assert answer.status == 200
        assert generic(answer)
        assert LEAK not in answer.body
        assert LEAK not in str(answer.headers).encode()
        assert world.records.ends[0].snapshot().outcome == "gateway.upstream_failed"

    run(body)


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("begun", [True, False])
def test_a_lost_connection_is_the_generic_error(failure: Failure, *, begun: bool) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            if begun:
                asked.head()
                asked.body(b'{"jsonrpc"')
            asked.fail(failure)

        answer = await World(script).post(call("get_status"))
        assert (answer.status, generic(answer)) == (200, True)

    run(body)


def test_errors_about_the_call_itself_pass() -> None:
    async def body() -> None:
        error = {"code": -32602, "message": "amount must be positive", "data": {"path": "/amount"}}
        data = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
        answer = await World(answering(data, status=400)).post(call("get_status"))
        assert (answer.status, value(answer)["error"]) == (400, error)
        nameless = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        answer = await World(answering(nameless, status=400)).post(call("get_status", id="a"))
        assert value(answer) == {"jsonrpc": "2.0", "id": "a", "error": error}

    run(body)


def test_a_stream_that_breaks_after_it_began_ends_with_the_error() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.head(200, STREAM)
            asked.event(NOTE)
            asked.fail()

        answer = await World(script).post(call("get_status"), accept=BOTH)
        first, last = events(answer)
        assert first == NOTE
        assert (last["id"], last["error"]["code"]) == (1, -32603)

    run(body)
