"""What is in effect, and which line of which file said so?

Lives here: the effective configuration as YAML with the origin of every value beside it, and the
same for programs. Secrets appear as their reference, never as their value.
"""

import json
import re
from collections.abc import Iterator, Mapping

from tidegate.config.addresses import LITERAL
from tidegate.config.demo_world import BACKEND_TOKEN, DEMO_TOKENS
from tidegate.config.models import Config
from tidegate.config.places import Path, spell
from tidegate.config.revision import canonical
from tidegate.config.scalars import resolve

DEFAULT = "default"
_PLAIN = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*")
_COMMENT_COLUMN = 56


def effective(config: Config) -> object:
    """Plain values of the whole configuration; a literal secret reads "(literal)"."""
    return canonical(config, {**config.origin.references, **_published(config)})


def origins(config: Config) -> dict[str, str]:
    """Where each single value came from, by its path as people write it."""
    return {spell(path): _origin(config, path) for path, _ in _leaves(effective(config), ())}


def as_yaml(config: Config) -> str:
    """The effective configuration as a file, one origin a line.

    It can be loaded again, unless a literal secret stands in it.
    """
    lines = [
        f"{text:<{_COMMENT_COLUMN - 1}} # {_origin(config, path)}" if path else text
        for text, path in _lines(effective(config), (), 0)
    ]
    return "\n".join(lines) + "\n"


def _published(config: Config) -> dict[Path, str]:
    """Literal tokens that are no secret because they are published with the demo."""
    known: dict[Path, str] = {}
    for index, key in enumerate(config.identity.keys):
        if key.key is not None and key.key.get_secret_value() in DEMO_TOKENS:
            known["identity", "keys", index, "key"] = key.key.get_secret_value()
    for name, server in config.mcp.servers.items():
        credential = server.credential
        if credential is not None and credential.get_secret_value() == BACKEND_TOKEN:
            known["mcp", "servers", name, "credential"] = BACKEND_TOKEN
    return known


def _origin(config: Config, path: Path) -> str:
    """The origin of the value at `path`; that of a list for what stands in it."""
    places: Mapping[Path, str] = config.origin.places
    if path in places:
        return places[path]
    for length in range(len(path) - 1, 0, -1):
        if path[:length] in config.origin.implied:
            return places[path[:length]]
    return DEFAULT


def _leaves(node: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list) and _in_blocks(node):
        for index, item in enumerate(node):
            yield from _leaves(item, (*path, index))
    else:
        yield path, node


def _in_blocks(items: list[object]) -> bool:
    return any(isinstance(item, dict | list) for item in items)


def _lines(node: object, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
    """Lines of a mapping; a line with a value carries its path, others an empty one."""
    items = node.items() if isinstance(node, dict) else ()
    for key, value in items:
        head = f"{'  ' * depth}{_scalar(key)}:"
        inner = (*path, key)
        if isinstance(value, dict) and value:
            yield head, ()
            yield from _lines(value, inner, depth + 1)
        elif isinstance(value, list) and _in_blocks(value):
            yield head, ()
            for index, item in enumerate(value):
                yield from _item(item, (*inner, index), depth + 1)
        else:
            yield f"{head} {_flow(value)}", inner


def _item(node: object, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
    """Lines of a mapping in a list; its first line begins with a dash."""
    start = "  " * depth
    for number, (text, inner) in enumerate(_lines(node, path, depth + 1)):
        yield (f"{start}- {text[len(start) + 2 :]}" if number == 0 else text), inner


def _flow(node: object) -> str:
    if isinstance(node, list):
        return f"[{', '.join(_scalar(item) for item in node)}]"
    return "{}" if isinstance(node, dict) else _scalar(node)


def _scalar(value: object) -> str:
    """A value as YAML reads it back: bare where nothing can be mistaken, else in quotes."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        plain, ambiguity = resolve(value)
        if isinstance(plain, str) and ambiguity is None and value != LITERAL:
            return value
    return json.dumps(value, ensure_ascii=False)
