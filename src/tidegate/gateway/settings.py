"""Where does the gateway listen, and how long may things take?

Lives here: what the configuration says to those who start and stop listeners, and the words in
which they are told to. Does not live here: the listeners (listener), starting and stopping
(supervise, workers).
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from tidegate.config import Config
from tidegate.gateway.server import WireCaps

_CUT_S = 2.0
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Ready:
    """Both listeners accept: their addresses as they really are, and a way to stop."""

    host: str
    port: int
    admin_host: str
    admin_port: int
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen and how long things may take. Ports may be 0."""

    host: str = "127.0.0.1"
    port: int = 8080
    admin_host: str = "127.0.0.1"
    admin_port: int = 8081
    caps: WireCaps = field(default_factory=WireCaps)
    drain_s: float = 30.0
    cut_s: float = _CUT_S
    poll_s: float = _POLL_S
    line: bool = True
    """Whether the ready line is printed beside the log."""


Load = Callable[[], Config]
OnReady = Callable[[Ready], Awaitable[None]]
Companion = AbstractAsyncContextManager[object]


def settings_of(config: Config) -> Settings:
    """What the file says about listeners and bounds."""
    server, caps = config.server, config.server.caps
    return Settings(
        host=server.host,
        port=server.port,
        admin_host=server.admin.host,
        admin_port=server.admin.port,
        caps=WireCaps(
            header_bytes=caps.header_bytes,
            header_timeout_s=caps.header_timeout_s,
            body_idle_s=caps.body_idle_s,
            write_stall_s=caps.write_stall_s,
            # One for each request and as many that are idle; some for clients that only hold on.
            connections=2 * caps.requests_in_flight + 1024,
        ),
        drain_s=server.drain_s,
        line=config.telemetry.log != "json",
    )


__all__ = ["Companion", "Load", "OnReady", "Ready", "Settings", "settings_of"]
