"""What a tenant knows, what words announce, and what only the client may see again."""

import json
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    ROLE,
    STOP,
    Asked,
    answers,
    completion,
    delta,
    event,
    streams,
    texts,
)
from tests.app.chat_world import ChatWorld, run
from tidegate.gateway.masking import Masking
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.denylist import DenyList, Literals
from tidegate.redaction.tenants import TenantPolicies
from tidegate.testing.splits import split_at

POLICY = RedactionPolicy.preset()
SHARED, OWN, OTHERS = "Project Bluebird", "Zanzibar Holdings", "Quokka Ltd"


def said(text: str, cuts: list[int] | None = None) -> Any:
    """A model that streams this text, cut in these places."""
    pieces = split_at(text, cuts or list(range(0, len(text), 3)))
    return streams(ROLE, *(event(delta(content=piece)) for piece in pieces), STOP, DONE)


def listed(*literals: str) -> RedactionPolicy:
    return POLICY.with_detectors(DenyList(Literals(literals)))


def test_a_tenants_deny_list_is_masked_and_another_tenants_is_not() -> None:
    async def body() -> None:
        policies = TenantPolicies(
            listed(SHARED), {"acme": listed(SHARED, OWN), "other": listed(SHARED, OTHERS)}
        )
        masking = Masking(policies.everybody, request="enforce", policies=policies)
        text = f"{SHARED} is paid by {OWN} and by {OTHERS}."
        made = ChatWorld(primary=said(text), masking=masking)
        exchange = await made.post(stream=True, messages=[{"role": "user", "content": text}])
        mask = "[REDACTED_DENIED]"
        shown = f"{mask} is paid by {mask} and by {OTHERS}."
        assert texts(exchange.body) == {0: shown}
        sent = json.loads(made.providers.asked[0].body)
        assert sent["messages"][0]["content"] == shown
        assert made.metric("redactions_total", kind="deny_list", direction="response") == 2
        assert made.metric("redactions_total", kind="deny_list", direction="request") == 2
        await made.assert_clean(ends=1)

    run(body())


def test_what_cue_words_announce_is_masked() -> None:
    async def body() -> None:
        policy = POLICY.with_actions({"names": "mask"})
        made = ChatWorld(primary=said("Hello, my name is Jane Doe."), masking=Masking(policy))
        exchange = await made.post(stream=True)
        assert texts(exchange.body) == {0: "Hello, my name is [REDACTED_NAME]."}
        assert made.metric("redactions_total", kind="name", direction="response") == 1
        await made.assert_clean(ends=1)

    run(body())


VAULT = Masking(POLICY, request="enforce", tool_arguments="enforce", vault=True)
MAIL, OTHER = "jane@example.com", "john@example.org"


def placeholder_in(asked: Asked) -> str:
    """What the provider sees in place of the address."""
    content: str = json.loads(asked.body)["messages"][-1]["content"]
    assert MAIL not in asked.body.decode()
    return content.removeprefix("I am ")


PROMPT = [{"role": "user", "content": f"I am {MAIL}"}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_clients_own_value_comes_back_and_the_models_is_masked(*, stream: bool) -> None:
    async def body() -> None:
        async def model(asked: Asked) -> None:
            placeholder = placeholder_in(asked)
            text = f"You are {placeholder}, not {OTHER}; **{placeholder.lower()}** [EMAIL_x]"
            arguments = json.dumps({"to": placeholder, "cc": OTHER})
            calls = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]
            if stream:
                pieces = split_at(text, list(range(0, len(text), 5)))
                events = [event(delta(content=piece)) for piece in pieces]
                await streams(ROLE, *events, event(delta(tool_calls=calls)), STOP, DONE)(asked)
                return
            whole: Any = completion(text)
            whole["choices"][0]["message"]["tool_calls"] = calls
            await answers(whole)(asked)

        made = ChatWorld(primary=model, masking=VAULT)
        exchange = await made.post(stream=stream, messages=PROMPT)
        shown = f"You are {MAIL}, not [REDACTED_EMAIL]; **{MAIL}** [EMAIL_x]"
        if stream:
            assert texts(exchange.body) == {0: shown}
            assert b'\\"to\\": \\"jane@example.com\\"' in exchange.body
        else:
            message = json.loads(exchange.body)["choices"][0]["message"]
            assert message["content"] == shown
            called = json.loads(message["tool_calls"][0]["function"]["arguments"])
            assert called == {"to": MAIL, "cc": "[REDACTED_EMAIL]"}
        assert OTHER.encode() not in exchange.body
        noted = next(s for s in made.records.steps if s.stage == "redact_request")
        assert (noted.found, noted.values["vault"]) == ({"email": 1}, 1)
        await made.assert_clean(ends=1)

    run(body())


def test_two_requests_share_no_placeholder_and_restore_none_of_each_other() -> None:
    async def body() -> None:
        seen: list[str] = []

        async def model(asked: Asked) -> None:
            seen.append(placeholder_in(asked))
            await answers(completion(" ".join(seen)))(asked)

        made = ChatWorld(primary=model, masking=VAULT)
        first, second = [await made.post(messages=PROMPT) for _ in range(2)]
        texts_ = [json.loads(e.body)["choices"][0]["message"]["content"] for e in (first, second)]
        assert texts_ == [MAIL, f"{seen[0]} {MAIL}"]
        assert seen[0] != seen[1]

    run(body())


def test_the_target_that_answers_after_a_failover_gets_the_same_placeholder() -> None:
    async def body() -> None:
        async def model(asked: Asked) -> None:
            await answers(completion(f"Hi {placeholder_in(asked)}"))(asked)

        made = ChatWorld(primary=answers(b"", 500), backup=model, masking=VAULT)
        exchange = await made.post(messages=PROMPT)
        assert json.loads(exchange.body)["choices"][0]["message"]["content"] == f"Hi {MAIL}"
        first, second = made.providers.asked
        assert first.body == second.body

    run(body())


def test_a_value_in_the_vault_is_in_no_record_log_or_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        async def model(asked: Asked) -> None:
            asked.head()
            asked.send(ROLE, event(delta(content=f"Hi {placeholder_in(asked)}, ")))
            asked.send(event(delta(content=placeholder_in(asked)[:9])))
            asked.end()

        made = ChatWorld(primary=model, masking=VAULT)
        exchange = await made.post(stream=True, messages=PROMPT)
        assert texts(exchange.body.split(b'data: {"error"')[0]) == {0: f"Hi {MAIL}, "}
        kept = json.dumps(made.records.ends[-1].snapshot().body(b"k" * 32))
        told = kept + caplog.text + made.metrics.render()[1].decode()
        assert MAIL not in told
        assert placeholder_in(made.providers.asked[0]) not in told
        assert made.records.outcomes == ["gateway.upstream_interrupted"]

    run(body())


@pytest.mark.parametrize("field", ["logprobs", "top_logprobs"])
def test_a_request_for_log_probabilities_is_refused_before_anybody_is_asked(field: str) -> None:
    async def body() -> None:
        made = ChatWorld(primary=said("hi"), masking=Masking(POLICY, logprobs="refuse"))
        exchange = await made.post(**{field: 5 if field == "top_logprobs" else True})
        assert exchange.status == 400
        error = json.loads(exchange.body)["error"]
        assert (error["code"], error["param"]) == ("gateway.invalid_request", field)
        assert made.providers.asked == []
        await made.assert_clean(ends=1)

    run(body())


def test_text_after_a_finish_reason_passes_where_we_only_detect() -> None:
    async def body() -> None:
        late = event(delta(content=f"late {MAIL} "))
        made = ChatWorld(
            primary=streams(ROLE, event(delta(content="Hi ")), STOP, late, DONE),
            masking=Masking(POLICY, response="detect"),
        )
        exchange = await made.post(stream=True)
        assert texts(exchange.body) == {0: f"Hi late {MAIL} "}
        assert made.records.outcomes == ["ok"]
        assert made.metric("unscanned_total", direction="response") == 1

    run(body())
