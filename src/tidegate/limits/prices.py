"""What does this many tokens cost?

Lives here: prices by provider and model, and the one sum that turns usage into money. Does not
live here: which providers may serve a request (gateway.quote), what a limit does with the amount
(ledger).

Money is counted in whole micro-units (millionths of whatever currency the operator thinks in).
The sum of a request is rounded up once, so it is never free and never wrong by more than one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import translate

from tidegate.limits.ledger import MAX_AMOUNT

PER = 1_000_000
"""Prices are for this many tokens."""

ANY_MODEL = "*"


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-units per million tokens; each 0 or more.

    `cached` is for the part of the prompt that the provider says it had read before.
    """

    input: int
    output: int
    cached: int

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> int:
        """Micro-units, rounded up; at most MAX_AMOUNT. Negative counts are 0.

        `cached_tokens` is a part of `input_tokens`: no more of it counts than there is.
        """
        prompt, answer = max(0, input_tokens), max(0, output_tokens)
        cached = max(0, min(cached_tokens, prompt))
        total = (prompt - cached) * self.input + cached * self.cached + answer * self.output
        return min(-(-total // PER), MAX_AMOUNT)

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """The cost if none or all of the prompt were cached, whichever is dearer."""
        return max(
            self.cost(input_tokens, output_tokens),
            self.cost(input_tokens, output_tokens, input_tokens),
        )


class PriceTable:
    """The prices of the file: provider -> pattern of its models -> price.

    A model is the name that is sent to the provider. Its exact name wins, then the patterns in
    the order of the file ("*" any characters, "?" one), the pattern "*" last; a request that
    names no model is priced by "*" alone.
    """

    def __init__(self, prices: Mapping[str, Mapping[str, Price]]) -> None:
        self._exact = {
            (provider, model): price
            for provider, models in prices.items()
            for model, price in models.items()
        }
        self._patterns = {
            provider: _patterns(models) for provider, models in prices.items() if models
        }

    def of(self, provider: str, model: str | None) -> Price | None:
        """The price of `model` at `provider`; None if the file has none."""
        if model is None:
            return self._exact.get((provider, ANY_MODEL))
        exact = self._exact.get((provider, model))
        if exact is not None:
            return exact
        for matches, price in self._patterns.get(provider, ()):
            if matches(model) is not None:
                return price
        return None


def _patterns(
    models: Mapping[str, Price],
) -> tuple[tuple[Callable[[str], object], Price], ...]:
    named = [name for name in models if name != ANY_MODEL and ("*" in name or "?" in name)]
    if ANY_MODEL in models:
        named.append(ANY_MODEL)
    return tuple((re.compile(translate(name)).fullmatch, models[name]) for name in named)


__all__ = ["ANY_MODEL", "PER", "Price", "PriceTable"]
