"""How far off is the estimate, on texts whose tokens were counted?

Lives here: the sample texts that come with the package, and the estimate beside the true count of
each. Does not live here: the estimate (estimate), the command that prints it (cli.estimate).

The texts were written for this purpose (base64, hex, table and log are random data); their tokens
were counted once with a vocabulary that the package does not need and does not hold.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tidegate.limits.estimate import estimate_text


@dataclass(frozen=True, slots=True)
class Sample:
    """One text: its true `tokens`, and the tokens it is `estimated` at."""

    name: str
    size_bytes: int
    tokens: int
    estimated: int

    @property
    def error(self) -> float:
        """The estimate's share above (or, negative, below) the truth."""
        return self.estimated / self.tokens - 1.0


def vocabulary() -> str:
    """The vocabulary that the true counts are by."""
    return str(_counts()["vocabulary"])


def measured() -> tuple[Sample, ...]:
    """Every sample text, in a fixed order. Cost: reads 30 kB of package data."""
    folder = files("tidegate.limits") / "samples"
    found = []
    for entry in _counts()["texts"]:
        data = (folder / entry["file"]).read_bytes()
        estimated = estimate_text(data.decode("utf-8"))
        found.append(Sample(entry["name"], len(data), entry["tokens"], estimated))
    return tuple(found)


def _counts() -> Any:
    text = (files("tidegate.limits") / "samples" / "counts.json").read_text(encoding="utf-8")
    return json.loads(text)


__all__ = ["Sample", "measured", "vocabulary"]
