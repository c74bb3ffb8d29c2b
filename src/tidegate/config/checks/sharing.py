"""Do routes that share a target agree on when to leave it alone?

Lives here: two routes over one provider and model whose breakers differ. Does not live here: what
a breaker's settings mean (routing).
"""

from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.sections.routing import Route


def check_sharing(config: Config, findings: Findings) -> None:
    """A word for each route that judges a target otherwise than an earlier route does."""
    first: dict[tuple[str, str | None], int] = {}
    for number, route in enumerate(config.routes):
        told = findings.touched(("routes", number, "breaker"))
        for candidate in route.candidates:
            earlier = first.setdefault((candidate.provider, candidate.model), number)
            if told or _judgment(config.routes[earlier]) == _judgment(route):
                continue
            told = True
            path: Path = ("routes", number)
            if "breaker" in route.model_fields_set:
                path = (*path, "breaker")
            line = findings.places.of_value(("routes", earlier)).line
            other = f"{quoted(config.routes[earlier].name)} (line {line})"
            findings.warn(
                path,
                f"judges {quoted(candidate.provider)} otherwise than the route {other}, and both "
                "share its breaker: what one opens is open for the other",
                "give both the same `breaker`",
            )


def _judgment(route: Route) -> dict[str, object]:
    """The settings that the shared breaker goes by. What is slow each route measures for itself."""
    return route.breaker.model_dump(exclude={"slow_tokens_per_s"})
