"""What is a client told in each profile, and is it the same over every way in?"""

from itertools import product
from typing import Any, get_args

import pytest

from tests.unit.tools.pipes import asked, by_id, opening, over_stdio
from tests.unit.tools.some_tools import CANARY, serving
from tests.unit.tools.web import Answer, ask, ask_modern, handshake, message, play
from tidegate.tools.profiles import (
    FAULTS_KEY,
    PROFILES,
    Crashed,
    FailedResult,
    Fault,
    Profile,
    Refused,
    RpcError,
    UnknownTool,
    WrongArguments,
    tell,
)

FAULT, OTHER = Fault("/a", "missing", "Field required"), Fault("/b", "int_type", "No integer")
DATA = {
    "faults": [
        {"pointer": "/a", "rule": "missing", "sentence": "Field required"},
        {"pointer": "/b", "rule": "int_type", "sentence": "No integer"},
    ]
}
TABLE = {
    (UnknownTool(), "brief"): RpcError(-32601, "Unknown tool"),
    (UnknownTool(), "spec"): RpcError(-32602, "Unknown tool"),
    (WrongArguments((FAULT, OTHER)), "brief"): RpcError(
        -32602, "Invalid arguments: /a: Field required", DATA
    ),
    (WrongArguments((FAULT, OTHER)), "spec"): FailedResult(
        "Invalid arguments:\n/a: Field required\n/b: No integer", {FAULTS_KEY: DATA["faults"]}
    ),
    (Refused("no"), "brief"): FailedResult("no"),
    (Refused("no"), "spec"): FailedResult("no"),
    (Crashed("1f"), "brief"): RpcError(
        -32603, "The tool failed. The incident is logged.", {"incident": "1f"}
    ),
    (Crashed("1f"), "spec"): RpcError(
        -32603, "The tool failed. The incident is logged.", {"incident": "1f"}
    ),
}


def test_every_trouble_has_an_answer_in_every_profile() -> None:
    troubles = {trouble for trouble, _ in TABLE}
    assert set(TABLE) == set(product(troubles, PROFILES))
    assert get_args(Profile) == PROFILES
    assert {case: tell(*case) for case in TABLE} == TABLE  # type: ignore[arg-type]


def test_an_unknown_profile_is_refused_when_the_server_is_made_and_when_it_is_set() -> None:
    with pytest.raises(ValueError, match="brief, spec"):
        serving("loud")  # type: ignore[arg-type]
    server = serving()
    with pytest.raises(ValueError, match="brief, spec"):
        server.errors = "loud"  # type: ignore[assignment]
    server.errors = "spec"
    assert server.errors == "spec"


ERAS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"word": 5, "amount": CANARY, CANARY: 1}),
    ("no_such_tool", {}),
    ("refuse", {}),
    ("crash", {}),
    ("echo", {"word": "hi"}),
]
BRIEF, SPEC = [-32602, -32601, "failed", -32603, "ok"], ["failed", -32602, "failed", -32603, "ok"]


def outcome(told: Any) -> Any:
    if "error" in told:
        return told["error"]["code"]
    return "failed" if told["result"].get("isError") else "ok"


async def all_calls(app: Any, era: str) -> list[Answer]:
    if era == "2026-07-28":
        calls = [{"name": name, "arguments": arguments} for name, arguments in CALLS]
        return [await ask_modern(app, "tools/call", each) for each in calls]
    session = await handshake(app, era)
    bodies = [
        message("tools/call", {"name": name, "arguments": arguments}, number)
        for number, (name, arguments) in enumerate(CALLS)
    ]
    return [await ask(app, body, **session) for body in bodies]


@pytest.mark.parametrize(("profile", "era"), [*product(PROFILES, ERAS)])
def test_a_profile_is_the_same_in_every_revision_over_http(profile: Any, era: str) -> None:
    app = serving(profile).http_app()
    answers = play(app, lambda: all_calls(app, era))
    assert [outcome(answer.json) for answer in answers] == (BRIEF if profile == "brief" else SPEC)
    # A pointer names what was asked; the values, and what crashed, stay here.
    names_faults_only(profile, [answer.json for answer in answers])


@pytest.mark.parametrize(("profile", "era"), [*product(PROFILES, ERAS)])
def test_a_profile_is_the_same_in_every_revision_on_stdio(profile: Any, era: str) -> None:
    calls = [
        asked(era, "tools/call", {"name": name, "arguments": arguments}, number)
        for number, (name, arguments) in enumerate(CALLS)
    ]
    answers = by_id(over_stdio(serving(profile), [*opening(era), *calls]))
    assert [outcome(answer) for answer in answers] == (BRIEF if profile == "brief" else SPEC)
    names_faults_only(profile, answers)


def names_faults_only(profile: str, answers: list[Any]) -> None:
    first = answers[0]
    faults = (
        first["error"]["data"]["faults"]
        if profile == "brief"
        else first["result"]["_meta"][FAULTS_KEY]
    )
    assert [fault["pointer"] for fault in faults] == ["/word", "/amount", f"/{CANARY}"]
    assert CANARY not in str([{**fault, "pointer": ""} for fault in faults])
    assert CANARY not in str(answers[1:])


def test_http_says_what_the_era_wants() -> None:
    def statuses(profile: Any, era: str) -> list[int]:
        app = serving(profile).http_app()
        return [answer.status for answer in play(app, lambda: all_calls(app, era))]

    # Errors that are the answers of a tool are no errors of HTTP, unless the revision says so.
    assert statuses("brief", "2026-07-28") == [200, 200, 200, 200, 200]
    assert statuses("spec", "2026-07-28") == [200, 400, 200, 200, 200]
    assert statuses("brief", "2025-11-25") == statuses("spec", "2025-06-18") == [200] * 5


def test_names_like_the_unknown_one_are_not_suggested() -> None:
    app = serving().http_app()
    answer = play(app, lambda: ask_modern(app, "tools/call", {"name": "ech", "arguments": {}}))
    assert answer.json["error"] == {"code": -32601, "message": "Unknown tool"}
