"""What a provider's answer means: statuses, code words and phrases."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.routing.outcome import TAXONOMY, Outcome, classify
from tidegate.routing.wording import MAX_BODY_BYTES

BY_STATUS = {
    400: Outcome.REJECTED,
    401: Outcome.CREDENTIAL,
    402: Outcome.QUOTA,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    405: Outcome.REJECTED,
    407: Outcome.UNREACHABLE,
    408: Outcome.TRANSIENT,
    409: Outcome.TRANSIENT,
    410: Outcome.NOT_FOUND,
    413: Outcome.CONTEXT,
    415: Outcome.REJECTED,
    421: Outcome.UNREACHABLE,
    422: Outcome.REJECTED,
    424: Outcome.SERVER_ERROR,
    425: Outcome.TRANSIENT,
    429: Outcome.RATE_LIMITED,
    451: Outcome.REJECTED,
    498: Outcome.RATE_LIMITED,
    499: Outcome.TRANSIENT,
    **dict.fromkeys((500, 501, 502, 503, 504), Outcome.SERVER_ERROR),
    **dict.fromkeys((520, 521, 522, 523, 524, 529, 599), Outcome.SERVER_ERROR),
    **dict.fromkeys((100, 101, 200, 201, 202, 204, 206, 301, 302, 307, 308), Outcome.MALFORMED),
}
NO_WORDS = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"7",
    b"<html>no</html>",
    b'{"error": null}',
    b'{"a":',
    b"\xff\xfe",
)


@pytest.mark.parametrize(("status", "outcome"), BY_STATUS.items())
def test_a_status_without_words_has_one_outcome(status: int, outcome: Outcome) -> None:
    assert {classify(status, {}, body) for body in NO_WORDS} == {outcome}


def test_every_outcome_an_answer_can_have_is_in_the_table() -> None:
    assert set(TAXONOMY) == set(Outcome)


def error(message: str = "", **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


# One answer a line, as providers write them: status, body, and what it means.
KNOWN = [
    json.loads(line)
    for line in Path(__file__).with_name("provider_answers.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("row", KNOWN, ids=[f"{row['outcome']}: {row['from']}" for row in KNOWN])
def test_known_answers_of_providers(row: dict[str, Any]) -> None:
    assert classify(row["status"], {}, row["body"].encode()) is Outcome(row["outcome"])


def test_context_is_recognised_in_the_words_of_many_providers() -> None:
    assert sum(row["outcome"] == Outcome.CONTEXT for row in KNOWN) >= 20


@pytest.mark.parametrize(
    "phrase",
    [
        "your credit balance is too low",
        "insufficient balance",
        "incorrect api key provided",
        "your team has used all available credits",
    ],
)
def test_a_quoted_prompt_cannot_make_a_target_rest(phrase: str) -> None:
    body = error(f"Invalid value: '{phrase}'. Supported values are: 'system', 'user'.")
    assert classify(400, {}, body) is Outcome.REJECTED


def test_a_quoted_prompt_cannot_excuse_a_server_that_fails() -> None:
    body = error("failed on 'prompt is too long: maximum context length', rejected by our policy")
    assert classify(500, {}, body) is Outcome.SERVER_ERROR


def test_the_error_type_may_come_in_a_header() -> None:
    headers = {"x-amzn-errortype": "ThrottlingException:http://internal.example/"}
    assert classify(400, headers, b"{}") is Outcome.RATE_LIMITED


def test_a_body_beyond_the_bound_is_not_read() -> None:
    body = error("prompt is too long", pad="x" * MAX_BODY_BYTES)
    assert classify(400, {}, body) is Outcome.REJECTED


HOSTILE = [
    b"[" * 60_000,
    b'{"error":' * 5_000,
    b'{"error":{"message":"\\ud800"}}',
    b'{"error":{"code":' + b"9" * 5_000 + b"}}",
    b'{"error":{"code":1e400}}',
    b'{"error":{"code":true,"message":7,"type":[],"innererror":3,"details":[1,{"reason":2}]}}',
    b'{"error":{"metadata":{"raw":7}}}',
    b'{"error":[1]}',
    b"[[1]]",
    b'{"error":{"code":"' + b"a" * 1_000 + b'"}}',
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("status", [200, 400, 429, 500])
@pytest.mark.full
def test_hostile_bodies_are_classified_by_status(status: int, body: bytes) -> None:
    wanted = {BY_STATUS[status]} | ({Outcome.SERVER_ERROR} if status == 200 else set())
    assert classify(status, {}, body) in wanted


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "details", "metadata", "raw"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(100, 599), values)
def test_any_json_has_an_outcome_that_is_not_good(status: int, value: object) -> None:
    outcome = classify(status, {}, json.dumps(value).encode())
    assert outcome not in {Outcome.OK, Outcome.CANCELLED, Outcome.OPEN, Outcome.COOLING}
