"""Is every value exactly one message, one batch, or refused?"""

import itertools
import json
from collections.abc import Callable

import pytest

from tidegate.errors import BodyTooLarge, InternalError, RateLimited, Unauthenticated
from tidegate.jsonrpc import (
    RESERVED,
    Batch,
    Code,
    Malformed,
    Notification,
    Request,
    Response,
    classify,
    error_body,
    error_of,
    has_oversized_integer,
    result_body,
    typed,
)

pytestmark = pytest.mark.full

CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ABSENT = object()


def without(value: dict[str, object]) -> dict[str, object]:
    return {key: item for key, item in value.items() if item is not ABSENT}


GOOD_IDS = [0, 1, -7, 10**63, 9007199254740993, "", "1", "a" * 1024, "é"]
BAD_IDS = [None, 1.5, 1.0, True, False, [], {}, [1], 10**64, -(10**64), "a" * 1025]
GOOD_PARAMS = [ABSENT, {}, {"name": "x"}, {"Anything": 1, "anything": 2}]
BAD_PARAMS = [None, [], [1], "x", 1, True]


@pytest.mark.parametrize(("id_", "params"), list(itertools.product(GOOD_IDS, GOOD_PARAMS)))
def test_a_call_with_an_id_is_a_request_and_keeps_its_id(id_: object, params: object) -> None:
    message = classify(without({**CALL, "id": id_, "params": params}))
    assert isinstance(message, Request)
    assert (type(message.id), message.id) == (type(id_), id_)
    assert message.params == (None if params is ABSENT else params)


@pytest.mark.parametrize("params", GOOD_PARAMS)
def test_a_call_without_an_id_is_a_notification(params: object) -> None:
    value = without({"jsonrpc": "2.0", "method": "x", "params": params})
    assert classify(value) == Notification("x", None if params is ABSENT else params)  # type: ignore[arg-type]


@pytest.mark.parametrize("id_", BAD_IDS)
@pytest.mark.parametrize("member", [{"method": "x"}, {"result": {}}, {"error": {}}])
def test_an_id_that_is_no_id_is_refused_without_echo(
    id_: object, member: dict[str, object]
) -> None:
    refused = classify({"jsonrpc": "2.0", "id": id_, **member})
    bounds = "a string of at most 1024 characters or an integer of at most 64 digits"
    assert refused == Malformed(f"an id must be {bounds}", None)


@pytest.mark.parametrize("params", BAD_PARAMS)
def test_params_must_be_an_object(params: object) -> None:
    refused = classify({**CALL, "params": params})
    assert refused == Malformed('the member "params" must be an object', 1)


@pytest.mark.parametrize("version", [ABSENT, None, 2, 2.0, "1.0", "2", "2.00", ["2.0"]])
def test_another_version_is_refused(version: object) -> None:
    assert isinstance(classify(without({**CALL, "jsonrpc": version})), Malformed)


@pytest.mark.parametrize("method", [None, 1, [], {}, True])
def test_a_method_must_be_a_string(method: object) -> None:
    assert isinstance(classify({**CALL, "method": method}), Malformed)


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "x", [1], ["x"], [None]])
def test_what_is_no_object_is_refused(value: object) -> None:
    assert isinstance(classify(value), Malformed)


@pytest.mark.parametrize("extra", ["result", "error", "Method", "ID", "Params", "x", "jsonRPC"])
def test_a_call_with_a_foreign_member_is_refused(extra: str) -> None:
    assert isinstance(classify({**CALL, extra: {}}), Malformed)


@pytest.mark.parametrize("members", list(itertools.product([True, False], repeat=2)))
def test_an_answer_has_a_result_or_an_error(members: tuple[bool, bool]) -> None:
    value: dict[str, object] = {"jsonrpc": "2.0", "id": "a"}
    if members[0]:
        value["result"] = None
    if members[1]:
        value["error"] = {}
    message = classify(value)
    if members[0] != members[1]:
        assert message == Response("a", value)
    else:
        assert message == Malformed("a message must have a method, a result or an error", "a")


def test_an_answer_needs_an_id_and_no_other_member() -> None:
    assert isinstance(classify({"jsonrpc": "2.0", "result": {}}), Malformed)
    assert isinstance(classify({"jsonrpc": "2.0", "id": 1, "result": {}, "x": 1}), Malformed)


DISGUISES: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "title": str.title,
    "long s": lambda name: name.replace("s", "\u017f"),
    "Kelvin": lambda name: name.replace("k", "\u212a"),
    "full width": lambda name: chr(ord(name[0]) + 0xFEE0) + name[1:],
}


@pytest.mark.parametrize("name", sorted(RESERVED))
@pytest.mark.parametrize("disguise", list(DISGUISES))
@pytest.mark.parametrize("where", [None, "_meta", "ref", "notifications"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_reserved_member_in_disguise_is_refused(
    name: str, disguise: str, where: str | None, *, beside: bool
) -> None:
    other = DISGUISES[disguise](name)
    members: dict[str, object] = {other: 1}
    if beside:
        members[name] = 1
    params = members if where is None else {where: members}
    refused = isinstance(classify({**CALL, "params": params}), Malformed)
    assert refused is (other != name)


def test_a_member_as_large_as_a_body_costs_no_more_than_reading_it() -> None:
    # Unicode sorts combining marks by insertion: for a million of them that takes hours.
    member = "n" + "\u0315" * 500_000 + "\u0300" * 500_000
    for params in ({member: 1}, {"_meta": {member: 1}}, {"ref": {member: 1}}):
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params}
        assert isinstance(classify(message), Request)


def test_arguments_may_have_any_member() -> None:
    params = {"name": "x", "arguments": {"Name": 1, "URI": 2, "name": 3}}
    assert isinstance(classify({**CALL, "params": params}), Request)


def test_a_batch_keeps_the_order_of_its_messages() -> None:
    value = [CALL, {"jsonrpc": "2.0", "method": "n"}, {"jsonrpc": "2.0", "id": "1", "result": 1}]
    batch = classify(value)
    assert isinstance(batch, Batch)
    assert [type(message) for message in batch.messages] == [Request, Notification, Response]


@pytest.mark.parametrize("bad", [[], [[]], [[CALL]], [CALL, 1], [CALL, {}], [{**CALL, "id": None}]])
def test_one_bad_element_refuses_its_batch(bad: list[object]) -> None:
    refused = classify(bad)
    assert isinstance(refused, Malformed)
    assert refused.id is None


def test_ids_are_compared_with_their_type() -> None:
    assert len({typed(1), typed("1"), typed(1)}) == 2


@pytest.mark.parametrize(
    ("text", "oversized"),
    [
        ("[1]", False),
        ('{"a":[' + "9" * 308 + "]}", False),
        ('{"a":[' + "9" * 309 + "]}", True),
        ("[-1" + "0" * 308 + "]", True),
        ('["' + "9" * 400 + '"]', False),
        ('{"a":"' + "9" * 400 + '","b":{"c":1' + "0" * 308 + "}}", True),
    ],
)
def test_integers_beyond_every_float_are_found(text: str, *, oversized: bool) -> None:
    assert has_oversized_integer(text.encode(), json.loads(text)) is oversized


def test_messages_are_encoded_as_they_came() -> None:
    assert Request(1, "m", {"a": 1}).encode() == {**CALL, "method": "m", "params": {"a": 1}}
    assert Request(1, "m").encode(id="x") == {"jsonrpc": "2.0", "id": "x", "method": "m"}
    assert Notification("m").encode() == {"jsonrpc": "2.0", "method": "m"}
    assert result_body("a", {}) == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert error_body(None, Code.PARSE_ERROR, "no") == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "no"},
    }


def test_errors_of_the_gateway_keep_their_words_and_say_when_to_retry() -> None:
    limited = RateLimited(
        limit="calls", scope="tenant", cap=1, used=1, requested=1, retry_after_s=1.5
    )
    body = error_of(limited, "r1", id=7)
    assert body == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -31000,
            "message": limited.message,
            "data": {"request_id": "r1", "reason": "gateway.rate_limited", "retryAfterMs": 1500},
        },
    }
    codes = [
        error_of(error, "r")["error"]["code"]  # type: ignore[index]
        for error in (Unauthenticated(), BodyTooLarge(), InternalError())
    ]
    assert codes == [-32000, -32600, -32603]


def test_own_codes_stay_out_of_the_reserved_range() -> None:
    ours = {Code.RATE_LIMITED, Code.EXCEEDS_LIMIT, Code.UNAVAILABLE, Code.FORBIDDEN, Code.BLOCKED}
    assert not [code for code in ours if -32768 <= code <= -32000]
