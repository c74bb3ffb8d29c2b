"""What a request may cost is the most any target would ask; what it did cost is who served."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.quote import Quote, needs
from tidegate.gateway.spent import Spent
from tidegate.limits.ledger import MAX_AMOUNT, Limit, LimitTable, Need
from tidegate.limits.prices import Price, PriceTable
from tidegate.policy import Principal
from tidegate.providers.base import Provider, Usage
from tidegate.routing.plan import Route, Target

CHEAP, DEAR = Price(1_000_000, 2_000_000, 500_000), Price(3_000_000, 4_000_000, 9_000_000)
PROVIDERS = {
    "cheap": Provider("cheap", "http://a.example/v1"),
    "dear": Provider("dear", "http://b.example/v1", models={"m": "upstream-m"}),
}
CHEAP_TARGET, DEAR_TARGET = Target("cheap"), Target("dear")
OWN_MODEL = Target("cheap", upstream_model="own")
ROUTE = Route("default", (CHEAP_TARGET, DEAR_TARGET))
PRICES = PriceTable({"cheap": {"m": CHEAP, "own": DEAR}, "dear": {"upstream-m": DEAR}})
WHO = Principal("vera", "acme", (), "k")
ESTIMATE = Need(100, 50)


def quote(
    estimate: Need = ESTIMATE,
    *,
    route: Route = ROUTE,
    prices: PriceTable = PRICES,
    model: str | None = "m",
    factor: float = 1.0,
    document: dict[str, object] | None = None,
) -> Quote:
    asked = needs(route, document or {}, estimate)
    return Quote.of(asked, PROVIDERS, prices, model=model, factor=factor)


def spent(usage: Usage | None, text: str = "") -> Spent:
    found = Spent()
    found.saw(text, usage)
    return found


def test_the_dearest_target_is_reserved_at_its_dearest() -> None:
    found = quote()
    # All of the prompt might be cached, and with this price that is dearer.
    assert found.need == Need(100, 50, money_micros=900 + 200, prompt_micros=900)
    assert found.money_micros == 1100
    assert quote(route=Route("r", (CHEAP_TARGET,))).money_micros == 200


@pytest.mark.parametrize("model", ["other", None])
def test_one_target_without_a_price_makes_the_cost_unknown(model: str | None) -> None:
    found = quote(model=model)
    assert found.money_micros is None
    assert found.need.money_micros == found.need.prompt_micros == MAX_AMOUNT
    assert found.bill(CHEAP_TARGET, spent(Usage(10, 5, 15))).need.money_micros == 0


def test_the_price_is_that_of_the_model_a_target_asks_for() -> None:
    found = quote(route=Route("r", (OWN_MODEL,)), model=None)
    assert found.bill(OWN_MODEL, spent(Usage(10, 5, 15))).need == Need(10, 5, money_micros=50)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0.5, 3.0), st.booleans())
def test_a_reservation_covers_each_target_that_may_serve(
    prompt: int, output: int, factor: float, cached: object
) -> None:
    found = quote(Need(prompt, output), factor=factor)
    reserved = found.need
    assert reserved.input_tokens >= prompt * factor - 1e-6
    for target in ROUTE.targets:
        usage = Usage(reserved.input_tokens, output, 0, reserved.input_tokens if cached else 0)
        assert found.bill(target, spent(usage)).need.money_micros <= reserved.money_micros
    assert 0 <= reserved.prompt_micros <= reserved.money_micros


def test_a_bill_is_by_the_providers_figures_and_else_by_the_estimate_and_a_count() -> None:
    found = quote()
    known = found.bill(CHEAP_TARGET, spent(Usage(10, 5, 15, 4)))
    assert known.need == Need(10, 5, money_micros=6 + 2 + 10)
    assert (known.counted, known.prompt) == (False, 10)
    unknown = found.bill(CHEAP_TARGET, spent(None, "some words"))
    assert unknown.need.input_tokens == 100
    assert unknown.need.output_tokens > 0
    assert (unknown.counted, unknown.prompt) == (True, None)
    half = found.bill(CHEAP_TARGET, spent(Usage(None, 5, 5)))
    assert (half.need.input_tokens, half.need.output_tokens) == (100, 5)
    assert (half.counted, half.prompt) == (True, None)
    nothing = found.bill(DEAR_TARGET, Spent())
    assert nothing.need == Need(100, 0, money_micros=300)


@pytest.mark.parametrize(
    ("reports", "text", "split", "prompt"),
    [
        ([Usage(None, 0, 130)], "", (100, 30), None),
        ([Usage(None, 0, 60)], "", (60, 0), None),
        ([Usage(None, 0, 100), Usage(None, 0, 130)], "", (100, 30), None),
        ([Usage(None, 0, 130), Usage(90, 40, 130)], "", (90, 40), 90),
        ([Usage(90, 0, 90), Usage(None, 0, 130)], "", (90, 40), 90),
        ([Usage(None, 25, 25), Usage(None, 0, 130)], "", (100, 30), None),
        ([Usage(None, 0, 130)], "word " * 40, (100, 30), None),
    ],
)
def test_one_figure_for_prompt_and_answer_is_the_estimate_of_the_prompt_and_the_rest(
    reports: list[Usage], text: str, split: tuple[int, int], prompt: int | None
) -> None:
    found = Spent()
    found.saw(text, None)
    for usage in reports:
        found.saw("", usage)
    bill = quote().bill(DEAR_TARGET, found)
    money = DEAR.cost(*split, 0)
    assert bill.need == Need(*split, money_micros=money)
    assert (bill.counted, bill.prompt) == (prompt is None, prompt)


@pytest.mark.parametrize(
    ("cap", "factor", "asked"),
    [(1000, 2.0, 250), (249, 2.0, 150), (149, 2.0, 150), (1000, 0.5, 100), (99, 0.5, 100)],
)
def test_a_factor_makes_a_request_wait_and_never_impossible(
    cap: int, factor: float, asked: int
) -> None:
    table = LimitTable([Limit("tokens", "tokens", cap)])
    (charge,) = quote(factor=factor).charges(table, WHO, "default")
    assert charge.amount == asked


def test_a_guessed_answer_gives_way_to_a_small_budget_but_its_prompt_does_not() -> None:
    guessed = Need(100, 1000, output_is_default=True)
    for cap, asked in ((10_000, 4900), (901, 901), (899, 4900)):
        table = LimitTable([Limit("budget", "money_micros", cap)])
        (charge,) = quote(guessed).charges(table, WHO, "default")
        assert charge.amount == asked


DEFAULT = Need(100, 1024, output_is_default=True)
LONG, SHORT = ({"max_tokens": 5000}, {"max_tokens": 20})


@pytest.mark.parametrize(
    ("parameters", "document", "estimate", "output", "guessed"),
    [
        # What the operator sets is sent, so it is what may be used: more than was asked for ...
        ((LONG, None), {"max_tokens": 50}, ESTIMATE, 5000, False),
        ((LONG, None), {"max_completion_tokens": 50, "n": 2}, Need(100, 100), 10_000, False),
        # ... or less; but another target may still give all of it.
        ((SHORT, SHORT), {"max_tokens": 50}, ESTIMATE, 20, False),
        ((SHORT, None), {"max_tokens": 50}, ESTIMATE, 50, False),
        ((SHORT, None), {}, DEFAULT, 1024, True),
        ((LONG, None), {}, DEFAULT, 5000, False),
        # Equal figures: the one that somebody set does not give way.
        (({"max_tokens": 1024}, None), {}, DEFAULT, 1024, False),
        # Without a length of the answer, nothing changes.
        (({"temperature": 0}, None), {"max_tokens": 50}, ESTIMATE, 50, False),
        (({"max_tokens": None}, None), {"max_tokens": 50}, ESTIMATE, 1024, True),
    ],
)
def test_what_a_target_sets_is_what_is_reserved(
    parameters: tuple[dict[str, object] | None, ...],
    document: dict[str, object],
    estimate: Need,
    output: int,
    *,
    guessed: bool,
) -> None:
    targets = tuple(
        replace(target, parameters=given or {})
        for target, given in zip(ROUTE.targets, parameters, strict=True)
    )
    found = quote(estimate, route=replace(ROUTE, targets=targets), document=document).need
    assert (found.output_tokens, found.output_is_default) == (output, guessed)
    assert found.input_tokens == 100
    most = max(
        price.most(100, answer)
        for price, answer in zip(
            (CHEAP, DEAR), _answers(parameters, document, estimate), strict=True
        )
    )
    assert found.money_micros == most


def _answers(
    parameters: tuple[dict[str, object] | None, ...], document: dict[str, object], estimate: Need
) -> list[int]:
    route = replace(
        ROUTE,
        targets=tuple(
            replace(target, parameters=given or {})
            for target, given in zip(ROUTE.targets, parameters, strict=True)
        ),
    )
    return [need.output_tokens for _, need in needs(route, document, estimate)]


def test_of_two_targets_that_differ_only_in_what_they_set_the_longer_is_reserved() -> None:
    targets = (replace(CHEAP_TARGET, parameters=LONG), replace(CHEAP_TARGET, parameters=SHORT))
    route = replace(ROUTE, targets=targets)
    assert quote(route=route, document={"max_tokens": 50}).need.output_tokens == 5000
