"""Which keys does this release accept without obeying them yet?

Lives here: the table of such keys, and what happens instead. Each row disappears with the
release that brings its feature. Does not live here: whether the values fit (sections, shape).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.sections.redaction import Redaction

_Places = Callable[[Config], Iterator[Path]]


@dataclass(frozen=True, slots=True)
class Idle:
    """Where a key without effect stands, and what happens instead.

    `weakens`: whoever relies on it is less protected than the file suggests.
    """

    places: _Places
    now: str
    weakens: bool = False


def check_effect(config: Config, findings: Findings) -> None:
    """Report every key of the table that this configuration uses."""
    for row in TABLE:
        for path in row.places(config):
            findings.not_in_effect(path, row.now, weakens=row.weakens)


def anthropic_providers(config: Config) -> Iterator[Path]:
    """The dialect of every provider that speaks anthropic."""
    for name, provider in config.providers.items():
        if provider.dialect == "anthropic":
            yield ("providers", name, "dialect")


def redactions(config: Config) -> Iterator[tuple[Path, Redaction]]:
    """The redaction part and everything that overrides it."""
    yield ("redaction",), config.redaction
    for index, route in enumerate(config.routes):
        yield ("routes", index, "redaction"), route.redaction
    for name, server in config.mcp.servers.items():
        yield ("mcp", "servers", name, "redaction"), server.redaction


TABLE = (
    Idle(anthropic_providers, "`serve` refuses to start; name an endpoint that speaks openai"),
)
