"""Errors come in many shapes; what is none of the dialect and no error is nobody's event."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.providers.base import Glance
from tidegate.providers.openai import glance, glance_completion
from tidegate.providers.strangers import stranger
from tidegate.routing.outcome import Outcome

ERRORS: dict[str, tuple[object, Outcome]] = {
    "FastAPI": ({"detail": "at canary"}, Outcome.SERVER_ERROR),
    "FastAPI, invalid": (
        {"detail": [{"loc": ["body"], "msg": "field required"}]},
        Outcome.SERVER_ERROR,
    ),
    "a list of errors": ({"errors": [{"message": "x"}]}, Outcome.SERVER_ERROR),
    "an API manager": ({"fault": {"faultstring": "quota"}}, Outcome.SERVER_ERROR),
    "a code and a message": ({"error_code": "X1", "message": "x"}, Outcome.SERVER_ERROR),
    "a type": ({"type": "error", "message": "x"}, Outcome.SERVER_ERROR),
    "a type of exception": ({"__type": "ThrottlingException", "x": 1}, Outcome.RATE_LIMITED),
    "only a message": ({"message": "Internal Server Error"}, Outcome.SERVER_ERROR),
    "in capitals": ({"Message": "denied"}, Outcome.SERVER_ERROR),
    "a trace": ({"traceback": "File x"}, Outcome.SERVER_ERROR),
    "a problem document": ({"title": "Bad Gateway", "status": 502}, Outcome.SERVER_ERROR),
    "a throttled problem": ({"title": "Slow down", "status": 429}, Outcome.RATE_LIMITED),
    "no credit": (
        {"type": "error", "code": "insufficient_quota", "message": "x"},
        Outcome.QUOTA,
    ),
    "too long": (
        {"code": "context_length_exceeded", "message": "x"},
        Outcome.CONTEXT,
    ),
    "response.failed": (
        {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}},
        Outcome.RATE_LIMITED,
    ),
    "response.failed without a reason": (
        {"type": "response.failed", "response": {"error": None}},
        Outcome.SERVER_ERROR,
    ),
    "with empty choices": ({"choices": [], "message": "x"}, Outcome.SERVER_ERROR),
}
FOREIGN: tuple[object, ...] = (
    {},
    {"type": "ping"},
    {"type": "message_start", "message": {"role": "assistant", "content": []}},
    {"type": "response.created", "response": {"id": "r", "error": None}},
    {"type": "content_block_delta", "delta": {"text": "x"}},
    {"choices": None, "id": "c1"},
    {"message": {}, "detail": None, "errors": []},
    {"metadata": {"error": "x"}},
)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_anybodys_words_is_an_error(name: str) -> None:
    value, outcome = ERRORS[name]
    assert glance(json.dumps(value).encode()) == Glance(error=outcome)


@pytest.mark.parametrize("value", FOREIGN)
def test_what_is_none_of_the_dialect_and_no_error_is_foreign(value: object) -> None:
    assert glance(json.dumps(value).encode()) == Glance(foreign=True)


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [], "prompt_filter_results": [{"content_filter_results": {}}]},
        {"choices": [], "id": "", "object": "", "model": ""},
    ],
)
def test_an_event_with_an_empty_list_of_choices_is_of_the_dialect(value: object) -> None:
    assert glance(json.dumps(value).encode()) == Glance()


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"delta": {"content": "x"}}], "message": "x", "detail": "y"},
        {"choices": [], "usage": {"prompt_tokens": 1}, "message": "x"},
    ],
)
def test_beside_choices_or_usage_such_a_member_is_only_unknown(value: object) -> None:
    found = glance(json.dumps(value).encode())
    assert (found.error, found.foreign) == (None, False)


@pytest.mark.parametrize("reason", [None, "stop", "error"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"message": "at canary", "code": 502}, Outcome.SERVER_ERROR),
        ({"code": 429, "message": "x"}, Outcome.RATE_LIMITED),
        ("overloaded", Outcome.SERVER_ERROR),
    ],
)
def test_an_error_inside_a_choice_is_one(
    error: object, outcome: Outcome, reason: str | None
) -> None:
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": reason, "error": error}
    assert glance(json.dumps({"choices": [choice]}).encode()) == Glance(error=outcome)
    whole = {"index": 0, "message": {"content": "x"}, "finish_reason": reason, "error": error}
    assert glance_completion(json.dumps({"choices": [whole]}).encode()) is outcome


@pytest.mark.parametrize("name", ["error", "Error", "ERROR", "exception", "Exception"])
def test_an_event_whose_name_says_error_is_one(name: str) -> None:
    assert glance(b'{"choices":[{"delta":{"content":"x"}}]}', event=name).error is not None
    assert glance(b"not json", event=name) == Glance(error=Outcome.SERVER_ERROR)


@given(st.binary(max_size=40))
def test_reading_a_stranger_never_raises(data: bytes) -> None:
    stranger(data)
