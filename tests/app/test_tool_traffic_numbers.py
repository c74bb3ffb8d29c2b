"""What of a number that is a card reaches the client of a tool, and the tool itself?"""

import json

import pytest

from tests.app.mcp_answers import ENFORCE, answering, result, run
from tests.app.mcp_world import World, call, value
from tidegate.gateway.masking import Masking
from tidegate.redaction import RedactionPolicy

NUMBER = 4111111111111111


def test_a_card_as_a_number_in_structured_content_refuses_the_result() -> None:
    async def body() -> None:
        answer = {"content": [], "structuredContent": {"rows": [{"card": NUMBER}]}}
        world = World(answering(json.dumps(result(answer)).encode()), masking=ENFORCE)
        exchange = await world.post(call("get_status"))
        assert str(NUMBER).encode() not in exchange.body
        assert "error" in value(exchange)
        assert world.records.ends[0].snapshot().outcome == "gateway.content_blocked"

    run(body)


def test_a_card_as_a_number_elsewhere_becomes_a_placeholder() -> None:
    async def body() -> None:
        answer = {"content": [{"type": "text", "text": "ok", "_meta": {"card": NUMBER}}]}
        world = World(answering(json.dumps(result(answer)).encode()), masking=ENFORCE)
        shown = value(await world.post(call("get_status")))
        assert shown["result"]["content"][0]["_meta"] == {"card": "[REDACTED_CARD]"}

    run(body)


@pytest.mark.parametrize("mode", ["detect", "enforce"])
def test_an_argument_that_is_called_id_is_no_id_of_the_protocol(mode: str) -> None:
    async def body() -> None:
        policy = RedactionPolicy.preset()
        masking = Masking(policy, tool_arguments=mode, tool_results="off")  # type: ignore[arg-type]
        world = World(masking=masking)
        arguments = {"id": "jane@example.com", "card": NUMBER}
        await world.post(call("get_status", arguments))
        sent = world.sent[-1]["params"]["arguments"]
        masked = {"id": "[REDACTED_EMAIL]", "card": "[REDACTED_CARD]"}
        assert sent == (masked if mode == "enforce" else arguments)

    run(body)
