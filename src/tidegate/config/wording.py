"""How is a value that breaks the model described to somebody who never saw the model?

Lives here: the words for every kind of validation error, and the words for what a key takes,
both derived from the model itself. Does not live here: rules between keys (checks).
"""

import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tidegate.config.models import Config
from tidegate.config.places import Path, quoted, spell
from tidegate.config.scalars import Ambiguity

Words = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a place of the file takes: an annotation with the bounds and examples beside it."""

    annotation: Any
    field: FieldInfo | None = None

    @property
    def model(self) -> type[BaseModel] | None:
        """The section, where a mapping with fixed keys is wanted."""
        plain = bare(self.annotation)
        return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None

    @property
    def secret(self) -> bool:
        """Whether the value must never be shown."""
        return bare(self.annotation) is SecretStr

    def at(self, step: str | int) -> "Kind | None":
        """What the place one step further takes; None where the model knows no such place."""
        plain = bare(self.annotation)
        if self.model is not None:
            found = field_of(self.model, step)
            return Kind(found.annotation, found) if found is not None else None
        arguments = typing.get_args(plain)
        if typing.get_origin(plain) is dict and isinstance(step, str):
            return Kind(arguments[1])
        if typing.get_origin(plain) is tuple and isinstance(step, int):
            return Kind(arguments[0])
        return None


def field_of(model: type[BaseModel], key: str | int) -> FieldInfo | None:
    """The field that the key `key` of the file fills."""
    for name, found in model.model_fields.items():
        if key == (found.alias or name):
            return found
    return None


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a section, as the file spells them."""
    return [found.alias or name for name, found in model.model_fields.items()]


def kind_at(path: Path) -> Kind | None:
    """What the file takes at `path`; None for a place that it does not have."""
    kind: Kind | None = Kind(Config)
    for step in path:
        kind = kind.at(step) if kind is not None else None
    return kind


def bare(annotation: Any) -> Any:
    """The annotation without `| None` and without Annotated."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            rest = [part for part in typing.get_args(annotation) if part is not type(None)]
            annotation = rest[0]
        else:
            return annotation


def takes_null(annotation: Any) -> bool:
    """Whether null is a value here."""
    return type(None) in typing.get_args(annotation)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be."""
    pool = list(known)
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in pool}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def words_for(error: ErrorDetails, ambiguity: Ambiguity | None) -> Words:
    """Wrong and right for one validation error. Never shows the value of a secret."""
    path, kind = error["loc"], kind_at(error["loc"])
    match error["type"]:
        case "extra_forbidden":
            return unknown_key(path)
        case "missing":
            return f"`{path[-1]}` is missing", f"add `{sample(path)}`"
        case "refused":
            context: Mapping[str, str] = error.get("ctx", {})
            return shown(error["input"], kind) + context["wrong"], context["right"]
        case "too_short" | "string_too_short" if not error["input"]:
            return "nothing is listed" if isinstance(error["input"], tuple) else "empty", wanted(
                kind
            )
    if ambiguity is not None:
        return f"{quoted(str(error['input']))}: {ambiguity.reading}", wanted(kind, ambiguity)
    return found(error["input"], kind), wanted(kind)


def unknown_key(path: Path) -> Words:
    """Words for a key that the section around it does not have."""
    word = str(path[-1])
    parent = kind_at(path[:-1])
    keys = keys_of(parent.model) if parent is not None and parent.model is not None else []
    if (hint := _FOREIGN.get((_section(path), word.lower()))) is not None:
        return "unknown key", hint
    if (close := nearest(word, keys)) is not None:
        return "unknown key", f"did you mean `{close}`?"
    homes = [home for home in _homes().get(word, ()) if home != path[:-1]]
    if len(homes) == 1:
        home = spell(homes[0]) or "the top level of the file"
        return "unknown key here", f"`{word}` belongs under {home}"
    return "unknown key", f"known here: {', '.join(keys)}"


def _section(path: Path) -> str:
    return str(path[0]) if len(path) > 1 else ""


# What people who come from other gateways write, by section.
_FOREIGN: Mapping[tuple[str, str], str] = {
    ("providers", "api_key"): 'write `credentials: ["${env:NAME}"]`',
    ("providers", "key"): 'write `credentials: ["${env:NAME}"]`',
    ("providers", "credential"): 'write `credentials: ["${env:NAME}"]`, a list',
    ("providers", "url"): "write `base_url`",
    ("providers", "type"): "write `dialect`",
    ("providers", "timeout"): "deadlines belong to a route: `routes[].deadlines`",
    ("providers", "timeout_s"): "deadlines belong to a route: `routes[].deadlines`",
    ("routes", "providers"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "targets"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "provider"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "timeout"): "write `deadlines: { total_s: 60.0 }`",
    ("routes", "timeout_s"): "write `deadlines: { total_s: 60.0 }`",
    ("routes", "fallbacks"): "list every target under `candidates`, in order",
    ("routes", "retries"): "write `attempts`",
    ("routes", "models"): "write `model`, one pattern for each route",
    ("limits", "window"): "write `window_s`, in seconds",
    ("limits", "rpm"): "write `requests: N` with `window_s: 60`",
    ("limits", "tpm"): "write `tokens: N` with `window_s: 60`",
    ("identity", "token"): "write `key`",
    ("identity", "role"): "write `roles`, a list",
    ("mcp", "token"): "write `credential`",
    ("mcp", "args"): "write program and arguments as one list under `command`",
    ("", "models"): "models are named under `providers` and `routes`",
    ("", "model_list"): "write `providers` and `routes`",
    ("", "keys"): "write them under `identity`",
    ("", "rules"): "write them under `mcp`",
    ("", "servers"): "write them under `mcp`",
    ("", "host"): "write it under `server`",
    ("", "port"): "write it under `server`",
    ("", "log"): "write it under `telemetry`",
    ("", "logging"): "write `telemetry`",
    ("", "log_level"): "write `telemetry: { level: info }`",
}


def _homes() -> dict[str, tuple[Path, ...]]:
    """Every key of the file that lies at a fixed path -> the sections that have it."""
    homes: dict[str, tuple[Path, ...]] = {}
    for section, model in _fixed_sections((), Config):
        for key in keys_of(model):
            homes[key] = (*homes.get(key, ()), section)
    return homes


def _fixed_sections(path: Path, model: type[BaseModel]) -> Iterator[tuple[Path, type[BaseModel]]]:
    yield path, model
    for key in keys_of(model):
        inner = Kind(model).at(key)
        if inner is not None and inner.model is not None:
            yield from _fixed_sections((*path, key), inner.model)


def sample(path: Path) -> str:
    """A line that would fill the key at `path`."""
    kind = kind_at(path)
    examples = kind.field.examples if kind is not None and kind.field is not None else None
    return f"{path[-1]}: {examples[0] if examples else '...'}"


def shown(value: object, kind: Kind | None) -> str:
    """The value and a blank, where showing it is safe and helps; else nothing."""
    if not isinstance(value, str) or not value or (kind is not None and kind.secret):
        return ""
    return f"{quoted(value)} is " if len(value) <= 40 else ""


def found(value: object, kind: Kind | None) -> str:
    """What stands there instead, as a sentence; never the value of a secret."""
    if value is None:
        return "nothing stands here"
    if isinstance(value, dict):
        return "this is a mapping"
    if isinstance(value, tuple):
        return "this is a list"
    if kind is not None and kind.secret:
        return "this is not text" if not isinstance(value, str) else "this value does not fit"
    if isinstance(value, bool):
        return f"{str(value).lower()} is a truth value"
    if isinstance(value, int | float):
        return (
            f"{value} is a number"
            if kind is None or not _numeric(kind)
            else f"{value} does not fit"
        )
    return f"{quoted(str(value))} does not fit"


def _numeric(kind: Kind) -> bool:
    return bare(kind.annotation) in (int, float)


def wanted(kind: Kind | None, ambiguity: Ambiguity | None = None) -> str:
    """What would be right at a place of this kind."""
    if kind is None:
        return "see `tidegate schema`"
    plain = bare(kind.annotation)
    origin = typing.get_origin(plain)
    if kind.model is not None:
        return f"write keys under it: {', '.join(keys_of(kind.model))}"
    if origin is dict:
        return "write a mapping of names to values"
    if origin is tuple:
        return f"write a list, such as {_sample_list(typing.get_args(plain)[0])}"
    if origin is Literal:
        return f"one of {', '.join(map(str, typing.get_args(plain)))}"
    if plain is bool:
        return f"write {ambiguity.plain}" if _is_truth(ambiguity) else "write true or false"
    if plain in (int, float):
        return _number(kind, ambiguity)
    examples = kind.field.examples if kind.field is not None else None
    return f"write text, such as {examples[0]}" if examples else "write text, in quotes"


def _is_truth(ambiguity: Ambiguity | None) -> typing.TypeGuard[Ambiguity]:
    return ambiguity is not None and ambiguity.plain in ("true", "false")


def _sample_list(item: Any) -> str:
    inner = Kind(item)
    if inner.model is not None:
        return f"[{{ {keys_of(inner.model)[0]}: ... }}]"
    return '["${env:NAME}"]' if inner.secret else '["..."]'


def _number(kind: Kind, ambiguity: Ambiguity | None) -> str:
    noun = "a whole number" if bare(kind.annotation) is int else "a number"
    low, high = _bounds(kind)
    text = f"write {noun} {low}{' and ' if low and high else ''}{high}".rstrip()
    if ambiguity is not None and ambiguity.plain not in ("", "true", "false"):
        text += f", such as {ambiguity.plain}"
    return text


def _bounds(kind: Kind) -> tuple[str, str]:
    low = high = ""
    for bound in _metadata(kind):
        if (least := getattr(bound, "ge", None)) is not None:
            low = f"of at least {_plain(least)}"
        elif (above := getattr(bound, "gt", None)) is not None:
            low = f"above {_plain(above)}"
        elif (most := getattr(bound, "le", None)) is not None:
            high = f"at most {_plain(most)}"
    return low, high


def _metadata(kind: Kind) -> Iterator[object]:
    if kind.field is not None:
        yield from kind.field.metadata
    annotation = kind.annotation
    for part in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(part) is typing.Annotated:
            for extra in typing.get_args(part)[1:]:
                yield from extra.metadata if isinstance(extra, FieldInfo) else (extra,)


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)
