"""Would a vault or a classifier do what its line in the file promises?

Lives here: the modes that both need, and the places at which neither is used. Does not live here:
what they do (redaction, gateway).
"""

from collections.abc import Iterator

from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.policies import effective_redaction
from tidegate.config.sections.redaction import Redaction

_TOP: Path = ("redaction",)


def check_vault(config: Config, findings: Findings) -> None:
    """A vault needs enforced requests, a classifier an enforced direction; MCP has neither."""
    told: set[Path] = set()
    for path, override, effective in _routes(config):
        if effective.vault and effective.request != "enforce":
            place = _place(path, override, "vault", "request")
            if place not in told:
                told.add(place)
                findings.error(
                    place,
                    f"a vault replaces values in requests, and these are {effective.request}",
                    "write `request: enforce` beside `vault: true`",
                )
        if effective.classifier and "enforce" not in (effective.request, effective.response):
            place = _place(path, override, "classifier", "response")
            if place not in told:
                told.add(place)
                findings.warn(
                    place,
                    "nothing is sent to the classifier: neither direction is enforced",
                    "write `enforce` for `request` or `response`",
                )
    for name, server in config.mcp.servers.items():
        for key in sorted({"vault", "classifier"} & server.redaction.model_fields_set):
            if getattr(server.redaction, key):
                findings.warn(
                    ("mcp", "servers", name, "redaction", key),
                    f"MCP calls have no {key}: it serves model requests",
                    "remove this line",
                    at_key=True,
                )


def _routes(config: Config) -> Iterator[tuple[Path, Redaction, Redaction]]:
    """Where each override stands, what it gives, and what the two parts come to."""
    for index, route in enumerate(config.routes):
        path: Path = ("routes", index, "redaction")
        yield path, route.redaction, effective_redaction(config.redaction, route.redaction)


def _place(path: Path, override: Redaction, *keys: str) -> Path:
    """The key of the override that makes it so, else the first one in the redaction part."""
    for key in keys:
        if key in override.model_fields_set:
            return (*path, key)
    return (*_TOP, keys[0])


__all__ = ["check_vault"]
