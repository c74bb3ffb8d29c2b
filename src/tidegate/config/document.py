"""What does this YAML text say, and where does it say it?

Lives here: bytes to a plain tree of dict, tuple and scalars with the place of every key and
value; everything of YAML that a reader could take two ways is refused here (duplicate keys,
aliases, tags, other encodings). Does not live here: which keys exist (sections), references to
the environment (references).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from tidegate.config.errors import Problem
from tidegate.config.places import Mark, Path, Places, quoted, spell
from tidegate.config.scalars import Ambiguity, Scalar, resolve
from tidegate.config.syntax import character_problem, syntax_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

Tree = Scalar | tuple["Tree", ...] | dict[str, "Tree"]

MOST_BYTES = 1_048_576
# The deepest path of the file has nine steps; the bound keeps hostile nesting from the stack.
MOST_DEPTH = 24
# Each fault costs a line on a terminal; a file of noise should not fill it.
MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A text as plain values.

    `ambiguous` holds words that YAML readers disagree about, `refused` the places of aliases
    and tags: what stands there is not what was meant.
    """

    tree: dict[str, Tree] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    ambiguous: dict[Path, Ambiguity] = field(default_factory=dict)
    refused: frozenset[Path] = frozenset()
    problems: tuple[Problem, ...] = ()


def read_document(data: bytes, file: str) -> Document:
    """The document in `data`, named `file` in findings; an empty one is an empty mapping.

    Never raises: what is wrong is in `problems`, and the rest of the document is still there
    unless its syntax is broken. Cost: about a millisecond for each kilobyte.
    """
    if len(data) > MOST_BYTES:
        wrong = f"the file has {len(data)} bytes"
        return _failed(file, Mark(1, 1), (wrong, f"keep it below {MOST_BYTES} bytes"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _failed(file, *_not_utf8(data, error))
    if (odd := character_problem(text)) is not None:
        return _failed(file, *odd)
    reader = _Reader(file, text)
    try:
        return reader.read()
    except yaml.MarkedYAMLError as error:
        return _failed(file, *syntax_problem(error, text))
    except _Stopped:
        return Document(problems=tuple(reader.problems))


def _failed(file: str, mark: Mark, words: tuple[str, str]) -> Document:
    return Document(problems=(Problem(file, mark.line, mark.col, "", *words),))


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> tuple[Mark, tuple[str, str]]:
    """Place and words for bytes that are not UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Mark(1, 1), ("the file is UTF-16", "save it as UTF-8")
    before = data[: error.start]
    line_start = before.rfind(b"\n") + 1
    column = len(before[line_start:].decode("utf-8", "replace")) + 1
    mark = Mark(before.count(b"\n") + 1, column)
    return mark, (f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")


class _Stopped(Exception):
    """Nothing sensible can be read beyond this point."""


class _Reader:
    """One pass over the events of one text."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._keys: dict[Path, Mark] = {}
        self._values: dict[Path, Mark] = {}
        self._ambiguous: dict[Path, Ambiguity] = {}
        self._refused: set[Path] = set()
        self.problems: list[Problem] = []

    def read(self) -> Document:
        """The whole stream: at most one document, a mapping at its top."""
        tree: dict[str, Tree] = {}
        next(self._events)
        event = next(self._events)
        if isinstance(event, yaml.DocumentStartEvent):
            tree = self._top(next(self._events))
            next(self._events)
            event = next(self._events)
        if isinstance(event, yaml.DocumentStartEvent):
            self._add(event, (), "a second YAML document begins here", "keep one document a file")
        places = Places(self._keys, self._values)
        refused = frozenset(self._refused)
        return Document(tree, places, self._ambiguous, refused, tuple(self.problems))

    def _top(self, event: yaml.Event) -> dict[str, Tree]:
        tree = self._node(event, (), 0)
        if isinstance(tree, dict):
            return tree
        if tree is not None:
            kind = "a list" if isinstance(tree, tuple) else "a single value"
            right = "write keys, such as `server: { port: 8080 }`"
            if isinstance(tree, str) and ":" in tree:
                right = "write a space after every colon, such as `demo: true`"
            self._add(event, (), f"the file holds {kind}", right)
        return {}

    def _node(self, event: yaml.Event, path: Path, depth: int) -> Tree:
        if depth > MOST_DEPTH:
            self._add(event, path, "nested too deeply", "no key of this file lies that deep")
            raise _Stopped
        self._values[path] = _mark(event)
        if isinstance(event, yaml.AliasEvent):
            self._add(event, path, f"`*{event.anchor}` repeats another part", _ALIAS_RIGHT)
            self._refused.add(path)
            return None
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._add(event, path, f"`&{event.anchor}` marks a part for repetition", _ALIAS_RIGHT)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            wrong = f"the tag {quoted(_short_tag(str(tag)))} is not understood"
            self._add(event, path, wrong, "remove it; put text that looks like a number in quotes")
            self._refused.add(path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        assert isinstance(event, yaml.ScalarEvent)  # noqa: S101 - the only kind of node left
        return self._scalar(event, path)

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> Scalar:
        if event.style is not None:
            return str(event.value)
        value, ambiguity = resolve(event.value)
        if ambiguity is not None:
            self._ambiguous[path] = ambiguity
        return value

    def _sequence(self, path: Path, depth: int) -> tuple[Tree, ...]:
        items: list[Tree] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items)), depth + 1))
        return tuple(items)

    def _mapping(self, path: Path, depth: int) -> dict[str, Tree]:
        items: dict[str, Tree] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path, depth)
            if key is None or key in items:
                # Read on for the sake of the events, but keep nothing of it.
                self._discard(next(self._events))
                continue
            self._keys[(*path, key)] = _mark(event)
            items[key] = self._node(next(self._events), (*path, key), depth + 1)
        return items

    def _key(self, event: yaml.Event, path: Path, depth: int) -> str | None:
        """The text of a key; None, with a problem, for what cannot be one."""
        if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag not in (None, "!"):
            self._discard(event)
            right = "a key is one word; text with { or [ belongs in quotes"
            self._add(event, path, "this key is not plain text", right)
            return None
        key = str(event.value)
        if key == "<<" and event.style is None:
            self._add(event, path, "`<<` merges another part", _ALIAS_RIGHT)
            return None
        if not key:
            self._add(event, path, "a key is missing before the colon", "write its name")
            return None
        if (first := self._keys.get((*path, key))) is not None:
            wrong = f"this key stands here twice (first in line {first.line})"
            self._add(event, (*path, key), wrong, "keep one of the two")
        return key

    def _discard(self, event: yaml.Event) -> None:
        """Skip one node, whatever its depth."""
        depth = 0
        while True:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 0:
                return
            event = next(self._events)

    def _add(self, event: yaml.Event, path: Path, wrong: str, right: str) -> None:
        mark = _mark(event)
        self.problems.append(Problem(self._file, mark.line, mark.col, spell(path), wrong, right))
        if len(self.problems) >= MOST_PROBLEMS:
            raise _Stopped


_ALIAS_RIGHT = "write the values out where they are needed"


def _mark(event: yaml.Event) -> Mark:
    start = event.start_mark
    return Mark(start.line + 1, start.column + 1) if start is not None else Mark(1, 1)


def _short_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
