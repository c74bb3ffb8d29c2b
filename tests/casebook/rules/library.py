"""Which rules are there?

One tuple, in the order in which patterns are tried.
"""

from tests.casebook.rules import (
    arguments,
    deltas,
    http,
    mcp,
    scopes,
    stdio,
    stream,
    timing,
    upstream,
)
from tests.casebook.rules.grammar import Library, Parser

LIBRARY = Library(
    rules=(
        *stdio.RULES,
        *arguments.RULES,
        *mcp.RULES,
        *deltas.RULES,
        *timing.RULES,
        *stream.RULES,
        *upstream.RULES,
        *http.RULES,
    ),
    scopes=scopes.SCOPES,
)


def parser(kind: str) -> Parser:
    """A parser for one kind of case; steps are read with the words of every other kind."""
    return Parser(LIBRARY, kind)
