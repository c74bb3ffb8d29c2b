"""What has been found so far, and what is no longer worth reporting?

Lives here: the collector that every check writes to. It knows the places of the document and
which of its parts are already known to be broken, so that one mistake is reported once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from tidegate.config.denylists import DenyFiles
from tidegate.config.errors import NotInEffect, Problem
from tidegate.config.places import Path, Places, quoted, spell
from tidegate.config.rulefiles import RulesDir


@dataclass(slots=True)
class Findings:
    """Problems, warnings and what is not in effect, for one document called `file`."""

    file: str
    places: Places
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    idle: list[NotInEffect] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    # Everything around a broken part, so that asking stays cheap in a file full of mistakes.
    around: set[Path] = field(default_factory=set)
    # Values with `${env:}` or `${file:}` in them, as written.
    references: dict[Path, str] = field(default_factory=dict)
    # What such a value would look like in a message -> what is shown there instead.
    hidden: dict[str, str] = field(default_factory=dict)
    # Values that no line of the file holds, and what gave them ("--port", an environment name).
    outside: dict[Path, str] = field(default_factory=dict)
    # Parts that follow from others; what is wrong with them is wrong with those.
    implied: set[Path] = field(default_factory=set)
    # Where relative files are looked for, and what stood in the deny lists, by name.
    folder: FilePath = field(default_factory=FilePath)
    # Where programs are looked for, as PATH has it; None: where the system would.
    search_path: str | None = None
    deny_files: dict[str, DenyFiles] = field(default_factory=dict)
    # The rules that tenants have in files of their own.
    rules_dir: RulesDir = field(default_factory=RulesDir)

    def error(self, path: Path, wrong: str, right: str, *, at_key: bool = False) -> None:
        """Report a mistake at `path`, unless something there is already known to be broken."""
        if not self.inside_broken(path) and path[:1] not in self.implied:
            self.problems.append(self.problem(path, wrong, right, at_key=at_key))

    def warn(self, path: Path, wrong: str, right: str, *, at_key: bool = False) -> None:
        """Report something that is allowed but probably not meant."""
        if not self.inside_broken(path) and path[:1] not in self.implied:
            self.warnings.append(self.problem(path, wrong, right, at_key=at_key))

    def not_in_effect(self, path: Path, now: str, *, weakens: bool) -> None:
        """Report a key that nothing obeys yet."""
        mark = self.places.of_key(path)
        entry = NotInEffect(self.file, mark.line, mark.col, spell(path), now, weakens)
        if not self.inside_broken(path):
            self.idle.append(entry)

    def problem(self, path: Path, wrong: str, right: str, *, at_key: bool = False) -> Problem:
        """A finding placed at the value of `path`, or at its key."""
        wrong, right = self._without_values(wrong), self._without_values(right)
        if path in self.outside:
            return Problem(self.outside[path], 0, 0, spell(path), wrong, right)
        mark = self.places.of_key(path) if at_key else self.places.of_value(path)
        return Problem(self.file, mark.line, mark.col, spell(path), wrong, right)

    def follow(self, path: Path, written: str, value: str) -> None:
        """Remember that `value` stands at `path` although the file says `written`."""
        self.references[path] = written
        for mark in ("'", '"'):
            self.hidden[quoted(value, mark=mark)] = quoted(written, mark=mark)

    def _without_values(self, words: str) -> str:
        """Words with every value that came by reference replaced by that reference."""
        for value, written in self.hidden.items():
            words = words.replace(value, written)
        return words

    def inside_broken(self, path: Path) -> bool:
        """Whether `path` or something around it is already known to be broken."""
        return any(path[:length] in self.broken for length in range(len(path) + 1))

    def spoil(self, *paths: Path) -> None:
        """Remember that what stands at these paths is broken, and was reported."""
        for path in paths:
            self.broken.add(path)
            self.around.update(path[:length] for length in range(len(path)))

    def touched(self, *paths: Path) -> bool:
        """Whether anything at, around or below one of `paths` is already known to be broken."""
        return any(path in self.around or self.inside_broken(path) for path in paths)


def join(words: Iterable[str]) -> str:
    """Words as a list for a reader; "none" without any."""
    return ", ".join(words) or "none"
