"""From the words of a file to sockets: vault, deny lists, cue words and a classifier at once."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from tests.app.chat_upstreams import DONE, ROLE, STOP, completion, delta, event, payloads, texts
from tests.wire.gateways import CHAT, JSON, KEYED, chat, config_text, serving
from tidegate.testing.scripted import (
    STREAM_HEAD,
    ScriptedUpstream,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
)
from tidegate.testing.sockets import RawClient, request_bytes

PROMPT = "I am Jane Doe of Zanzibar Holdings, jane@example.com. My name is John Roe."
MASK = "[REDACTED_NAME]"


async def classifier(exchange: UpstreamExchange) -> None:
    """Knows two names."""
    asked = json.loads(exchange.request.body)["texts"]
    spans = [
        [
            {"start": name.start(), "end": name.end(), "kind": "NAME"}
            for name in re.finditer("Jane Doe|Ann", text)
        ]
        for text in asked
    ]
    body = json.dumps({"spans": spans}).encode()
    await exchange.send(answer_bytes(headers=[JSON], body=body))


async def echo(exchange: UpstreamExchange) -> None:
    """A model that repeats the prompt, and adds names that it knows."""
    body = json.loads(exchange.request.body)
    text = f"{body['messages'][0]['content']} Ann and the Quokka Ltd say hi"
    if not body.get("stream"):
        answer = json.dumps(completion(text)).encode()
        await exchange.send(answer_bytes(headers=[JSON], body=answer))
        return
    await exchange.send(STREAM_HEAD + chunk_bytes(ROLE))
    for place in range(0, len(text), 5):
        await exchange.send(chunk_bytes(event(delta(content=text[place : place + 5]))))
    await exchange.send(chunk_bytes(STOP + DONE) + chunk_bytes(b""))


def test_a_file_with_vault_lists_cues_and_a_classifier_does_what_it_says(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "everybody.txt").write_text("Quokka Ltd\n")
        (tmp_path / "acme.txt").write_text("Zanzibar Holdings\n")
        (tmp_path / "other.txt").write_text("Jane\n")
        async with ScriptedUpstream(echo) as model, ScriptedUpstream(classifier) as finder:
            redaction: dict[str, Any] = {
                "request": "enforce",
                "vault": True,
                "deny_list": [f"{tmp_path}/everybody.txt", f"{tmp_path}/{{tenant}}.txt"],
                "detectors": {"names": {}},
                "classifier": {"url": f"{finder.url}/find", "deadline_s": 4.0, "late": "block"},
            }
            text = config_text(tmp_path, primary=f"{model.url}/v1", redaction=redaction)
            async with serving(text) as served:
                for stream in (False, True):
                    client = await RawClient.connect("127.0.0.1", served.scene.port)
                    asked = chat(stream=stream, messages=[{"role": "user", "content": PROMPT}])
                    await client.send(
                        request_bytes("POST", CHAT, headers=[JSON, KEYED], body=asked)
                    )
                    answer = await client.answer()
                    assert answer.status == 200
                    if stream:
                        assert payloads(answer.body)[-1] == "[DONE]"
                        said = texts(answer.body)[0]
                    else:
                        said = json.loads(answer.body)["choices"][0]["message"]["content"]
                    assert said == f"{PROMPT} {MASK} and the [REDACTED_DENIED] say hi"
                    await client.close()
                await served.scene.until(lambda: served.app.in_flight == 0)
                assert served.metric("redactions_total", direction="request", kind="name") == 4
        seen = b"".join(request.body for request in model.requests)
        for value in (b"Jane", b"Zanzibar", b"jane@", b"John"):
            assert value not in seen
        told = b"".join(request.body for request in finder.requests)
        assert b"jane@" not in told
        assert {request.target for request in finder.requests} == {"/find"}
        assert {request.header("authorization") for request in finder.requests} == {None}

    asyncio.run(body())
