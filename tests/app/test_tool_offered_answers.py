"""Which answers of a server are replaced by ours, as they say that there is no such thing?"""

from typing import Any

import pytest

from tests.app.federated import OLD, Federated
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_answers import unlisted
from tests.app.mcp_world import Asked, World, ask, call
from tests.app.offered import ALL_BUT, UNKNOWN, Roster, told
from tests.unit.mcp.asking import allow
from tidegate.mcp import RuleSet

TEXTS = [
    "Resource pod/web-7 not found in namespace prod",
    "Tool run finished; output file not found",
    "Invalid resource id",
    "Unknown tool: get_pod",
    "tool version not known",
]


def saying(said: Any) -> Any:
    """A server with one tool, get_pod, and one answer to everything but the list."""

    async def script(asked: Asked) -> None:
        if asked.message["method"] == "tools/list":
            asked.result({"tools": [{"name": "get_pod", "inputSchema": {}}]})
        else:
            asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], **said})

    return script


def failing(text: str) -> Any:
    return {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}


def refusing(code: int, text: str) -> Any:
    return {"error": {"code": code, "message": text}}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_what_a_tool_says_that_is_listed_is_its_answer(text: str, *, is_first: bool) -> None:
    async def body() -> None:
        for said in (failing(text), refusing(-32602, text), refusing(-32002, text)):
            world = World(saying(said), rules=ALL_BUT, hide_denied="full")
            if not is_first:
                await world.post(ask("tools/list"))
            answer = told(await world.post(call("get_pod")))
            assert {key: answer[key] for key in said} == said

    run(body)


def test_what_a_tool_says_of_one_among_several_servers_is_its_answer() -> None:
    async def body() -> None:
        class Pods(Roster):
            def _call(self, asked: Asked, name: str) -> None:
                self._say(asked, failing(f"Tool {name}: pod not found"))

        world = Federated(a=Pods("get_pod"), b=Roster(), rules=ALL_BUT, hide_denied="full")
        answer = told(await world.post(call("a__get_pod"), **OLD))
        assert answer["result"]["content"][0]["text"] == "Tool get_pod: pod not found"
        await world.over()

    run(body)


def test_of_a_server_without_lists_only_what_names_the_tool_says_that_there_is_none() -> None:
    async def body() -> None:
        for text in TEXTS:
            world = World(unlisted(saying(failing(text))), rules=ALL_BUT, hide_denied="full")
            answer = told(await world.post(call("get_pod")))
            if "get_pod" in text:
                assert answer["error"] == UNKNOWN
            else:
                assert answer["result"]["content"][0]["text"] == text

    run(body)


ALL = RuleSet([allow()])


@pytest.mark.parametrize(
    ("method", "named", "text"),
    [
        ("prompts/get", {"name": "p"}, "Resource file:///x of the prompt not found"),
        ("prompts/get", {"name": "p"}, "Invalid tool name: x"),
        ("resources/read", {"uri": "file:///x"}, "Tool that makes it not available"),
    ],
)
def test_what_is_said_of_another_kind_is_passed_on(method: str, named: Any, text: str) -> None:
    async def body() -> None:
        said = refusing(-32602, text)
        world = World(saying(said), rules=ALL, hide_denied="full")
        assert told(await world.post(ask(method, **named)))["error"] == said["error"]

    run(body)


@pytest.mark.parametrize(
    ("method", "named", "code", "text"),
    [
        ("prompts/get", {"name": "p"}, -32602, "Unknown prompt: p"),
        ("prompts/get", {"name": "p"}, -32601, "Method not found"),
        ("prompts/get", {"name": "p"}, -32002, "no"),
        ("resources/read", {"uri": "file:///x"}, -32602, "Resource file:///x not found"),
        ("resources/read", {"uri": "file:///x"}, -32002, "gone"),
    ],
)
def test_a_prompt_or_resource_that_is_not_there_is_told_of_in_our_words(
    method: str, named: Any, code: int, text: str
) -> None:
    async def body() -> None:
        world = World(saying(refusing(code, text)), rules=ALL, hide_denied="full")
        error = told(await world.post(ask(method, **named)))["error"]
        assert error["code"] == -32602
        assert error["message"] in ("Unknown prompt", "Unknown resource")

    run(body)
