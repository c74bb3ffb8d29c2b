"""What may a tool say to its client while it runs?

Lives here: the object that a tool may take as its second argument. Outside of a server it does
nothing, so that a tool can be called in a test as it is. Does not live here: what a tool is
(strict), how messages travel (server).
"""

from typing import Any


class ToolContext:
    """One running call, seen by its tool.

    `request` is the official SDK's own context, for what is not offered here; None outside of a
    server.
    """

    request: Any = None

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell how far the call is; nothing happens if the client did not ask for it.

        `done` must grow from one call to the next (MCP, utilities/progress).
        """


__all__ = ["ToolContext"]
