"""Which cases may fail in this release, and why?

The file has one case a line: its id (with `@spec` if only that profile is meant), then one word
of reason. It may only shrink: a case on it that passes is reported.
"""

from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).parent / "known_failures.txt"


class BadList(ValueError):
    """A line that is not an id and one word."""


def read(path: Path = FILE, *, profile: str = "brief") -> Mapping[str, str]:
    """Reason by case id, for one profile; raises BadList."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.partition("#")[0].split()
        if not parts:
            continue
        if len(parts) != 2 or parts[0] in found:
            raise BadList(f"{path.name}:{number}: an id once, and one word of reason")
        found[parts[0]] = parts[1]
    here = {name: reason for name, reason in found.items() if "@" not in name}
    return here | {
        name.removesuffix(f"@{profile}"): reason
        for name, reason in found.items()
        if name.endswith(f"@{profile}")
    }
