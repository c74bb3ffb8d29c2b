"""Does only what may be remembered get into an entry?"""

import hmac
import json
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tidegate.policy import Principal
from tidegate.records.entries import MAX_STEPS, Plain, Step, Trail, asked_name, canonical
from tidegate.records.step_texts import StepTexts

KEY = b"k" * 32
ACME = Principal("acme", "acme-tenant", ("tenant", "viewer"), "9f86d081")


def trail() -> Trail:
    return Trail("chat", "4f" * 16, ACME, "3fa41c22d0aa")


def written_step(made: Trail) -> dict[str, object]:
    steps = made.snapshot().body(KEY)["steps"]
    assert isinstance(steps, list)
    (step,) = steps
    assert isinstance(step, dict)
    return step


def test_the_whole_entry_of_an_ordinary_request() -> None:
    made = Trail.begin(
        "chat", "4f" * 16, ACME, "3fa41c22d0aa", headers=[(b"X-Request-Id", b"mine-1.2_3")]
    )
    made.step("route", "match", "default")
    made.step("limits", "reserved", "tokens-per-minute", tokens=9000, ratio=0.12345678)
    made.counts("redact_request", "detect", {"email": 2, "ssn": 1})
    made.step("attempt", "rate_limited", provider="primary", ms=12, credential=0)
    made.began_s = 10.0
    made.finish("ok", 200)
    assert made.snapshot(now_s=10.8125).body(KEY) == {
        "surface": "chat",
        "revision": "3fa41c22d0aa",
        "principal": "acme",
        "tenant": "acme-tenant",
        "roles": ["tenant", "viewer"],
        "key_id": "9f86d081",
        "client_request_id": "mine-1.2_3",
        "outcome": "ok",
        "status": 200,
        "duration_ms": 812.5,
        "steps": [
            {"stage": "identity", "verdict": "ok"},
            {"stage": "route", "verdict": "match", "rule": "default"},
            {
                "stage": "limits",
                "verdict": "reserved",
                "rule": "tokens-per-minute",
                "values": {"tokens": 9000, "ratio": 0.123457},
            },
            {
                "stage": "redact_request",
                "verdict": "detect",
                "found": {"email": 2, "ssn": 1},
            },
            {
                "stage": "attempt",
                "verdict": "rate_limited",
                "values": {"provider": "primary", "ms": 12, "credential": 0},
            },
        ],
    }


def test_a_request_that_has_not_ended_has_no_outcome() -> None:
    body = trail().snapshot(now_s=1.0).body(KEY)
    assert set(body) == {
        "surface", "revision", "principal", "tenant", "roles", "key_id", "steps",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([b"abc"], "abc"),
        ([b"A.b_c-1" * 18], "A.b_c-1" * 18),
        ([b"a" * 129], None),
        ([b""], None),
        ([b"a b"], None),
        ([b"a\xe9"], None),
        ([b"a;b"], None),
        ([b"a", b"a"], None),
        ([], None),
    ],
)
def test_a_callers_own_id_is_kept_if_it_is_one_well_formed_header(
    values: list[bytes], kept: str | None
) -> None:
    headers = [(b"accept", b"x"), *((b"x-request-id", value) for value in values)]
    made = Trail.begin("mcp", "4f" * 16, ACME, "r", headers=headers)
    assert made.snapshot().body(KEY).get("client_request_id") == kept


@pytest.mark.parametrize("field", ["provider", "route", "server", "limit", "detector", "store"])
def test_configured_names_are_written_as_they_are(field: str) -> None:
    made = trail()
    made.step("s", "v", **{field: "Primary.1-x_y"})
    assert written_step(made)["values"] == {field: "Primary.1-x_y"}


@pytest.mark.parametrize("field", ["text", "message", "body", "prompt_text", "url", "header"])
def test_text_under_any_other_name_is_left_out_and_counted(field: str) -> None:
    made = trail()
    made.step("s", "v", count=1, **{field: "word"})
    assert written_step(made) == {
        "stage": "s",
        "verdict": "v",
        "values": {"count": 1},
        "dropped": 1,
    }


@pytest.mark.parametrize("value", [b"bytes", ["list"], {"a": 1}, object(), 1j])
def test_values_that_are_neither_text_nor_number_are_left_out_and_counted(value: object) -> None:
    made = trail()
    made.step("s", "v", provider=value, count=value, nothing=None)
    assert written_step(made) == {"stage": "s", "verdict": "v", "dropped": 2}


class Outcome(StrEnum):
    OK = "ok"


def test_an_enum_is_its_word() -> None:
    made = trail()
    made.step(Outcome.OK, Outcome.OK, reason=Outcome.OK)
    assert canonical(written_step(made)) == (
        '{"stage":"ok","values":{"reason":"ok"},"verdict":"ok"}'
    )


NAMES = [
    "echo",
    "admin_reset_key",
    "files__read.v2",
    "tools/call",
    "getCustomerOrderHistory2",
    "gpt-4o-2024-08-06",
    "claude-sonnet-4-5-20250929",
    "llama-3.1-405b-instruct",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "notifications/cancelled",
    "file:///srv/reports",
    "tg_send_message",
    "basic_search",
    "ask-sk-8",
]
SECRETS = [
    "sk-" + "proj-abc",
    "tg_" + "a1b2c3d4e5f6g7h8",
    "ghp_" + "0123456789abcdefghij",
    "gho_" + "x",
    "xoxb-" + "1",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "eyJ" + "hbGciOi",
    "SK_" + "live_x",
    "Bearer x",
    "card-4111-1111-1111-1111",
    "c4111111111111111",
    "ssn-123-45-6789",
    "a0b1c2d3e4f5a6b7c8",
    "tool_9f86d081884c7d659a2feaa0c55ad015",
    "x" * 41,
    "bob@example.com",
    "two words",
    "1echo",
    "",
    "a" * 129,
    "ünicode",
    "a\x1b[31m",
    "a\n",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_a_client_asked_for_is_written_if_it_looks_like_one(name: str) -> None:
    made = trail()
    made.step("s", "v", tool=name, model=name, method=name, prompt=name, resource=name)
    assert written_step(made)["values"] == dict.fromkeys(
        ("tool", "model", "method", "prompt", "resource"), name
    )


@pytest.mark.parametrize("text", SECRETS)
def test_what_could_be_a_secret_in_the_place_of_a_name_becomes_a_hash(text: str) -> None:
    assert asked_name(text) is None
    made = trail()
    made.step("s", "v", tool=text)
    values = written_step(made)["values"]
    assert isinstance(values, dict)
    assert values["tool"].startswith("hash:")
    assert len(values["tool"]) == 21


def test_text_of_operands_is_hashed_under_the_key_and_numbers_and_enums_are_plain() -> None:
    made = trail()
    operands = {"amount": 600, "share": 0.5, "express": True, "region": Plain("eu"), "none": None}
    made.step("authorize", "deny", "rules[1]", operands={**operands, "name": "Alice", "list": []})
    step = written_step(made)
    assert step["operands"] == {
        "amount": 600,
        "share": 0.5,
        "express": True,
        "region": "eu",
        "none": None,
        "name": "hash:" + hmac.digest(KEY, b"Alice", "sha256").hex()[:16],
        "list": "a list",
    }
    assert made.snapshot().body(b"other key")["steps"] != [step]


def test_operands_are_taken_at_the_moment_of_the_step() -> None:
    made, operands, found = trail(), {"amount": 1}, {"email": 1}
    made.step("authorize", "allow", operands=operands)
    made.counts("redact", "detect", found)
    before = canonical(made.snapshot().body(KEY))
    operands["amount"] = found["email"] = 2
    assert canonical(made.snapshot().body(KEY)) == before


def test_a_snapshot_does_not_grow_with_its_trail() -> None:
    made = trail()
    made.step("a", "ok")
    early = made.snapshot()
    made.step("b", "ok")
    made.finish("ok", 200)
    assert (len(early.steps), early.outcome) == (1, "")
    assert (len(made.snapshot().steps), made.snapshot().outcome) == (2, "ok")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**4000])
def test_a_number_too_long_for_a_number_is_hashed(number: int) -> None:
    made = trail()
    made.step("s", "v", n=number, operands={"n": number})
    step = written_step(made)
    assert str(step["values"]).count("hash:") == str(step["operands"]).count("hash:") == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_a_word(number: float) -> None:
    made = trail()
    made.step("s", "v", n=number)
    assert written_step(made)["values"] == {"n": "not finite"}


def test_more_steps_than_an_entry_holds_show_as_overflow() -> None:
    made = trail()
    for _ in range(MAX_STEPS):
        made.step("authorize", "allow")
    assert not made.overflow
    made.counts("redact", "detect", {})
    assert made.overflow
    assert len(made.snapshot().steps) == MAX_STEPS


CANARY = "canary sentence \u2028 \ud83d\x1b[2J"
ANYTHING = (
    st.text(max_size=20).map(lambda text: f"{CANARY}{text}")
    | st.binary(max_size=8)
    | st.floats()
    | st.integers()
    | st.lists(st.text())
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["provider", "tool", "code", "text", "n"]), ANYTHING))
def test_no_sentence_gets_into_an_entry_by_any_door(values: dict[str, object]) -> None:
    text = CANARY
    made = Trail("mcp", "4f" * 16, Principal(text, text, (text,), text), text)
    made.step(text, text, text, operands={text: text, **values}, **values)
    made.counts(text, text, {text: 1})
    made.finish(text, 200)
    body = canonical(made.snapshot().body(KEY))
    assert "canary" not in body
    assert body.isprintable()
    assert json.loads(body)["principal"] == "odd-name"


def test_a_key_sent_as_the_request_id_is_not_kept() -> None:
    key = b"tenant-key-" + b"1234"
    headers = [(b"authorization", b"Bearer " + key), (b"x-request-id", key)]
    made = Trail.begin("chat", "a" * 32, ACME, "r1", headers=headers)
    assert "client_request_id" not in made.snapshot().body(KEY)


NAMES = st.sampled_from(["tool", "server", "reason", "status", "unscanned", "text", "method"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 200, 0.0, 1.0, 2**70]),
    st.sampled_from(["small", "ok", "", "4111-1111-1111-1111", "sk-" + "a1" * 20, "x" * 600]),
)
WORDS = st.sampled_from(["ok", "allow", "", "an odd word"])


@given(
    st.lists(
        st.tuples(
            WORDS,
            WORDS,
            WORDS,
            st.dictionaries(NAMES, VALUES, max_size=3),
            st.dictionaries(NAMES, VALUES, max_size=1),
            st.dictionaries(NAMES, st.integers(0, 3), max_size=1),
        ).map(lambda parts: Step(*parts)),
        max_size=12,
    )
)
@settings(max_examples=200)
def test_a_step_that_is_known_stands_in_the_file_as_one_that_is_not(steps: list[Step]) -> None:
    texts = StepTexts(KEY)
    for turn in (steps, steps[::-1], steps):
        snapshot = structs.replace(trail().snapshot(), steps=tuple(turn))
        assert texts.body(snapshot) == canonical(snapshot.body(KEY))


def test_what_may_not_be_shown_is_not_remembered_either() -> None:
    texts, made = StepTexts(KEY), trail()
    made.step("authorize", "allow", tool="4111-1111-1111-1111")
    made.step("authorize", "allow", text="some content")
    made.step("authorize", "allow", tool="small")
    texts.body(made.snapshot())
    assert "small" in str(texts._known)
    assert "4111" not in str(texts._known)
    assert "content" not in str(texts._known)
