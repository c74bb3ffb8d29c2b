"""Are the commands, their helps and their exit codes the frozen ones?"""

import subprocess
import sys

import pytest

from tidegate import __version__
from tidegate.cli import run

COMMANDS = (
    "serve",
    "demo",
    "check",
    "schema",
    "explain",
    "redact",
    "limits",
    "keys",
    "estimate",
    "providers",
    "mcp",
)
LATER = ("clients", "init", "tail", "doctor")


def test_help_lists_the_commands_fits_a_screen_and_ends_with_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.split("Commands:")[1].splitlines() if line][
        : len(COMMANDS)
    ] == list(COMMANDS)
    assert len(shown.splitlines()) <= 24
    assert shown.rstrip().splitlines()[-1].strip().startswith("Example: tidegate ")


@pytest.mark.parametrize("command", [*COMMANDS, "mcp serve", "keys new"])
def test_every_help_fits_a_screen_and_ends_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 24
    assert shown.rstrip().splitlines()[-1].strip().startswith("Example: tidegate ")


@pytest.mark.parametrize("command", LATER)
def test_a_command_of_a_later_release_says_so_in_one_line(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "anything"]) == 2
    assert f"'{command}' comes with a later release." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["serve", "--nonsense"], ["demo", "nonsense"], ["serve", "--port", "70000"], []],
)
def test_wrong_usage_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"tidegate {__version__}\n"


def test_importing_the_command_line_imports_no_part_of_the_product() -> None:
    code = (
        "import sys, tidegate.cli\n"
        "heavy = {'aiohttp', 'pydantic', 'mcp', 'uvicorn', 'msgspec', 'yaml', 'asyncio'}\n"
        "parts = [n for n in sys.modules if n.startswith('tidegate.') and n != 'tidegate.cli']\n"
        "print(sorted(heavy & set(sys.modules)), parts)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=15)
    assert done.stdout.decode().strip() == "[] []"
