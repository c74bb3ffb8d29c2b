"""Does the help of the demo's providers name everything that they can do?"""

import re

import pytest

from tidegate.cli import run
from tidegate.demo.faults import FAULTS, GROUPS, OPTIONS


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["demo", *arguments, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("providers",), ("--port", "9201", "providers")])
def test_the_help_of_the_providers_has_a_line_for_each_behavior(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    text = shown(capsys, *arguments)
    for behavior in FAULTS.values():
        line = rf"^  {re.escape(behavior.name)} +{re.escape(behavior.about)}$"
        assert re.search(line, text, re.MULTILINE), behavior.name
    assert all(f"{group}:\n" in text for group in GROUPS)
    assert all(f"\n  {name} " in text for name in OPTIONS)
    assert text.rstrip().splitlines()[-1].strip().startswith("Example: tidegate ")


def test_the_help_of_the_demo_says_where_to_find_them(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert "tidegate demo providers --help" in text
    assert "odd-framing" not in text
