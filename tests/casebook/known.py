"""Which cases may fail in this release, and why?

The file has one case a line: its id, then one word of reason. It may only shrink: a case on it
that passes is reported, and so is an id that no case has.
"""

from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).parent / "known_failures.txt"


class BadList(ValueError):
    """A line that is not an id and one word."""


def read(path: Path = FILE) -> Mapping[str, str]:
    """Reason by case id; raises BadList."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        parts = text.split()
        if len(parts) != 2 or parts[0] in found:
            raise BadList(f"{path.name}:{number}: an id once, and one word of reason")
        found[parts[0]] = parts[1]
    return found
