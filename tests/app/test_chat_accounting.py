"""Exactly one end for each request, whatever ends it, and what it says and costs."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    answers,
    completion,
    delta,
    event,
    payloads,
    silent,
    streams,
)
from tests.app.chat_world import MASKED, OFF, ChatWorld
from tests.app.test_front import error_of
from tests.app.virtual import run_timeless as run
from tidegate.gateway.masking import Masking
from tidegate.limits.ledger import Limit
from tidegate.redaction import RedactionPolicy
from tidegate.routing.plan import Deadlines
from tidegate.transport.upstream import Failure

BLOCKING = RedactionPolicy.preset().with_actions({"email": "block"})
MAIL = completion("mail jane@example.com now")
MAIL_EVENT = event(delta(content="mail jane@example.com now "))
QUICK = Deadlines(first_token_s=0.08, idle_s=0.08, total_s=2.0, stream_total_s=2.0)


@dataclass(frozen=True)
class Case:
    """One way in which a request ends. `used` is (least, most) tokens charged."""

    scripts: dict[str, Script | list[Script]]
    outcome: str
    status: int
    used: tuple[int, int] = (0, 0)
    fields: dict[str, Any] = field(default_factory=dict)
    masking: Masking = OFF
    options: dict[str, Any] = field(default_factory=dict)


STREAM = {"stream": True}
FULL = (43, 43)
COUNTED = (6, 12)  # the prompt and a word or two

CASES: dict[str, Case] = {
    "plain": Case({"primary": answers(completion("hello"))}, "ok", 200, FULL),
    "plain without usage": Case(
        {"primary": answers(completion("hello", usage=None))}, "ok", 200, COUNTED
    ),
    "stream": Case({"primary": streams(ROLE, HEL, STOP, USAGE, DONE)}, "ok", 200, FULL, STREAM),
    "stream without usage": Case(
        {"primary": streams(ROLE, HEL, LO, STOP, DONE)}, "ok", 200, COUNTED, STREAM
    ),
    "failover": Case(
        {"primary": answers(ERROR_OBJECT, 500), "backup": answers(completion("hello"))},
        "ok",
        200,
        FULL,
    ),
    "failover after a token deadline": Case(
        {"primary": silent, "backup": streams(ROLE, HEL, STOP, USAGE, DONE)},
        "ok",
        200,
        FULL,
        STREAM,
        options={"deadlines": QUICK},
    ),
    "bad request": Case({}, "gateway.invalid_request", 400, fields={"messages": 1}),
    "too large": Case({}, "gateway.body_too_large", 413, options={"max_body_bytes": 10}),
    "beyond a limit": Case(
        {}, "gateway.request_exceeds_limit", 413, options={"limits": [Limit("few", "tokens", 5)]}
    ),
    "blocked request": Case(
        {},
        "gateway.content_blocked",
        400,
        fields={"user": "jane@example.com"},
        masking=Masking(BLOCKING, request="enforce"),
    ),
    "blocked answer": Case(
        {"primary": answers(MAIL)},
        "gateway.content_blocked",
        400,
        FULL,
        masking=Masking(BLOCKING),
    ),
    "blocked stream": Case(
        {"primary": streams(ROLE, MAIL_EVENT, hangs=True)},
        "gateway.content_blocked",
        400,
        (6, 25),
        STREAM,
        masking=Masking(BLOCKING),
    ),
    "blocked in the middle": Case(
        {"primary": streams(ROLE, HEL, event(delta(content=" ")), MAIL_EVENT, hangs=True)},
        "gateway.content_blocked",
        200,
        (6, 25),
        STREAM,
        masking=Masking(BLOCKING),
    ),
    "rejected": Case(
        {"primary": answers(ERROR_OBJECT, 400)}, "gateway.upstream_rejected_request", 400
    ),
    "credential": Case({"primary": answers(b"", 401)}, "gateway.upstream_credential", 502),
    "all failed": Case(
        {"primary": answers(b"", 500), "backup": streams(ERROR)},
        "gateway.all_providers_failed",
        502,
        fields=STREAM,
    ),
    "all too late": Case(
        {"primary": silent, "backup": silent},
        "gateway.all_providers_failed",
        504,
        options={"deadlines": replace(QUICK, first_token_s=1.0, total_s=0.15)},
    ),
    "cut": Case(
        {"primary": streams(ROLE, HEL, then=Failure.RESET)},
        "gateway.upstream_interrupted",
        200,
        COUNTED,
        STREAM,
    ),
    "error event": Case(
        {"primary": streams(ROLE, HEL, ERROR, DONE)},
        "gateway.upstream_interrupted",
        200,
        COUNTED,
        STREAM,
    ),
    "idle": Case(
        {"primary": streams(ROLE, HEL, hangs=True)},
        "gateway.upstream_interrupted",
        200,
        COUNTED,
        STREAM,
        options={"deadlines": QUICK},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_end_is_recorded_counted_and_charged_exactly_once(case: Case) -> None:
    async def body() -> None:
        world = ChatWorld(masking=case.masking, **case.options, **case.scripts)
        exchange = await world.post(**case.fields)
        assert exchange.status == case.status
        assert world.records.outcomes == [case.outcome]
        end = world.records.ends[0].snapshot()
        assert (end.status, end.request_id) == (case.status, exchange.header("x-request-id"))
        assert end.steps[0].stage == "identity"
        assert world.metric("requests_total", outcome=case.outcome, tenant="acme") == 1
        assert world.metric("requests_total") == 1
        assert world.metric("refused_total") == 0
        least, most = case.used
        if "limits" not in case.options:
            assert least <= (await world.usage()).used <= most
            await world.assert_clean(ends=1)
            assert world.charging.settled == (1 if most else 0)
        assert least <= world.metric("tokens_total", tenant="acme") <= most
        settled = [step for step in end.steps if step.verdict == "settle"]
        assert len(settled) == (1 if most else 0)
        tried = world.metric("attempts_total")
        assert tried == len(world.providers.asked)
        attempts = [step for step in end.steps if step.stage == "attempt"]
        assert len(attempts) == tried
        if case.outcome == "gateway.content_blocked":
            blocks = [step for step in end.steps if step.stage == "redaction"]
            assert [block.values for block in blocks] == [{"detector": "email"}]
            # The provider did its part.
            assert [(a.verdict, a.values["status"]) for a in attempts] == [("ok", 200)] * len(
                attempts
            )
        if case.status != 200:
            assert error_of(exchange)["code"] == case.outcome
        elif case.outcome != "ok":
            assert payloads(exchange.body)[-1]["error"]["code"] == case.outcome

    run(body())


def test_a_bug_in_the_path_is_released_recorded_and_frees_its_permit() -> None:
    async def body() -> None:
        world = ChatWorld(primary=[answers(ERROR_OBJECT, 500)] * 5 + [answers(MAIL)])
        for _ in range(5):
            await world.post()
        assert world.state().value == "open"
        world = ChatWorld(primary=answers(completion("hello")))
        broken = dict(world.policy.providers)
        del broken["primary"]
        world.policy = replace(world.policy, providers=broken)
        exchange = await world.post()
        assert exchange.status == 500
        assert world.records.outcomes == ["gateway.internal"]
        assert world.metric("attempts_total", provider="primary", result="cancelled") == 1
        assert (await world.usage()).used == 0
        await world.assert_clean(ends=1)

    run(body())


def test_what_was_found_is_counted_by_direction() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(MAIL), masking=MASKED)
        messages = [{"role": "user", "content": "I am joe@example.com, 123-45-6789"}]
        assert (await world.post(messages=messages)).status == 200
        assert world.metric("redactions_total", kind="email", direction="request") == 1
        assert world.metric("redactions_total", kind="ssn", direction="request") == 1
        assert world.metric("redactions_total", kind="email", direction="response") == 1
        found = {s.stage: dict(s.found) for s in world.records.steps if s.found}
        assert found == {
            "redact_request": {"email": 1, "ssn": 1},
            "redact_response": {"email": 1},
        }
        # The product's default only looks at requests.
        assert b"joe@example.com" in world.providers.asked[0].body

    run(body())


def test_an_enforced_request_leaves_masked() -> None:
    async def body() -> None:
        masking = replace(MASKED, request="enforce")
        world = ChatWorld(primary=answers(completion("hello")), masking=masking)
        await world.post(user="joe@example.com", x_future=[1.0, 2])
        sent = world.providers.asked[0].body
        assert b"joe@example.com" not in sent
        assert b"[REDACTED_EMAIL]" in sent
        assert b'"x_future":[1.0,2]' in sent

    run(body())


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_a_redactor_that_fails_lets_nothing_out_and_blames_no_provider(kind: str) -> None:
    async def body() -> None:
        script = answers(MAIL) if kind == "plain" else streams(ROLE, MAIL_EVENT, STOP, DONE)
        world = ChatWorld(primary=script, masking=MASKED)

        class Broken:
            def __getattr__(self, name: str) -> Any:
                raise RuntimeError(f"{name} jane@example.com")

        masking = replace(MASKED, policy=Broken(), request="off")  # type: ignore[arg-type]
        world.policy = replace(world.policy, masking={"default": masking})
        exchange = await world.post(stream=kind == "stream")
        assert exchange.status == 500
        assert b"example.com" not in exchange.body
        assert world.providers.order == ["primary"]
        assert (await world.usage()).used == 0
        assert world.state().value == "closed"
        await world.assert_clean(ends=1)

    run(body())
