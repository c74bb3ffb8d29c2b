"""How does a fresh checkout get an environment, once, also when two terminals ask at the same time?

`make` runs this with any Python >= 3.11 that has `venv`; it needs nothing installed. Usage:
python .ci/setup.py STAMP, where STAMP is the file that says "ready" in the environment folder.
"""

import fcntl
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
WHAT = ".[mcp,redis,dev]"


def main() -> int:
    """Create the environment and install into it, unless another process just did."""
    stamp = ROOT / sys.argv[1]
    folder = stamp.parent
    # Not inside the folder: creating the environment may empty it.
    with (ROOT / ".setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (ROOT / "pyproject.toml").stat().st_mtime
        if stamp.exists() and stamp.stat().st_mtime >= wanted:
            return 0
        python = folder / "bin" / "python"
        if not usable(python):
            say(f"creating {folder.name} with Python {sys.version.split()[0]}")
            venv.create(folder, clear=True, with_pip=True)
        say(f"installing tidegate and its tools into {folder.name} (once)")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "-e", WHAT], cwd=ROOT, check=False)  # noqa: S603 - our own
        if done.returncode == 0:
            stamp.touch()
        return done.returncode


def usable(python: Path) -> bool:
    """Whether this is a Python that can hold us, with pip."""
    code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", code], check=False).returncode == 0  # noqa: S603


def say(text: str) -> None:
    """On stderr: the stdout of `make task1` belongs to a protocol."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
