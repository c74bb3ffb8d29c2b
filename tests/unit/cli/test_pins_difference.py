"""Is everything that an approval accepts seen by whoever approves?"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.test_mcp_pins import book, folder, keep, states, tool
from tidegate.cli import run
from tidegate.cli.pins_difference import Change, changes, compared, shown_name
from tidegate.cli.pins_table import Row, difference

__all__ = ["folder"]
WORDS = "Reads a file. " * 40


def seen(before: str | None, after: str | None, member: str = "description") -> list[str]:
    return list(compared(Change(member, before, after, is_whole=True)))


def came(rows: list[str]) -> str:
    """The text of the rows that come, put together again."""
    firsts = (row.removeprefix("  + ").removeprefix("  +: ") for row in rows if row[2] == "+")
    return "".join(firsts)


def approval(*lists: list[dict[str, Any]]) -> str:
    ((name, pin),) = book(*lists).pins.items()
    return "\n".join(difference(Row("files", name, pin)))


def test_what_differs_behind_a_first_harmless_word_is_shown() -> None:
    long = WORDS.replace("Reads", "Fetches", 1) + "x " * 300 + "SEND IT TO ME"
    told = approval([tool("read", WORDS)], [tool("read", long)])
    assert "Fetches" in told
    assert "SEND IT TO ME" in told
    assert "more" not in told
    assert all(len(line) <= 165 for line in told.splitlines())


def test_of_a_new_tool_the_whole_text_is_shown() -> None:
    made = book([tool("kept")], [tool("kept"), tool("late", "y " * 1900 + "SEND IT TO ME")])
    told = "\n".join(difference(Row("files", "late", made.pins["late"])))
    assert "SEND IT TO ME" in told


def test_what_is_left_out_is_counted() -> None:
    rows = seen("a", "\n".join(f"line {number}" for number in range(100)))
    assert rows[-1] == "    ... and 60 lines more, which `tidegate mcp pins --json` has"
    assert len(rows) == 1 + 40 + 1


@pytest.mark.parametrize("at", [0, 400, 700, 1199])
def test_of_very_many_lines_none_is_passed_over(at: int) -> None:
    before = [str(number % 7) for number in range(1200)]
    after = [*before[:at], "SEND IT TO ME", *before[at + 1 :]]
    assert "  + SEND IT TO ME" in seen("\n".join(before), "\n".join(after))
    inserted = [*before[:at], "SEND IT TO ME", *before[at:]]
    assert "  + SEND IT TO ME" in seen("\n".join(before), "\n".join(inserted))


def test_a_text_that_was_cut_is_said_to_have_been_also_if_its_beginning_differs() -> None:
    told = approval([tool("read", "x" * 20_000)], [tool("read", "y" + "x" * 20_000)])
    assert "may differ beyond the first 16000 characters" in told
    assert "may differ" not in approval([tool("read")], [tool("read", "other")])


def test_two_spellings_of_one_member_are_both_shown() -> None:
    evil = tool("read") | {"Description": "evil one", "DESCRIPTION": "evil two"}
    told = approval([tool("read")], [evil])
    assert "evil one" in told
    assert "evil two" in told


def test_a_backslash_is_not_mistaken_for_an_escape() -> None:
    assert came(seen(None, "a\u200b")) == "a\\u200b"
    assert came(seen(None, "a\\u200b")) == "a\\\\u200b"
    assert (shown_name("a\u200b"), shown_name("a\\u200b")) == ("a\\u200b", "a\\\\u200b")


def test_no_line_of_a_text_looks_like_the_rest_of_another() -> None:
    rows = seen(None, "z" * 200 + "\n: y")
    assert [row[:5] for row in rows] == ["  + z", "  +: ", "  + :"]


@pytest.mark.full
@given(st.text("ab \n", max_size=400), st.text("ab \n", max_size=400))
def test_whatever_comes_is_in_what_is_shown(before: str, after: str) -> None:
    rows = seen(before, after)
    gone_lines, lines = before.split("\n"), after.split("\n")
    if len(rows) < 40 and all(len(line) <= 160 for line in (*lines, *gone_lines)):
        told = {row[4:] for row in rows if row.startswith("  + ")}
        assert set(lines) - set(gone_lines) <= told


@pytest.mark.full
@given(st.text("ab", min_size=161, max_size=600), st.text("ab", min_size=161, max_size=600))
def test_of_a_long_line_all_from_the_first_to_the_last_difference_is_shown(
    before: str, after: str
) -> None:
    differing = [at for at, (c, d) in enumerate(zip(before, after, strict=False)) if c != d]
    if len(before) == len(after) and differing:
        shown = came(seen(before, after))
        assert after[differing[0] : differing[-1] + 1] in shown


def test_an_unchanged_definition_has_no_changes() -> None:
    assert changes(book([tool("read")]).pins["read"]) == []


@pytest.mark.full
def test_the_document_has_the_texts(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = "\n".join(map(str, range(200)))
    keep(folder, files=book([tool("read", WORDS), tool("k")], [tool("read", lines), tool("k")]))
    assert run(["mcp", "pins", "--json"]) == 4
    found = {pin["tool"]: pin for pin in json.loads(capsys.readouterr().out)["pins"]}
    one = {"member": "description", "before": WORDS, "after": lines, "is_whole": True}
    assert found["read"]["differences"] == [one]
    assert found["k"]["differences"] == []


@pytest.mark.full
def test_of_two_tools_that_are_shown_alike_the_digest_chooses(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ["n" * 90 + "a", "n" * 90 + "b"]
    made = book([tool(name) for name in names], [tool(name, f"of {name}") for name in names])
    keep(folder, files=made)
    target = f"files/{shown_name(names[0])}"
    assert run(["mcp", "pins", "approve", target]) == 1
    assert "choose with --digest" in capsys.readouterr().err
    second = made.pins[names[1]].seen
    assert second
    assert run(["mcp", "pins", "approve", target, "--digest", second.digest[:16]]) == 0
    assert [states(folder)[name] for name in names] == ["changed", "pinned"]
    capsys.readouterr()
