"""Is a test of processes tried once more when it fails, openly, and no other one ever?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parent.parent
WAIT_S = 60.0
# Fails until it has been run so often on the same file; each run has a folder and a fixture anew.
TRIES = """
import pathlib
import pytest

SEEN = pathlib.Path(__file__).with_suffix(".seen")


@pytest.fixture(scope="module")
def made():
    return []


def tried():
    SEEN.write_text(SEEN.read_text() + "x" if SEEN.exists() else "x")
    return len(SEEN.read_text())


def test_one_that_fails(made, tmp_path):
    assert made == []
    made.append(1)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert tried() >= {good}


def test_the_next_one(made):
    assert isinstance(made, list)
"""


def played(
    folder: Path, *options: str, good: int, place: str = "wire", count: int = 1
) -> subprocess.CompletedProcess[str]:
    """pytest on `count` modules in tests/`place`, whose tests are good from try `good` on."""
    path = folder / "tests" / place
    path.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (path / f"test_tried_{number}.py").write_text(TRIES.replace("{good}", str(good)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.second_tries", "-p", "no:cacheprovider"]
    command += ["--import-mode=importlib", "--rootdir", str(folder), "-c", os.devnull, *options]
    return subprocess.run(
        [*command, str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")], ids=["alone", "xdist"])
def test_a_second_try_is_made_from_nothing_and_told(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = played(tmp_path, *options, good=2)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "tests that needed a second try" in done.stdout
    told = done.stdout.partition("tests that needed a second try")[2]
    assert "test_tried_0.py::test_one_that_fails" in told
    assert "assert 1 >= 2" in told
    assert "test_the_next_one" not in told


def test_there_is_no_third_try(tmp_path: Path) -> None:
    done = played(tmp_path, good=3)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert (tmp_path / "tests" / "wire" / "test_tried_0.seen").read_text() == "xx"


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")], ids=["alone", "xdist"])
def test_more_than_three_second_tries_fail_the_run(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = played(tmp_path, *options, good=2, count=4)
    assert done.returncode == 1
    assert "8 passed" in done.stdout
    assert "4 tests needed a second try; more than 3 fail the run." in done.stdout
    assert played(tmp_path / "other", *options, good=2, count=3).returncode == 0


def test_what_runs_in_process_is_never_tried_again_nor_anything_with_one_try(
    tmp_path: Path,
) -> None:
    done = played(tmp_path, good=2, place="unit")
    assert (done.returncode, "second try" in done.stdout) == (1, False)
    done = played(tmp_path, "--one-try", good=2)
    assert (done.returncode, "second try" in done.stdout) == (1, False)


def test_a_fixture_that_fails_is_set_up_anew(tmp_path: Path) -> None:
    module = TRIES.replace("return []", "assert tried() >= 2; return []").replace("{good}", "2")
    path = tmp_path / "tests" / "wire"
    path.mkdir(parents=True)
    (path / "conftest.py").touch()
    done = played(tmp_path, good=2, count=0)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    (path / "test_fixture.py").write_text(module)
    done = played(tmp_path, good=2, count=0)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "tests that needed a second try" in done.stdout
