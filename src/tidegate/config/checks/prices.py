"""Is the cost of every request known that a limit on money speaks of?

Lives here: models that may be reached without a price, and prices that are probably not meant.
Does not live here: names of providers that do not exist (names), what a price comes to (limits).
"""

from collections.abc import Iterator, Mapping, Sequence

from tidegate.config.findings import Findings
from tidegate.config.globs import covers, matches
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.sections.identity import Limit, Price
from tidegate.config.sections.routing import Route

_SUSPICIOUS = 1000
"""Less than a thousandth of the currency for a million tokens: nobody sells that."""


def check_prices(config: Config, findings: Findings) -> None:
    """Every limit on money, and every price."""
    for index, limit in enumerate(config.limits):
        if limit.unit == "money_micros":
            _money(config, limit, ("limits", index), findings)
    for provider, models in config.prices.items():
        for model, price in models.items():
            _price(price, ("prices", provider, model), findings)


def _money(config: Config, limit: Limit, path: Path, findings: Findings) -> None:
    if findings.touched(path, ("prices",), ("providers",), ("routes",)):
        return
    told: set[str] = set()
    for route in config.routes:
        if not _may_concern(limit, route):
            continue
        for candidate in route.candidates:
            provider = candidate.provider
            if provider not in config.providers:
                continue  # of which `names` tells
            models = config.providers[provider].models
            sent = (candidate.model,) if candidate.model else tuple(_sent(route.model, models))
            model = _unpriced(sent, config.prices.get(provider, {}))
            if model is not None and provider not in told:
                told.add(provider)
                findings.error((*path, "money_micros"), *_words(provider, model))


def _may_concern(limit: Limit, route: Route) -> bool:
    """Whether a request on `route` can fall under `limit`.

    Roles do not tell: one caller may have those of both.
    """
    routes = limit.match.routes or ("*",)
    return any(matches(pattern, route.name) for pattern in routes) and any(
        _may_meet(mine, theirs) for mine in limit.match.tenants for theirs in route.match.tenants
    )


def _may_meet(one: str, other: str) -> bool:
    """Whether some name can be meant by both patterns; never False wrongly."""
    if _is_pattern(one) and _is_pattern(other):
        return True
    return matches(one, other) if _is_pattern(one) else matches(other, one)


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _unpriced(sent: Sequence[str], priced: Mapping[str, Price]) -> str | None:
    """The first name, or pattern of names, that no price covers."""
    for name in sent:
        if not any(covers(pattern, name) for pattern in priced):
            return name
    return None


def _sent(asked: str, models: Mapping[str, str | None]) -> Iterator[str]:
    """What a provider is sent for the models that the pattern `asked` means."""
    for alias, sent in models.items():
        if alias != "*" and matches(asked, alias):
            yield sent or alias
    if _is_pattern(asked) or asked not in models:
        yield models.get("*") or asked


def _words(provider: str, model: str) -> tuple[str, str]:
    if _is_pattern(model):
        which = "" if model == "*" else f" of {quoted(model)}"
        wrong = f"not every model{which} that {quoted(provider)} may be asked for has a price"
    else:
        wrong = f"the model {quoted(model)} of {quoted(provider)} has no price"
    price = quoted(model, mark='"') + ": { input: 2500000, output: 10000000 }"
    return wrong, f"add `prices: {{ {provider}: {{ {price} }} }}`"


def _price(price: Price, path: Path, findings: Findings) -> None:
    for key in ("input", "output", "cached"):
        value = getattr(price, key)
        if value is not None and 0 < value < _SUSPICIOUS:
            findings.warn(
                (*path, key),
                f"{value} millionths for a million tokens is next to nothing",
                "write millionths: 2.50 for a million tokens is 2500000",
            )
    for key, what in (("input", "prompts"), ("output", "answers")):
        if key not in price.model_fields_set:
            findings.warn(
                path,
                f"`{key}` is missing, so {what} cost nothing",
                f"add `{key}`, as 0 if that is meant",
            )
