"""When does an answer begin to leave, and what happens to a fault before and after that?"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    BANG,
    CANARY,
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Asked,
    Script,
    answers,
    completion,
    delta,
    event,
    fails,
    payloads,
    streams,
    texts,
)
from tests.app.chat_world import MASKED, ChatWorld, run
from tests.app.test_front import error_of
from tidegate.routing.breaker import BreakerSettings, State
from tidegate.routing.plan import RouteTable
from tidegate.transport.upstream import Failure

COMMENT = b": keep-alive\n\n"
BACKUP = streams(ROLE + event(delta(content="from backup")) + STOP + DONE)
BACKUP_WHOLE = answers(completion("from backup"))

NO_STREAM: dict[str, tuple[Script, str]] = {
    "error event first": (streams(ERROR, hangs=True), "server_error"),
    "error after the role": (streams(ROLE, ERROR, hangs=True), "server_error"),
    "error named by its event": (streams(b"event: error\ndata: {}\n\n"), "server_error"),
    "no event at all": (streams(), "interrupted"),
    "comments, then an error": (streams(COMMENT, COMMENT, COMMENT, ERROR), "server_error"),
    "comments only": (streams(COMMENT, COMMENT), "interrupted"),
    "role, then the end": (streams(ROLE), "interrupted"),
    "role, then a cut": (streams(ROLE, then=Failure.RESET), "unreachable"),
    "end mark only": (streams(DONE), "malformed"),
    "empty choices only": (streams(USAGE, DONE), "malformed"),
    "broken JSON": (streams(b'data: {"choices": [\n\n', hangs=True), "malformed"),
    "HTML": (answers(b"<html>x</html>", kind="text/html"), "interrupted"),
    "HTML in an event": (streams(event(b"<html>")), "malformed"),
    "an error document": (answers(ERROR_OBJECT), "server_error"),
    "a document, not a stream": (answers(completion("x")), "malformed"),
    "429": (answers(ERROR_OBJECT, 429), "rate_limited"),
    "500": (answers(ERROR_OBJECT, 500), "server_error"),
    "503 without a body": (answers(b"", 503), "server_error"),
    "302": (answers(b"", 302, location="http://internal-gw.example/v1"), "malformed"),
    "204": (answers(b"", 204), "malformed"),
    "refused": (fails(Failure.UNREACHABLE), "unreachable"),
    "reset": (fails(Failure.RESET), "unreachable"),
    "not HTTP": (fails(Failure.MALFORMED), "malformed"),
}


@pytest.mark.parametrize(("script", "outcome"), NO_STREAM.values(), ids=NO_STREAM)
@pytest.mark.parametrize("masking", [MASKED, None], ids=["masked", "off"])
def test_a_stream_that_never_began_is_answered_by_the_backup_whole(
    script: Script, outcome: str, masking: Any
) -> None:
    async def body() -> None:
        given = {} if masking is None else {"masking": masking}
        world = ChatWorld(primary=script, backup=BACKUP, **given)
        exchange = await world.post(stream=True)
        assert exchange.status == 200
        assert texts(exchange.body) == {0: "from backup"}
        assert payloads(exchange.body)[-1] == "[DONE]"
        assert exchange.body.count(b"[DONE]") == 1
        assert exchange.header("x-tidegate-provider") == "backup"
        assert exchange.header("x-tidegate-attempts") == f"primary:{outcome},backup:ok"
        assert world.providers.order == ["primary", "backup"]
        seen = exchange.body + repr(exchange.headers).encode()
        assert not any(word in seen for word in (b"canary", b"internal-gw", b"html"))
        assert world.records.outcomes == ["ok"]
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices": [], "choices": [{"index": 0, "delta": {"content": "x"}}]}',
        b'{"choices": [{"index": 0, "delta": {"content": "x", "content": "y"}}]}',
        b'{"choices": [{"index": 0, "delta": {"content": "\xff"}}]}',
    ],
)
def test_an_event_that_two_readers_read_differently_is_no_answer_where_it_must_be_read(
    data: bytes,
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=streams(event(data) + STOP), backup=BACKUP, masking=MASKED)
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-attempts") == "primary:malformed,backup:ok"
        whole = b'{"choices": [{"index": 0, "message": {"content": "x", "content": "y"}}]}'
        plain = ChatWorld(primary=answers(whole), backup=BACKUP_WHOLE, masking=MASKED)
        exchange = await plain.post()
        assert exchange.header("x-tidegate-attempts") == "primary:malformed,backup:ok"

    run(body())


NO_ANSWER: dict[str, tuple[Script, str]] = {
    "empty choices": (answers({"choices": []}), "malformed"),
    "an error object": (answers(ERROR_OBJECT), "server_error"),
    "an error beside choices": (answers({**completion("x"), **ERROR_OBJECT}), "server_error"),
    "HTML": (answers(b"<html>", kind="text/html"), "malformed"),
    "HTML that says JSON": (answers(b"<html>"), "malformed"),
    "empty": (answers(b""), "malformed"),
    "an empty object": (answers({}), "malformed"),
    "cut JSON": (answers(b'{"id":"c1","choi'), "malformed"),
    "null": (answers(b"null"), "malformed"),
    "a choice without a message": (answers({"choices": [{"index": 0}]}), "malformed"),
    "429": (answers(ERROR_OBJECT, 429), "rate_limited"),
    "500": (answers(ERROR_OBJECT, 500), "server_error"),
    "302": (answers(b"", 302, location="http://internal-gw.example/v1"), "malformed"),
    "reset": (fails(Failure.RESET), "unreachable"),
}


@pytest.mark.parametrize(("script", "outcome"), NO_ANSWER.values(), ids=NO_ANSWER)
def test_a_200_that_is_none_is_answered_by_the_backup(script: Script, outcome: str) -> None:
    async def body() -> None:
        world = ChatWorld(primary=script, backup=BACKUP_WHOLE, masking=MASKED)
        exchange = await world.post()
        assert exchange.status == 200
        assert json.loads(exchange.body) == completion("from backup")
        assert exchange.header("x-tidegate-attempts") == f"primary:{outcome},backup:ok"
        assert CANARY.encode() not in exchange.body
        await world.assert_clean(ends=1)

    run(body())


def test_a_policy_stop_is_an_answer_and_passes_as_it_is() -> None:
    async def body() -> None:
        filtered = completion("")
        filtered["choices"][0]["finish_reason"] = "content_filter"  # type: ignore[index]
        world = ChatWorld(primary=answers(filtered), backup=BACKUP_WHOLE, masking=MASKED)
        assert json.loads((await world.post()).body) == filtered
        assert world.providers.order == ["primary"]

    run(body())


def test_the_head_leaves_with_the_first_content_and_not_before() -> None:
    async def body() -> None:
        seen: list[str] = []
        go = [asyncio.Event() for _ in range(3)]

        async def script(asked: Asked) -> None:
            asked.head()
            for number, piece in enumerate((ROLE + COMMENT, USAGE, HEL)):
                await go[number].wait()
                seen.append(f"sent {number}")
                asked.send(piece)
            await asked.gone.wait()

        world = ChatWorld(primary=script)
        async with world.exchange(stream=True) as exchange:
            reading = asyncio.ensure_future(exchange.chunk())
            reading.add_done_callback(lambda _: seen.append("read"))
            for gate in go:
                gate.set()
                # Everything that could happen by itself has happened when a later request,
                # which passes through the same loop, has been answered.
                await world.post(b"{")
            first = await reading
        assert seen == ["sent 0", "sent 1", "sent 2", "read"]
        # The client did not ask for usage.
        assert first == ROLE + HEL

    run(body())


AFTER: dict[str, Script] = {
    "reset": streams(ROLE, BANG, then=Failure.RESET),
    "clean end without a finish": streams(ROLE, BANG),
    "error event": streams(ROLE, BANG, ERROR, hangs=True),
    "error event, then the end mark": streams(ROLE, BANG, ERROR + DONE, hangs=True),
    "content and error in one read": streams(ROLE + BANG + ERROR + LO + STOP + DONE, hangs=True),
    "everything in one read": streams(BANG + ERROR + DONE),
    "broken JSON": streams(ROLE, BANG, b"data: {\n\n", hangs=True),
    "broken framing": streams(ROLE, BANG, then=Failure.MALFORMED),
    "half an event, then the end": streams(ROLE, BANG, b'data: {"choices": ['),
}


@pytest.mark.parametrize("script", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("masking", [MASKED, None], ids=["masked", "off"])
def test_a_stream_that_breaks_ends_with_one_error_event_and_nothing_else(
    script: Script, masking: Any
) -> None:
    async def body() -> None:
        given = {} if masking is None else {"masking": masking}
        world = ChatWorld(primary=script, backup=BACKUP, **given)
        exchange = await world.post(stream=True)
        assert exchange.status == 200
        *before, last = payloads(exchange.body)
        assert set(last) == {"error"}
        assert set(last["error"]) == {"type", "code", "message", "request_id"}
        assert last["error"]["code"] == "gateway.upstream_interrupted"
        assert last["error"]["request_id"] == exchange.header("x-request-id")
        joined = "".join(c["delta"].get("content") or "" for p in before for c in p["choices"])
        assert joined == "Hel!"
        assert all(c["finish_reason"] is None for p in before for c in p["choices"])
        assert b"[DONE]" not in exchange.body
        assert CANARY.encode() not in exchange.body
        assert world.providers.order == ["primary"]
        assert world.records.outcomes == ["gateway.upstream_interrupted"]
        used = await world.usage()
        assert 5 < used.used < 10  # the prompt and one or two tokens, not the 100 reserved
        await world.assert_clean(ends=1)

    run(body())


HELD = {
    "a card": (("Card 4111 1111 ", "1111 11"), "Card "),
    "an SSN": (("SSN 123-45-", "67"), "SSN "),
    "a key": (("key is ", "s" + "k-abc", "def"), "key is "),
    "a key of letters": (("key is AK", "IAIOSFODNN"), "key is "),
    "an address": (("mail jane.doe@exam",), "mail "),
    "a user": (("mail jane_doe7",), "mail "),
    "a word": (("Hello wor", "ld"), "Hello world"),
    "a word with its comma": (("Well,",), "Well,"),
}


@pytest.mark.parametrize(("pieces", "text"), HELD.values(), ids=HELD)
def test_what_could_be_half_a_secret_is_dropped_when_the_upstream_dies(
    pieces: tuple[str, ...], text: str
) -> None:
    async def body() -> None:
        sent = [event(delta(content=piece)) for piece in pieces]
        calls = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"p": "wor'}}]
        sent.append(event(delta(1, tool_calls=calls)))
        world = ChatWorld(primary=streams(ROLE, *sent, then=Failure.RESET), masking=MASKED)
        exchange = await world.post(stream=True)
        *before, last = payloads(exchange.body)
        assert last["error"]["code"] == "gateway.upstream_interrupted"
        joined = "".join(c["delta"].get("content") or "" for p in before for c in p["choices"])
        assert joined == text

    run(body())


def test_an_end_with_all_finish_reasons_is_whole_without_an_end_mark() -> None:
    async def body() -> None:
        world = ChatWorld(primary=streams(ROLE, HEL, LO, STOP))
        exchange = await world.post(stream=True)
        assert payloads(exchange.body)[-1] == "[DONE]"
        assert texts(exchange.body) == {0: "Hello"}
        two = ROLE + HEL + event(delta(1, content="Hal")) + STOP
        half = ChatWorld(primary=streams(two))
        broken = payloads((await half.post(stream=True, n=2)).body)[-1]
        assert broken["error"]["code"] == "gateway.upstream_interrupted"

    run(body())


def test_breaks_count_against_the_target_and_refusals_do_not() -> None:
    async def body() -> None:
        world = ChatWorld(primary=streams(ROLE, HEL), backup=BACKUP)
        for _ in range(5):
            await world.post(stream=True)
        assert world.state() is State.OPEN
        skipped = await world.post(stream=True)
        assert skipped.header("x-tidegate-attempts") == "primary:open,backup:ok"
        attempts = [s for s in world.records.steps if s.stage == "attempt"]
        assert [(s.verdict, s.values["provider"]) for s in attempts] == [
            ("open", "primary"),
            ("ok", "backup"),
        ]
        assert world.metric("attempts_total", provider="primary", result="open") == 1
        for status in (400, 403, 404, 429):
            calm = ChatWorld(primary=answers(ERROR_OBJECT, status), backup=BACKUP)
            for _ in range(10):
                await calm.post(stream=True)
            assert calm.state() is State.CLOSED

    run(body())


def test_our_refused_key_is_not_presented_again_and_again() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(ERROR_OBJECT, 401), backup=BACKUP)
        refused = await world.post(stream=True)
        assert (refused.status, world.state()) == (502, State.OPEN)
        served = await world.post(stream=True)
        assert served.header("x-tidegate-attempts") == "primary:open,backup:ok"

    run(body())


@pytest.mark.parametrize("code", ["content_filter", "rate_limit_exceeded"])
def test_a_refusal_in_the_middle_of_a_stream_is_no_break_of_its_target(code: str) -> None:
    """Or else one caller's prompts could close the target for everybody."""

    async def body() -> None:
        world = ChatWorld(primary=streams(ROLE, HEL, event({"error": {"code": code}})))
        for _ in range(10):
            cut = payloads((await world.post(stream=True)).body)[-1]
            assert cut["error"]["code"] == "gateway.upstream_interrupted"
        assert world.state() is State.CLOSED

    run(body())


def test_a_target_passed_over_after_a_failure_is_in_header_and_record() -> None:
    async def body() -> None:
        broken = answers(ERROR_OBJECT, 500)
        breaker = BreakerSettings(consecutive=1, open_s=60.0)
        world = ChatWorld(primary=broken, backup=broken, breaker=breaker)
        await world.post()
        # Both are open now; a new credential of the primary starts afresh.
        targets = (replace(world.route.targets[0], credential_id="new"), world.route.targets[1])
        routes = RouteTable([replace(world.route, targets=targets)])
        world.policy = replace(world.policy, routes=routes)
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:server_error,backup:open"
        verdicts = [s.verdict for s in world.records.steps if s.stage == "attempt"]
        assert verdicts == ["server_error", "open"]

    run(body())


LAST = {
    (400, None): (400, "gateway.upstream_rejected_request"),
    (401, None): (502, "gateway.upstream_credential"),
    (403, None): (502, "gateway.upstream_credential"),
    (422, None): (400, "gateway.upstream_rejected_request"),
    (400, "context_length_exceeded"): (400, "context_length_exceeded"),
    (400, "content_filter"): (400, "content_filter"),
    (500, None): (502, "gateway.all_providers_failed"),
    (200, None): (502, "gateway.all_providers_failed"),
}


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("last", list(LAST))
def test_the_last_word_of_the_providers_is_told_in_our_own_words(
    last: tuple[int, str | None], kind: str
) -> None:
    async def body() -> None:
        status, code = last
        bad = {"error": {"message": f"at {CANARY}", "type": "x", "code": code}}
        script = answers(bad, status, x_internal_node=CANARY, openai_organization=CANARY)
        world = ChatWorld(primary=script, backup=script)
        exchange = await world.post(stream=kind == "stream")
        assert (exchange.status, error_of(exchange)["code"]) == LAST[last]
        assert CANARY.encode() not in exchange.body + repr(exchange.headers).encode()
        assert exchange.header("x-tidegate-attempts") is not None
        fails_over = LAST[last][1] == "gateway.all_providers_failed"
        assert world.providers.order == (["primary", "backup"] if fails_over else ["primary"])
        assert (await world.usage()).used == 0
        await world.assert_clean(ends=1)

    run(body())


def test_a_status_that_has_come_decides_although_its_body_breaks_off() -> None:
    async def body() -> None:
        async def breaks(asked: Asked) -> None:
            asked.head(400, "application/json")
            asked.send(b'{"error": {"mess')
            asked.fail()

        world = ChatWorld(primary=breaks, backup=BACKUP_WHOLE)
        exchange = await world.post()
        assert (exchange.status, world.providers.order) == (400, ["primary"])
        assert error_of(exchange)["code"] == "gateway.upstream_rejected_request"

    run(body())


def test_a_refused_credential_may_try_another_one_if_the_route_says_so() -> None:
    async def body() -> None:
        world = ChatWorld(
            primary=answers(ERROR_OBJECT, 401),
            backup=BACKUP_WHOLE,
            failover_on_credential_error=True,
        )
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:credential,backup:ok"

    run(body())
