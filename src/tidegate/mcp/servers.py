"""Where is an MCP server, and what do we show or start to reach it?

Lives here: the two kinds of servers as the configuration names them. Does not live here: how a
message gets there (http_upstream, stdio_upstream), which servers there are (config).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server over HTTP, and with which credential of ours it is called."""

    name: str
    url: str = field(repr=False)
    credential: str | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """What sessions and other state belong to: another address is another server."""
        return self.url


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A server over stdio: the program and its arguments, run without a shell.

    `env` is what it gets beside the little that every program needs; `cwd` None is ours.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None

    @property
    def key(self) -> str:
        """What sessions and other state belong to: the name, as there is one such process."""
        return f"stdio:{self.name}"


Place = ServerAddress | ServerCommand

__all__ = ["Place", "ServerAddress", "ServerCommand"]
