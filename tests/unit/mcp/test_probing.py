"""Does an answer tell which era a server speaks, and that a refused message was not executed?"""

import itertools
from typing import Any

import pytest

from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.introductions import Introduction
from tidegate.mcp.probing import (
    Era,
    Heard,
    era_of,
    introduction_in,
    is_of_wrong_era,
    lost_session,
    proves_unexecuted,
    speaks_of_sessions,
)

METHODS = ("initialize", "server/discover", "tools/list", "tools/call", "subscriptions/listen")
STATUSES = (200, 400, 404, 405, 406, 415, 500)
CODES = (None, -32700, -32600, -32601, -32602, -32603, -32000, -32001, -32020, -32021, -32022, 0)


def heard(status: int, code: int | None = None, message: str = "x", **data: object) -> Heard:
    if code is None:
        return Heard(status)
    error: dict[str, Any] = {"code": code, "message": message}
    return Heard(
        status, {"jsonrpc": "2.0", "id": 1, "error": {**error, "data": data} if data else error}
    )


def result(value: object) -> Heard:
    return Heard(200, {"jsonrpc": "2.0", "id": 1, "result": value})


DISCOVERY = {"supportedVersions": [MODERN], "capabilities": {}}


@pytest.mark.parametrize(
    ("method", "answer", "era"),
    [
        ("server/discover", result(DISCOVERY), Era.MODERN),
        ("server/discover", result({"supportedVersions": [LEGACY[0], MODERN]}), Era.BOTH),
        ("server/discover", result({"supportedVersions": list(LEGACY)}), Era.UNKNOWN),
        ("server/discover", result({}), Era.UNKNOWN),
        ("server/discover", heard(404, -32601), Era.UNKNOWN),
        ("server/discover", heard(400, -32022, supported=list(LEGACY)), Era.LEGACY),
        ("server/discover", heard(400, -32022, supported=[MODERN, LEGACY[1]]), Era.BOTH),
        ("server/discover", heard(400, -32022, supported=["2099-01-01"]), Era.UNKNOWN),
        ("server/discover", heard(400, -32022), Era.MODERN),
        ("server/discover", heard(400, -32022, supported="odd"), Era.MODERN),
        ("server/discover", heard(500), Era.UNKNOWN),
        ("initialize", result({"protocolVersion": LEGACY[0]}), Era.LEGACY),
        ("initialize", result({"protocolVersion": "2024-11-05"}), Era.LEGACY),
        ("initialize", result({"protocolVersion": "2099-01-01"}), Era.UNKNOWN),
        ("initialize", heard(400, -32022, supported=[MODERN]), Era.MODERN),
        ("initialize", heard(400, -32020), Era.MODERN),
        ("initialize", heard(400, -32000), Era.UNKNOWN),
        ("initialize", heard(404), Era.UNKNOWN),
        ("tools/list", result({"tools": []}), Era.UNKNOWN),
    ],
)
def test_an_answer_proves_an_era(method: str, answer: Heard, era: Era) -> None:
    assert era_of(method, answer) is era


def test_an_introduction_is_in_the_answer_to_its_own_question() -> None:
    assert introduction_in("server/discover", result(DISCOVERY)) == Introduction(MODERN)
    assert introduction_in("initialize", result(DISCOVERY)) is None
    shake = {"protocolVersion": LEGACY[1]}
    assert introduction_in("initialize", result(shake)) == Introduction(LEGACY[1])
    assert introduction_in("server/discover", result(shake)) is None
    assert introduction_in("initialize", heard(400, -32600)) is None
    assert introduction_in("initialize", Heard(404)) is None


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("code", CODES)
def test_a_call_is_repeated_only_where_everything_is_refused_in_the_same_words(
    status: int, code: int | None
) -> None:
    answer = heard(status, code)
    assert not proves_unexecuted("tools/call", answer, None)
    assert not proves_unexecuted("tools/call", answer, result({}))
    for other_status, other_code in itertools.product(STATUSES, CODES):
        probe = heard(other_status, other_code)
        same = (status, code) == (other_status, other_code)
        assert proves_unexecuted("tools/call", answer, probe) == (same and answer.is_refusal)
    if code is not None:
        assert not proves_unexecuted("tools/call", answer, heard(status, code, "other words"))


@pytest.mark.parametrize("method", [m for m in METHODS if m != "tools/call"])
def test_what_changes_nothing_may_be_repeated_after_any_refusal(method: str) -> None:
    for status, code in itertools.product(STATUSES, CODES):
        refused = code is not None or status in (400, 404, 405, 406, 415)
        assert proves_unexecuted(method, heard(status, code), None) == refused


@pytest.mark.parametrize("method", ["tasks/update", "tasks/cancel", "unheard/of", "tools/call"])
def test_what_may_change_something_is_repeated_only_after_a_proof(method: str) -> None:
    for status, code in itertools.product((200, 400, 404), CODES[1:]):
        answer = heard(status, code)
        assert not proves_unexecuted(method, answer, None)
        assert proves_unexecuted(method, answer, answer)


@pytest.mark.parametrize("method", METHODS)
def test_a_result_and_silence_are_no_refusals(method: str) -> None:
    for answer in (result({}), Heard(200), Heard(500), Heard(401), Heard(403), Heard(429)):
        assert not proves_unexecuted(method, answer, answer)
        for modern in (True, False):
            assert not is_of_wrong_era(method, answer, modern=modern)


WRONG_FOR_LEGACY = {
    (method, code) for method in METHODS for code in (None, -32700, -32600, -32000, -32022)
} | {
    ("server/discover", -32601),
    ("subscriptions/listen", -32601),
    ("server/discover", -32602),
    ("initialize", -32602),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("code", CODES)
def test_refusals_of_2026_that_look_like_an_older_server(method: str, code: int | None) -> None:
    answer = heard(400, code)
    assert is_of_wrong_era(method, answer, modern=True) == ((method, code) in WRONG_FOR_LEGACY)


def test_a_server_that_names_2026_among_its_revisions_is_none_of_an_older_era() -> None:
    assert not is_of_wrong_era("tools/call", heard(400, -32022, supported=[MODERN]), modern=True)
    assert is_of_wrong_era("tools/call", heard(400, -32022, supported=list(LEGACY)), modern=True)


@pytest.mark.parametrize("code", CODES)
def test_refusals_of_older_revisions_that_look_like_a_server_of_2026(code: int | None) -> None:
    of_modern = code in (-32020, -32021, -32022)
    for method in METHODS[1:]:
        wrong = is_of_wrong_era(method, heard(400, code, "params._meta is missing"), modern=False)
        assert wrong == (of_modern or code == -32602), method
        assert is_of_wrong_era(method, heard(400, code), modern=False) == of_modern
        assert is_of_wrong_era(method, heard(200, code), modern=False) == of_modern
    handshake = is_of_wrong_era("initialize", heard(400, code), modern=False)
    assert handshake == (of_modern or code in (None, -32601, -32602, -32700, -32600, -32000))


def test_a_missing_envelope_is_one_with_its_status_and_its_name() -> None:
    said = "params._meta is missing"
    assert is_of_wrong_era("tools/call", heard(400, -32602, said), modern=False)
    assert not is_of_wrong_era("tools/call", heard(200, -32602, said), modern=False)
    assert not is_of_wrong_era("tools/call", heard(405, -32603), modern=False)


def test_a_bare_405_looks_like_another_era_and_a_bare_404_like_a_lost_session() -> None:
    assert is_of_wrong_era("tools/call", Heard(405), modern=False)
    assert not is_of_wrong_era("tools/call", Heard(404), modern=False)
    assert is_of_wrong_era("tools/call", Heard(404), modern=True)


@pytest.mark.parametrize(
    ("answer", "lost", "spoken"),
    [
        (Heard(404), True, False),
        (heard(404, -32600, "anything"), True, False),
        (heard(404, -32001, "Session not found"), True, False),
        (heard(404, -32601, "Method not found"), False, False),
        (heard(404, -32602, "Session not found"), False, False),
        (heard(400, -32000, "Bad Request: No valid session ID provided"), False, True),
        (heard(400, -32600, "Session not found"), False, True),
        (heard(400, -32000, "Bad Request: Unsupported protocol version"), False, False),
        (heard(400, -32602, "session"), False, False),
        (heard(200, -32600, "Session not found"), False, False),
        (Heard(400), False, False),
        (Heard(400, {"error": {"code": -32600, "message": 3}}), False, False),
    ],
)
def test_a_session_is_lost_where_the_server_says_so(
    answer: Heard, *, lost: bool, spoken: bool
) -> None:
    assert lost_session(answer) is lost
    assert speaks_of_sessions(answer) is spoken


def test_odd_errors_have_no_code() -> None:
    for odd in (None, 3, {}, {"code": True}, {"code": "x"}, {"code": 1.5}):
        assert Heard(400, {"error": odd}).code is None
        assert Heard(400, {"error": odd}).supported == ()
