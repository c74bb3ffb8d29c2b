"""Does every shown name and URI belong to exactly one thing of one server?"""

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate.mcp.federation import Federation, clashes, has_token, token_of

# Few characters and short: collisions must be common, and every name can be written out.
NAMES = st.text("aA_.", min_size=1, max_size=5).filter(lambda name: name[0] in "aA")
OWN = st.text("aA_.-1", max_size=8)
URIS = st.sampled_from(["file:///a", "git+https://x/y", "", "+", "a+b", "test://{id}", "A:b"])
_MOST = 4


def every(alphabet: str, longest: int) -> list[str]:
    """Every text over the alphabet, the empty one left out."""
    lengths = range(1, longest + 1)
    return ["".join(chars) for n in lengths for chars in itertools.product(alphabet, repeat=n)]


def collide(one: str, two: str) -> bool:
    """Whether a tool of each can be shown under one name, by trying every short tool name."""
    tools = every("a_", _MOST)
    return not {f"{one}__{tool}" for tool in tools}.isdisjoint(f"{two}__{tool}" for tool in tools)


def test_two_names_clash_exactly_when_some_two_tools_would_be_shown_alike() -> None:
    """Every pair of names of up to three characters, against every tool name of up to four."""
    names = every("a_", 3)
    for one, two in itertools.combinations(names, 2):
        found = [clash for clash in clashes((one, two)) if clash.by == "name"]
        # A longer name needs as many characters of the tool as it is longer.
        assert bool(found) is collide(one, two), (one, two)


@pytest.mark.full
@given(NAMES, NAMES, OWN)
def test_names_without_a_clash_are_never_taken_for_each_other(one: str, two: str, own: str) -> None:
    assume(one != two and not list(clashes((one, two))))
    table = Federation((one, two))
    for server in (one, two):
        assert table.own_name(f"{server}__{own}") == (server, own)
        shown = table.shown_name(server, own)
        assert shown is None or table.own_name(shown) == (server, own)


@pytest.mark.full
@given(st.lists(NAMES, min_size=2, max_size=5, unique=True), st.text("aA_.-", max_size=12))
def test_a_shown_name_is_of_the_server_whose_prefix_it_has_and_of_no_other(
    names: list[str], shown: str
) -> None:
    assume(not list(clashes(names)))
    owners = [name for name in names if shown.startswith(f"{name}__")]
    assert len(owners) <= 1
    found = Federation(names).own_name(shown)
    assert found == ((owners[0], shown.removeprefix(f"{owners[0]}__")) if owners else None)


@pytest.mark.full
@given(st.lists(NAMES, min_size=2, max_size=5, unique=True), URIS)
def test_uris_go_both_ways(names: list[str], uri: str) -> None:
    assume(not list(clashes(names)))
    table = Federation(names)
    shown = [table.shown_uri(name, uri) for name in names]
    assert len(set(shown)) == len(names)
    assert [table.own_uri(each) for each in shown] == [(name, uri) for name in names]


@pytest.mark.full
@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_whether_a_list_of_names_clashes_does_not_depend_on_its_order(names: list[str]) -> None:
    pairs = {frozenset((clash.server, clash.other)) for clash in clashes(names)}
    turned = {frozenset((clash.server, clash.other)) for clash in clashes(names[::-1])}
    assert pairs == turned
    tokens = {token_of(name) for name in names}
    if not pairs:
        assert len(tokens) == len(names)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("billing__refund", ("billing", "refund")),
        ("billing__", ("billing", "")),
        ("billing___refund", ("billing", "_refund")),
        ("billing__crm__x", ("billing", "crm__x")),
        ("crm__x", ("crm", "x")),
        ("billing_refund", None),
        ("billing", None),
        ("Billing__refund", None),
        (" billing__refund", None),
        ("refund", None),
        ("", None),
        ("files__x", None),
    ],
)
def test_a_name_is_resolved_by_the_table_alone(shown: str, found: tuple[str, str] | None) -> None:
    """macanderson/stella #2675 and others split at a separator and asked the wrong server."""
    assert Federation(("billing", "crm")).own_name(shown) == found


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("crm.eu+file:///a", ("CRM_eu", "file:///a")),
        ("billing+git+https://x", ("billing", "git+https://x")),
        ("billing+", ("billing", "")),
        ("CRM_eu+file:///a", None),
        ("file:///a", None),
        ("+file:///a", None),
        ("billing", None),
        ("git+https://x", None),
        ("", None),
    ],
)
def test_a_uri_is_resolved_by_the_table_alone(shown: str, found: tuple[str, str] | None) -> None:
    assert Federation(("billing", "CRM_eu")).own_uri(shown) == found


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ("refund", "billing__refund"),
        ("a" * 119, f"billing__{'a' * 119}"),
        ("a" * 120, None),
        ("", None),
        ("two words", None),
        ("a/b", None),
        ("\u0430dmin", None),
        ("line\n", None),
    ],
)
def test_what_no_client_could_name_has_no_shown_name(own: str, shown: str | None) -> None:
    assert Federation(("billing", "crm")).shown_name("billing", own) == shown


@pytest.mark.parametrize(
    ("name", "usable"),
    [("a", True), ("A_b-1.c", True), ("1a", False), ("9", False), ("z" * 64, True)],
)
def test_a_scheme_begins_with_a_letter(name: str, *, usable: bool) -> None:
    assert has_token(name) is usable
