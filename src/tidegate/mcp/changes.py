"""Which changes at a server does a client want to hear of, and which can it?

Lives here: the wish of a subscriptions/listen, what a server's capabilities grant of it, and the
notifications that it is about. Does not live here: streams (gateway.servers.bridge_streams), which
resources a principal may hear of (listing).

Source: MCP 2026-07-28, basic/utilities/subscriptions (SubscriptionFilter).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tidegate.jsonrpc import Tree
from tidegate.mcp.introductions import Introduction

LISTS: Final[Mapping[str, str]] = {
    "toolsListChanged": "tools/list",
    "promptsListChanged": "prompts/list",
    "resourcesListChanged": "resources/list",
}
"""Members of a subscription's filter, and the list whose changes each is about."""
_FLAG_OF: Final[Mapping[str, str]] = {
    f"notifications/{method}_changed": flag for flag, method in LISTS.items()
}
_UPDATED: Final = "notifications/resources/updated"
_MOST_URIS: Final = 1_000
_MOST_CHARS: Final = 262_144
_MOST_DOUBTFUL_CHARS: Final = 65_536
_PLAIN_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9/._~!$'()*+,:=&?#-]*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lists by the member of the filter that asks for them, and URIs of resources."""

    lists: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()

    def hears(self, method: str, params: object) -> bool:
        """Whether a notification is about something that is wanted."""
        if method == _UPDATED:
            return isinstance(params, dict) and params.get("uri") in self.uris
        return _FLAG_OF.get(method) in self.lists

    def with_uris(self, uris: Collection[str]) -> "Wanted":
        """The same lists and other resources."""
        return replace(self, uris=frozenset(uris))

    def granted(self, server: Introduction) -> "Wanted":
        """The lists of whose changes the server says that it tells."""
        offers = {flag: method.partition("/")[0] for flag, method in LISTS.items()}
        told = (flag for flag in self.lists if server.promises(offers[flag], "listChanged"))
        return replace(self, lists=frozenset(told))

    def encode(self) -> Tree:
        """The filter as a JSON value; members in a fixed order, and only those that are wanted."""
        wish: Tree = dict.fromkeys(sorted(self.lists), True)
        if self.uris:
            wish["resourceSubscriptions"] = sorted(self.uris)
        return wish


ALL: Final = Wanted(frozenset(LISTS))
"""Every list: what a client of an older revision hears of without asking."""


def changed_list(method: str) -> str | None:
    """The method that asks for the list of which this notification says that it has changed."""
    return LISTS.get(_FLAG_OF.get(method, ""))


def wish_of(params: Mapping[str, object]) -> tuple[Tree, list[str]] | None:
    """All that a subscriptions/listen asks for, and the URIs in it.

    None if it is malformed or names more resources than `has_room` for, or more of those that
    rules have to read in many ways (escapes, parameters, users, signs outside of ASCII) than
    65,536 characters. Cost: a look at each.
    """
    wish = params.get("notifications")
    if not isinstance(wish, dict):
        return None
    uris = wish.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        return None
    doubtful_chars = sum(len(uri) for uri in uris if not _PLAIN_URI.fullmatch(uri))
    if not has_room(uris) or doubtful_chars > _MOST_DOUBTFUL_CHARS:
        return None
    return wish, uris


def has_room(uris: Collection[str]) -> bool:
    """Whether one client may wait for news of all these resources. Cost: a look at each."""
    return len(uris) <= _MOST_URIS and sum(map(len, uris)) <= _MOST_CHARS


def wanted_of(params: Tree | None) -> Wanted:
    """The wish in the params of a subscriptions/listen; members that are no wish are none."""
    wish = (params or {}).get("notifications")
    if not isinstance(wish, dict):
        return Wanted()
    uris = wish.get("resourceSubscriptions")
    named = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
    lists = frozenset(member for member in LISTS if wish.get(member) is True)
    return Wanted(lists, frozenset(named[:_MOST_URIS]))


__all__ = ["ALL", "LISTS", "Wanted", "changed_list", "has_room", "wanted_of", "wish_of"]
