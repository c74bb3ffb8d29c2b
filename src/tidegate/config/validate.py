"""Which parts of this tree fit the model, and what is left when the others are taken out?

Lives here: the loop around pydantic that reports every mistake once and goes on with a tree
without it, so that the checks between keys still see the rest. Does not live here: the words
(wording), the checks themselves (checks).
"""

import typing
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tidegate.config.document import Tree
from tidegate.config.findings import Findings
from tidegate.config.kinds import Kind, bare, field_of, keys_of, kind_at
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.scalars import Ambiguity
from tidegate.config.wording import subject, words_for

# Each round takes out what the round before uncovered; no path of the file is that long.
_MOST_ROUNDS = 12
UNKNOWN_KEY = "extra_forbidden"
_EMPTY_PARTS = ("model_type", "tuple_type", "dict_type")


def validate(
    tree: dict[str, Tree], findings: Findings, ambiguous: Mapping[Path, Ambiguity]
) -> Config:
    """The configuration in `tree`; what is wrong goes to `findings`.

    After a problem the result stands for the parts that are right, with defaults or examples in
    place of the others: good for further checks, never to be served.
    """
    for _ in range(_MOST_ROUNDS):
        try:
            config = Config.model_validate(tree)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=True)
            # Unknown keys first: a key that is missing may stand there under another name.
            for details in sorted(errors, key=lambda details: details["type"] != UNKNOWN_KEY):
                tree = _take_out(tree, details, findings, ambiguous)
        else:
            _report_words_of_two_meanings(findings, ambiguous)
            return config
    findings.error((), "there are too many mistakes to see them all", "mend these first")
    return Config()


def _take_out(
    tree: dict[str, Tree],
    error: ErrorDetails,
    findings: Findings,
    ambiguous: Mapping[Path, Ambiguity],
) -> dict[str, Tree]:
    path = error["loc"]
    if path[-1:] == ("[key]",):
        path = path[:-1]
        findings.error(path, *_words_for_key(error), at_key=True)
        findings.spoil(path)
        return _without(tree, path)
    if error["type"] == "too_short" and error["input"]:
        # Pydantic counts only the items that are right; the wrong ones are reported themselves.
        return tree
    empty = error["type"] in _EMPTY_PARTS and error["input"] is None
    if empty and isinstance(path[-1], str) and not _narrows(path):
        # `routes:` with nothing below it, all commented out: the same as no `routes` at all.
        return _without(tree, path)
    at_key = error["type"] in (UNKNOWN_KEY, "missing")
    by_reference = path in findings.references
    wrong, right = words_for(error, ambiguous.get(path), by_reference=by_reference)
    findings.error(path, wrong, right, at_key=at_key)
    findings.spoil(path)
    if error["type"] == UNKNOWN_KEY:
        findings.spoil(*_meant(path, right, tree))
    return _repaired(tree, path)


def _narrows(path: Path) -> bool:
    """Whether the key says whom something is for: without its list it would be for everybody."""
    return "match" in path or (path[:2] == ("mcp", "rules") and len(path) > 2)


def _meant(path: Path, right: str, tree: Tree) -> Iterator[Path]:
    """The key that an unknown one was probably meant to be, if it is not there as well."""
    meant = (*path[:-1], right.partition("`")[2].partition("`")[0].partition(":")[0])
    if _look_up(tree, meant) is None:
        yield meant


def _look_up(tree: Tree, path: Path) -> Tree:
    for step in path:
        if isinstance(tree, dict) and isinstance(step, str):
            tree = tree.get(step)
        elif isinstance(tree, tuple) and isinstance(step, int):
            tree = tree[step]
        else:
            return None
    return tree


def _words_for_key(error: ErrorDetails) -> tuple[str, str]:
    context: Mapping[str, str] = error.get("ctx", {})
    name = quoted(str(error["input"]))
    return f"{name} {context.get('wrong', 'is not usable here')}", context.get("right", "rename it")


def _report_words_of_two_meanings(findings: Findings, ambiguous: Mapping[Path, Ambiguity]) -> None:
    for path, ambiguity in ambiguous.items():
        kind = kind_at(path)
        if kind is None or not kind.takes_word(ambiguity.text):
            says = f"without quotes is unclear: {ambiguity.reading}"
            findings.error(path, subject(ambiguity.text, kind, says), "put it in quotes")


def _repaired(tree: dict[str, Tree], path: Path) -> dict[str, Tree]:
    """`tree` with the broken value at `path` removed or, where one is needed, replaced."""
    parent = kind_at(path[:-1])
    kind = kind_at(path)
    if kind is None or parent is None:
        return _without(tree, path)
    if parent.model is not None:
        if _required(parent.model, path[-1]):
            return _with(tree, path, _stand_in(kind))
        return _without(tree, path)
    if kind.model is not None:
        return _with(tree, path, _stand_in(kind))
    if isinstance(path[-1], int):
        return _repaired(tree, path[:-1])
    return _without(tree, path)


def _required(model: type[BaseModel], key: str | int) -> bool:
    found_field = field_of(model, key)
    return found_field is not None and found_field.is_required()


def _stand_in(kind: Kind) -> Tree:
    """A value that passes where one is required."""
    plain = bare(kind.annotation)
    if typing.get_origin(plain) is tuple:
        return (_stand_in(Kind(typing.get_args(plain)[0])),)
    if kind.model is not None:
        needed = [key for key in keys_of(kind.model) if _required(kind.model, key)]
        return {key: _stand_in(inner) for key in needed if (inner := kind.at(key)) is not None}
    return kind.example or "x"


def _without(tree: dict[str, Tree], path: Path) -> dict[str, Tree]:
    """A copy of `tree` that has nothing at `path`."""
    return typing.cast("dict[str, Tree]", _changed(tree, path, None, remove=True))


def _with(tree: dict[str, Tree], path: Path, value: Tree) -> dict[str, Tree]:
    """A copy of `tree` that has `value` at `path`."""
    return typing.cast("dict[str, Tree]", _changed(tree, path, value, remove=False))


def _changed(tree: Tree, path: Path, value: Tree, *, remove: bool) -> Tree:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(tree, dict) and isinstance(step, str):
        if rest and step not in tree:
            # An earlier mistake already took this part out.
            return tree
        copy = dict(tree)
        if remove and not rest:
            copy.pop(step, None)
        else:
            copy[step] = _changed(tree.get(step), rest, value, remove=remove)
        return copy
    if isinstance(tree, tuple) and isinstance(step, int) and step < len(tree):
        items = list(tree)
        items[step] = _changed(items[step], rest, value, remove=remove)
        return tuple(items)
    return tree
