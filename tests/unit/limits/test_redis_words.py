"""The bytes that go to Redis and come back, whole and cut."""

import pytest

from tidegate.limits import Charge, Limit
from tidegate.limits.redis_line import ErrorReply, LineLost, ReplyReader
from tidegate.limits.redis_script import (
    SCRIPTS,
    Answer,
    Moment,
    Speech,
    UnknownAnswer,
    answer,
    command,
    greeting,
    packed,
    usage_of,
    verdict,
)
from tidegate.testing.splits import every_split

LIMIT = Limit("tokens", "tokens", 100)
CHARGES = (Charge(LIMIT, "tenant:acme", 1),)

WIRE = (
    b"+OK\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n-NOSCRIPT No such\r\n*2\r\n$1\r\n0\r\n*1\r\n:7\r\n*0\r\n"
)
REPLIES = [b"OK", -12, b"a\r\n", None, ErrorReply("NOSCRIPT"), [b"0", [7]], []]


def test_replies_are_the_same_however_the_bytes_are_cut() -> None:
    for pieces in every_split(WIRE):
        reader, got = ReplyReader(), list[object]()
        for piece in pieces:
            got += reader.feed(piece)
        assert got == REPLIES


IN_A_SCRIPT = b"-ERR Error running script (call to f_1d2a): @user_script:1: @user_script: 1: "


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (IN_A_SCRIPT + b"-OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
        (IN_A_SCRIPT + b"-READONLY You can't write against a read only replica.", "READONLY"),
        (IN_A_SCRIPT + b"-MISCONF Redis is configured to save, but it is not able to", "MISCONF"),
        (b"-OOM command not allowed. script: 1d2a, on @user_script:1.", "OOM"),
        (b"-ERR user_script:1: OOM -OOM x script: 1d2a, on @user_script:1.", "ERR"),
        (b"-ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation", "ERR"),
        (b"-ERR unknown command 'x', with args beginning with: ': -OOM y'", "ERR"),
    ],
)
def test_a_refusal_inside_a_script_is_named_as_outside(line: bytes, kind: str) -> None:
    """Redis 6.2 puts the word of the command into a sentence about the script."""
    assert ReplyReader().feed(line + b"\r\n") == [ErrorReply(kind)]


@pytest.mark.parametrize("data", [b"HTTP/1.1 400\r\n", b":x\r\n", b"$y\r\n", b"*z\r\n", b"\r\n"])
def test_what_is_no_reply_ends_the_connection(data: bytes) -> None:
    with pytest.raises(LineLost):
        ReplyReader().feed(data)


def test_a_command_counts_bytes_and_takes_any_name() -> None:
    assert command("GET", "ä") == b"*2\r\n$3\r\nGET\r\n$2\r\n\xc3\xa4\r\n"
    assert command("GET", "\ud800") == b"*2\r\n$3\r\nGET\r\n$6\r\n\\ud800\r\n"
    assert command("X", 5, b"\x00\r\n") == b"*3\r\n$1\r\nX\r\n$1\r\n5\r\n$3\r\n\x00\r\n\r\n"


def test_the_counters_of_a_tenant_share_a_tag() -> None:
    speech = Speech("p")
    keys = {
        scope: speech.counter(LIMIT, scope)
        for scope in ("tenant:acme", "principal:acme/vera", "key:acme/vera/1", "global")
    }
    assert keys == {
        "tenant:acme": "p:{acme}:tokens/tenant:acme/tokens",
        "principal:acme/vera": "p:{acme}:tokens/principal:acme/vera/tokens",
        "key:acme/vera/1": "p:{acme}:tokens/key:acme/vera/1/tokens",
        "global": "p:{global}:tokens/global/tokens",
    }
    assert [speech.counter_of(key) for key in keys.values()] == [
        f"tokens/{scope}/tokens" for scope in keys
    ]


def test_every_script_is_loaded_with_the_numbers_of_the_window() -> None:
    speech = Speech()
    assert len(speech.load()) == len(SCRIPTS)
    assert all(source.startswith("local ") for source in speech.sources.values())
    assert "local BUCKETS = 240\n" in speech.sources["reserve"]


@pytest.mark.parametrize("reply", [None, 1, b"", b"G", b"G" + packed([1]), [b"G"], ErrorReply("X")])
def test_an_answer_without_its_time_is_none(reply: object) -> None:
    with pytest.raises(UnknownAnswer):
        answer(reply)


@pytest.mark.parametrize(
    ("letter", "numbers"),
    [(b"G", ()), (b"G", (1,)), (b"R", (0, 5)), (b"N", ()), (b"H", (1,)), (b"Z", ())],
)
def test_a_verdict_of_another_shape_is_none(letter: bytes, numbers: tuple[int, ...]) -> None:
    said = Answer(0, 0, letter, numbers)
    with pytest.raises(UnknownAnswer):
        verdict(said, "r", CHARGES)
    with pytest.raises(UnknownAnswer):
        usage_of(said, LIMIT)
    with pytest.raises(UnknownAnswer):
        greeting(said)


def test_a_moment_that_is_not_known_is_left_to_the_server() -> None:
    assert Moment().numbers == (-1, -1, -1)
    assert Moment(newest_us=5, given_us=0, books=7).numbers == (0, 5, 7)
