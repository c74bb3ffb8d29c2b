"""Does the record say what was blocked of a call, where, and whether the tool had run?"""

import json
from typing import Any

import pytest

from tests.app.mcp_answers import run
from tests.app.mcp_world import World, call, value
from tests.unit.mcp.asking import allow
from tidegate.gateway.masking import Masking
from tidegate.mcp import RuleSet
from tidegate.records.entries import Trail
from tidegate.records.why import why
from tidegate.redaction import RedactionPolicy

TEXT = "write to jane.doe@example.com"
POLICY = RedactionPolicy.preset().with_actions({"email": "block"})


async def leaking(asked: Any) -> None:
    asked.whole(
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": TEXT}]}}
    )


def steps_of(trail: Trail) -> list[tuple[str, str, object]]:
    return [(s.stage, s.verdict, s.values.get("detector")) for s in trail.snapshot().steps]


def sentence(trail: Trail) -> str:
    return why(trail.snapshot().body(b"k"))


@pytest.mark.parametrize("batched", [False, True])
def test_blocked_arguments_are_told_by_their_detector_and_nothing_ran(*, batched: bool) -> None:
    async def body() -> None:
        masking = Masking(POLICY, tool_arguments="enforce", tool_results="enforce")
        world = World(rules=RuleSet([allow()]), masking=masking)
        message = call("get_status", {"a": TEXT})
        answer = await world.post([message] if batched else message)
        assert b"-31004" in answer.body
        trail = world.records.ends[0]
        assert ("redact_arguments", "block", "email") in steps_of(trail)
        assert not [step for step in steps_of(trail) if step[0] == "upstream"]
        assert sentence(trail) == "Detector email blocks what it found in the arguments."
        assert TEXT not in json.dumps(trail.snapshot().body(b"k"))

    run(body)


def test_a_blocked_result_is_told_by_its_detector_and_that_the_server_had_answered() -> None:
    async def body() -> None:
        masking = Masking(POLICY, tool_arguments="off", tool_results="enforce")
        world = World(rules=RuleSet([allow()]), masking=masking, script=leaking)
        answer = await world.post(call("get_status", {}))
        assert value(answer)["error"]["code"] == -31004
        trail = world.records.ends[0]
        told = steps_of(trail)
        assert told.index(("upstream", "ok", None)) < told.index(
            ("redact_result", "block", "email")
        )
        assert sentence(trail) == (
            "Detector email blocks what it found in the result, after the server had answered."
        )

    run(body)
