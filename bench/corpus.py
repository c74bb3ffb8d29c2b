"""Which ordinary texts are measured on, and how are they cut like the stream of a model?"""

import asyncio
import pydoc_data.topics
import random
import re
from itertools import islice
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parent
# Words with the space before them, numbers by three, signs, white space: as tokenizers cut.
_TOKEN = re.compile(r" ?[^\W\d_]+| ?[0-9]{1,3}| ?[^\w\s]+|_|\s+")
_LONG = 7


def prose() -> str:
    """A story, a paragraph a line: narration, dialogue, names, dashes, a few figures."""
    return (_HERE / "data" / "prose.txt").read_text(encoding="ascii")


def manual() -> str:
    """The paragraphs of Python's own help topics, without its tables and programs."""
    parts = "\n\n".join(pydoc_data.topics.topics.values()).split("\n\n")
    plain = (part for part in parts if part[:1].isalnum() and "\n   " not in part)
    return "\n\n".join(part.replace("\n", " ") for part in plain)[:400_000]


def curly_prose() -> str:
    """The same with typographic quotes and dashes, which models write too."""
    text = re.sub(r'"(?=\w)', "\u201c", prose()).replace('"', "\u201d")
    return text.replace("'", "\u2019").replace("--", "\u2014")


def markdown() -> str:
    """This repository's own pages."""
    pages = [
        _ROOT / "README.md",
        _ROOT / "CONTRIBUTING.md",
        *sorted((_ROOT / "docs").rglob("*.md")),
    ]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def code() -> str:
    """Modules of the standard library."""
    folder = Path(asyncio.__file__).parent
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))[
        :400_000
    ]


def tokens(text: str) -> list[str]:
    """Pieces like those of a model: most words whole, long ones in two or three."""
    rnd = random.Random(1)  # noqa: S311 - the same cuts in every run
    pieces = []
    for found in _TOKEN.finditer(text):
        piece = found[0]
        while len(piece) > _LONG:
            cut = rnd.randrange(3, _LONG)
            pieces.append(piece[:cut])
            piece = piece[cut:]
        pieces.append(piece)
    return pieces


def blocks(text: str, size: int = 4096, most: int = 100) -> list[str]:
    """`text` in blocks."""
    return list(islice((text[i : i + size] for i in range(0, len(text), size)), most))
