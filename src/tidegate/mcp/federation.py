"""Which server does a name belong to, when several stand behind one endpoint?

Lives here: the table of the configured servers, the names and URIs that clients see, and which
server names cannot stand side by side. Does not live here: where in a message names stand
(federation_messages), how the answers of several servers become one (federation_merging).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

SEPARATOR: Final = "__"
"""Stands between the name of a server and the name that the server itself gives to a thing."""

_USABLE: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_TOKEN: Final = re.compile(r"[a-z][a-z0-9.-]*")


@dataclass(frozen=True, slots=True)
class Clash:
    """Two servers that cannot be told apart by what clients write; `other` is the later one.

    `by` is "name" where one shown name could mean a thing of either, "uri" where their URIs
    would begin the same.
    """

    server: str
    other: str
    by: str


class Federation:
    """The exact table of several servers, in the order of the file; immutable.

    Names and URIs are resolved by what the table holds and never by looking for a separator: a
    tool `b__c` of the server `a` is a tool of `a`.
    """

    __slots__ = ("_prefixes", "_tokens", "names")

    def __init__(self, names: Sequence[str]) -> None:
        """`names` without clashes (see `clashes`), each with a token."""
        self.names: Final = tuple(names)
        self._prefixes: Final = tuple((f"{name}{SEPARATOR}", name) for name in names)
        self._tokens: Final = {token_of(name): name for name in names}

    def shown_name(self, server: str, own: str) -> str | None:
        """What clients call the tool or prompt `own`; None if that is no name for them.

        Longer than 128 characters or with others than `[A-Za-z0-9_.-]` it could be listed, and no
        client could rely on it.
        """
        shown = f"{server}{SEPARATOR}{own}"
        return shown if own and _USABLE.fullmatch(shown) else None

    def own_name(self, shown: str) -> tuple[str, str] | None:
        """The server and its own name for what clients call `shown`; None if it is of nobody.

        Cost: one comparison a server.
        """
        for prefix, server in self._prefixes:
            if shown.startswith(prefix):
                return server, shown[len(prefix) :]
        return None

    def shown_uri(self, server: str, own: str) -> str:
        """What clients call the resource, or URI template, `own` of the server."""
        return f"{token_of(server)}+{own}"

    def shown_link(self, server: str, own: str) -> str:
        """What a link of the server in a result leads to, as clients write it.

        What is on the web a client fetches by itself (MCP 2026-07-28, server/resources).
        """
        is_web = own.lower().startswith(("http://", "https://"))
        return own if is_web else self.shown_uri(server, own)

    def own_uri(self, shown: str) -> tuple[str, str] | None:
        """The server and its own URI for what clients call `shown`; None if it is of nobody."""
        token, plus, own = shown.partition("+")
        server = self._tokens.get(token)
        return (server, own) if plus and server is not None else None


def token_of(server: str) -> str:
    """The server's name as the beginning of a URI scheme, which has no case and no underscores."""
    return server.lower().replace("_", ".")


def has_token(server: str) -> bool:
    """Whether URIs can begin with the name. Source: RFC 3986 3.1, a scheme begins with a letter."""
    return _TOKEN.fullmatch(token_of(server)) is not None


def clashes(names: Sequence[str]) -> Iterator[Clash]:
    """Every two servers that cannot stand side by side, in the order of the later one.

    Two names clash when a tool of each can be shown under one name: exactly when one of
    `name__` begins with the other. Then the rest of the longer one begins the tool's name.
    """
    for first, second in sorted(combinations(range(len(names)), 2), key=lambda pair: pair[1]):
        server, other = names[first], names[second]
        one, two = server + SEPARATOR, other + SEPARATOR
        if one.startswith(two) or two.startswith(one):
            yield Clash(server, other, "name")
        elif token_of(server) == token_of(other):
            yield Clash(server, other, "uri")


__all__ = ["SEPARATOR", "Clash", "Federation", "clashes", "has_token", "token_of"]
