"""Is the place in a stream read and written with its events, however the bytes are cut?"""

import itertools

import pytest

from tidegate.sse import Decoder, Event, EventTooLarge, encode

BOUND = 200

SAMPLES: dict[bytes, list[Event]] = {
    b"id: 7\ndata: a\n\n": [Event(b"a", id="7")],
    b"data: a\nid:7\n\n": [Event(b"a", id="7")],
    b"id:  7 \ndata: a\n\n": [Event(b"a", id=" 7 ")],
    b"id: 1\nid: 2\ndata: a\n\n": [Event(b"a", id="2")],
    b"id: 7\nretry: 500\ndata: \n\n": [Event(b"", id="7", retry_ms=500)],
    b"id: 7\ndata\n\n": [Event(b"", id="7")],
    b"id: 7\n\n": [Event(b"", id="7")],
    b"id: 7\n\ndata: a\n\n": [Event(b"", id="7"), Event(b"a")],
    b"id: 7\r\nevent: message\r\ndata: a\r\n\r\n": [Event(b"a", "message", "7")],
    b"retry: 10\n\ndata: a\n\ndata: b\n\n": [Event(b"a", retry_ms=10), Event(b"b")],
    b"retry: 10\nretry: 20\ndata: a\n\n": [Event(b"a", retry_ms=20)],
    b"retry: x\nretry: -1\nretry: 1.5\nretry:\ndata: a\n\n": [Event(b"a")],
    b"retry: 99999999999999999999\ndata: a\n\n": [Event(b"a", retry_ms=999_999_999)],
    b"id: 7\nid\ndata: a\n\n": [Event(b"a")],
    b"id: 7\nid:\n\n": [],
    b"id: a\0b\ndata: a\n\n": [Event(b"a")],
    b"id: \xff\ndata: a\n\n": [Event(b"a", id="\ufffd")],
    b"Id: 7\n id: 7\nid : 7\ndata: a\n\n": [Event(b"a")],
    b": x\n\nid: 7": [],
}


def events(*chunks: bytes) -> list[Event]:
    decoder = Decoder(BOUND, marks=True)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize("data", SAMPLES)
def test_every_way_to_cut_gives_the_same_marks(data: bytes) -> None:
    for i, j in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        assert events(data[:i], data[i:j], data[j:]) == SAMPLES[data], (i, j)
    assert events(*(data[i : i + 1] for i in range(len(data)))) == SAMPLES[data]


@pytest.mark.parametrize("data", SAMPLES)
def test_without_marks_only_what_has_data_is_an_event(data: bytes) -> None:
    plain = [Event(event.data, event.event) for event in SAMPLES[data] if event.data]
    assert Decoder(BOUND).feed(data) == plain


@pytest.mark.parametrize("line", [b"id: 1\n", b"retry: 1\n", b"id: " + b"x" * 50 + b"\n"])
def test_marks_count_against_the_bound_of_their_event(line: bytes) -> None:
    with pytest.raises(EventTooLarge):
        events(line * 50)
    assert len(events((line + b"data: x\n\n") * 50)) == 50


@pytest.mark.parametrize("event", [each for sample in SAMPLES.values() for each in sample])
def test_what_is_encoded_is_decoded(event: Event) -> None:
    wire = encode(event.data, event=event.event, id=event.id, retry_ms=event.retry_ms)
    assert events(wire) == [event]


def test_the_form_is_the_one_of_the_specification() -> None:
    assert encode(b"", id="7", retry_ms=500) == b"id: 7\nretry: 500\ndata: \n\n"
    assert encode(b"{}", event="message", id="7") == b"id: 7\nevent: message\ndata: {}\n\n"


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b"])
def test_an_id_is_one_line(value: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode(b"x", id=value)


def test_there_is_no_event_without_data_or_id() -> None:
    with pytest.raises(ValueError, match="needs data"):
        encode(b"", retry_ms=500)
