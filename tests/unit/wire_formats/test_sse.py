"""Do the same bytes give the same events, however they are cut?"""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.sse import Decoder, Event, EventTooLarge, encode

BOUND = 1000
U2028 = "\u2028\u2029\u0085".encode()

# bytes on the wire -> events by the WHATWG algorithm (HTML 9.2.6), worked out by hand
SAMPLES: dict[bytes, list[Event]] = {
    b"": [],
    b"data: a\n\n": [Event(b"a")],
    b"data:a\n\n": [Event(b"a")],
    b"data:  a\n\n": [Event(b" a")],
    b"data: a\r\n\r\n": [Event(b"a")],
    b"data: a\r\r": [Event(b"a")],
    b"data: a\r\n\ndata: b\n\r\n": [Event(b"a"), Event(b"b")],
    b"data: a\n\r": [Event(b"a")],
    b"data: a\r\n\rdata: b\r\r\n": [Event(b"a"), Event(b"b")],
    b"data: a\ndata: b\rdata:\r\ndata: c\n\n": [Event(b"a\nb\n\nc")],
    b"\xef\xbb\xbfdata: a\n\n": [Event(b"a")],
    b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n": [],
    b"\xef\xbb\xbf\ndata: a\n\n": [Event(b"a")],
    b"data: a\n\n\xef\xbb\xbfdata: b\n\n": [Event(b"a")],
    b": hi\n\n:\n:x\r\rdata: a\n:mid\n\n": [Event(b"a")],
    b"data: x" + U2028 + b"y\n\n": [Event(b"x" + U2028 + b"y")],
    b"data: \x00\x0b\x0c\x1c\x85\xff\n\n": [Event(b"\x00\x0b\x0c\x1c\x85\xff")],
    b"id: 7\nretry: 10\nfoo: x\nfoo\ndata: a\nid\n\n": [Event(b"a")],
    b"event: ping\n\ndata: a\n\n": [Event(b"a")],
    b"event: e\ndata: a\n\ndata: b\n\n": [Event(b"a", "e"), Event(b"b")],
    b"event: e\nevent: f\ndata: a\n\n": [Event(b"a", "f")],
    b"event: e\nevent:\ndata: a\n\n": [Event(b"a")],
    b"event: \xff\ndata: a\n\n": [Event(b"a", "\ufffd")],
    b"data\n\ndata:\n\ndata: \n\ndata: b\n\n": [Event(b"b")],
    b"data\ndata\n\n": [Event(b"\n")],
    b"data : a\n\nDATA: a\n\n data: a\n\n": [],
    b"data: a: b:c\n\n": [Event(b"a: b:c")],
    b"\n\n\r\r\n\ndata: a\n\n\n\n": [Event(b"a")],
    b"data: done\n\ndata: cut": [Event(b"done")],
    b"data: done\n\ndata: cut\n": [Event(b"done")],
    b"data: done\r\n\r\n:": [Event(b"done")],
}


def events(*chunks: bytes) -> list[Event]:
    decoder = Decoder(BOUND)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


def feed_all(decoder: Decoder, data: bytes, size: int) -> None:
    for i in range(0, len(data), size):
        decoder.feed(data[i : i + size])


def three_way_splits(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    for i, j in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        yield data[:i], data[i:j], data[j:]


@pytest.mark.parametrize("data", SAMPLES)
def test_every_way_to_cut_in_two_or_three_gives_the_same_events(data: bytes) -> None:
    for cut in three_way_splits(data):  # i == j are the two-way splits
        assert events(*cut) == SAMPLES[data], cut


@pytest.mark.parametrize("data", SAMPLES)
def test_single_bytes_give_the_same_events(data: bytes) -> None:
    assert events(*(data[i : i + 1] for i in range(len(data)))) == SAMPLES[data]


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_an_event_leaves_with_the_first_byte_that_completes_it(line_end: bytes) -> None:
    data = b"data: a" + line_end + line_end[:1]
    decoder = Decoder(BOUND)
    *early, last = (decoder.feed(data[i : i + 1]) for i in range(len(data)))
    # After CRLF the next CR already ends the blank line.
    assert all(not out for out in early)
    assert last == [Event(b"a")]


@pytest.mark.parametrize(
    ("data", "pending"),
    [
        (b"", False),
        (b"data: a\n\n", False),
        (b"data: a\r\n\r", False),
        (b"data: a\n", True),
        (b"data:", True),
        (b"d", True),
        (b"data: a\n\ndata: [DONE]", True),
        (b": keep-alive", False),
        (b": keep-alive\n", False),
        (b"data: a\n: keep-alive\n", True),
        (b"event: x\n", False),
    ],
)
def test_pending_tells_of_an_event_that_was_cut(data: bytes, pending: object) -> None:
    for cut in three_way_splits(data):
        decoder = Decoder(BOUND)
        for chunk in cut:
            decoder.feed(chunk)
        assert decoder.pending is pending
        assert decoder.finish() == []


TOO_LARGE = {
    "one long line": b"data: " + b"x" * BOUND + b"\n\n",
    "a line without end": b"x" * (BOUND + 1),
    "a comment without end": b":" + b"x" * BOUND,
    "many short lines": b"data: x\n" * (BOUND // 8 + 1) + b"\n",
    "many empty lines of data": b"data\n" * (BOUND // 5 + 1) + b"\n",
    "many types": b"event:\n" * (BOUND // 7 + 2) + b"\n",
    "after good events": b"data: x\n\n" * 9 + b"data: " + b"x" * BOUND,
}


@pytest.mark.parametrize("data", TOO_LARGE.values(), ids=TOO_LARGE)
def test_an_event_beyond_the_bound_is_refused_however_it_is_cut(data: bytes) -> None:
    for size in (1, 7, 64, len(data)):
        decoder = Decoder(BOUND)
        with pytest.raises(EventTooLarge):
            feed_all(decoder, data, size)
        with pytest.raises(EventTooLarge):
            decoder.feed(b"\n\ndata: fine\n\n")
        assert decoder.pending is False


def test_what_is_held_of_an_event_counts_with_its_unfinished_line() -> None:
    decoder = Decoder(BOUND)
    decoder.feed(b"data: " + b"x" * (BOUND // 2) + b"\n")
    with pytest.raises(EventTooLarge):
        decoder.feed(b"data: " + b"x" * (BOUND // 2))


WITHIN = {
    "one line": b"data: " + b"x" * (BOUND - 6) + b"\n\n",
    "byte order mark": b"\xef\xbb\xbfdata: " + b"x" * (BOUND - 9) + b"\n\n",
    "short lines": b"data: x\n" * (BOUND // 8) + b"\n",
    "events without end": b"data: xxxxxxxxx\n\n" * BOUND,
    "comments without end": b": keep-alive\n" * BOUND + b"data: x\n\n",
    "fields that nobody keeps": b"id: 1\nretry: 1\n" * BOUND + b"data: x\n\n",
}


@pytest.mark.parametrize("data", WITHIN.values(), ids=WITHIN)
def test_what_is_not_kept_does_not_count_against_the_bound(data: bytes) -> None:
    whole = events(data)
    assert whole
    for size in (1, 7, 64):
        assert events(*(data[i : i + size] for i in range(0, len(data), size))) == whole


def test_a_large_event_in_many_reads_is_joined_once() -> None:
    size, read = 3 * 1024 * 1024, 64 * 1024
    decoder = Decoder(2 * size)
    decoder.feed(b"data: ")
    for _read in range(size // read):
        assert decoder.feed(b"x" * read) == []
        assert decoder.pending
    assert decoder.feed(b"\n\n") == [Event(b"x" * size)]


def test_a_large_event_of_many_lines_in_many_reads_comes_out_whole() -> None:
    lines = [b"%06d" % number for number in range(50_000)]
    data = b"".join(b"data: " + line + b"\r\n" for line in lines) + b"\r\n"
    decoder = Decoder(len(data))
    out = [e for i in range(0, len(data), 4093) for e in decoder.feed(data[i : i + 4093])]
    assert out == [Event(b"\n".join(lines))]


@pytest.mark.parametrize(
    ("data", "event", "wire"),
    [
        (b"{}", None, b"data: {}\n\n"),
        (b" x", None, b"data:  x\n\n"),
        (b"[DONE]", None, b"data: [DONE]\n\n"),
        (b"a\nb", None, b"data: a\ndata: b\n\n"),
        (b"a\r\nb\rc\n", None, b"data: a\ndata: b\ndata: c\ndata: \n\n"),
        (b"{}", "error", b"event: error\ndata: {}\n\n"),
    ],
)
def test_encode_writes_one_event(data: bytes, event: str | None, wire: bytes) -> None:
    assert encode(data, event=event) == wire


@pytest.mark.parametrize(("data", "event"), [(b"", None), (b"x", "a\nb"), (b"x", "a\rb")])
def test_encode_refuses_what_would_not_be_one_event(data: bytes, event: str | None) -> None:
    with pytest.raises(ValueError, match="event"):
        encode(data, event=event)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=40),
            st.none() | st.text("abc:. é", min_size=1, max_size=8),
        ),
        max_size=6,
    ),
    st.integers(min_value=1, max_value=50),
)
def test_what_is_encoded_is_decoded_with_line_ends_as_line_feeds(
    pairs: list[tuple[bytes, str | None]], size: int
) -> None:
    wire = b"".join(encode(data, event=event) for data, event in pairs)
    expected = [
        Event(
            data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"),
            event,
        )
        for data, event in pairs
    ]
    chunks = [wire[i : i + size] for i in range(0, len(wire), size)]
    assert events(*chunks) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"\r", b"\n", b"data", b"event", b":", b" ", b"x"]), max_size=30))
def test_any_bytes_match_a_naive_reading_of_the_standard(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert events(data) == events(*pieces) == naive(data)


def naive(data: bytes) -> list[Event]:
    """The algorithm of the standard, line by line, over the whole input."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    out: list[Event] = []
    held: list[bytes] = []
    kind = b""
    for line in lines:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if b"\n".join(held):
                out.append(Event(b"\n".join(held), kind.decode() or None))
            held, kind = [], b""
        elif name == b"data":
            held.append(value)
        elif name == b"event":
            kind = value
    return out
