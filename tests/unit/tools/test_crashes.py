"""Does anything of a crash reach a client, and is the trace found by what it was told?"""

import logging
from itertools import product
from typing import Any

import mcp_types
import pytest

from tests.unit.tools.pipes import asked, by_id, opening, over_stdio
from tests.unit.tools.some_tools import CANARY, serving
from tests.unit.tools.web import Answer, ask, ask_modern, handshake, message, play

pytestmark = pytest.mark.full

ERAS = ["2026-07-28", "2025-11-25"]
TEXT = "The tool failed. The incident is logged."
KINDS = ["error", "exit", "interrupt", "panic", "cancelled", "group", "validation"]
CRASHES: list[tuple[str, str]] = [
    *(("crash", word) for word in KINDS),
    *(("liar", word) for word in ("kind", "more", "instance", "text", "none")),
    *(("unwritable", word) for word in ("nan", "bytes", "surrogate", "deep", "set")),
]


async def call(app: Any, era: str, method: str, params: dict[str, Any]) -> Answer:
    if era == "2026-07-28":
        return await ask_modern(app, method, params)
    return await ask(app, message(method, params), **await handshake(app, era))


def told_and_logged(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    error = answer.json["error"]
    assert (error["code"], error["message"], set(error["data"])) == (-32603, TEXT, {"incident"})
    assert CANARY not in answer.body.decode()
    ours = [each for each in caplog.records if each.name.startswith("tidegate")]
    (record,) = [each for each in ours if each.levelno >= logging.ERROR]
    assert getattr(record, "incident", None) == error["data"]["incident"]
    assert record.exc_info is not None


# On stdio all of them are tried in both eras at once (below).
ONE_BY_ONE = [
    pytest.param(era, case, marks=pytest.mark.full if era != ERAS[0] and case[1] != "error" else ())
    for era, case in product(ERAS, CRASHES)
]


@pytest.mark.parametrize(("era", "case"), ONE_BY_ONE)
def test_a_tool_that_fails_or_breaks_its_word_is_an_incident(
    era: str, case: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    app = serving().http_app()
    name, word = case
    params = {"name": name, "arguments": {"word": word}}
    told_and_logged(play(app, lambda: call(app, era, "tools/call", params)), caplog)


def broken(kind: str) -> Any:
    async def handler(_context: Any, _params: Any) -> Any:
        if kind == "raises":
            raise RuntimeError(CANARY)
        if kind == "exits":
            raise SystemExit(CANARY)
        return {"tools": CANARY, "prompts": CANARY}  # no result of that method

    return handler


METHODS = [
    ("tools/list", mcp_types.PaginatedRequestParams),
    ("prompts/list", mcp_types.PaginatedRequestParams),
    ("server/discover", mcp_types.RequestParams),
]


@pytest.mark.parametrize(
    ("era", "method", "kind"),
    [
        case
        for case in product(ERAS, METHODS, ("raises", "exits", "returns"))
        if (case[0], case[1][0]) != ("2025-11-25", "server/discover")
    ],
)
def test_every_other_method_has_the_same_boundary(
    era: str, method: tuple[str, Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    tools = serving()
    tools.server.add_request_handler(*method, broken(kind))
    app = tools.http_app()
    told_and_logged(play(app, lambda: call(app, era, method[0], {})), caplog)


@pytest.mark.parametrize("era", ERAS)
def test_params_that_are_none_of_mcps_are_told_by_pointer_and_quoted_nowhere(era: str) -> None:
    app = serving().http_app()
    params: dict[str, Any] = {"name": "echo", "arguments": [CANARY]}
    answer = play(app, lambda: call(app, era, "tools/call", params))
    error = answer.json["error"]
    assert error["code"] == -32602
    assert [fault["pointer"] for fault in error["data"]["faults"]] == ["/arguments"]
    assert CANARY not in answer.body.decode()


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_method_is_not_quoted(era: str) -> None:
    app = serving().http_app()
    answer = play(app, lambda: call(app, era, f"tools/{CANARY}", {}))
    assert answer.json["error"] == {"code": -32601, "message": "Method not found"}
    assert answer.status == (404 if era == "2026-07-28" else 200)


def test_a_handshake_that_is_none_is_told_without_its_values() -> None:
    app = serving().http_app()
    params = {"protocolVersion": 5, "capabilities": CANARY, "clientInfo": {}}
    answer = play(app, lambda: ask(app, message("initialize", params)))
    assert answer.code == -32602
    assert CANARY not in answer.body.decode()
    assert "mcp-session-id" not in answer.headers
    assert len(app.sessions) == 0


@pytest.mark.parametrize("era", ERAS)
def test_a_result_of_a_handler_that_cannot_be_written_is_answered(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_context: Any, _params: Any) -> Any:
        text = mcp_types.TextContent(type="text", text=f"\ud800{CANARY}")
        return mcp_types.CallToolResult(content=[text])

    tools = serving()
    tools.server.add_request_handler("tools/call", mcp_types.CallToolRequestParams, handler)
    app = tools.http_app()
    params = {"name": "any", "arguments": {}}
    told_and_logged(play(app, lambda: call(app, era, "tools/call", params)), caplog)


@pytest.mark.parametrize("era", ERAS)
def test_on_stdio_a_crash_is_an_incident_too_and_the_session_goes_on(era: str) -> None:
    calls = [
        asked(era, "tools/call", {"name": name, "arguments": {"word": word}}, number)
        for number, (name, word) in enumerate([*CRASHES, ("echo", "still here")])
    ]
    answers = by_id(over_stdio(serving(), [*opening(era), *calls]))
    errors = [answer["error"] for answer in answers[:-1]]
    assert {(error["code"], error["message"]) for error in errors} == {(-32603, TEXT)}
    assert len({error["data"]["incident"] for error in errors}) == len(CRASHES)
    assert CANARY not in str(answers)
    assert answers[-1]["result"]["content"][0]["text"] == "still here"


def test_an_incident_of_the_application_itself_is_answered_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = serving()
    tools.server.get_tool_input_schema = lambda _: 1 / 0
    app = tools.http_app()
    params = {"name": "echo", "arguments": {"word": CANARY}}
    answer = play(app, lambda: ask_modern(app, "tools/call", params))
    assert answer.status == 500
    told_and_logged(answer, caplog)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-03-26"])
def test_what_comes_before_the_handshake_is_told_what_is_missing(version: str) -> None:
    early = message("tools/list", id=1)
    answers = over_stdio(serving(), [early, *opening(version), message("ping", id=2)])
    error = {"code": -32600, "message": "A session of this era begins with initialize"}
    assert [answer.get("error") for answer in by_id(answers)] == [error, None]


def test_a_fault_of_params_as_a_whole_has_no_pointer_in_its_sentence() -> None:
    app = serving().http_app()

    async def body() -> Answer:
        session = await handshake(app)
        return await ask(app, message("tools/call"), **session)

    assert play(app, body).json["error"]["message"] == "Invalid params: Field required"
