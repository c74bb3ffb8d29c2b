"""Does the repository keep its own rules of size, surface and words?

Each rule is a test; what a linter can say is left to the linter.
"""

import ast
import importlib
import pkgutil
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tidegate
from tests.seed.lines import CURL_LINES

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CODE = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "bench").glob("*.py"))]
PATH_FUNCTIONS = {"gateway/chat.py", "gateway/tool_traffic.py"}
BROAD = {"Exception", "BaseException"}
# The request boundary, the background task boundary, the call of a plug-in.
BROAD_PLACES = 3


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_longer_than_400_lines() -> None:
    long = {short(path): len(path.read_text().splitlines()) for path in CODE}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


def test_no_function_is_longer_than_50_lines_and_no_path_function_than_80() -> None:
    found = {}
    for path in SOURCES:
        bound = 80 if short(path).removeprefix("src/tidegate/") in PATH_FUNCTIONS else 50
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > bound:
                    found[f"{short(path)}:{node.name}"] = lines
    assert found == {}


def test_broad_excepts_stand_in_at_most_three_places() -> None:
    found = [
        f"{short(path)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and catches_everything(node.type)
        # Cleaning up and passing the same exception on swallows nothing.
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    ]
    assert len(found) <= BROAD_PLACES, found


def catches_everything(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(name, ast.Name) and name.id in BROAD for name in names)


def test_there_is_no_global_statement() -> None:
    found = [
        f"{short(path)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Global)
    ]
    assert found == []


def test_every_module_begins_with_the_question_it_answers() -> None:
    odd = []
    for path in SOURCES:
        lines = (ast.get_docstring(tree(path)) or "").splitlines()
        if short(path) != "src/tidegate/__init__.py" and not (lines and lines[0].endswith("?")):
            odd.append(short(path))
    assert odd == []


def test_no_work_is_left_open_in_a_comment() -> None:
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")))
    found = [short(path) for path in CODE if words.search(path.read_text())]
    assert found == []


def pyproject() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_no_test_compares_all_that_was_logged() -> None:
    """A thread of an earlier test may still speak: tests.logged has the lines of one place."""
    every = re.compile(r"caplog\.(records\s*==|record_tuples|messages\b)|in caplog\.records\]")
    found = [
        f"{short(path)}:{number}"
        for path in CODE
        if path.parent.name != "tests"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if every.search(line)
    ]
    assert found == []


def test_the_run_time_dependencies_are_at_most_twelve_and_requirements_txt_has_the_same() -> None:
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["mcp"], *extras["redis"]]  # type: ignore[index, misc]
    assert len(project["dependencies"]) <= 12  # type: ignore[arg-type]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == wanted


def test_the_lock_holds_every_run_time_dependency_with_hashes_and_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE))
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = {
        re.split(r"[<>=;[]", line)[0].strip().lower()
        for line in lines
        if line and not line.startswith("#")
    }
    assert wanted <= pinned
    assert "index" not in lock
    assert all(
        line.startswith((" ", "#")) or line.rstrip().endswith("\\") for line in lock.splitlines()
    )


def tracked() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=5
    )
    names = listed.stdout.decode().split("\0")
    return (ROOT / name for name in names if name and (ROOT / name).is_file())


def test_no_tracked_file_names_a_package_index_or_a_path_of_one_machine() -> None:
    words = ("pypi" + ".org", "python" + "hosted", "registry.npm" + "js", "index" + "-url")
    places = ("/ro" + "ot/", "/wo" + "rk/", "/home" + "/", "/Us" + "ers/")
    pattern = re.compile("|".join(map(re.escape, (*words, *places))))
    # The lock is written by `make lock`, whose option says that no index goes in.
    allowed = {"Makefile": {"index" + "-url"}}
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        hits = set(pattern.findall(text)) - allowed.get(short(path), set())
        if hits:
            found.append((short(path), sorted(hits)))
    assert found == []


PACKAGES = ["tidegate"] + [
    info.name for info in pkgutil.iter_modules(tidegate.__path__, "tidegate.") if info.ispkg
]
PUBLIC = {
    "tidegate.redaction": {"RedactionPolicy", "Redactor", "RedactorSet"},
    "tidegate.tools": {"strict_tool", "StrictInput", "ToolServer", "ToolFailure"},
    "tidegate.mcp": {"authorize"},
    "tidegate.limits": {"MemoryLedger", "SQLiteLedger"},
    "tidegate.gateway": {"create_app"},
    "tidegate.config": {"load_config"},
    "tidegate.policy": {"Principal", "Allow", "Deny"},
    "tidegate.errors": {"TidegateError"},
}


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_package_names_as_public_is_there(name: str) -> None:
    package = importlib.import_module(name)
    names = getattr(package, "__all__", [])
    assert len(set(names)) == len(names)
    assert [missing for missing in names if not hasattr(package, missing)] == []


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_documented_names_can_be_imported(name: str) -> None:
    module = importlib.import_module(name)
    assert {public for public in PUBLIC[name] if not hasattr(module, public)} == set()


@pytest.mark.parametrize("name", sorted(CURL_LINES))
def test_the_readme_shows_the_curl_lines_that_the_seed_tests_run(name: str) -> None:
    assert CURL_LINES[name] in (ROOT / "README.md").read_text()
