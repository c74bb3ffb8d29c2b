"""Is junk shown harmlessly, at a rate, and counted in full?"""

from tidegate.bridges.junk import Junk, shown


def test_control_characters_do_nothing_to_a_terminal() -> None:
    assert shown(b"a\x1b[31m\r\x07b\xff\x9b") == "a\\x1b[31m\\r\\x07b\\xff\\x9b"
    assert shown("\u202e\u2028ü".encode()) == "\\u202e\\u2028ü"
    assert shown(b"x" * 401) == "x" * 400 + "..."


def test_much_junk_is_counted_and_not_shown() -> None:
    junk = Junk()
    assert junk.summary() is None
    assert sum(junk.take(b"abcd", 1.0) is not None for _ in range(1000)) == 50
    assert sum(junk.take(b"abcd", 2.0) is not None for _ in range(1000)) == 20
    assert junk.summary() == (
        "2000 lines (8000 bytes) on the server's stdout were no messages; "
        "1930 of them are not shown"
    )


def test_a_little_junk_is_shown_whole() -> None:
    junk = Junk()
    assert junk.take(b"hello", 0.0) == "stdout of the server: hello"
    assert junk.summary() == "1 line (5 bytes) on the server's stdout were no messages"
