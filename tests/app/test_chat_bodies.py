"""What passes untouched, what is rewritten, and what never crosses: over real sockets."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest

from tests.app.chat_upstreams import (
    CANARY,
    DONE,
    HELLO,
    ROLE,
    STOP,
    completion,
    delta,
    event,
    payloads,
    texts,
)
from tests.app.chat_world import KEY, MASKED, OFF, SECRETS, ChatWorld, request, run
from tests.app.test_front import error_of
from tidegate.testing.scripted import (
    STREAM_HEAD,
    Script,
    ScriptedUpstream,
    answer_bytes,
    chunk_bytes,
    steps,
)
from tidegate.transport.aiohttp_client import AiohttpTransport

JSON = ("Content-Type", "application/json")


@asynccontextmanager
async def world_of(
    primary: Iterable[Script], backup: Iterable[Script] = (), **options: Any
) -> AsyncIterator[tuple[ChatWorld, ScriptedUpstream, ScriptedUpstream]]:
    transport = AiohttpTransport()
    await transport.open()
    async with ScriptedUpstream(*primary) as one, ScriptedUpstream(*backup) as two:
        urls = {"primary": f"{one.url}/v1", "backup": f"{two.url}/v1"}
        try:
            yield ChatWorld(transport=transport, urls=urls, **options), one, two
        finally:
            await transport.close()


def whole(value: object, *headers: tuple[str, str], status: int = 200) -> Script:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return steps(answer_bytes(status, headers=[JSON, *headers], body=data))


def streamed(data: bytes, coding: str = "", cut: int = 1 << 20) -> Script:
    head = STREAM_HEAD.replace(b"\r\n\r\n", f"\r\nContent-Encoding: {coding}\r\n\r\n".encode())
    pieces = [chunk_bytes(data[i : i + cut]) for i in range(0, len(data), cut)]
    return steps(head if coding else STREAM_HEAD, *pieces, chunk_bytes(b""))


ODD = (
    b'{ "messages":[{"role":"user","content":"h\\u0069 \xe2\x80\xa8"}], "x_future" : {"a":'
    b' [1.0, 1e2, 12345678901234567890123]},\n\t"reasoning_effort":"low", "stream":false,'
    b'"model":"m"}'
)


@pytest.mark.parametrize("masking", [MASKED, OFF], ids=["detect", "off"])
def test_a_request_in_which_nothing_changes_leaves_byte_for_byte(masking: Any) -> None:
    async def body() -> None:
        async with world_of([whole(completion("hello"))], masking=masking) as (world, one, _):
            assert (await world.post(ODD)).status == 200
            received = one.requests[0]
            assert received.body == ODD
            assert (received.method, received.target) == ("POST", "/v1/chat/completions")

    run(body())


def test_an_alias_replaces_the_model_and_nothing_else() -> None:
    async def body() -> None:
        models = {"m": "upstream-model"}
        async with world_of([whole(completion("hello"))], models=models) as (world, one, _):
            await world.post(ODD)
            assert one.requests[0].body == ODD.replace(b'"m"}', b'"upstream-model"}')
            await world.post(request(model="other"))
            assert json.loads(one.requests[1].body)["model"] == "other"

    run(body())


def test_unknown_fields_of_an_answer_pass_untouched() -> None:
    async def body() -> None:
        answer = (
            b'{ "id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"h\\u0069",'
            b'"reasoning_content":"why"},"finish_reason":"stop","matched_stop":5}],'
            b' "citations":["https://example.org/a"], "big":12345678901234567890123,"f":1.0}'
        )
        async with world_of([whole(answer)], masking=MASKED) as (world, _, _two):
            assert (await world.post()).body == answer

    run(body())


def test_unknown_fields_of_a_stream_pass_untouched() -> None:
    async def body() -> None:
        odd = [
            b'{ "id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"\\u2026 "}}],'
            b'"x":1.0}',
            b'{"choices":[{"index":0,"delta":{"content":"A ","annotations":[{"type":"url"}]},'
            b'"logprobs":null,"matched_stop":5}],"citations":["https://example.org/a"]}',
            b'{"choices":[],"prompt_filter_results":[],"obfuscation":"abc"}',
        ]
        sent = b"".join(event(one) for one in odd) + STOP + DONE
        async with world_of([streamed(sent)], masking=MASKED) as (world, _, _two):
            seen = (await world.post(stream=True)).body
            assert seen == sent.replace(b',"obfuscation":"abc"', b"")

    run(body())


def test_what_only_frames_the_stream_does_not_pass() -> None:
    async def body() -> None:
        sent = b": a\r\n\r\nretry: 3000\r\n\r\nid: 1\r\ndata:" + delta(content="A").replace(
            b"\n", b""
        )
        sent += b"\r\n\r\ndata:\r\n\r\n" + STOP + b"data:[DONE]\r\n\r\n"
        async with world_of([streamed(sent, cut=1)]) as (world, _, _two):
            expected = event(delta(content="A")) + STOP + DONE
            assert (await world.post(stream=True)).body == expected

    run(body())


def deflated(data: bytes) -> bytes:
    """A gzip stream flushed after each event."""
    packer = zlib.compressobj(wbits=31)
    parts = [
        packer.compress(one + b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH) for one in events(data)
    ]
    return b"".join(parts) + packer.flush()


def brotlied(data: bytes) -> bytes:
    packer = brotli.Compressor()
    parts = [packer.process(one + b"\n\n") + packer.flush() for one in events(data)]
    return b"".join(parts) + packer.finish()


def events(data: bytes) -> list[bytes]:
    return [one for one in data.split(b"\n\n") if one]


CODINGS = {"gzip": (gzip.compress, deflated), "br": (brotli.compress, brotlied)}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_answer_is_decoded_redacted_and_framed_anew(coding: str) -> None:
    async def body() -> None:
        pack, pack_stream = CODINGS[coding]
        mail = json.dumps(completion("mail jane@example.com")).encode()
        error = json.dumps({"error": {"message": CANARY}}).encode()
        stream = ROLE + event(delta(content="mail jane@exa"))
        stream += event(delta(content="mple.com now")) + STOP + DONE
        scripts = [
            whole(pack(mail), ("Content-Encoding", coding)),
            streamed(pack_stream(stream), coding, cut=7),
            whole(pack(error), ("Content-Encoding", coding), status=400),
        ]
        async with world_of(scripts, masking=MASKED) as (world, one, _):
            plain = await world.post()
            answer = json.loads(plain.body)
            assert answer == completion("mail [REDACTED_EMAIL]")
            assert plain.header("content-length") == str(len(plain.body))
            events = await world.post(stream=True)
            assert texts(events.body) == {0: "mail [REDACTED_EMAIL] now"}
            assert events.header("content-length") is None
            refused = await world.post()
            assert (refused.status, error_of(refused)["code"]) == (
                400,
                "gateway.upstream_rejected_request",
            )
            for exchange in (plain, events, refused):
                assert exchange.header("content-encoding") is None
            accepted = one.requests[0].header("accept-encoding") or ""
            assert {"gzip", "br"} <= {name.strip() for name in accepted.split(",")}

    run(body())


SPY = "-".join(("spy", "of", "the", "test"))
OURS_ALONE = [
    ("openai-organization", SPY),
    ("openai-project", SPY),
    ("x-api-key", SPY),
    ("cookie", f"session={SPY}"),
    ("x-forwarded-for", SPY),
    ("accept-encoding", "zstd"),
    ("user-agent", SPY),
    ("x-request-id", SPY),
    ("traceparent", SPY),
    ("connection", "x-spy"),
    ("x-spy", SPY),
]


def test_no_header_of_the_client_reaches_a_provider_and_each_key_goes_to_its_own() -> None:
    async def body() -> None:
        down = whole({"error": {"message": "x"}}, status=503)
        up = whole(completion("hello"))
        async with world_of([down], [up]) as (world, one, two):
            exchange = await world.post(headers=OURS_ALONE)
            assert exchange.header("x-tidegate-attempts") == "primary:server_error,backup:ok"
            for name, upstream in (("primary", one), ("backup", two)):
                (received,) = upstream.requests
                assert received.header("authorization") == f"Bearer {SECRETS[name]}"
                sent = repr(received.headers)
                assert SPY not in sent
                assert KEY not in sent
                others = SECRETS["backup" if name == "primary" else "primary"]
                assert others not in sent
                assert "zstd" not in sent

    run(body())


def test_no_header_of_a_provider_reaches_the_client() -> None:
    async def body() -> None:
        theirs = [
            ("x-request-id", CANARY),
            ("openai-organization", CANARY),
            ("set-cookie", f"a={CANARY}"),
            ("server", CANARY),
            ("x-ratelimit-remaining-tokens", "7"),
            ("content-disposition", CANARY),
            ("x-tidegate-provider", CANARY),
            ("access-control-allow-origin", "*"),
        ]
        head = STREAM_HEAD.replace(
            b"\r\n\r\n", "".join(f"\r\n{n}: {v}" for n, v in theirs).encode() + b"\r\n\r\n"
        )
        stream = steps(head, chunk_bytes(HELLO), chunk_bytes(b""))
        async with world_of([whole(completion("hello"), *theirs), stream]) as (world, _, _two):
            plain, streaming = await world.post(), await world.post(stream=True)
        expected = {"x-request-id", "content-type", "x-tidegate-provider", "x-tidegate-attempts"}
        expected |= {f"x-ratelimit-{what}-tokens" for what in ("limit", "remaining", "reset")}
        assert {name for name, _ in plain.headers} == expected | {"content-length"}
        assert {name for name, _ in streaming.headers} == expected | {
            "cache-control",
            "x-accel-buffering",
        }
        for exchange in (plain, streaming):
            assert CANARY not in repr(exchange.headers)
            assert exchange.header("x-tidegate-provider") == "primary"
            assert exchange.header("x-ratelimit-remaining-tokens") != "7"

    run(body())


def test_a_redirect_is_not_followed() -> None:
    async def body() -> None:
        async with ScriptedUpstream() as trap:
            moved = answer_bytes(302, headers=[("Location", f"{trap.url}/v1")])
            up = whole(completion("hello"))
            async with world_of([steps(moved)], [up]) as (world, _, _two):
                exchange = await world.post()
            assert exchange.header("x-tidegate-attempts") == "primary:malformed,backup:ok"
            assert trap.connections == 0

    run(body())


def test_the_body_chooses_neither_the_destination_nor_the_key() -> None:
    async def body() -> None:
        async with ScriptedUpstream() as trap, world_of([whole(completion("hello"))]) as made:
            world, one, _ = made
            fields = {
                "api_base": trap.url,
                "base_url": trap.url,
                "api_key": "x",
                "extra_headers": {"Authorization": "Bearer x"},
            }
            headers = [("x-portkey-custom-host", trap.url)]
            for model in ("m", f"{trap.url}/m"):
                await world.post(request(model=model, **fields), headers=headers)
            assert trap.connections == 0
            sent = [received.header("authorization") for received in one.requests]
            assert sent == [f"Bearer {SECRETS['primary']}"] * 2
            assert json.loads(one.requests[0].body)["api_base"] == trap.url

    run(body())


def test_an_event_of_three_megabytes_passes_unchanged() -> None:
    async def body() -> None:
        image = "data:image/png;base64," + "iVBORw0K" * 375_000
        picture = event(delta(images=[{"type": "image_url", "image_url": {"url": image}}]))
        done = event(delta(content="done"))
        sent = ROLE + picture + done + STOP + DONE
        async with world_of([streamed(sent, cut=65_536)], masking=MASKED) as (world, _, _two):
            exchange = await world.post(stream=True)
        assert exchange.body.startswith(ROLE + picture)
        assert texts(exchange.body) == {0: "done"}

    run(body())


def test_an_event_beyond_the_cap_ends_the_stream() -> None:
    async def body() -> None:
        huge = event(delta(content="x" * 9_000_000))
        async with world_of([streamed(ROLE + event(delta(content="a ")) + huge)]) as made:
            exchange = await made[0].post(stream=True)
            last = payloads(exchange.body)[-1]
            assert last["error"]["code"] == "gateway.upstream_interrupted"
            assert len(exchange.body) < 1000

    run(body())


def test_stream_and_whole_answer_agree_in_their_redacted_text() -> None:
    async def body() -> None:
        text = "Jane: jane.doe@example.com, 123-45-6789 and 4111 1111 1111 1111, bye"
        pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
        stream = ROLE + b"".join(event(delta(content=one)) for one in pieces) + STOP + DONE
        scripts = [whole(completion(text)), streamed(stream)]
        async with world_of(scripts, masking=MASKED) as (world, _, _two):
            plain = json.loads((await world.post()).body)
            events = await world.post(stream=True)
        assert texts(events.body) == {0: plain["choices"][0]["message"]["content"]}
        assert "example.com" not in texts(events.body)[0]
        assert "[REDACTED_EMAIL]" in texts(events.body)[0]

    run(body())


def test_a_connection_is_used_again_after_a_stream_and_after_an_error() -> None:
    async def body() -> None:
        gate = asyncio.Event()
        late = steps(STREAM_HEAD, chunk_bytes(HELLO), gate, chunk_bytes(b""))
        scripts = [whole({"error": {}}, status=503), late, whole(completion("hello"))]
        async with world_of(scripts, targets=("primary",)) as (world, one, _):
            await world.post()
            await world.post(stream=True)
            # The answer was whole before the upstream had ended its framing.
            assert world.records.outcomes[-1] == "ok"
            gate.set()
            transport: Any = world.transport
            async with asyncio.timeout(5):
                while transport.idle_connections == 0:
                    await asyncio.wait([asyncio.ensure_future(world.post(b"{"))])
            await world.post()
            assert one.connections == 1

    run(body())
