"""The boundary of the first listener: who gets in, and what a fault behind it looks like."""

import json
import logging
import re
from typing import Any

import pytest

from tests.app.chat_upstreams import HELLO, answers, completion, silent, streams
from tests.app.chat_world import KEY, PATH, ChatWorld, request, run
from tidegate.errors import ContentBlocked
from tidegate.gateway.front import Path
from tidegate.testing.asgi import ASGIExchange

REQUEST_ID = re.compile(r"[0-9a-f]{32}")
JSON = ("content-type", "application/json")
KEYED = ("authorization", f"Bearer {KEY}")
OURS = ("origin", "https://app.example")


def error_of(exchange: ASGIExchange) -> dict[str, Any]:
    """The error of an answer, after the checks that hold for every error."""
    error: dict[str, Any] = json.loads(exchange.body)["error"]
    assert set(error) - {"param"} == {"type", "code", "message", "request_id"}
    assert error["request_id"] == exchange.header("x-request-id")
    assert REQUEST_ID.fullmatch(error["request_id"])
    assert exchange.header("content-type") == "application/json"
    assert exchange.header("content-length") == str(len(exchange.body))
    return error


REFUSED = [
    ("GET", PATH, [], 405, "gateway.method_not_allowed"),
    ("PUT", PATH, [], 405, "gateway.method_not_allowed"),
    ("DELETE", PATH, [KEYED], 405, "gateway.method_not_allowed"),
    ("OPTIONS", PATH, [], 405, "gateway.method_not_allowed"),
    ("OPTIONS", PATH, [OURS], 405, "gateway.method_not_allowed"),
    ("POST", "/", [KEYED], 404, "gateway.not_found"),
    ("POST", PATH + "/", [KEYED], 404, "gateway.not_found"),
    ("POST", "/%76%31/chat/completions", [], 404, "gateway.not_found"),
    ("POST", "/healthz/.." + PATH, [], 404, "gateway.not_found"),
    ("GET", "/admin/usage", [("x-original-url", "/healthz")], 404, "gateway.not_found"),
    ("POST", PATH, [("host", "evil.example")], 421, "gateway.invalid_request"),
    ("POST", PATH, [("host", "x/healthz?")], 400, "gateway.invalid_request"),
    ("POST", PATH, [("host", "x/healthz#")], 400, "gateway.invalid_request"),
    ("POST", PATH, [("host", "127.0.0.1"), ("host", "a")], 400, "gateway.invalid_request"),
    ("POST", PATH, [("host", "")], 400, "gateway.invalid_request"),
    ("POST", PATH, [KEYED, ("origin", "https://evil.example")], 403, "gateway.forbidden"),
    ("POST", PATH, [KEYED, ("origin", "null")], 403, "gateway.forbidden"),
    ("POST", PATH, [KEYED, ("origin", "http://127.0.0.1:9999")], 403, "gateway.forbidden"),
    ("POST", PATH, [KEYED, OURS, OURS], 403, "gateway.forbidden"),
]


@pytest.mark.parametrize(("method", "target", "headers", "status", "code"), REFUSED)
def test_a_request_that_may_not_come_in_is_refused_in_the_envelope(
    method: str, target: str, headers: list[tuple[str, str]], status: int, code: str
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))
        # The body stays open: whoever read it would never answer.
        exchange = world.client.exchange(method, target, headers=headers, body=None)
        async with exchange:
            await exchange.read()
        assert exchange.status == status
        assert error_of(exchange)["code"] == code
        assert exchange.header("allow") == ("POST" if status == 405 else None)
        assert world.providers.asked == []
        assert world.records.begun == []
        assert world.metric("refused_total", code=code) == 1

    run(body())


@pytest.mark.parametrize(
    "headers",
    [
        [("host", "localhost:8080")],
        [("host", "gateway.localhost")],
        [("host", "[::1]:8080")],
        [("host", "127.0.0.2")],
        [("origin", "http://127.0.0.1:8080")],
        [OURS],
    ],
)
def test_loopback_names_and_known_origins_get_in(headers: list[tuple[str, str]]) -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))
        exchange = await world.post(headers=headers)
        assert exchange.status == 200
        origin = dict(headers).get("origin")
        assert exchange.header("access-control-allow-origin") == origin
        exposed = exchange.header("access-control-expose-headers") or ""
        assert ("x-request-id" in exposed) == (origin is not None)

    run(body())


def test_a_preflight_needs_no_key_and_gets_what_it_asks_for() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))
        asked = "authorization,content-type,x-stainless-os"
        question = [
            OURS,
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", asked),
        ]
        exchange = await world.client.request("OPTIONS", PATH, headers=question)
        assert (exchange.status, exchange.body) == (204, b"")
        assert exchange.header("access-control-allow-origin") == OURS[1]
        assert "POST" in (exchange.header("access-control-allow-methods") or "")
        assert exchange.header("access-control-allow-headers") == asked
        assert exchange.header("vary") == "Origin"
        assert REQUEST_ID.fullmatch(exchange.header("x-request-id") or "")
        keyless = await world.client.request("POST", PATH, headers=[OURS, JSON])
        assert keyless.status == 401
        assert keyless.header("access-control-allow-origin") == OURS[1]
        evil = [("origin", "https://evil.example"), question[1]]
        refused = await world.client.request("OPTIONS", PATH, headers=evil)
        assert refused.status == 403
        assert refused.header("access-control-allow-origin") is None

    run(body())


def test_every_request_has_an_id_of_its_own_and_never_the_callers() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")), backup=streams(HELLO))
        theirs = ("x-request-id", "caller-1")
        seen = []
        for fields in ({}, {"stream": True}, {"stream": 1}, {"key": None}):
            exchange = await world.post(headers=[theirs], **fields)
            seen.append(exchange.header("x-request-id") or "")
            assert [name for name, _ in exchange.headers].count("x-request-id") == 1
        assert len({*seen}) == 4
        assert all(REQUEST_ID.fullmatch(one) for one in seen)
        ends = [trail.snapshot() for trail in world.records.ends]
        assert {end.client_request_id for end in ends} == {"caller-1"}
        assert {end.request_id for end in ends} == set(seen[:3])

    run(body())


def test_only_who_was_not_identified_counts_as_refused() -> None:
    async def body() -> None:
        world = ChatWorld()
        assert (await world.post(b"{")).status == 400
        assert world.metric("refused_total", code="gateway.invalid_request") == 0
        assert (await world.post(key=None)).status == 401
        assert world.metric("refused_total", code="gateway.unauthenticated") == 1
        assert world.records.outcomes == ["gateway.invalid_request"]

    run(body())


def test_ids_never_repeat_however_many_are_minted() -> None:
    async def body() -> None:
        world = ChatWorld()
        ids = set()
        for _ in range(600):
            exchange = await world.client.request("GET", "/nowhere")
            ids.add(exchange.header("x-request-id"))
        assert len(ids) == 600

    run(body())


def test_a_bug_behind_the_boundary_is_a_500_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))

        async def buggy(*_args: object) -> None:
            raise RuntimeError("text of the bug")

        world.paths[PATH.encode()] = Path(buggy)
        with caplog.at_level(logging.ERROR):
            exchange = await world.post()
        assert exchange.status == 500
        assert error_of(exchange)["code"] == "gateway.internal"
        assert b"bug" not in exchange.body
        assert world.front.in_flight == 0
        record = next(r for r in caplog.records if r.msg == "request_failed")
        assert record.__dict__["request_id"] == exchange.header("x-request-id")

    run(body())


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), ContentBlocked("email")])
def test_a_fault_after_the_head_never_sends_a_second_one(fault: Exception) -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))

        async def breaks(_scope: object, _receive: object, responder: Any) -> None:
            await responder.start_stream()
            await responder.chunk(b"data: 1\n\n")
            raise fault

        world.paths[PATH.encode()] = Path(breaks)
        async with world.exchange() as exchange:
            # ASGIExchange fails on a second head; the server cuts a body without an end.
            assert await exchange.read() == b"data: 1\n\n"
        assert exchange.status == 200
        assert world.front.in_flight == 0

    run(body())


def test_beyond_the_requests_in_flight_the_next_one_is_turned_away_with_a_time() -> None:
    async def body() -> None:
        world = ChatWorld(
            max_in_flight=2,
            primary=[silent, silent, answers(completion("hello"))],
            targets=("primary",),
        )
        async with world.exchange() as one, world.exchange() as two:
            await world.providers.until(2)
            refused = await world.post()
            assert refused.status == 503
            assert error_of(refused)["code"] == "gateway.overloaded"
            assert refused.header("retry-after") == "1"
            assert refused.header("x-should-retry") == "true"
            assert (await world.client.request("GET", "/nowhere")).status == 404
            await one.disconnect()
            assert (await world.post()).status == 200
            await two.disconnect()
        await world.assert_clean(ends=3)

    run(body())


def test_new_paths_of_a_reload_are_seen_by_the_next_request() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))
        world.paths = {b"/moved": world.paths[PATH.encode()]}
        assert (await world.post()).status == 404
        moved = await world.client.request("POST", "/moved", headers=[JSON, KEYED], body=request())
        assert moved.status == 200

    run(body())
