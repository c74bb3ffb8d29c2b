"""What happens before a provider is asked, and in which order."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import answers, completion
from tests.app.chat_world import (
    KEY,
    MASKED,
    PATH,
    ChatWorld,
    Records,
    request,
    run,
)
from tests.app.test_front import JSON, KEYED, error_of
from tidegate.errors import StoreUnavailable
from tidegate.limits import MemoryLedger
from tidegate.limits.ledger import Limit
from tidegate.routing.plan import RouteTable

HELLO = answers(completion("hello"))
NO_KEYS: list[list[tuple[str, str]]] = [
    [],
    [("authorization", "Bearer wrong")],
    [("authorization", "Basic eDp5")],
    [("authorization", "Bearer ")],
    [("authorization", "")],
    [("authorization", KEY)],
    [("authorization", f"Bearer {KEY} ")],
    [("authorization", f"Bearer {KEY}x")],
    [KEYED, KEYED],
    [("x-api-key", KEY)],
]


def test_no_key_wrong_key_and_odd_key_get_one_answer_without_the_body_being_read() -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        bodies = set()
        for headers in NO_KEYS:
            # An open body, larger than the cap and no JSON: nobody may look at it.
            more = [("content-type", "text/plain"), ("content-length", "99999999999")]
            async with world.client.exchange(
                "POST", PATH, headers=headers + more, body=None
            ) as one:
                await one.read()
            assert one.status == 401
            assert one.header("www-authenticate") == "Bearer"
            error = error_of(one)
            assert error["code"] == "gateway.unauthenticated"
            bodies.add(one.body.replace(error["request_id"].encode(), b""))
        assert len(bodies) == 1
        assert KEY.encode() not in bodies.pop()
        assert world.records.begun == []
        assert world.providers.asked == []
        assert world.metric("refused_total", code="gateway.unauthenticated") == len(NO_KEYS)

    run(body())


TYPES = [
    None,
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=latin1",
]


@pytest.mark.parametrize("kind", TYPES)
def test_another_media_type_is_415(kind: str | None) -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        headers = [KEYED] if kind is None else [KEYED, ("content-type", kind)]
        async with world.client.exchange("POST", PATH, headers=headers, body=None) as exchange:
            await exchange.read()
        assert exchange.status == 415
        assert error_of(exchange)["code"] == "gateway.unsupported_media_type"
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("length", ["1001", "9" * 19, "9" * 5000])
def test_a_body_announced_too_large_is_413_before_it_is_read(length: str) -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO, max_body_bytes=1000)
        headers = [KEYED, JSON, ("content-length", length)]
        async with world.client.exchange("POST", PATH, headers=headers, body=None) as exchange:
            await exchange.read()
        assert exchange.status == 413
        assert error_of(exchange)["code"] == "gateway.body_too_large"
        await world.assert_clean(ends=1)

    run(body())


def test_a_body_that_grows_too_large_is_413_before_it_is_decoded() -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO, max_body_bytes=1000)
        async with world.client.exchange(
            "POST", PATH, headers=[KEYED, JSON], body=None
        ) as exchange:
            exchange.feed(b"{{{" * 300)
            exchange.feed(b"{" * 101)
            await exchange.read()
        assert exchange.status == 413
        assert error_of(exchange)["code"] == "gateway.body_too_large"
        exact = request(pad="").replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * 907))
        assert len(exact) == 1000
        assert (await world.post(exact)).status == 200
        assert (await world.post(exact.replace(b"xx", b"xxx", 1))).status == 413
        await world.assert_clean(ends=3)

    run(body())


GOOD = request()
MALFORMED = {
    "empty": b"",
    "cut": GOOD[:-1],
    "more after it": GOOD + b"{}",
    "duplicate key": GOOD.replace(b"{", b'{"model": "other", ', 1),
    "nested duplicate": GOOD.replace(b'"role"', b'"role": "x", "role"'),
    "escaped duplicate": GOOD.replace(b"{", b'{"mode\\u006c": "other", ', 1),
    "utf-16": GOOD.decode().encode("utf-16"),
    "utf-16 without a mark": GOOD.decode().encode("utf-16-le"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "NaN": GOOD.replace(b"100", b"NaN"),
    "Infinity": GOOD.replace(b"100", b"-Infinity"),
    "1e999": GOOD.replace(b"100", b"1e999"),
    "not UTF-8": GOOD.replace(b"hi", b"\xff"),
    "half a surrogate pair": GOOD.replace(b"hi", b"\\ud83d"),
    "too deep": GOOD.replace(b"100", b"[" * 65 + b"]" * 65),
    "a list": b"[]",
    "a string": b'"hi"',
    "null": b"null",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_one_unambiguous_object_is_400(data: bytes) -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        exchange = await world.post(data)
        assert exchange.status == 400
        error = error_of(exchange)
        assert (error["type"], error["code"]) == (
            "invalid_request_error",
            "gateway.invalid_request",
        )
        assert "param" not in error
        assert exchange.header("x-should-retry") == "false"
        assert world.providers.asked == []
        assert (await world.usage()).used == 0
        await world.assert_clean(ends=1)

    run(body())


WRONG: list[tuple[str, object]] = [
    *(("model", value) for value in (1, "", [], {"name": "m"}, True)),
    *(("stream", value) for value in ("true", 1, 0, [], {})),
    *(("messages", value) for value in (None, "hi", {}, [], 1)),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_field_of_the_wrong_type_is_400_and_named(field: str, value: object) -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        exchange = await world.post(**{field: value})
        assert exchange.status == 400
        error = error_of(exchange)
        assert (error["code"], error["param"]) == ("gateway.invalid_request", field)
        assert world.providers.asked == []
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("fields", [{"model": None}, {"stream": False}, {"stream": None}])
def test_what_may_be_missing_may_be_missing(fields: dict[str, Any]) -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        assert (await world.post(**fields)).status == 200
        null = json.dumps({"messages": [{}], **dict.fromkeys(fields)}).encode()
        assert (await world.post(null)).status == 200

    run(body())


class Watched(MemoryLedger):
    """A ledger that tells in which order it is asked."""

    def __init__(self, clock: Any, said: list[str]) -> None:
        super().__init__(clock)
        self.said = said

    async def reserve(self, *args: Any, **kwargs: Any) -> Any:
        self.said.append("reserve")
        return await super().reserve(*args, **kwargs)

    async def settle(self, *args: Any, **kwargs: Any) -> bool:
        self.said.append("settle")
        return await super().settle(*args, **kwargs)


class Ordered(Records):
    """Records that tell in which order they are kept."""

    said: list[str]

    def begin(self, trail: Any) -> None:
        self.said.append("begin")
        super().begin(trail)

    def end(self, trail: Any) -> None:
        self.said.append("end")
        super().end(trail)


def test_the_stages_come_in_the_order_of_the_path() -> None:
    async def body() -> None:
        said: list[str] = []

        async def told(asked: Any) -> None:
            said.append("upstream")
            await answers(completion("mail jane@example.com"))(asked)

        world = ChatWorld(primary=told, masking=MASKED)
        world.charging._ledger = Watched(world.clock, said)
        world.records = Ordered()
        world.records.said = said  # type: ignore[attr-defined]
        world.chat._accounting.recorder = world.records  # type: ignore[assignment]
        exchange = await world.post()
        assert exchange.status == 200
        assert said == ["begin", "reserve", "upstream", "settle", "end"]
        assert world.records.stages() == [
            "identity",
            "route",
            "limits",
            "redact_request",
            "redact_response",
            "attempt",
            "limits",
        ]
        settled = world.records.steps[-1]
        assert settled.values.items() >= {"input_tokens": 12, "output_tokens": 31}.items()
        assert world.records.steps[4].found == {"email": 1}

    run(body())


class Down(MemoryLedger):
    """A store that does not answer."""

    async def reserve(self, *args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailable("timeout")


def test_without_a_ledger_nothing_is_asked_of_a_provider() -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        world.charging._ledger = Down(world.clock)
        exchange = await world.post()
        assert exchange.status == 503
        assert error_of(exchange)["code"] == "gateway.store_unavailable"
        assert exchange.header("retry-after") == "1"
        assert world.providers.asked == []
        assert world.records.outcomes == ["gateway.store_unavailable"]

    run(body())


def test_over_a_limit_now_is_429_and_beyond_it_for_ever_is_413() -> None:
    async def body() -> None:
        small = Limit("small", "tokens", 200)
        world = ChatWorld(primary=HELLO, limits=[small])
        assert (await world.post(max_tokens=120)).status == 200
        later = await world.post(max_tokens=170)
        assert later.status == 429
        error = error_of(later)
        assert (error["type"], error["code"]) == ("rate_limit_error", "gateway.rate_limited")
        assert "small" in error["message"]
        assert 0 < int(later.header("retry-after") or 0) <= 61
        never = await world.post(max_tokens=1000)
        assert never.status == 413
        assert error_of(never)["code"] == "gateway.request_exceeds_limit"
        assert never.header("retry-after") is None
        assert never.header("x-should-retry") == "false"
        assert len(world.providers.asked) == 1
        assert world.metric("limit_rejections_total", tenant="acme", limit="small") == 2
        over = ["gateway.rate_limited", "gateway.request_exceeds_limit"]
        assert world.records.outcomes == ["ok", *over]
        await world.charging.drain(5)
        assert world.charging.settled == 1

    run(body())


def test_a_slot_is_held_until_the_answer_ends_and_is_free_for_the_very_next_request() -> None:
    async def body() -> None:
        one = Limit("one", "concurrent", 1)
        world = ChatWorld(primary=HELLO, limits=[one])
        for _ in range(20):
            async with world.exchange() as exchange:
                assert (await world.post()).status == 429
                # The next request comes in the moment the last byte is there.
                while not exchange.body:
                    await exchange.chunk()
                assert (await world.post()).status == 200

    run(body())


def test_a_model_without_a_route_and_a_route_for_others_are_told_apart() -> None:
    async def body() -> None:
        world = ChatWorld(primary=HELLO)
        routes = [
            replace(world.route, model="m-*"),
            replace(world.route, model="vip", roles=("vip",)),
        ]
        world.policy = replace(world.policy, routes=RouteTable(routes))
        unknown = await world.post(model="nope")
        assert (unknown.status, error_of(unknown)["param"]) == (400, "model")
        forbidden = await world.post(model="vip")
        assert (forbidden.status, error_of(forbidden)["code"]) == (403, "gateway.forbidden")
        assert (await world.post(model="m-1")).status == 200
        refused = ["gateway.invalid_request", "gateway.forbidden"]
        assert world.records.outcomes == [*refused, "ok"]
        assert world.metric("requests_total", route="default", outcome="ok") == 1

    run(body())
