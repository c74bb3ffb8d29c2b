"""What may this chat request cost, and what did it cost?

Lives here: the estimate of one request in tokens and money, and the bill for what a target
really served. Does not live here: the class-aware guess (limits.estimate), the sum (limits.prices),
who reserves and settles (charge).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from tidegate.gateway.spent import Spent
from tidegate.limits.estimate import answer_tokens
from tidegate.limits.ledger import MAX_AMOUNT, Charge, LimitTable, Need
from tidegate.limits.prices import Price, PriceTable
from tidegate.policy import Principal
from tidegate.providers.base import Provider
from tidegate.providers.overrides import as_sent
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

    `need` is what to reserve: the estimate times the learned `factor`, the longest answer that
    any target of the route may give, and the most that any of them would ask for it. `plain` is
    the same without the factor.
    """

    need: Need
    plain: Need
    factor: float = 1.0
    prices: Mapping[Target, Price] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        asking: Iterable[tuple[Target, Need]],
        providers: Mapping[str, Provider],
        prices: PriceTable,
        *,
        model: str | None,
        factor: float,
    ) -> "Quote":
        """The quote for what each target may need (see `needs`). Cost: O(targets)."""
        asked: list[tuple[Need, Price | None]] = []
        known: dict[Target, Price] = {}
        for target, estimate in asking:
            price = _price(target, providers, prices, model)
            asked.append((estimate, price))
            if price is not None:
                known[target] = price
        plain = need = _most_of(asked)
        if factor != 1.0:
            need = _most_of([(_raised(estimate, factor), price) for estimate, price in asked])
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


def needs(
    route: Route, document: Mapping[str, object], estimate: Need
) -> list[tuple[Target, Need]]:
    """What each target of `route` may need for the request `document`, estimated as it stands.

    A target that sets the length of the answer is asked for that length, not the client's: it is
    what will be sent, and may be used.
    """
    found: list[tuple[Target, Need]] = []
    for target in route.targets:
        need = estimate
        if target.parameters:
            sent = as_sent(document, target.parameters)
            tokens, guessed = answer_tokens(sent, route.default_output_tokens)
            need = replace(estimate, output_tokens=tokens, output_is_default=guessed)
        found.append((target, need))
    return found


def _raised(need: Need, factor: float) -> Need:
    return replace(need, input_tokens=min(ceil(need.input_tokens * factor), MAX_AMOUNT))


def _most_of(asked: list[tuple[Need, Price | None]]) -> Need:
    """What covers each target: the longest answer, the most money, the dearest prompt.

    Without a price the cost could be anything. Only limits on money read it, and the
    configuration refuses such a limit without prices: this is what holds if one gets through.
    """
    need = max((need for need, _ in asked), key=_length)
    money = prompt = 0
    for one, price in asked:
        if price is None:
            money = prompt = MAX_AMOUNT
            break
        money = max(money, price.most(one.input_tokens, one.output_tokens))
        prompt = max(prompt, price.most(one.input_tokens, 0))
    return replace(need, money_micros=money, prompt_micros=prompt)


def _length(need: Need) -> tuple[int, bool]:
    # Of equal figures one that somebody set goes before our guess, which would give way.
    return need.output_tokens, not need.output_is_default


__all__ = ["Bill", "Quote", "needs"]
