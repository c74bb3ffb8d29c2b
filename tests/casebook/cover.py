"""Which test covers a case?

`test_case_<ID>` in one of the modules `tests/cases/test_case_*.py`; the ID with every character
that cannot stand in a name replaced by `_`. Such a test takes no arguments and raises
AssertionError with one line about what was seen.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

Test = Callable[[], None]
CASES = Path(__file__).parent.parent / "cases"


def covering(folder: Path = CASES, package: str = "tests.cases") -> Mapping[str, Test]:
    """Every such test by its name."""
    found: dict[str, Test] = {}
    for path in sorted(folder.glob("test_case_*.py")):
        module = import_module(f"{package}.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_case_") and callable(value):
                found[name] = value
    return found


def citation(test: Test) -> str:
    """How a report names it."""
    return f"{test.__module__.replace('.', '/')}.py::{getattr(test, '__name__', '')}"
