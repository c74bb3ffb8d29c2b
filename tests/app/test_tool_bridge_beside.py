"""Is a message handled in a thread only if it is large, whatever was made of it on its way?"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.app.bridged import Bridged
from tests.app.federated import OLD, Federated, Server
from tests.app.mcp_answers import run
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Refusal
from tests.app.mcp_world import Asked, World, call, value
from tests.app.piped import FakeProcess, Piped, polite
from tests.unit.mcp.asking import allow
from tidegate.jsonrpc import Request
from tidegate.mcp import RuleSet
from tidegate.mcp.answers import Incoming, parse
from tidegate.mcp.eras import LEGACY, MODERN

LARGE = "x" * 100_000
EVERYTHING = RuleSet([allow()])
Handler = Callable[[Any, Asked, Any], Awaitable[Any]]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was handled in a thread."""
    seen: list[str] = []

    async def noted(work: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(getattr(work, "__name__", str(work)))
        return work(*args, **kwargs)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    return seen


def answering(answer: Callable[[Any], Any], content_type: str = "application/json") -> Handler:
    """What a tool's server sends as bytes or as a value, for the request's id."""

    async def handler(_upstream: Any, asked: Asked, message: Any) -> Any:
        if message["method"] == "tools/call":
            asked.whole(answer(message["id"]), content_type=content_type)
        return None

    return handler


def result(text: str, **more: Any) -> Callable[[Any], Any]:
    content = [{"type": "text", "text": text}]
    done = {"content": content, "resultType": "complete"}
    return lambda id: {"jsonrpc": "2.0", "id": id, "result": done, **more}  # noqa: A006


def array(text: str) -> Callable[[Any], Any]:
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"x": text}}
    return lambda id: [note, result("done")(id)]  # noqa: A006


def event(text: str) -> Callable[[Any], bytes]:
    return lambda id: b"data: " + json.dumps(result(text)(id)).encode() + b"\n\n"  # noqa: A006


WAYS: dict[str, Callable[[str], Handler]] = {
    "whole": lambda text: answering(result(text)),
    "with a member of its own": lambda text: answering(result(text, extra=1)),
    "in an array": lambda text: answering(array(text)),
    "in an event": lambda text: answering(event(text), "text/event-stream"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [LegacyUpstream, ModernUpstream])
def test_a_small_answer_is_handled_where_it_arrives(
    way: str, make: Any, threads: list[str]
) -> None:
    async def body() -> None:
        for alone in (True, False):
            upstream = make(handler=WAYS[way]("small"))
            if alone:
                bridged = Bridged(upstream)
                assert (await bridged.say(call("echo"), LEGACY[1])).result["content"]
                await bridged.carrier.close()
            else:
                world = Federated(a=upstream, b=Server(), rules=EVERYTHING, hide_denied="full")
                answer = await world.post(call("a__echo"), **OLD)
                assert "content" in value(answer)["result"]
                await world.over()

    run(body)
    assert threads == []


@pytest.mark.parametrize("way", WAYS)
def test_a_large_one_is_handled_beside_the_loop(way: str, threads: list[str]) -> None:
    async def body() -> None:
        upstream = ModernUpstream(handler=WAYS[way](LARGE))
        world = Federated(a=upstream, b=Server(), rules=EVERYTHING)
        answer = await world.post(call("a__echo"), **OLD)
        assert "content" in value(answer)["result"]
        await world.over()

    run(body)
    # In the array it is the other message that is large; the bridge cannot know.
    assert {"_reply", *(["reply"] if way != "in an array" else [])} <= set(threads)


@pytest.mark.parametrize("id", [None, "own"])
def test_a_refusal_is_small_whatever_it_has_in_place_of_an_id(
    id: str | None,  # noqa: A002 - the member's own name
    threads: list[str],
) -> None:
    async def refusing(_upstream: Any, asked: Asked, message: Any) -> Any:
        if message["method"] != "tools/call":
            return None
        if id == "own":
            raise Refusal(400, -32602, "Invalid params: city")
        error = {"code": -32602, "message": "Invalid params: city"}
        asked.whole({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        return None

    async def body() -> None:
        for make in (LegacyUpstream, ModernUpstream):
            world = Federated(a=make(handler=refusing), b=Server(), rules=EVERYTHING)
            answer = await world.post(call("a__echo"), **OLD)
            assert value(answer)["error"]["code"] == -32602
            await world.over()
        alone = World(ModernUpstream(handler=refusing), rules=EVERYTHING)
        answer = await alone.post(call("echo"), **OLD)
        assert value(answer)["error"]["code"] == -32602
        await alone.carriers.close()

    run(body)
    assert threads == []


def test_what_a_process_says_is_handled_by_its_size(threads: list[str]) -> None:
    text = ["small"]

    async def server(process: FakeProcess, request: Request) -> Any:
        if request.method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": text[0]}]}}
        return await polite(process, request)

    async def body() -> None:
        piped = Piped(server)
        assert (await piped.say(call("echo"), MODERN)).result["content"]
        assert threads == []
        text[0] = LARGE
        assert (await piped.say(call("echo"), MODERN)).result["content"]
        assert threads == ["_reply"]
        await piped.carrier.close()

    run(body)


def test_a_message_knows_its_size_whatever_is_made_of_it() -> None:
    data = b'[{"id":1},{"id":2}]'
    for incoming in parse(data):
        assert incoming.size_bytes == incoming.about(7).size_bytes == len(data)
    (whole,) = parse(b'{"id":1,"x":2}')
    assert whole.size_bytes == whole.about("a").size_bytes == 14
    assert whole.about("a") == Incoming({"id": "a", "x": 2})
