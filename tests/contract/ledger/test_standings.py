"""What an answer says about the limits beside its verdict, and which counters a store holds."""

from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import EACH_KIND, LEASE_S, SCOPE, run, take, tokens
from tidegate.limits import Charge, Granted, Ledger, Limit, LimitTable, Refused, Standing
from tidegate.limits.ledger import Need, scope_names
from tidegate.policy import Principal
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.parametrize("kind", EACH_KIND)

REQUESTS = Limit("requests", "requests", 5, 12.0)
PARALLEL = Limit("parallel", "concurrent", 2)


def test_a_grant_says_where_each_limit_stands_with_it_counted(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        charges = [Charge(limit, SCOPE, 30), Charge(REQUESTS, SCOPE, 1), Charge(PARALLEL, SCOPE, 1)]
        granted = await ledger.reserve("a", "me", charges, lease_s=LEASE_S)
        assert isinstance(granted, Granted)
        assert granted.standings == (
            Standing(limit, 30, 70, 60.25),
            Standing(REQUESTS, 1, 4, 12.05),
            Standing(PARALLEL, 1, 1, 0.0),
        )
        again = await ledger.reserve("a", "me", charges, lease_s=LEASE_S)
        assert isinstance(again, Granted)
        assert again.standings == ()

    run(kind, tmp_path, body)


def test_a_refusal_says_where_each_limit_stands_without_it(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "a", Charge(limit, SCOPE, 60))
        clock.advance(20.0)
        assert await take(ledger, "b", Charge(limit, SCOPE, 30))
        clock.advance(10.0)
        wanted = [Charge(limit, SCOPE, 20), Charge(REQUESTS, SCOPE, 1)]
        refused = await ledger.reserve("c", "me", wanted, lease_s=LEASE_S)
        assert isinstance(refused, Refused)
        assert refused.retry_after_s == 30.25
        assert refused.standings == (
            Standing(limit, 90, 10, 50.25),
            Standing(REQUESTS, 0, 5, 0.0),
        )

    run(kind, tmp_path, body)


def test_what_was_given_back_may_delay_the_reset_but_never_hastens_it(
    kind: str, tmp_path: Path
) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "a", Charge(limit, SCOPE, 60))
        clock.advance(20.0)
        assert await take(ledger, "b", Charge(limit, SCOPE, 30))
        assert await ledger.release("b", "me")
        refused = await ledger.reserve("c", "me", [Charge(limit, SCOPE, 90)], lease_s=LEASE_S)
        assert isinstance(refused, Refused)
        assert refused.standings == (Standing(limit, 60, 40, 60.25),)
        clock.advance(60.25)
        granted = await ledger.reserve("d", "me", [Charge(limit, SCOPE, 0)], lease_s=LEASE_S)
        assert isinstance(granted, Granted)
        assert granted.standings == (Standing(limit, 0, 100, 60.25),)

    run(kind, tmp_path, body)


def test_the_counters_of_the_asked_limits_are_listed_by_scope(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        by_principal = Limit("tokens", "tokens", 100, per="principal")
        everyone = Limit("all/of/us", "requests", 9, per="global")
        assert await ledger.scopes([limit, everyone, PARALLEL]) == ()
        for place, charge in enumerate(
            (
                Charge(limit, "tenant:b", 1),
                Charge(limit, "tenant:a", 1),
                Charge(by_principal, "principal:a/tokens", 1),
                Charge(everyone, "global", 1),
                Charge(PARALLEL, "tenant:a", 1),
            )
        ):
            assert await take(ledger, f"r{place}", charge)
        assert await ledger.scopes([everyone, limit, PARALLEL]) == (
            (everyone, "global"),
            (limit, "tenant:a"),
            (limit, "tenant:b"),
            (PARALLEL, "tenant:a"),
        )
        assert await ledger.scopes([by_principal]) == ((by_principal, "principal:a/tokens"),)

    run(kind, tmp_path, body)


def test_a_clock_that_was_set_is_seen_in_both_directions(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "a", Charge(limit, SCOPE, 100))
        assert ledger.clock_ahead_s == 0.0
        clock.step(3_600)
        assert not await take(ledger, "b", Charge(limit, SCOPE, 1))
        assert ledger.clock_ahead_s == 3_600
        clock.step(-7_200)
        assert not await take(ledger, "c", Charge(limit, SCOPE, 1))
        assert ledger.clock_ahead_s == -3_600

    run(kind, tmp_path, body)


def test_callers_of_one_name_from_two_issuers_have_windows_of_their_own(
    kind: str, tmp_path: Path
) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        once = Limit("once", "requests", 1, 60.0, per="principal")
        table = LimitTable((once,))
        issuers = ["", "https://one.example/a", "https://one.example/b"]
        callers = [Principal("vera", "acme", (), "k", issuer=issuer) for issuer in issuers]
        for number, caller in enumerate(callers):
            charges = table.charges(caller, route="r", need=Need())
            assert await take(ledger, f"first {number}", *charges)
            assert not await take(ledger, f"second {number}", *charges)
        found = await ledger.scopes([once])
        names = {scope_names(key)[1:] for _, key in found}
        assert names == {("acme", "vera", *([issuer] if issuer else [])) for issuer in issuers}

    run(kind, tmp_path, body)
