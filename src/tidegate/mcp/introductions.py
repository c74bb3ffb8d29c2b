"""How is a server introduced to a client that asks in the words of another revision?

Lives here: what an MCP server says of itself, read from a result of server/discover or of
initialize, and both of those results made from it. Does not live here: which of the two a server
is asked for (probing), what else is translated (bridging, bridged_results).

Sources: MCP 2026-07-28, server/discover; MCP 2025-11-25, basic/lifecycle.
"""

from dataclasses import dataclass, field
from typing import Final

from tidegate.jsonrpc import Tree
from tidegate.mcp.eras import LEGACY, MODERN, SUPPORTED
from tidegate.mcp.meta_keys import SERVER_KEY

ANCIENT: Final = "2024-11-05"
"""Of the time before Streamable HTTP, and still what many servers answer initialize with."""
SPOKEN_LEGACY: Final = (*LEGACY, ANCIENT)
DESCRIBING: Final = frozenset({"initialize", "server/discover"})
"""The methods that a server is introduced by."""
_COMMON: Final = ("completions", "experimental", "logging", "prompts", "resources", "tools")
_UNNAMED: Final[Tree] = {"name": "unnamed", "version": "0"}


@dataclass(frozen=True, slots=True)
class Introduction:
    """A server of revision `version`; all of it is what the server says of itself."""

    version: str
    capabilities: Tree = field(default_factory=dict)
    info: Tree | None = None
    instructions: str | None = None

    def promises(self, capability: str, part: str | None = None) -> bool:
        """Whether the server has a capability, and in it a part such as `listChanged`."""
        held = self.capabilities.get(capability)
        if part is None:
            return held is not None
        return isinstance(held, dict) and held.get(part) is True


def discovered(result: object) -> Introduction | None:
    """What a result of server/discover says; None unless it names 2026-07-28."""
    if not isinstance(result, dict):
        return None
    versions, meta = result.get("supportedVersions"), result.get("_meta")
    if not isinstance(versions, list) or MODERN not in versions:
        return None
    info = meta.get(SERVER_KEY) if isinstance(meta, dict) else None
    return _introduction(MODERN, result, info)


def initialized(result: object) -> Introduction | None:
    """What a result of initialize says; None if its revision is not one that we speak."""
    if not isinstance(result, dict):
        return None
    version = result.get("protocolVersion")
    if not isinstance(version, str) or version not in SPOKEN_LEGACY:
        return None
    return _introduction(version, result, result.get("serverInfo"))


def to_initialize(server: Introduction, requested: object) -> Tree:
    """The result of initialize for a client that requested a revision."""
    version = requested if isinstance(requested, str) and requested in LEGACY else LEGACY[0]
    result: Tree = {
        "protocolVersion": version,
        "capabilities": _capabilities(server, version),
        "serverInfo": server.info or _UNNAMED,
    }
    if server.instructions is not None:
        result["instructions"] = server.instructions
    return result


def to_discover(server: Introduction) -> Tree:
    """The result of server/discover. Every revision can be used, as the gateway bridges them."""
    result: Tree = {
        "supportedVersions": list(SUPPORTED),
        "capabilities": _capabilities(server, MODERN),
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    if server.instructions is not None:
        result["instructions"] = server.instructions
    if server.info is not None:
        result["_meta"] = {SERVER_KEY: server.info}
    return result


def _introduction(version: str, result: Tree, info: object) -> Introduction:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Introduction(
        version,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) and isinstance(info.get("name"), str) else None,
        instructions if isinstance(instructions, str) else None,
    )


def _capabilities(server: Introduction, client: str) -> Tree:
    """Those that hold for a client of revision `client`: extensions and tasks are of one era."""
    if client == server.version:
        return server.capabilities
    return {key: server.capabilities[key] for key in _COMMON if key in server.capabilities}


__all__ = [
    "ANCIENT",
    "DESCRIBING",
    "SPOKEN_LEGACY",
    "Introduction",
    "discovered",
    "initialized",
    "to_discover",
    "to_initialize",
]
