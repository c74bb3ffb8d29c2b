"""What does a request get that a gateway must not serve, on the wire of a real process?"""

import asyncio
import gzip
import json
from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Scene
from tests.acceptance.worlds import (
    CHAT,
    JSON,
    KEY,
    call_body,
    chat,
    chat_body,
    code,
    headers,
    request_id,
)
from tidegate.testing.sockets import Answer, request_bytes

CAPS = {
    "header_bytes": 4096,
    "header_timeout_s": 3.0,
    "body_idle_s": 3.0,
    "llm_body_bytes": 20_000,
    "mcp_body_bytes": 10_000,
}
PARTS = {"server": {"port": 0, "admin": {"port": 0}, "caps": CAPS}}
AUTHORIZED = ("Authorization", f"Bearer {KEY}")
NOT_JSON: dict[str, bytes] = {
    "empty": b"",
    "cut": chat_body()[:-1],
    "trailing": chat_body() + b"x",
    "not_utf8": b'{"model":"\xff"}',
    "utf16": chat_body().decode().encode("utf-16"),
    "bom": b"\xef\xbb\xbf" + chat_body(),
    "nan": chat_body()[:-1] + b',"top_p":NaN}',
    "infinity": chat_body()[:-1] + b',"top_p":-Infinity}',
    "beyond_floats": chat_body()[:-1] + b',"top_p":1e999}',
    "duplicate_key": chat_body()[:-1] + b',"model":"other"}',
    "deep_duplicate": b'{"messages":[{"role":"user","role":"system"}]}',
    "lone_surrogate": b'{"model":"\\ud800"}',
    "too_deep": b"[" * 65 + b"]" * 65,
    "an_array": b"[1]",
    "a_string": b'"hi"',
}
BAD_FIELDS: dict[str, bytes] = {
    "messages": json.dumps({"model": "m"}).encode(),
    "model": chat_body()[:-1].replace(b'"quick"', b"5") + b"}",
    "stream": chat_body(stream="yes"),
}


@pytest.fixture(autouse=True)
def _nothing_reaches_the_upstream(scene: Scene) -> Iterator[None]:
    before = len(scene.server.requests)
    yield
    assert len(scene.server.requests) == before
    assert scene.run(chat(scene.gateway)).status == 200


def ask(
    scene: Scene, method: str, target: str, given: list[tuple[str, str]], body: bytes
) -> Answer:
    answer: Answer = scene.run(scene.gateway.ask(method, target, headers=given, body=body))
    return answer


def raw(scene: Scene, data: bytes) -> Answer:
    """The answer to exactly these bytes; one to an unfinished request ends the connection."""

    async def body() -> Answer:
        async with await scene.gateway.client() as client:
            await client.send(data)
            answer = await client.answer()
            if answer.header("connection") == "close":
                assert await client.rest() == b""
            return answer

    answer: Answer = scene.run(body())
    return answer


def test_a_head_above_its_cap_is_431_whether_or_not_it_ends(scene: Scene) -> None:
    long = ("X-Long", "x" * 5000)
    for data in (
        request_bytes("POST", CHAT, headers=headers(KEY, long), body=chat_body()),
        request_bytes("POST", CHAT, headers=headers(KEY, long))[:-2],
        request_bytes("GET", "/" + "x" * 5000),
    ):
        answer = raw(scene, data)
        assert answer.header("connection") == "close"
        assert (answer.status, code(answer)) == (431, "gateway.header_too_large")


def test_a_body_above_its_cap_is_413_before_it_has_arrived_or_is_decoded(scene: Scene) -> None:
    big = b"\xff" * 20_001  # no JSON: whoever decoded it would say 400
    chunked = headers(KEY, ("Transfer-Encoding", "chunked"))
    announced = headers(KEY, ("Content-Length", "20001"))
    whole = request_bytes("POST", CHAT, headers=headers(), body=big)
    for data in (
        whole,
        request_bytes("POST", CHAT, headers=announced),
        request_bytes("POST", CHAT, headers=chunked) + b"%x\r\n" % len(big) + big,
    ):
        answer = raw(scene, data)
        assert (answer.status, code(answer)) == (413, "gateway.body_too_large")
        closes = answer.header("connection") == "close"
        assert closes is (data != whole)
    answer = ask(scene, "POST", "/mcp", headers(), call_body("x", text="x" * 10_000))
    assert answer.status == 413
    assert json.loads(answer.body)["jsonrpc"] == "2.0"


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("Content-Type", "text/plain")],
        [("Content-Type", "application/x-www-form-urlencoded")],
        [("Content-Type", "application/json; charset=latin-1")],
        [JSON, ("Content-Encoding", "gzip")],
    ],
    ids=str,
)
def test_other_media_types_and_codings_are_415(scene: Scene, given: list[tuple[str, str]]) -> None:
    body = gzip.compress(chat_body()) if len(given) > 1 else chat_body()
    answer = ask(scene, "POST", CHAT, [AUTHORIZED, *given], body)
    assert (answer.status, code(answer)) == (415, "gateway.unsupported_media_type")


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_one_unambiguous_json_object_is_400(scene: Scene, name: str) -> None:
    answer = ask(
        scene,
        "POST",
        CHAT,
        [*headers(), ("Content-Length", str(len(NOT_JSON[name])))],
        NOT_JSON[name],
    )
    assert (answer.status, code(answer)) == (400, "gateway.invalid_request")


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_field_we_act_on_is_named_when_it_is_wrong(scene: Scene, name: str) -> None:
    answer = ask(scene, "POST", CHAT, headers(), BAD_FIELDS[name])
    assert (answer.status, code(answer)) == (400, "gateway.invalid_request")
    assert json.loads(answer.body)["error"]["param"] == name


def test_unknown_paths_are_404_and_other_methods_405_in_the_envelope(scene: Scene) -> None:
    for target in ("/", "/v1/completions", "/v1/chat/completions/", "/v1/chat%2Fcompletions"):
        answer = ask(scene, "POST", target, headers(), chat_body())
        assert (answer.status, code(answer)) == (404, "gateway.not_found")
    for method in ("GET", "PUT", "DELETE"):
        answer = ask(scene, method, CHAT, headers(), b"")
        assert (answer.status, code(answer)) == (405, "gateway.method_not_allowed")
        assert answer.header("allow") == "POST"


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer wrong")],
        [("Authorization", f"Basic {KEY}")],
        [("Authorization", KEY)],
        [AUTHORIZED, ("Authorization", "Bearer wrong")],
        [("X-Api-Key", KEY)],
    ],
    ids=lambda given: given[-1][1].split(" ")[0] + str(len(given)) if given else "none",
)
def test_no_key_or_not_exactly_one_good_key_is_401(
    scene: Scene, given: list[tuple[str, str]]
) -> None:
    answer = ask(scene, "POST", CHAT, [JSON, *given], chat_body())
    assert (answer.status, code(answer)) == (401, "gateway.unauthenticated")
    assert answer.header("www-authenticate") == "Bearer"
    answer = ask(scene, "POST", "/mcp", [JSON, *given], call_body("x"))
    assert answer.status == 401
    assert json.loads(answer.body)["id"] is None


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("Host", "evil.example"), 421),
        (("Host", "evil.example:80"), 421),
        (("Host", "127.0.0.1.evil.example"), 421),
        (("Origin", "http://evil.example"), 403),
        (("Origin", "null"), 403),
        (("Origin", "http://localhost.evil.example"), 403),
    ],
    ids=str,
)
def test_foreign_hosts_and_origins_are_refused_on_both_listeners(
    scene: Scene, given: tuple[str, str], status: int
) -> None:
    answer = ask(scene, "POST", CHAT, [*headers(), given], chat_body())
    assert (answer.status, answer.header("access-control-allow-origin")) == (status, None)
    code(answer)
    for target in ("/readyz", "/metrics"):
        answer = scene.run(scene.gateway.admin(target, headers=[given]))
        assert answer.status == status
        code(answer)


def test_the_second_listener_answers_its_three_paths_only(scene: Scene) -> None:
    for target, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 200), (CHAT, 404)):
        answer = scene.run(scene.gateway.admin(target))
        assert answer.status == status
        assert len(request_id(answer)) == 32


@pytest.mark.full
def test_half_a_head_and_half_a_body_are_cut_by_their_timers(scene: Scene) -> None:
    whole = request_bytes("POST", CHAT, headers=headers(), body=chat_body())

    async def cut(data: bytes) -> bytes:
        async with await scene.gateway.client() as client:
            await client.send(data)
            return await client.rest()

    async def body() -> None:
        silent, *halves = await asyncio.gather(cut(b""), cut(whole[:20]), cut(whole[:-5]))
        assert silent == b""
        for answer in halves:
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b'"code":"gateway.invalid_request"' in answer
            assert b"connection: close\r\n" in answer

    scene.run(body())
