"""Does every text that a client hands to a server pass the redaction of tool arguments?"""

import json
from typing import Any

import pytest

from tests.app.mcp_answers import MODERN, run
from tests.app.mcp_streams import STATUS, StreamingServer, begin, calling, event, last_record
from tests.app.mcp_world import World, ask, call, tell, value
from tests.unit.mcp.asking import allow
from tidegate.gateway.masking import Masking
from tidegate.mcp import RuleSet
from tidegate.redaction import RedactionPolicy

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MAIL = "jane.doe@example.com"
TEXT = f"write to {MAIL}"
FORM = {"action": "accept", "content": {"mail": TEXT}}
ROUND = call("get_status", {}, inputResponses={"q": FORM}, requestState="s", _meta=META)
COMPLETE = ask(
    "completion/complete",
    ref={"type": "ref/prompt", "name": "p"},
    argument={"name": "a", "value": TEXT},
    context={"arguments": {"b": TEXT}},
)
MESSAGES = [ROUND, COMPLETE, call("get_status", {"a": TEXT})]
QUESTION = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {}}
ANSWER = {"jsonrpc": "2.0", "id": "q1", "result": FORM}


def world_of(mode: Any, action: Any = "mask", script: Any = None) -> World:
    policy = RedactionPolicy.preset().with_actions({"email": action})
    masking = Masking(policy, tool_arguments=mode, tool_results="off")
    more = {} if script is None else {"script": script}
    return World(rules=RuleSet([allow()]), masking=masking, **more)


def headers_of(message: Any) -> Any:
    if "_meta" not in message["params"]:
        return {}
    method, name = message["method"], message["params"]["name"]
    return {"mcp_protocol_version": MODERN, "mcp_method": method, "mcp_name": name}


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("mode", ["off", "detect", "enforce"])
def test_texts_of_a_request_are_masked_where_that_is_enforced(message: Any, mode: Any) -> None:
    async def body() -> None:
        world = world_of(mode)
        await world.post(message, **headers_of(message))
        sent = json.loads(json.dumps(world.sent[-1]))
        if mode != "enforce":
            assert sent == message
            return
        assert MAIL not in json.dumps(sent)
        placeholder = next(part for part in json.dumps(sent).split('"') if part.startswith("write"))
        again = json.loads(json.dumps(sent).replace(placeholder, TEXT))
        assert again == message
        [step] = [
            s for s in world.records.ends[0].snapshot().steps if s.stage == "redact_arguments"
        ]
        assert step.found["email"] == json.dumps(message).count(MAIL)

    run(body)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_request_with_a_text_to_be_blocked_reaches_no_server(message: Any) -> None:
    async def body() -> None:
        world = world_of("enforce", "block")
        answer = await world.post(message, **headers_of(message))
        assert value(answer)["error"]["code"] == -31004
        assert world.sent == []

    run(body)


@pytest.mark.parametrize("action", ["mask", "block"])
def test_what_a_client_answers_a_server_is_masked_or_refused(action: Any) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = world_of("enforce", action, server)
        session = await begin(world)
        async with calling(world, session, STATUS) as mine:
            asked = await server.arrival()
            asked.head(200, "text/event-stream")
            event(asked, QUESTION)
            await mine.chunk()
            answer = await world.post(ANSWER, mcp_session_id=session)
            assert answer.status == 202
        [told] = server.notices[:1]
        assert MAIL not in json.dumps(told)
        assert told["id"] == "q1"
        if action == "mask":
            assert told["result"]["action"] == "accept"
            assert told["result"]["content"]["mail"].startswith("write to ")
        else:
            assert told["error"]["code"] == -31004
        outcome = (await last_record(world, 2)).outcome
        assert (outcome == "ok") is (action == "mask")

    run(body)


def test_what_a_client_says_of_its_reasons_is_masked() -> None:
    async def body() -> None:
        world = world_of("enforce")
        await world.post(tell("notifications/progress", progressToken=1, message=TEXT))
        assert all(MAIL not in json.dumps(sent) for sent in world.sent)

    run(body)
