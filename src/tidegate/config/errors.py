"""Where is the configuration wrong, and how is that said?

Lives here: the shape of one finding and the error that carries all of them. Does not live here:
how a finding is made (document, references, wording, checks).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: what is wrong at `file:line:col`, and what would be right.

    Lines and columns count from 1; 0 means that the finding has no place in a file. `path` is
    the key inside the document ("routes[0].attempts"), "" for the document itself. Neither
    `wrong` nor `right` ever holds a secret value.
    """

    file: str
    line: int
    col: int
    path: str
    wrong: str
    right: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.col}" if self.line else self.file
        return ": ".join(part for part in (place, self.path, self.wrong, self.right) if part)

    @property
    def order(self) -> tuple[str, int, int, str]:
        """Sort key: reading order of the file."""
        return self.file, self.line, self.col, self.path


@dataclass(frozen=True, slots=True)
class NotInEffect:
    """A key that is accepted and validated although nothing obeys it yet.

    `now` says what happens instead. `weakens` is true when somebody who relies on the key is
    less protected than the file suggests.
    """

    file: str
    line: int
    col: int
    path: str
    now: str
    weakens: bool

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.col}" if self.line else self.file
        loud = "NOT PROTECTED: " if self.weakens else ""
        return f"{place}: {self.path}: {loud}not in effect yet: {self.now}"


class ConfigInvalid(Exception):
    """The configuration cannot be used; `problems` are all of them, in reading order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.order))
        super().__init__("\n".join(str(problem) for problem in self.problems))
