"""What does the file take at this place?

Lives here: the walk from a path to the model behind it, with bounds and examples. Does not live
here: the words made of it (wording).
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Union

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.shapes import MILLIONTHS


@dataclass(frozen=True, slots=True)
class Kind:
    """What a place of the file takes: an annotation with the bounds and examples beside it."""

    annotation: Any
    field: FieldInfo | None = None
    key: str = ""

    @property
    def model(self) -> type[BaseModel] | None:
        """The section, where a mapping with fixed keys is wanted."""
        plain = bare(self.annotation)
        return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None

    @property
    def secret(self) -> bool:
        """Whether the value, or anything in it, must never be shown."""
        plain = bare(self.annotation)
        if typing.get_origin(plain) in (tuple, dict):
            return Kind(plain.__args__[-1 if typing.get_origin(plain) is dict else 0]).secret
        return plain is SecretStr

    @property
    def text(self) -> bool:
        """Whether any text is wanted, a secret one included."""
        return bare(self.annotation) in (str, SecretStr)

    @property
    def words(self) -> bool:
        """Whether one of a few words is wanted."""
        return typing.get_origin(bare(self.annotation)) is Literal

    @property
    def seconds(self) -> bool:
        """Whether the number is a time; the key says so by its ending."""
        return self.key.endswith("_s") and not self.key.endswith("_per_s")

    @property
    def millionths(self) -> bool:
        """Whether the number is money, in whole millionths of it."""
        return MILLIONTHS in self._metadata()

    @property
    def example(self) -> str | None:
        """A text that would fit, where the model gives one."""
        if self.field is None:
            return None
        if self.field.examples:
            return str(self.field.examples[0])
        default: object = self.field.default
        return default if isinstance(default, str) and default else None

    def takes_word(self, word: str) -> bool:
        """Whether `word` is one of the few words that fit here."""
        return self.words and word in typing.get_args(bare(self.annotation))

    def bounds(self) -> Iterator[tuple[str, float]]:
        """The bounds of a number: "ge", "gt" or "le", and the value."""
        for bound in self._metadata():
            for name in ("ge", "gt", "le"):
                if (limit := getattr(bound, name, None)) is not None:
                    yield name, limit

    def _metadata(self) -> Iterator[object]:
        if self.field is not None:
            yield from self.field.metadata
        for part in (self.annotation, *typing.get_args(self.annotation)):
            for extra in getattr(part, "__metadata__", ()):
                yield from extra.metadata if isinstance(extra, FieldInfo) else (extra,)

    def at(self, step: str | int) -> "Kind | None":
        """What the place one step further takes; None where the model knows no such place."""
        plain = bare(self.annotation)
        if self.model is not None:
            found = field_of(self.model, step)
            return Kind(found.annotation, found, str(step)) if found is not None else None
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
