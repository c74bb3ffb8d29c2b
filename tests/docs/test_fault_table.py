"""Is the table of failures in docs/failover.md the one that the matrix runs?"""

import ast
from pathlib import Path

import pytest

from tests.wire import faults_page
from tidegate.demo.faults import FAULTS

PUBLIC_TESTS = Path(faults_page.__file__).with_name("test_faults_public.py")


def test_the_table_is_the_one_that_the_matrix_runs() -> None:
    page = faults_page.PAGE.read_text()
    assert faults_page.replaced(page) == page, "run python -m tests.wire.faults_page"


def test_every_behavior_is_in_one_row() -> None:
    rows = [
        line.split("|")[1] for line in faults_page.part().splitlines() if line.startswith("| `")
    ]
    named = [name.strip().strip("`") for row in rows for name in row.split(",")]
    assert sorted(named) == sorted(FAULTS)


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="faults:begin"):
        faults_page.replaced("no marks")


@pytest.mark.parametrize("number", [number for number, _, _ in faults_page.PUBLIC])
def test_each_public_fault_has_a_test_of_its_own(number: str) -> None:
    tree = ast.parse(PUBLIC_TESTS.read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [name for name in names if number.lower() in name.split("_")]
