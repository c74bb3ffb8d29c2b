"""How are the laws of streaming checked?"""

import random
from collections.abc import Iterable

from tidegate.redaction import RedactionPolicy, Redactor, Span
from tidegate.redaction.folding import OPEN_MAX
from tidegate.redaction.stream import HOLD


def streamed(policy: RedactionPolicy, pieces: Iterable[str]) -> tuple[str, tuple[Span, ...]]:
    """Everything that left, and what was found, with the bound on held text checked."""
    redactor = Redactor(policy)
    out = []
    for piece in pieces:
        out.append(redactor.feed(piece))
        assert redactor.pending < HOLD + OPEN_MAX <= 1024
    out.append(redactor.flush())
    return "".join(out), redactor.spans


def seeded(seed: int) -> random.Random:
    """The same random choices in every run."""
    return random.Random(seed)  # noqa: S311 - not for secrets


def random_pieces(text: str, rnd: random.Random) -> list[str]:
    """`text` in pieces of random sizes."""
    largest = rnd.choice((2, 5, 20, 200, 1500))
    pieces = []
    place = 0
    while place < len(text):
        size = rnd.randrange(largest + 1)
        pieces.append(text[place : place + size])
        place += size
    return pieces
