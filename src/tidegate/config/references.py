"""Which values come from the environment or from files beside the configuration?

Lives here: `${env:NAME}` and `${file:PATH}` inside text values. Does not live here: which
values ought to be references (checks.secrets).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from tidegate.config.document import Tree
from tidegate.config.places import Path, quoted

_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_FILE_BYTES = 65_536


class _Missing(Exception):
    """A reference that cannot be followed; `wrong` and `right` never hold a value."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(wrong)
        self.wrong, self.right = wrong, right


@dataclass(slots=True)
class Resolved:
    """A tree with its references followed.

    `written` holds the text of every value with a reference, as it stands in the file, and the
    value; `faults` says what could not be followed. A value with a fault keeps its text, which
    nobody may use.
    """

    tree: Tree
    written: dict[Path, tuple[str, str]] = field(default_factory=dict)
    faults: dict[Path, tuple[str, str]] = field(default_factory=dict)


def follow(tree: Tree, environ: Mapping[str, str], folder: FilePath) -> Resolved:
    """`tree` with references replaced; relative files are looked for in `folder`.

    One trailing line break of a file is dropped, as editors add it. Every file is read again on
    each call: a reload picks up a rotated secret.
    """
    resolved = Resolved(tree=None)
    resolved.tree = _walk(tree, (), lambda path, text: _text(path, text, environ, folder, resolved))
    return resolved


def _walk(tree: Tree, path: Path, change: Callable[[Path, str], str]) -> Tree:
    if isinstance(tree, dict):
        return {key: _walk(value, (*path, key), change) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_walk(item, (*path, index), change) for index, item in enumerate(tree))
    return change(path, tree) if isinstance(tree, str) else tree


def _text(
    path: Path, text: str, environ: Mapping[str, str], folder: FilePath, into: Resolved
) -> str:
    if "${" not in text:
        return text
    value = text
    try:
        value = _REFERENCE.sub(lambda match: _value(match, environ, folder), text)
    except _Missing as missing:
        into.faults[path] = (missing.wrong, missing.right)
    into.written[path] = (text, value)
    return value


def _value(match: re.Match[str], environ: Mapping[str, str], folder: FilePath) -> str:
    kind, colon, name = match.group(1).partition(":")
    if not match.group(0).endswith("}"):
        raise _Missing("a reference is not closed", "end it with }")
    if kind == "env" and colon and _ENV_NAME.fullmatch(name):
        return _from_environment(name, environ)
    if kind == "file" and name:
        return _from_file(name, folder)
    if not colon and _ENV_NAME.fullmatch(kind):
        raise _Missing(
            f"{quoted(match.group(0), limit=80)} is not a reference", f"write ${{env:{kind}}}"
        )
    raise _Missing(
        f"{quoted(match.group(0), limit=80)} is not a reference",
        "write ${env:NAME} for an environment variable or ${file:PATH} for a file",
    )


def _from_environment(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if value is None:
        raise _Missing(
            f"the environment variable {name} is not set", "set it before tidegate starts"
        )
    if not value:
        raise _Missing(
            f"the environment variable {name} is empty", "give it a value before tidegate starts"
        )
    return value


def _from_file(name: str, folder: FilePath) -> str:
    shown = quoted(name, limit=120)
    try:
        path = folder / name
        with path.open("rb") as stream:
            data = stream.read(MOST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise _Missing(
            f"the file {shown} does not exist",
            "create it; a relative path begins at the folder of this file",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise _Missing(
            f"the file {shown} cannot be read ({reason or 'not a path'})",
            "make it a file that the user who runs tidegate may read",
        ) from None
    if len(data) > MOST_FILE_BYTES:
        raise _Missing(
            f"the file {shown} has more than {MOST_FILE_BYTES} bytes", "keep only the value in it"
        )
    try:
        value = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise _Missing(f"the file {shown} is not UTF-8 text", "save it as UTF-8") from None
    if not value:
        raise _Missing(f"the file {shown} is empty", "write the value into it")
    return value
