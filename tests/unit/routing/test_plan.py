"""Which route serves a request."""

import pytest

from tidegate.errors import Forbidden, InvalidRequest
from tidegate.policy import Principal
from tidegate.routing.plan import Route, RouteTable, Target

ACME = Principal("ann", "acme", ("viewer", "tenant"), "00000000")
NOBODY = Principal("guest", "demo", (), "anonymous")


def table(*routes: Route) -> RouteTable:
    return RouteTable(routes)


def route(name: str, **options: object) -> Route:
    return Route(name=name, targets=(Target(name),), **options)  # type: ignore[arg-type]


def test_the_first_match_wins() -> None:
    routes = table(route("gpt", model="gpt-*"), route("mini", model="gpt-mini"), route("all"))
    assert [routes.match(m, ACME).name for m in ("gpt-mini", "gpt-", "other")] == [  # type: ignore[union-attr]
        "gpt",
        "gpt",
        "all",
    ]


@pytest.mark.parametrize(
    ("pattern", "model", "matches"),
    [
        ("*", "anything", True),
        ("*", "", True),
        ("*", None, True),
        ("gpt-*", None, False),
        ("gpt-?", "gpt-5", True),
        ("gpt-?", "gpt-5o", False),
        ("gpt-[45]", "gpt-4", True),
        ("gpt-[45]", "gpt-6", False),
        ("GPT-*", "gpt-5", False),
        ("gpt-5", "gpt-5\n", False),
        ("org/*", "org/a/b\nc", True),
        ("a.c", "abc", False),
    ],
)
def test_model_globs(*, pattern: str, model: str | None, matches: bool) -> None:
    assert (table(route("r", model=pattern)).match(model, ACME) is not None) == matches


@pytest.mark.parametrize(
    ("options", "principal", "matches"),
    [
        ({}, ACME, True),
        ({}, NOBODY, True),
        ({"tenants": ("acme",)}, ACME, True),
        ({"tenants": ("acme",)}, NOBODY, False),
        ({"tenants": ("x", "ac*")}, ACME, True),
        ({"roles": ("tenant",)}, ACME, True),
        ({"roles": ("admin", "view*")}, ACME, True),
        ({"roles": ("admin",)}, ACME, False),
        ({"roles": ("admin",)}, NOBODY, False),
        ({"roles": ()}, ACME, False),
        ({"roles": ("*",)}, NOBODY, True),
        ({"tenants": ("acme",), "roles": ("admin",)}, ACME, False),
    ],
)
def test_tenants_and_roles_both_have_to_match(
    *, options: dict[str, object], principal: Principal, matches: bool
) -> None:
    assert (table(route("r", **options)).match("m", principal) is not None) == matches


def test_a_refusal_says_whether_the_model_or_the_caller_is_at_fault() -> None:
    routes = table(route("gpt", model="gpt-*", roles=("admin",)))
    assert isinstance(routes.refusal("gpt-5", ACME), Forbidden)
    unknown = routes.refusal("secret-name", ACME)
    assert isinstance(unknown, InvalidRequest)
    assert (unknown.param, unknown.message) == ("model", "No route serves this model.")
    unnamed = routes.refusal(None, ACME)
    assert isinstance(unnamed, InvalidRequest)
    assert (unnamed.param, unnamed.message) == ("model", "Name a model.")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (Target("a"), Target("a", upstream_model="m"), True),
        (Target("a", 0), Target("a", 1), False),
        (Target("a"), Target("b"), False),
        (Target("a", credential_id="x"), Target("b", credential_id="x"), True),
        (Target("a", credential_id="x"), Target("a", credential_id="y"), False),
        (Target("a", credential_id="x"), Target("a"), True),
    ],
)
def test_when_two_targets_share_a_credential(*, one: Target, other: Target, shared: bool) -> None:
    assert one.shares_credential(other) == other.shares_credential(one) == shared
