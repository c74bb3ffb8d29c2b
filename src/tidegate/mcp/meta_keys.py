"""Under which names does MCP itself keep something in `_meta`?

Lives here: these names. Pure. Does not live here: what stands under them (eras, bridging,
introductions), names of other owners.

Source: MCP 2026-07-28, basic/index (_meta): all of its own begin with this prefix.
"""

from typing import Final

PREFIX: Final = "io.modelcontextprotocol/"
CAPABILITIES_KEY: Final = f"{PREFIX}clientCapabilities"
CLIENT_KEY: Final = f"{PREFIX}clientInfo"
LEVEL_KEY: Final = f"{PREFIX}logLevel"
SERVER_KEY: Final = f"{PREFIX}serverInfo"
SUBSCRIPTION_KEY: Final = f"{PREFIX}subscriptionId"
VERSION_KEY: Final = f"{PREFIX}protocolVersion"

__all__ = [
    "CAPABILITIES_KEY",
    "CLIENT_KEY",
    "LEVEL_KEY",
    "PREFIX",
    "SERVER_KEY",
    "SUBSCRIPTION_KEY",
    "VERSION_KEY",
]
