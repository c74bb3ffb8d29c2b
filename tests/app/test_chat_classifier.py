"""A webhook for names: answering, late, failing, absent, wrong; and what each policy does."""

import asyncio
import json
import re
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ROLE,
    STOP,
    Asked,
    Script,
    answers,
    completion,
    delta,
    event,
    fails,
    payloads,
    silent,
    streams,
    texts,
)
from tests.app.chat_world import ChatWorld, run
from tests.app.virtual import run_timeless
from tidegate.gateway.classifier import ClassifierSettings
from tidegate.gateway.masking import Masking
from tidegate.redaction import RedactionPolicy
from tidegate.routing.plan import Deadlines
from tidegate.testing.asgi import WAIT_S
from tidegate.transport.upstream import Failure

MASK = "[REDACTED_NAME]"
POLICY = RedactionPolicy.preset()
URL = "http://classifier.example/find"
ANSWER = "Ask Jane Doe. Or Jane"
SHOWN = f"Ask {MASK}. Or {MASK}"
WHOLE = answers(completion(ANSWER))
STREAM = streams(
    ROLE, *(event(delta(content=ANSWER[i : i + 4])) for i in range(0, 24, 4)), STOP, DONE
)
TIMES = Deadlines(first_token_s=2.0, idle_s=2.0, total_s=4.0, stream_total_s=4.0)


def found_in(body: bytes) -> dict[str, object]:
    """What a classifier that knows one name answers."""
    spans = [
        [
            {"start": name.start(), "end": name.end(), "kind": "NAME"}
            for name in re.finditer("Jane(?: Doe)?", text)
        ]
        for text in json.loads(body)["texts"]
    ]
    return {"spans": spans}


async def knows(asked: Asked) -> None:
    """A classifier that answers."""
    await answers(found_in(asked.body))(asked)


def world(classifier: Script | list[Script], primary: Script = STREAM, **given: Any) -> ChatWorld:
    """The chat path with a classifier; `late` and `deadline_s` are its policy."""
    settings = ClassifierSettings(
        URL, deadline_s=given.pop("deadline_s", 0.02), late=given.pop("late", "hold")
    )
    masking = Masking(POLICY, classifier=settings, **given.pop("masking", {}))
    return ChatWorld(
        primary=primary,
        classifier=classifier,
        masking=masking,
        deadlines=given.pop("deadlines", TIMES),
        **given,
    )


def calls(made: ChatWorld) -> list[dict[str, Any]]:
    """What the classifier was asked, call by call."""
    return [json.loads(a.body) for a in made.providers.asked if a.provider == "classifier"]


def text_of(body: bytes, *, stream: bool) -> str:
    """What the client reads."""
    if stream:
        return texts(body)[0]
    return str(json.loads(body)["choices"][0]["message"]["content"])


def step(made: ChatWorld, stage: str) -> Any:
    """The one step of this stage."""
    (only,) = (one for one in made.records.steps if one.stage == stage)
    return only


@pytest.mark.parametrize("late", ["hold", "release", "block"])
@pytest.mark.parametrize("stream", [False, True])
def test_names_in_an_answer_are_masked(late: str, *, stream: bool) -> None:
    async def body() -> None:
        made = world(knows, STREAM if stream else WHOLE, late=late, deadline_s=2.0)
        exchange = await made.post(stream=stream)
        assert exchange.status == 200
        assert text_of(exchange.body, stream=stream) == SHOWN
        assert stream == (b"[DONE]" in exchange.body)
        asked = [text for call in calls(made) for text in call["texts"]]
        assert asked == ["Ask Jane Doe. ", "Or Jane"]
        assert {call["direction"] for call in calls(made)} == {"response"}
        assert step(made, "redact_response").found == {"name": 2}
        assert made.metric("redactions_total", kind="name", direction="response") == 2
        assert made.metric("classifier_calls_total", result="ok") == len(calls(made))
        assert "classifier" not in made.records.stages()
        await made.assert_clean(ends=1)

    run(body())


def test_a_sentence_leaves_when_it_is_checked_and_not_only_at_the_end() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def model(asked: Asked) -> None:
            asked.head()
            asked.send(ROLE, event(delta(content="I am Jane. And ")))
            await go.wait()
            asked.send(event(delta(content="you")), STOP, DONE)
            asked.end()

        made = world(knows, model, deadline_s=2.0)
        async with made.exchange(stream=True) as exchange:
            first = await exchange.chunk()
            assert texts(first) == {0: f"I am {MASK}. "}
            go.set()
            await exchange.read()
        assert texts(exchange.body) == {0: f"I am {MASK}. And you"}
        await made.assert_clean(ends=1)

    run(body())


def test_names_in_a_prompt_are_masked_and_with_a_vault_they_come_back() -> None:
    async def body() -> None:
        async def echo(asked: Asked) -> None:
            prompt = json.loads(asked.body)["messages"][0]["content"]
            await answers(completion(f"You said: {prompt} But Jane is another."))(asked)

        masking = {"request": "enforce", "vault": True}
        made = world(knows, echo, masking=masking, deadline_s=2.0)
        prompt = "I am Jane Doe, jane@example.com."
        exchange = await made.post(messages=[{"role": "user", "content": prompt}])
        sent = next(a.body for a in made.providers.asked if a.provider == "primary")
        assert b"Jane" not in sent
        assert b"jane@" not in sent
        shown = text_of(exchange.body, stream=False)
        assert shown == f"You said: {prompt} But {MASK} is another."
        first, *rest = calls(made)
        assert first["direction"] == "request"
        # A classifier is told neither what a detector has found nor what comes back.
        assert b"jane@" not in json.dumps(first).encode()
        assert all("Doe" not in text for call in rest for text in call["texts"])
        noted = step(made, "redact_request")
        assert noted.found == {"email": 1, "name": 1}
        assert noted.values == {"unscanned": 0, "vault": 2}
        await made.assert_clean(ends=1)

    run(body())


def test_a_prompt_without_names_leaves_in_the_clients_own_bytes() -> None:
    async def body() -> None:
        made = world(knows, WHOLE, masking={"request": "enforce"}, deadline_s=2.0)
        await made.post(b'{"model": "m",  "messages": [{"role": "user", "content": "hello you"}]}')
        sent = next(a.body for a in made.providers.asked if a.provider == "primary")
        assert sent == b'{"model": "m",  "messages": [{"role": "user", "content": "hello you"}]}'
        assert "hello you" in calls(made)[0]["texts"]

    run(body())


def wrong(value: object, status: int = 200) -> Script:
    return answers(value, status)


TROUBLE: dict[str, tuple[Script, str, str]] = {
    "late": (silent, "late", "late"),
    "absent": (fails(Failure.UNREACHABLE), "failed", "unreachable"),
    "lost": (fails(Failure.RESET), "failed", "reset"),
    "500": (wrong({"spans": [[]]}, 500), "failed", "status"),
    "a redirect": (answers(b"", 302, location="http://internal.example/"), "failed", "status"),
    "no JSON": (wrong(b"<html>"), "failed", "malformed"),
    "too few lists": (wrong({"spans": []}), "failed", "malformed"),
    "beyond the text": (
        wrong({"spans": [[{"start": 0, "end": 999, "kind": "NAME"}]]}),
        "failed",
        "malformed",
    ),
    "too long": (wrong(b" " * 1_100_000), "failed", "too_large"),
}


@pytest.mark.parametrize(("script", "result", "reason"), TROUBLE.values(), ids=TROUBLE)
@pytest.mark.parametrize("stream", [False, True])
def test_released_text_leaves_unread_and_that_is_counted(
    script: Script, result: str, reason: str, *, stream: bool
) -> None:
    async def body() -> None:
        made = world(script, STREAM if stream else WHOLE, late="release")
        exchange = await made.post(stream=stream)
        assert exchange.status == 200
        assert text_of(exchange.body, stream=stream) == ANSWER
        assert made.records.outcomes == ["ok"]
        noted = step(made, "classifier")
        assert (noted.verdict, noted.values) == ("release", {"reason": reason, "mode": "response"})
        assert step(made, "redact_response").values == {"unscanned": 2, "unclassified": 2}
        assert made.metric("unscanned_total", direction="response") == 2
        assert made.metric("classifier_calls_total", result=result) == len(calls(made)) > 0
        await made.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize(("script", "result", "reason"), TROUBLE.values(), ids=TROUBLE)
@pytest.mark.parametrize("stream", [False, True])
def test_blocked_text_never_leaves(
    script: Script, result: str, reason: str, *, stream: bool
) -> None:
    async def body() -> None:
        made = world(script, STREAM if stream else WHOLE, late="block")
        exchange = await made.post(stream=stream)
        assert exchange.status == 500
        assert json.loads(exchange.body)["error"]["code"] == "gateway.redaction_failed"
        assert b"Jane" not in exchange.body
        # Our own fault is no reason to ask another target, and none to blame this one.
        assert made.providers.order.count("primary") == 1
        assert made.records.outcomes == ["gateway.redaction_failed"]
        assert step(made, "classifier").values["reason"] == reason
        assert made.metric("classifier_calls_total", result=result) == 1
        await made.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("late", ["hold", "block"])
def test_a_classifier_that_fails_in_the_middle_ends_the_stream_with_one_error(late: str) -> None:
    async def body() -> None:
        deadlines = Deadlines(first_token_s=2.0, idle_s=2.0, total_s=0.3, stream_total_s=0.3)
        made = world([knows, fails()], late=late, deadlines=deadlines)
        exchange = await made.post(stream=True)
        assert exchange.status == 200
        *before, last = payloads(exchange.body)
        assert last["error"]["code"] == "gateway.redaction_failed"
        said = "".join(c["delta"].get("content") or "" for p in before for c in p["choices"])
        assert said == f"Ask {MASK}. "
        assert b"[DONE]" not in exchange.body
        assert made.records.outcomes == ["gateway.redaction_failed"]
        await made.assert_clean(ends=1)

    run_timeless(body())


@pytest.mark.parametrize("late", ["release", "block"])
def test_a_prompt_nobody_has_read_is_sent_only_if_it_is_to_be_released(late: str) -> None:
    async def body() -> None:
        masking = {"request": "enforce", "response": "off"}
        made = world(fails(), WHOLE, late=late, masking=masking)
        exchange = await made.post(messages=[{"role": "user", "content": "I am Jane"}])
        sent = [a.body for a in made.providers.asked if a.provider == "primary"]
        assert len(sent) == (late == "release")
        assert exchange.status == (200 if late == "release" else 500)
        unread = {"unscanned": 1, "unclassified": 1} if sent else {"unscanned": 0}
        assert step(made, "redact_request").values == unread
        await made.assert_clean(ends=1)

    run(body())


def test_held_text_waits_for_a_late_answer_and_that_it_was_late_is_counted() -> None:
    async def body() -> None:
        late = asyncio.Event()

        async def slow(asked: Asked) -> None:
            await late.wait()
            await knows(asked)

        made = world(slow)
        async with made.exchange(stream=True) as exchange:
            await made.providers.until(2)
            async with asyncio.timeout(WAIT_S):
                while not made.metric("classifier_calls_total", result="late"):
                    await made.post(b"{")
            late.set()
            await exchange.read()
        assert texts(exchange.body) == {0: SHOWN}
        assert made.metric("classifier_calls_total", result="ok") == 2

    run(body())


def test_held_text_waits_until_a_failing_classifier_serves_again() -> None:
    async def body() -> None:
        made = world([fails(), wrong(b"x"), knows])
        exchange = await made.post(stream=True)
        assert texts(exchange.body) == {0: SHOWN}
        assert made.metric("classifier_calls_total", result="failed") == 2
        assert made.records.outcomes == ["ok"]
        assert step(made, "classifier").verdict == "hold"
        await made.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("script", [silent, fails()])
@pytest.mark.parametrize("stream", [False, True])
def test_held_text_waits_no_longer_than_its_request(script: Script, *, stream: bool) -> None:
    async def body() -> None:
        deadlines = Deadlines(first_token_s=2.0, idle_s=2.0, total_s=0.2, stream_total_s=0.2)
        made = world(script, STREAM if stream else WHOLE, deadlines=deadlines)
        exchange = await made.post(stream=stream)
        assert exchange.status == 500
        assert json.loads(exchange.body)["error"]["code"] == "gateway.redaction_failed"
        await made.assert_clean(ends=1)

    run_timeless(body())


@pytest.mark.parametrize("late", ["hold", "release", "block"])
def test_a_client_that_leaves_while_we_wait_takes_both_calls_with_it(late: str) -> None:
    async def body() -> None:
        made = world(silent, late=late, deadline_s=2.0)
        async with made.exchange(stream=True) as exchange:
            await made.providers.until(2)
            await exchange.disconnect()
        assert made.records.outcomes == ["cancelled"]
        await made.assert_clean(ends=1)

    run(body())


def test_our_own_end_is_told_as_such_while_we_wait() -> None:
    async def body() -> None:
        made = world(silent, deadline_s=2.0)
        async with made.exchange(stream=True) as exchange:
            await made.providers.until(2)
            made.inboxes.cut()
            await exchange.read()
        assert exchange.status == 503
        assert json.loads(exchange.body)["error"]["code"] == "gateway.overloaded"
        await made.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize(("late", "waits"), [("release", False), ("block", False), ("hold", True)])
def test_a_classifier_that_fails_again_and_again_is_left_alone(
    late: str,
    waits: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        deadlines = Deadlines(first_token_s=2.0, idle_s=2.0, total_s=0.1, stream_total_s=0.1)
        made = world(fails(), WHOLE, late=late, deadlines=deadlines)
        for _ in range(8):
            await made.post()
        skipped = made.metric("classifier_calls_total", result="skipped")
        assert (skipped == 0) == waits
        failed = made.metric("classifier_calls_total", result="failed")
        assert failed >= 8 if waits else failed == 5

    run_timeless(body())


def test_trouble_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        caplog.set_level("INFO", "tidegate.gateway.classifier")
        made = world([fails(), fails(), knows], WHOLE, late="release", deadline_s=2.0)
        for _ in range(4):
            await made.post()
        said = [record.getMessage() for record in caplog.records if "classifier" in record.name]
        assert said == ["classifier_failing", "classifier_serves_again"]
        assert "Jane" not in caplog.text

    run(body())


def test_the_counts_of_the_last_line_hold_what_the_classifier_found() -> None:
    async def body() -> None:
        made = world(knows, masking={"tail_comment": True}, deadline_s=2.0)
        exchange = await made.post(stream=True)
        assert b": guardrail redactions={'name': 2}\ndata: [DONE]" in exchange.body

    run(body())


def test_without_a_classifier_nobody_is_asked() -> None:
    async def body() -> None:
        made = ChatWorld(primary=STREAM, masking=Masking(POLICY))
        exchange = await made.post(stream=True)
        assert texts(exchange.body) == {0: ANSWER}
        assert made.providers.order == ["primary"]

    run(body())
