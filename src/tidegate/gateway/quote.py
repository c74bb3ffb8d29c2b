"""What may this chat request cost, and what did it cost?

Lives here: the estimate of one request in tokens and money, and the bill for what a target
really served. Does not live here: the class-aware guess (limits.estimate), the sum (limits.prices),
who reserves and settles (charge).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from tidegate.gateway.pipeline import Spent
from tidegate.limits.ledger import MAX_AMOUNT, Charge, LimitTable, Need
from tidegate.limits.prices import Price, PriceTable
from tidegate.policy import Principal
from tidegate.providers.base import Provider
from tidegate.routing.plan import Route, Target


@dataclass(frozen=True, slots=True)
class Bill:
    """What one attempt used. `counted`: a part of it is our own count, not the provider's.

    `need.money_micros` is 0 without a price. `prompt` is the provider's figure, if it gave one.
    """

    need: Need
    counted: bool
    prompt: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """One request before it is admitted.

    `need` is what to reserve: the estimate times the learned `factor`, and the most that any
    target of the route would ask for it. `plain` is the same without the factor.
    """

    need: Need
    plain: Need
    factor: float = 1.0
    prices: Mapping[Target, Price] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        estimate: Need,
        route: Route,
        providers: Mapping[str, Provider],
        prices: PriceTable,
        *,
        model: str | None,
        factor: float,
    ) -> "Quote":
        """The quote for `estimate` on `route`. Cost: O(targets of the route)."""
        known = {
            target: price
            for target in route.targets
            if (price := _price(target, providers, prices, model)) is not None
        }
        asked = [known.get(target) for target in route.targets]
        plain = need = _priced(estimate, asked)
        if factor != 1.0:
            tokens = min(ceil(estimate.input_tokens * factor), MAX_AMOUNT)
            need = _priced(replace(estimate, input_tokens=tokens), asked)
        return cls(need, plain, factor, known)

    @property
    def money_micros(self) -> int | None:
        """The most that may be asked for it; None when a target of the route has no price."""
        return self.need.money_micros if self.need.money_micros < MAX_AMOUNT else None

    def charges(self, limits: LimitTable, principal: Principal, route: str) -> tuple[Charge, ...]:
        """What each limit that concerns the request is asked for.

        The factor makes a request wait, never impossible: what fits by the plain estimate is
        asked for by that when the factor would lift it over a cap.
        """
        charges = limits.charges(principal, route=route, need=self.need)
        if self.factor > 1.0 and any(one.amount > one.limit.cap for one in charges):
            return limits.charges(principal, route=route, need=self.plain)
        return charges

    def bill(self, target: Target, spent: Spent) -> Bill:
        """What the answer of `target` used so far; a prompt it did not count is as estimated.

        Of one figure for both the prompt takes its estimate, as far as that goes, and the answer
        the rest.
        """
        prompt = spent.prompt
        used = self.need.input_tokens if prompt is None else prompt
        output = spent.output_tokens
        if (both := spent.undivided) > 0:
            used = min(used, both)
            output -= used
        price = self.prices.get(target)
        money = price.cost(used, output, spent.cached) if price is not None else 0
        counted = prompt is None or spent.counted
        return Bill(Need(used, output, money_micros=money), counted, prompt)


def _price(
    target: Target, providers: Mapping[str, Provider], prices: PriceTable, model: str | None
) -> Price | None:
    provider = providers.get(target.provider)
    sent = provider.model_sent(target.upstream_model, model) if provider is not None else model
    return prices.of(target.provider, sent)


def _priced(need: Need, asked: list[Price | None]) -> Need:
    """`need` with the most it may cost, and the most its prompt alone may.

    Without a price the cost could be anything. Only limits on money read it, and the
    configuration refuses such a limit without prices: this is what holds if one gets through.
    """
    if None in asked:
        return replace(need, money_micros=MAX_AMOUNT, prompt_micros=MAX_AMOUNT)
    known = [price for price in asked if price is not None]
    return replace(
        need,
        money_micros=_most(known, need.input_tokens, need.output_tokens),
        prompt_micros=_most(known, need.input_tokens, 0),
    )


def _most(prices: list[Price], input_tokens: int, output_tokens: int) -> int:
    return max((price.most(input_tokens, output_tokens) for price in prices), default=0)


__all__ = ["Bill", "Quote"]
