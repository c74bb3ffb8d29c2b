"""What an answer used is asked for, believed as far as it is sane, and kept from who did not ask.

Entries 9, 10, 11 and 18 of the list of public bugs in accounting: BerriAI/litellm #14457, #35958,
PR #33736 (a client that leaves costs nothing), PR #30527 (a normal end taken for a leaving
client), wso2/api-platform #2932 (one token a request).
"""

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.app.chat_upstreams import DONE, Asked, Script, answers, completion, delta, event, streams
from tests.app.chat_world import LIMIT, MASKED, OFF, ChatWorld, run
from tidegate.gateway.masking import Masking
from tidegate.testing.asgi import ASGIExchange

STREAM = {"stream": True}
ASKED = {"stream": True, "stream_options": {"include_usage": True}}
WORDS = [delta(role="assistant", content="")] + [delta(content=f"word{n} ") for n in range(9)]
WORDS.append(delta(finish="stop"))


def reported(prompt: object = 12, completion: object = 31, **more: object) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


async def until(exchange: ASGIExchange, mark: bytes) -> None:
    """Read until `mark` has come; an answer that ends without it fails."""
    while mark not in exchange.body:
        assert await exchange.chunk(), exchange.body


def obliging(usage: object = None, form: str = '{}, "usage": null}}') -> Script:
    """A provider that reports usage when asked: a null in each event, an event at the end."""

    async def script(asked: Asked) -> None:
        options = json.loads(asked.body).get("stream_options") or {}
        asks = options.get("include_usage") is True
        asked.head()
        for payload in WORDS:
            text = payload.decode()
            asked.send(event((form.format(text[:-1]) if asks else text).encode()))
        if asks:
            asked.send(event({"id": "c1", "choices": [], "usage": usage or reported()}))
        asked.send(DONE)
        asked.end()

    return script


def refusing(status: int = 400) -> Script:
    """A provider that does not know the option."""

    async def script(asked: Asked) -> None:
        if b"stream_options" in asked.body:
            message = "Unrecognized request argument supplied: stream_options"
            await answers({"error": {"message": message, "type": "x"}}, status)(asked)
        else:
            await obliging()(asked)

    return script


@pytest.mark.parametrize("masking", [OFF, MASKED], ids=["off", "enforced"])
@pytest.mark.parametrize(
    "form", ['{}, "usage": null}}', '{},"usage":null}}', '{},"usage":{{"total_tokens":3}}}}']
)
def test_who_did_not_ask_gets_the_stream_that_would_have_come_without_usage(
    masking: Masking, form: str
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=obliging(form=form), masking=masking)
        exchange = await world.post(**STREAM)
        (asked,) = world.providers.asked
        assert json.loads(asked.body)["stream_options"] == {"include_usage": True}
        silent_about_it = ChatWorld(primary=streams(*map(event, WORDS), DONE), masking=masking)
        assert exchange.body == (await silent_about_it.post(**STREAM)).body
        assert b"usage" not in exchange.body
        assert (await world.usage()).used == 43
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("masking", [OFF, MASKED], ids=["off", "enforced"])
def test_who_asked_gets_usage_as_the_provider_sends_it(masking: Masking) -> None:
    async def body() -> None:
        world = ChatWorld(primary=obliging(), masking=masking)
        exchange = await world.post(**ASKED)
        sent = json.loads(world.providers.asked[0].body)
        assert sent["stream_options"] == {"include_usage": True}
        assert exchange.body.count(b'"usage": null') == len(WORDS)
        assert b'"completion_tokens": 31' in exchange.body
        assert (await world.usage()).used == 43

    run(body())


def test_a_plain_request_is_not_asked_to_report_what_it_always_reports() -> None:
    async def body() -> None:
        world = ChatWorld(primary=answers(completion("hello")))
        exchange = await world.post()
        assert b"stream_options" not in world.providers.asked[0].body
        assert json.loads(exchange.body)["usage"]["total_tokens"] == 43

    run(body())


@pytest.mark.parametrize("status", [400, 422])
def test_a_provider_that_refuses_to_report_is_asked_again_without_and_remembered(
    status: int,
) -> None:
    async def body() -> None:
        world = ChatWorld(primary=refusing(status), backup=answers(b"", 500))
        bodies = [(await world.post(**STREAM)).body for _ in range(3)]
        assert bodies == [b"".join(map(event, WORDS)) + DONE] * 3
        asked = [b"stream_options" in one.body for one in world.providers.asked]
        assert asked == [True, False, False, False]
        assert world.providers.order == ["primary"] * 4
        assert [step.verdict for step in world.records.ends[0].steps if step.stage == "usage"] == [
            "refused"
        ]
        attempts = [step for step in world.records.ends[0].steps if step.stage == "attempt"]
        assert [step.verdict for step in attempts] == ["ok"]
        assert world.state().value == "closed"
        settled = world.records.steps[-1].values
        assert settled["counted"] is True
        assert 0 < (await world.usage()).used < 3 * 100
        await world.assert_clean(ends=3)

    run(body())


def test_a_client_that_asked_hears_that_the_provider_refuses() -> None:
    async def body() -> None:
        world = ChatWorld(primary=refusing())
        assert (await world.post(**ASKED)).status == 400
        assert len(world.providers.asked) == 1

    run(body())


@pytest.mark.parametrize("options", ["yes", [1], {"include_usage": "yes"}])
def test_odd_options_are_for_the_provider_to_judge(options: object) -> None:
    async def body() -> None:
        world = ChatWorld(primary=streams(*map(event, WORDS), DONE))
        await world.post(stream=True, stream_options=options)
        assert json.loads(world.providers.asked[0].body)["stream_options"] == options

    run(body())


def test_the_price_of_asking_is_one_member_of_the_body() -> None:
    async def body() -> None:
        world = ChatWorld(primary=obliging())
        sent = b'{ "stream": true,"messages":[{"role":"user","content":"hi"}], "n":1e0 }'
        await world.post(sent)
        asked = world.providers.asked[0].body
        assert asked == b'{"stream_options":{"include_usage":true},' + sent[1:]

    run(body())


USAGE_EVENTS: dict[str, tuple[list[object], tuple[int, int]]] = {
    "late, after the finish": ([reported()], (43, 43)),
    "twice": ([reported(), reported()], (43, 43)),
    "growing, as some count along": ([reported(12, 3), reported(12, 17), reported()], (43, 43)),
    "falling": ([reported(), reported(12, 2)], (43, 43)),
    "zeros at the end": ([reported(), reported(0, 0)], (43, 43)),
    "fractions": ([reported(11.2, 30.4)], (43, 43)),
    "without the prompt": ([{"completion_tokens": 31}], (32, 40)),
    "the prompt in another report": ([reported(12, 0), {"completion_tokens": 31}], (43, 43)),
    "total alone": ([{"total_tokens": 43}], (43, 43)),
    "negative": ([reported(-5, -7)], (15, 60)),
    "beyond all reason": ([reported(10**12, 10**12, total_tokens=10**12)], (15, 60)),
    "words": ([reported("12", "31")], (15, 60)),
    "a list": ([[12, 31]], (15, 60)),
}


@pytest.mark.parametrize(("reports", "used"), USAGE_EVENTS.values(), ids=USAGE_EVENTS)
def test_reports_of_usage_are_believed_as_far_as_they_are_sane(
    reports: list[object], used: tuple[int, int]
) -> None:
    async def body() -> None:
        events = [event({"choices": [], "usage": usage}) for usage in reports]
        world = ChatWorld(primary=streams(*map(event, WORDS), *events, DONE))
        exchange = await world.post(**STREAM)
        assert exchange.body == b"".join(map(event, WORDS)) + DONE
        found = await world.usage()
        assert used[0] <= found.used <= used[1]
        assert found.overrun == 0
        await world.assert_clean(ends=1)

    run(body())


def test_usage_after_the_end_mark_changes_nothing() -> None:
    async def body() -> None:
        late = event({"choices": [], "usage": reported(500, 500)})
        world = ChatWorld(primary=streams(*map(event, WORDS), DONE + late))
        await world.post(**STREAM)
        assert (await world.usage()).used < 60

    run(body())


def test_what_remains_falls_by_what_was_used_and_not_by_one() -> None:
    """Entry 18, wso2/api-platform #2932."""

    async def body() -> None:
        usage = {"prompt_tokens": 50, "completion_tokens": 100, "total_tokens": 150}
        world = ChatWorld(primary=answers(completion("hello", usage=usage)))
        before = (await world.usage()).free
        await world.post()
        assert before - (await world.usage()).free == 150

    run(body())


def test_who_leaves_after_six_of_a_hundred_pieces_pays_for_six() -> None:
    """Entry 9, BerriAI/litellm #14457, #35958, PRs #33736, #30630, #37558."""

    async def body() -> None:
        pieces = [event(delta(content=f" token{n}")) for n in range(100)]

        async def script(asked: Asked) -> None:
            asked.head()
            asked.send(event({"choices": [], "usage": reported(20, 0)}))
            for piece in pieces[:6]:
                asked.send(piece)
            await asked.gone.wait()

        world = ChatWorld(primary=script)
        async with world.exchange(**STREAM) as exchange:
            await until(exchange, b"token5")
            await exchange.disconnect()
        found = await world.usage()
        # The prompt as reported, and at least a token for each piece, not the 100 reserved.
        assert 20 + 6 <= found.used < 60
        assert found.reserved == 0
        assert world.records.steps[-1].values["counted"] is True
        await world.assert_clean(ends=1)

    run(body())


def test_fifty_who_leave_pay_for_their_parts_and_leave_no_socket() -> None:
    """Entry 10, BerriAI/litellm #34147, PR #36008: nothing is drained, so nothing stays open."""

    async def body() -> None:
        pieces = (event(delta(content="first")), event(delta(content=" second")))
        world = ChatWorld(primary=streams(*pieces, hangs=True), limits=(LIMIT,))
        async with AsyncExitStack() as stack:
            made = [world.exchange(**STREAM, max_tokens=10) for _ in range(50)]
            for exchange in made:
                await stack.enter_async_context(exchange)
            for exchange in made:
                await until(exchange, b"second")
            assert len(world.providers.running) == 50
            for exchange in made:
                await exchange.disconnect()
        assert world.providers.running == []
        found = await world.usage()
        assert found.used == sum(
            step.values["input_tokens"] + step.values["output_tokens"]
            for trail in world.records.ends
            for step in trail.steps
            if step.verdict == "settle"
        )
        assert found.used >= 50 * 3
        assert world.charging.settled == 50
        await world.assert_clean(ends=50)

    run(body())


def test_who_leaves_with_the_whole_answer_has_not_cancelled_it() -> None:
    """Entry 11, BerriAI/litellm PR #30527."""

    async def body() -> None:
        world = ChatWorld(primary=obliging())
        async with world.exchange(**STREAM) as exchange:
            await until(exchange, DONE)
            await exchange.disconnect()
        assert world.records.outcomes == ["ok"]
        assert world.records.ends[0].snapshot().status == 200
        assert (await world.usage()).used == 43
        assert world.charging.settled == 1
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("prompt", [{}, {"prompt_tokens": "5"}, {"prompt_tokens": None}])
def test_a_prompt_without_a_figure_is_charged_as_estimated(prompt: dict[str, object]) -> None:
    async def body() -> None:
        answer = {
            "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
            "usage": {"completion_tokens": 5, **prompt},
        }
        world = ChatWorld(primary=answers(json.dumps(answer).encode()))
        exchange = await world.post()
        assert exchange.status == 200
        assert (await world.usage(LIMIT)).used > 5
        assert world.records.steps[-1].values["counted"] is True
        await world.assert_clean(ends=1)

    run(body())


def plain_in_two(first: bytes, rest: bytes) -> Any:
    """A provider that has begun its answer and waits, and the event that it has."""

    async def script(asked: Asked) -> None:
        asked.head(200, "application/json")
        asked.send(first)
        await asked.gone.wait()
        asked.send(rest)

    return script


def test_a_plain_answer_that_has_begun_costs_its_prompt_when_the_client_leaves() -> None:
    async def body() -> None:
        world = ChatWorld(primary=plain_in_two(b'{"choices":[', b""))
        text = "a longer prompt that takes a good number of tokens " * 10
        messages = [{"role": "user", "content": text}]
        async with world.exchange(messages=messages) as exchange:
            await world.providers.until(1)
            await world.post(b"{")  # by then the head has been read
            await exchange.disconnect()
        found = await world.usage()
        assert 80 < found.used < 200
        assert found.reserved == 0
        assert world.records.outcomes == ["gateway.invalid_request", "cancelled"]
        assert world.metric("abandoned_tokens_total") == 0
        await world.assert_clean(ends=2)

    run(body())


def test_a_stream_left_before_its_content_costs_the_prompt_if_that_was_reported() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.head()
            asked.send(event({"choices": [], "usage": reported(20, 0)}))
            await asked.gone.wait()

        world = ChatWorld(primary=script)
        async with world.exchange(**STREAM) as exchange:
            await world.providers.until(1)
            await world.post(b"{")
            await exchange.disconnect()
        assert (await world.usage()).used == 20

    run(body())


def test_what_passes_unread_is_counted() -> None:
    async def body() -> None:
        url = "data:image/png;base64," + "iVBORw0KGgo" * 9
        image = {"type": "image_url", "image_url": {"url": url}}
        world = ChatWorld(primary=answers(completion("hi")), masking=MASKED)
        await world.post(messages=[{"role": "user", "content": [image]}])
        assert world.metric("unscanned_total", direction="request") == 1
        step = next(s for s in world.records.steps if s.stage == "redact_request")
        assert step.values == {"unscanned": 1}

    run(body())
