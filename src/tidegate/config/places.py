"""How is a key inside the document called, and where does it stand?

Lives here: paths, their spelling, and the table from path to line and column. Does not live
here: reading the text (document).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text; line and column count from 1."""

    line: int
    col: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where keys and values of one document stand; paths that are absent come from elsewhere."""

    keys: Mapping[Path, Mark] = field(default_factory=dict)
    values: Mapping[Path, Mark] = field(default_factory=dict)

    def of_key(self, path: Path) -> Mark:
        """The key at `path`, else the nearest thing around it; 1:1 at last."""
        return self.keys.get(path) or self.of_value(path)

    def of_value(self, path: Path) -> Mark:
        """The value at `path`, else the nearest key or value around it; 1:1 at last."""
        if path in self.values:
            return self.values[path]
        for length in range(len(path), 0, -1):
            part = path[:length]
            if (mark := self.keys.get(part) or self.values.get(part)) is not None:
                return mark
        return Mark(1, 1)

    def holds(self, path: Path) -> bool:
        """Whether the document itself says something at `path`."""
        return path in self.values


def spell(path: Path) -> str:
    """The path as people write it: `routes[0].candidates[1]`, `providers.a.models["*"]`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        elif step.replace("_", "").replace("-", "").isalnum() and step.isascii():
            words += f".{step}" if words else step
        else:
            words += "[" + quoted(step, mark='"') + "]"
    return words


def quoted(text: str, *, limit: int = 40, mark: str = "'") -> str:
    """`text` in quotes, shortened, with everything unprintable escaped: safe for a terminal."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in short
    )
    return f"{mark}{safe}{mark}"
