"""What a target sets is in every request it gets, and the rest keeps its bytes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.providers.test_splice import bodies, leaves
from tidegate.providers.overrides import as_sent, overridden
from tidegate.providers.splice import with_members

pytestmark = pytest.mark.full

NAMES = ("temperature", "max_tokens", "max_completion_tokens", "seed", "user", "model")


@pytest.mark.parametrize(
    ("body", "parameters", "sent"),
    [
        (b'{"a": 1}', {}, b'{"a": 1}'),
        (b'{"a": 1}', {"temperature": 0.2}, b'{"temperature":0.2,"a": 1}'),
        (
            b'{ "temperature" : 1e2 , "a":1}',
            {"temperature": 0.2},
            b'{ "temperature" : 0.2 , "a":1}',
        ),
        (b'{"a":{"seed":1},"seed":2}', {"seed": 7}, b'{"a":{"seed":1},"seed":7}'),
        (b'{"seed":2,"x":[1e400]}', {"seed": None}, b'{"x":[1e400]}'),
        (b"{}", {"seed": 1, "user": "u"}, b'{"seed":1,"user":"u"}'),
        # Both names of the one limit: the operator's name, the operator's figure.
        (b'{"max_tokens":9,"a":1}', {"max_tokens": 5}, b'{"max_tokens":5,"a":1}'),
        (
            b'{"max_tokens":9,"a":1}',
            {"max_completion_tokens": 5},
            b'{"max_completion_tokens":5,"a":1}',
        ),
        (b'{"max_completion_tokens":9}', {"max_tokens": 5}, b'{"max_tokens":5}'),
        (
            b'{"max_completion_tokens":9,"max_tokens":8}',
            {"max_tokens": 5, "max_completion_tokens": 6},
            b'{"max_completion_tokens":6,"max_tokens":5}',
        ),
        (
            b'{"max_tokens":9}',
            {"max_tokens": None, "max_completion_tokens": 4},
            b'{"max_completion_tokens":4}',
        ),
        # No limit at all, under either name.
        (b'{"max_tokens":9,"max_completion_tokens":8,"a":1}', {"max_tokens": None}, b'{"a":1}'),
    ],
)
def test_each_parameter_replaces_adds_or_takes_out_its_member(
    body: bytes, parameters: dict[str, object], sent: bytes
) -> None:
    assert overridden(body, parameters) == sent


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), leaves, max_size=6),
    st.dictionaries(
        st.sampled_from(NAMES), st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    ),
)
def test_the_bytes_sent_are_the_document_that_is_estimated(
    document: dict[str, object], parameters: dict[str, object]
) -> None:
    body = json.dumps(document, indent=1).encode("utf-8", "surrogatepass")
    sent = json.loads(overridden(body, parameters))
    assert sent == as_sent(document, parameters)
    assert all(sent[n] == v for n, v in parameters.items() if v is not None)
    assert not any(n in sent for n, v in parameters.items() if v is None)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(bodies())
def test_one_of_several_members_is_replaced_in_place(pieces: tuple[str, str, str]) -> None:
    before, old, after = (piece.encode("utf-8", "surrogatepass") for piece in pieces)
    changed = with_members(before + old + after, {"no such member": b"1", "model": b"[2]"})
    assert changed.endswith(b"[2]" + after)
    assert json.loads(changed) == {"no such member": 1} | json.loads(before + b"[2]" + after)


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match="object"):
        with_members(b"[]", {"a": b"1"})
