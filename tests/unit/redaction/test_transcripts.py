"""Streams as providers send them, and what leaves."""

import pytest

from tests.unit.redaction.transcripts import FOLDER, TRANSCRIPTS, shown

LEAKS = (
    b"jane@",
    b"example.com",
    b"536-90",
    b"4111 1111",
    b"4111-1111",
    b"411111",
    b"s3cr3t",
    b"1111 11",
)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_recorded_stream_leaves_as_written_down(name: str) -> None:
    sent = (FOLDER / f"{name}.sse").read_bytes()
    expected = (FOLDER / f"{name}.shown").read_bytes()
    assert shown(name, [sent]) == expected
    assert shown(name, [sent[i : i + 7] for i in range(0, len(sent), 7)]) == expected
    assert [leak for leak in LEAKS if leak in expected] == []


def test_every_dialect_has_transcripts() -> None:
    assert {name.split("_")[0] for name in TRANSCRIPTS} == {"chat", "messages", "responses"}
    assert len(TRANSCRIPTS) >= 12
