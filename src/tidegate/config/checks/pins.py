"""Do pins last as long as whoever asks for them expects?

Lives here: servers whose changed tools are to be blocked, with a store that forgets. Does not live
here: what a pin is (mcp.pins).
"""

from collections.abc import Iterator

from tidegate.config.findings import Findings
from tidegate.config.models import Config


def check_pins(config: Config, findings: Findings) -> None:
    """A word for each server that blocks what changed, and forgets it at every start."""
    if config.store.url != "memory:":
        return
    for name in _blocking(config):
        findings.warn(
            ("mcp", "servers", name, "pin"),
            "with `store.url: memory:` the pins are forgotten at each restart, and whatever the"
            " server lists first is trusted again",
            "keep them in sqlite:///PATH or redis://HOST:PORT/DB",
        )


def _blocking(config: Config) -> Iterator[str]:
    return (name for name, server in config.mcp.servers.items() if server.pin == "block")
