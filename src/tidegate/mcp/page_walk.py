"""What does a page of a list say, and does another one follow?

Lives here: the way from page to page, and what leads nowhere. Pure. Does not live here: who asks
for them and how many may come (gateway.tool_requests.federation and asked_lists,
gateway.servers.bridge_mending), which cursor names a page (cursors).
"""

import hashlib
from typing import Final

from tidegate.mcp.cursors import is_cursor, names_next

MOST_BYTES: Final = 16_777_216
"""Of a list, all its pages together, whoever asks for it."""


class PageWalk:
    """Through one list, which stands in `member` of each result.

    `cursor` is that of the next page: None before the first one, and after the last. Of those that
    have been a hash is kept: 32 bytes a page, however long they are.
    """

    __slots__ = ("_member", "_seen", "cursor")

    def __init__(self, member: str) -> None:
        self._member = member
        self._seen = set[bytes]()
        self.cursor: str | None = None

    def items(self, result: object) -> list[object] | None:
        """What the page lists; None if it is no page of it, or leads back to one that has been."""
        found = result.get(self._member) if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(found, list):
            return None
        self.cursor = None
        if not names_next(result):
            return found
        following = result["nextCursor"]
        if not is_cursor(following):
            return None
        mark = hashlib.sha256(following.encode("utf-8", "surrogatepass")).digest()
        if mark in self._seen:
            return None
        self._seen.add(mark)
        self.cursor = following
        return found


__all__ = ["MOST_BYTES", "PageWalk"]
