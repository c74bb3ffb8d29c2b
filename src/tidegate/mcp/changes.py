"""Which changes at a server does a client want to hear of, and which can it?

Lives here: the wish of a subscriptions/listen, what a server's capabilities grant of it, and the
notifications that it is about. Does not live here: streams (gateway.servers.bridge_streams), which
resources a principal may hear of (listing).

Source: MCP 2026-07-28, basic/utilities/subscriptions (SubscriptionFilter).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tidegate.jsonrpc import Tree
from tidegate.mcp.introductions import Introduction

FLAG_OF: Final[Mapping[str, str]] = {
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/tools/list_changed": "toolsListChanged",
}
"""Notifications that a list changed, and the member of a subscription that asks for them."""
_UPDATED: Final = "notifications/resources/updated"
_CAPABILITY: Final[Mapping[str, str]] = {
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
    "toolsListChanged": "tools",
}
_MOST_URIS: Final = 1_000
_MOST_CHARS: Final = 262_144


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lists by the member of the filter that asks for them, and URIs of resources."""

    lists: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()

    def hears(self, method: str, params: object) -> bool:
        """Whether a notification is about something that is wanted."""
        if method == _UPDATED:
            return isinstance(params, dict) and params.get("uri") in self.uris
        return FLAG_OF.get(method) in self.lists

    def with_uris(self, uris: Collection[str]) -> "Wanted":
        """The same lists and other resources."""
        return replace(self, uris=frozenset(uris))

    def granted(self, server: Introduction) -> "Wanted":
        """The lists of whose changes the server says that it tells."""
        told = (each for each in self.lists if server.promises(_CAPABILITY[each], "listChanged"))
        return replace(self, lists=frozenset(told))

    def encode(self) -> Tree:
        """The filter as a JSON value; members in a fixed order, and only those that are wanted."""
        wish: Tree = dict.fromkeys(sorted(self.lists), True)
        if self.uris:
            wish["resourceSubscriptions"] = sorted(self.uris)
        return wish


ALL: Final = Wanted(frozenset(_CAPABILITY))
"""Every list: what a client of an older revision hears of without asking."""


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
    lists = frozenset(member for member in _CAPABILITY if wish.get(member) is True)
    return Wanted(lists, frozenset(named[:_MOST_URIS]))


__all__ = ["ALL", "FLAG_OF", "Wanted", "has_room", "wanted_of"]
