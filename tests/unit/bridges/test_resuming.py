"""Does a reader know where it stands in a stream, however the stream is cut?"""

import pytest

from tidegate.bridges.resuming import Place

STREAM = (
    b": hello\r\n\r\nid: a-1\nretry: 250\ndata: \n\nevent: message\rid: a-2\rdata: {}\r\r"
    b"data: " + b"x" * 3000 + b"\n\nid: not-whole\ndata: 1\n"
)


def told(*chunks: bytes) -> tuple[str | None, float]:
    place = Place()
    for chunk in chunks:
        place.feed(chunk)
    return place.last_id, place.retry_s


def test_the_last_whole_event_counts_whatever_the_cuts() -> None:
    assert told(STREAM) == ("a-2", 0.25)
    assert told(*(bytes([byte]) for byte in STREAM)) == ("a-2", 0.25)
    for cut in range(len(STREAM)):
        assert told(STREAM[:cut], STREAM[cut:]) == ("a-2", 0.25), cut


def test_an_event_counts_only_when_it_is_whole() -> None:
    assert told(b"id: 1\ndata: {}\n") == (None, 1.0)
    assert told(b"id: 1\r\ndata: {}\r", b"\n") == (None, 1.0)
    assert told(b"id: 1\r\ndata: {}\r\n\r", b"\n") == ("1", 1.0)
    assert told(b"id: 1\n\ndata: {}\n\n") == ("1", 1.0)


@pytest.mark.parametrize(
    "value", [b"", b"two words", b"\xc3\xa4", b"a\0b", b"x" * 513, b"x" * 5000]
)
def test_what_fits_into_no_header_is_no_id(value: bytes) -> None:
    assert told(b"id: 1\n\nid: " + value + b"\n\n") == ("1", 1.0)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (b"500", 0.5),
        (b"0", 0.1),
        (b"999999999", 30.0),
        (b"9999999999", 1.0),
        (b"-1", 1.0),
        (b"1.5", 1.0),
        (b"", 1.0),
        (b"\xb2", 1.0),
    ],
)
def test_the_pause_is_what_the_server_says_within_bounds(said: bytes, seconds: float) -> None:
    assert told(b"retry:" + said + b"\n\n")[1] == seconds


def test_what_was_left_of_one_body_is_not_the_beginning_of_the_next() -> None:
    place = Place()
    place.feed(b"id: 1\n\nid: 2\ndata: half")
    place.begin()
    place.feed(b"\n\n")
    assert place.last_id == "1"
