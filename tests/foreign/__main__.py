"""Run the foreign suites: `python -m tests.foreign [chunks|leaks|canaries ...] [--thorough]`.

They are installed in `.venv/foreign` by `make foreign` and use nothing but loopback.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.foreign import canaries, leaks

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv" / "foreign" / "bin"


def chunks(*, thorough: bool) -> None:
    """In the environment of the suites, with our source on the path."""
    del thorough
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [str(BIN / "python"), "-m", "tests.foreign.chunks"]
    if subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode:
        raise SystemExit("chunk-invariance found a difference")


SUITES = {
    "chunks": chunks,
    "leaks": lambda *, thorough: leaks.main(str(BIN / "python"), thorough=thorough),
    "canaries": lambda *, thorough: canaries.main(
        str(BIN / "canarywire"), seeds=range(7, 12 if thorough else 8)
    ),
}


def main() -> int:
    """All suites, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], default=[])
    parser.add_argument("--thorough", action="store_true", help="more seeds, and cuts in three")
    asked = parser.parse_args()
    for name in asked.suites or SUITES:
        sys.stdout.write(f"== {name}\n")
        sys.stdout.flush()
        SUITES[name](thorough=asked.thorough)
    return 0


if __name__ == "__main__":
    sys.exit(main())
