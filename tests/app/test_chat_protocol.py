"""The entries 118 and 119 of the catalogue: over real sockets."""

import gzip
import json

import pytest

from tests.app.chat_upstreams import CANARY, DONE, STOP, completion, delta, event, texts
from tests.app.chat_world import MASKED, run
from tests.app.test_chat_bodies import CODINGS, streamed, whole, world_of
from tests.app.test_front import error_of


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("cut", [1, 100])
def test_118_compressed_answers_are_redacted(coding: str, cut: int) -> None:
    async def body() -> None:
        pack, pack_stream = CODINGS[coding]
        answer = json.dumps(completion("mail jane@example.com")).encode()
        stream = event(delta(content="mail jane@exa")) + event(delta(content="mple.com"))
        scripts = [
            whole(pack(answer), ("Content-Encoding", coding)),
            streamed(pack_stream(stream + STOP + DONE), coding, cut=cut),
        ]
        async with world_of(scripts, masking=MASKED) as (world, _, _two):
            plain = await world.post()
            assert json.loads(plain.body) == completion("mail [REDACTED_EMAIL]")
            streaming = await world.post(stream=True)
            assert texts(streaming.body) == {0: "mail [REDACTED_EMAIL]"}

    run(body())


def test_119_plain_answers_errors_and_headers_show_nothing() -> None:
    async def body() -> None:
        leak = "jane@example.com"
        echo = ("x-echo", f"{CANARY} {leak}")
        error = {"error": {"message": f"no room for {leak} {CANARY}", "param": leak}}
        packed = gzip.compress(json.dumps(error).encode())
        scripts = [
            whole(completion(f"mail {leak}"), echo),
            whole(error, echo, status=400),
            whole(packed, ("Content-Encoding", "gzip"), status=422),
            whole(f"<html>{leak}</html>".encode(), echo, status=400),
        ]
        async with world_of(scripts, masking=MASKED) as (world, _, _two):
            answers = [await world.post() for _ in scripts]
        assert json.loads(answers[0].body) == completion("mail [REDACTED_EMAIL]")
        for answer in answers[1:]:
            assert error_of(answer)["code"] == "gateway.upstream_rejected_request"
        for answer in answers:
            seen = answer.body + repr(answer.headers).encode()
            assert leak.encode() not in seen
            assert CANARY.encode() not in seen

    run(body())
