"""What a prompt is estimated at, and how far off that is, is there for everybody to see."""

import io
import json
import sys
from pathlib import Path

import pytest

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


def test_a_file_that_cannot_be_read_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("binary", "missing", "."):
        assert run(["estimate", str(tmp_path / name)]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1
