"""Is a resource decided by what its URI means, however it is spelled?"""

import pytest

from tests.unit.mcp.asking import VIEWER, allow, ask, deny
from tidegate.mcp import RuleSet, authorize
from tidegate.mcp.authorize import Subject, is_visible
from tidegate.policy import Allow, Deny


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_arguments_that_no_server_reads_meet_no_condition(method: str) -> None:
    asked = ask(method, uri="file:///a", arguments={"amount": 1, "mode": "safe"})
    some = RuleSet([allow(when=("amount <= 500",))])
    assert isinstance(authorize(asked, VIEWER, some), Deny)
    rules = RuleSet([allow(), deny(when=("mode != 'safe'",))])
    assert isinstance(authorize(asked, VIEWER, rules), Deny)


def test_a_resource_behind_a_condition_is_not_listed_since_it_cannot_be_read() -> None:
    conditional = RuleSet([allow(when=("amount <= 500",))])
    assert not is_visible(Subject("resources", "file:///a"), VIEWER, conditional)
    assert not is_visible(Subject("resources", "file:///{x}", template=True), VIEWER, conditional)
    assert is_visible(Subject("prompts", "greet"), VIEWER, conditional)


DATA = RuleSet([allow(resources=("file:///data/*",)), deny(resources=("file:///data/secret*",))])


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("file:///data/a", True),
        ("FILE:///data/a", True),
        ("file:///data/%61", True),
        ("file:///DATA/a", False),
        ("file:///etc/passwd", False),
        ("file:///data/../etc/passwd", False),
        ("file:///data/..%2fetc/passwd", False),
        ("file:///data/%2e%2e/etc/passwd", False),
        ("file:///data/secret", False),
        ("file:///data/SECRET", False),
        ("file:///data/%73ecret", False),
        ("file:///data/%20secret", False),
        ("file:///data\\a", False),
        ("/data/a", False),
        ("", False),
    ],
)
def test_a_resource_is_judged_by_its_canonical_uri(method: str, uri: str, *, allowed: bool) -> None:
    decision = authorize(ask(method, uri=uri), VIEWER, DATA)
    assert isinstance(decision, Allow) is allowed


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file://127.0.0.1/etc/passwd",
        "file://user@localhost/etc/passwd",
        "file:////etc/passwd",
        "file:///etc//passwd",
        "file:///ETC/passwd",
        "file:///%65tc/passwd",
        "file:///etc;x/passwd",
        "file:///etc/passwd/",
        "file:///x/..;/etc/passwd",
        "file:///x/\uff0e\uff0e/etc/passwd",
        "file:///\uff0fetc/passwd",
    ],
)
def test_a_denied_resource_is_denied_in_every_spelling(uri: str) -> None:
    for pattern in ("file:///etc/*", "file:///etc/passwd"):
        rules = RuleSet([allow(), deny(resources=(pattern,))])
        assert isinstance(authorize(ask("resources/read", uri=uri), VIEWER, rules), Deny)
        assert not is_visible(Subject("resources", uri), VIEWER, rules)
    assert isinstance(
        authorize(ask("resources/read", uri="file:///etcetera"), VIEWER, rules), Allow
    )


@pytest.mark.parametrize(
    "start", ["file:/etc/", "file://localhost/etc/", "file:////etc/", "FILE:/ETC/"]
)
def test_a_template_in_another_spelling_promises_nothing_either(start: str) -> None:
    rules = RuleSet([allow(), deny(resources=("file:///etc/*",))])
    ref = {"type": "ref/resource", "uri": start + "{name}"}
    assert isinstance(authorize(ask("completion/complete", ref=ref), VIEWER, rules), Deny)
    assert not is_visible(Subject("resources", start + "{name}", template=True), VIEWER, rules)


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("file:/etc/*", "file:///etc/passwd"),
        ("FILE://localhost/etc/*", "file:/etc/passwd"),
        ("http://HOST:80/a*", "http://host/abc"),
        ("file:///my%20data/*", "file:///my%20data/a"),
        ("file:///my%20data/*", "file:///%6dy%20data/a"),
    ],
)
def test_a_pattern_means_the_same_in_every_spelling(pattern: str, uri: str) -> None:
    asked = ask("resources/read", uri=uri)
    rules = RuleSet([allow(resources=(pattern,))])
    assert isinstance(authorize(asked, VIEWER, rules), Allow)
    rules = RuleSet([allow(), deny(resources=(pattern,))])
    assert isinstance(authorize(asked, VIEWER, rules), Deny)
    ref = {"type": "ref/resource", "uri": uri[: uri.rindex("/") + 1] + "{name}"}
    asked = ask("completion/complete", ref=ref)
    narrow = RuleSet([allow(), deny(resources=(pattern[: pattern.rindex("/") + 1] + "*",))])
    assert isinstance(authorize(asked, VIEWER, narrow), Deny)


def test_an_escaped_star_in_a_pattern_is_no_star() -> None:
    rules = RuleSet([allow(resources=("file:///a%2A",))])
    assert isinstance(authorize(ask("resources/read", uri="file:///ab"), VIEWER, rules), Deny)
