"""What does a page of a list say, and does another one follow?

Lives here: the way from page to page, and what leads nowhere. Pure. Does not live here: who asks
for them and how many may come (gateway.tool_requests.federation and asked_lists,
gateway.servers.bridge_mending), cursors as clients see them (cursors).
"""


class PageWalk:
    """Through one list, which stands in `member` of each result.

    `cursor` is that of the next page: None before the first one, and after the last.
    """

    __slots__ = ("_member", "_seen", "cursor")

    def __init__(self, member: str) -> None:
        self._member = member
        self._seen = set[str]()
        self.cursor: str | None = None

    def items(self, result: object) -> list[object] | None:
        """What the page lists; None if it is no page of it, or leads back to one that has been."""
        found = result.get(self._member) if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(found, list):
            return None
        following = result.get("nextCursor")
        self.cursor = following if isinstance(following, str) else None
        if self.cursor is None:
            return found
        if self.cursor in self._seen:
            return None
        self._seen.add(self.cursor)
        return found


__all__ = ["PageWalk"]
