"""Which rules are there?

One tuple, in the order in which patterns are tried.
"""

from tests.casebook.rules import (
    arguments,
    chunks,
    content,
    deltas,
    http,
    lists,
    mcp,
    replies,
    requests,
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
        *replies.RULES,
        *mcp.RULES,
        *lists.RULES,
        *deltas.RULES,
        *timing.RULES,
        *stream.RULES,
        *chunks.RULES,
        *requests.RULES,
        *content.RULES,
        *upstream.RULES,
        *http.RULES,
    ),
    scopes=scopes.SCOPES,
)


def parser(kind: str) -> Parser:
    """A parser for one kind of case; steps are read with the words of every other kind."""
    return Parser(LIBRARY, kind)
