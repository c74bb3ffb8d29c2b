"""Can the servers of one endpoint be told apart by what clients write?

Lives here: names of servers that cannot stand side by side, and what is said about them. Does not
live here: how names are made and resolved (mcp.federation).
"""

from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.mcp.federation import SEPARATOR, clashes, has_token, token_of


def check_federation(config: Config, findings: Findings) -> None:
    """Of several servers each has its names and URIs to itself; a single one keeps its own."""
    names = tuple(config.mcp.servers)
    if len(names) < 2:
        return
    for name in names:
        if not has_token(name):
            findings.error(
                _place(name),
                f"its resources would begin with {quoted(token_of(name) + '+')}, and no URI begins "
                "with a digit",
                "with several servers, begin each name with a letter",
                at_key=True,
            )
    for clash in clashes(names):
        line = findings.places.of_key(_place(clash.server)).line
        other = f"{quoted(clash.server)} (line {line})"
        if clash.by == "name":
            findings.error(
                _place(clash.other),
                f"its tools could not be told from those of {other}: both could be shown as "
                f"{quoted(_shared(clash.server, clash.other))}",
                "rename one of the two",
                at_key=True,
            )
        else:
            findings.error(
                _place(clash.other),
                f"its resources could not be told from those of {other}: the URIs of both would "
                f"begin with {quoted(token_of(clash.other) + '+')}",
                "rename one of the two: case, '_' and '.' make no difference in a URI",
                at_key=True,
            )


def _place(name: str) -> Path:
    return ("mcp", "servers", name)


def _shared(one: str, two: str) -> str:
    """A name that a tool of either server could be shown under."""
    return max(one, two, key=len) + SEPARATOR + "x"


__all__ = ["check_federation"]
