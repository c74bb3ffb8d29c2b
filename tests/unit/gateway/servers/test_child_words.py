"""What of a server's stderr may stand in our log?"""

from random import Random

import pytest

from tidegate.gateway.servers.child_words import MOST_CHARS, StderrWords
from tidegate.redaction import RedactionPolicy

POLICY = RedactionPolicy.preset("default")
SECRET = "sk-" + "proj-" + "Ab3d" * 12


def words(**environment: str) -> StderrWords:
    return StderrWords(POLICY, environment)


def shown(data: bytes, *, cuts: tuple[int, ...] = ()) -> list[str]:
    said, lines, start = words(), [], 0
    for cut in (*sorted(cuts), len(data)):
        lines += said.feed(data[start:cut], 0.0)
        start = cut
    return [*lines, *said.finish()]


def test_lines_come_one_at_a_time() -> None:
    said = words()
    assert said.feed(b"Server is list", 0.0) == []
    assert said.feed(b"ening\n\nready\r\nhal", 0.0) == ["Server is listening", "ready"]
    assert said.finish() == ["hal"]


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_secrets_are_masked_wherever_the_bytes_are_cut(cut: int) -> None:
    data = f"began\nusing {SECRET} for bob@example.com now\nended\n".encode()
    lines = shown(data, cuts=(min(cut, len(data)),))
    assert (lines[0], lines[-1]) == ("began", "ended")
    assert SECRET not in "\n".join(lines)
    assert "bob@" not in "\n".join(lines)
    assert "[REDACTED_EMAIL]" in lines[1]


def test_a_private_key_over_several_lines_is_masked() -> None:
    body = "\n".join("aB3x" * 16 for _ in range(4))
    key = f"-----BEGIN {'PRIVATE KEY'}-----\n{body}\n-----END {'PRIVATE KEY'}-----\n"
    lines = shown(f"loading\n{key}done\n".encode())
    assert "aB3x" not in "".join(lines)
    assert (lines[0], lines[-1]) == ("loading", "done")


def test_values_of_the_servers_own_environment_are_shown_by_name() -> None:
    said = words(A="plain words nobody knows", AB="plain words nobody knows at all", B="1")
    data = b"a plain words nobody knows at all 1\nb plain words nobody knows 1\n"
    assert [*said.feed(data, 0.0), *said.finish()] == ["a [AB] 1", "b [A] 1"]


def test_at_most_fifty_lines_at_once_and_ten_a_second() -> None:
    said = words()
    assert len(said.feed(b"a line\n" * 1000, 0.0)) == 50
    assert said.is_flooded
    assert len(said.feed(b"a line\n" * 1000, 1.0)) == 10
    assert said.feed(b"a line\n", 1.0) == []
    assert len(said.feed(b"a line\n" * 1000, 1000.0)) == 50
    assert said.hidden == 950 + 990 + 1 + 950


def test_a_line_that_is_too_long_is_counted_and_not_shown_in_part() -> None:
    said = words()
    data = b"first\n" + b"x" * 3900 + b" " + SECRET.encode() * 10 + b"\nlast line\n"
    assert said.feed(data, 0.0) == ["first", "last line"]
    assert said.hidden == 1


def test_behind_a_gap_a_line_without_a_blank_is_not_shown() -> None:
    said = words()
    said.feed(b"a line\n" * 60, 0.0)
    key = ("aB3x" * 16 + "\n").encode()
    assert said.feed(key * 3 + b"a sentence again\n" + key, 100.0)[:1] == ["a sentence again"]


def test_what_would_do_something_to_a_terminal_is_spelled_out() -> None:
    (line,) = shown(b"\x1b[31mred\x00 \xe2\x80\xae \xff\n")
    assert line.isprintable()
    assert "\\x1b[31mred\\x00 \\u202e" in line


def test_a_long_line_is_cut() -> None:
    (line,) = shown(b"word " * 500 + b"\n")
    assert len(line) == MOST_CHARS + 3


@pytest.mark.parametrize("seed", range(10))
def test_bytes_of_any_kind_in_any_pieces_raise_nothing(seed: int) -> None:
    random, said = Random(seed), words(A="abcdefgh")  # noqa: S311 - a test that repeats
    for step in range(200):
        piece = random.randbytes(random.randrange(300))
        for line in said.feed(piece, float(step)):
            assert line.isprintable()
    said.finish()
