"""What a prompt is estimated at, and how far off that is, is there for everybody to see."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from typing_extensions import Buffer

from tidegate.cli import run
from tidegate.limits.estimate import estimate_request, estimate_text

TEXT = "A few words that somebody might ask a model. " * 20
REQUEST = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 77, "n": 2}


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["estimate", *arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_measured_error_is_shown_for_each_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate"]) == 0
    shown = capsys.readouterr().out
    for name in ("prose", "code python", "json compact", "chinese", "base64"):
        (line,) = (line for line in shown.splitlines() if line[:18].strip() == name)
        assert line.endswith(" %")
    assert "o200k_base" in shown
    found = report(capsys)
    assert "estimate" not in found
    samples: list[dict[str, float]] = found["samples"]  # type: ignore[assignment]
    for sample in samples:
        error = sample["estimate"] / sample["tokens"] - 1
        assert sample["error"] == pytest.approx(error, abs=0.001)


def test_a_text_is_estimated_as_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.txt", TEXT), ("b.json", json.dumps([TEXT])), ("c", '{"messages": 1}')):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        assert report(capsys, str(file))["estimate"] == {
            "file": str(file),
            "kind": "text",
            "bytes": len(text.encode()),
            "input_tokens": estimate_text(text),
        }
    assert run(["estimate", str(tmp_path / "a.txt")]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert f"about {estimate_text(TEXT)} tokens ({len(TEXT)} bytes)" in first


def test_a_request_is_estimated_as_the_gateway_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST), encoding="utf-8")
    found: dict[str, object] = report(capsys, str(file))["estimate"]  # type: ignore[assignment]
    need = estimate_request(REQUEST)
    assert found["kind"] == "request"
    assert (found["input_tokens"], found["output_tokens"]) == (need.input_tokens, 154)
    assert run(["estimate", str(file)]) == 0
    assert "of prompt, up to 154 of answer" in capsys.readouterr().out


def test_stdin_is_a_file_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    found: dict[str, object] = report(capsys, "-")["estimate"]  # type: ignore[assignment]
    assert (found["file"], found["input_tokens"]) == ("stdin", estimate_text(TEXT))


def test_a_pipe_is_read_without_being_named_and_an_empty_one_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (TEXT.encode(), b""):
        reads, writes = os.pipe()
        os.write(writes, data)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            found = report(capsys)
        assert ("estimate" in found) == bool(data)
        if data:
            assert found["estimate"] == {
                "file": "stdin",
                "kind": "text",
                "bytes": len(data),
                "input_tokens": estimate_text(TEXT),
            }


class Endless(io.RawIOBase):
    """A text of `left` bytes that is never there as a whole; it remembers what was asked for."""

    def __init__(self, unit: bytes, left: int) -> None:
        self.unit, self.left, self.most = unit, left, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        self.most = max(self.most, len(view))
        size = min(len(view), self.left)
        view[:size] = (self.unit * (size // len(self.unit) + 1))[:size]
        self.left -= size
        return size


@pytest.mark.parametrize("begin", ["", pytest.param("  {", marks=pytest.mark.full)])
def test_a_text_of_any_length_is_read_in_pieces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    """Also one that begins as a request would, once it is longer than any request."""
    size = (40 if begin else 2) * 2**20
    source = Endless(f"{begin} words ".encode(), size)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(source)))
    found: dict[str, int] = report(capsys, "-")["estimate"]  # type: ignore[assignment]
    assert (found["bytes"], source.left) == (size, 0)
    assert source.most <= (2**25 if begin else 2**17)
    expected = estimate_text(f"{begin} words ") * size / len(f"{begin} words ")
    assert found["input_tokens"] == pytest.approx(expected, rel=0.3)


def test_a_character_that_a_piece_cuts_is_one_character(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "a" + "é" * 100_000
    (tmp_path / "text").write_text(text, encoding="utf-8")
    found: dict[str, int] = report(capsys, str(tmp_path / "text"))["estimate"]  # type: ignore[assignment]
    assert found["input_tokens"] == pytest.approx(estimate_text(text), abs=1)
    (tmp_path / "cut").write_bytes(text.encode()[:-1])
    assert run(["estimate", str(tmp_path / "cut")]) == 1


def test_a_file_that_cannot_be_read_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("binary", "missing", "."):
        assert run(["estimate", str(tmp_path / name)]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1
