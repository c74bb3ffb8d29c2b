"""Do the types of the official SDK accept what leaves, and does its reader add it up?"""

import importlib
import json
from typing import Any

import pytest

from tests.unit.redaction import responses
from tests.unit.redaction.samples import EMAIL
from tests.unit.redaction.transcripts import FOLDER, TRANSCRIPTS

pytestmark = pytest.mark.full


def payloads(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.shown").read_text()
    data = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in data]


def adapter() -> Any:
    types = importlib.import_module("openai.types.responses")
    return importlib.import_module("pydantic").TypeAdapter(types.ResponseStreamEvent)


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name.startswith("chat")])
def test_every_chat_event_is_a_chunk(name: str) -> None:
    chunk = importlib.import_module("openai.types.chat").ChatCompletionChunk
    for payload in payloads(name):
        assert chunk.model_validate(payload).object == "chat.completion.chunk"


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name.startswith("responses")])
def test_every_event_of_a_response_is_one_that_the_sdk_knows(name: str) -> None:
    events = adapter()
    for payload in payloads(name):
        assert events.validate_python(payload).type == payload["type"]


def test_the_reader_of_the_sdk_adds_a_redacted_response_up() -> None:
    omit = importlib.import_module("openai").omit
    reader = importlib.import_module("openai.lib.streaming.responses._responses")
    events = adapter()
    upstream = responses.Upstream()
    upstream.reasoning(["see jane@exa", "mple.com"])
    upstream.message(["mail jane@exa", "mple.com", " now"])
    upstream.call(['{"to":"jane@exa', 'mple.com"}'])
    client, _ = responses.run(upstream.completed())
    state = reader.ResponseStreamState(text_format=omit, input_tools=omit)
    seen = []
    for event in client.events:
        seen += state.handle_event(events.validate_python(event))
    final = seen[-1].response
    assert final.output_text == f"mail {EMAIL} now"
    assert final.output[2].arguments == f'{{"to":"{EMAIL}"}}'
    deltas = [event for event in seen if event.type == "response.output_text.delta"]
    assert deltas[-1].snapshot == f"mail {EMAIL} now"
