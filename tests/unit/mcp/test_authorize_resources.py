"""Is a resource decided by what its URI means, however it is spelled?"""

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlparse, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.mcp.asking import VIEWER, allow, ask, deny
from tidegate.mcp import RuleSet, authorize
from tidegate.mcp.authorize import Subject, is_denied, is_visible
from tidegate.mcp.rules import _readings
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
        "file:etc/passwd",
        "file://etc/passwd",
        "file:///x/?/../../etc/passwd",
        "file:///x/#/../../etc/passwd",
        "file:///x?/../etc/passwd",
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


@pytest.mark.parametrize(
    ("uri", "structure"),
    [
        ("file:///docs%2Fa", "file:///docs/*"),
        ("file:///docs%2fa", "file:///docs/a"),
        ("file:///%2Fdocs/a", "file:////docs/*"),
        ("https:%2F%2Fhost/a", "https://host/*"),
        ("https://host/docs%2Fa", "https://host/docs/*"),
        ("https://host/a%3Fx=1", "https://host/a?x=*"),
        ("https://host/a%23b", "https://host/a#b"),
        ("https://host/a?x%23b", "https://host/a?x#b"),
        ("db:%2Fx", "db:/x"),
    ],
)
def test_an_escaped_sign_of_structure_is_denied_like_it_and_allowed_as_itself_only(
    uri: str, structure: str
) -> None:
    asked = ask("resources/read", uri=uri)
    assert isinstance(authorize(asked, VIEWER, RuleSet([allow(resources=(structure,))])), Deny)
    for own in (uri, uri.replace("%2F", "%2f"), uri.replace("%2f", "%2F")):
        asked_so = ask("resources/read", uri=own)
        for pattern in (structure, uri):
            denied = RuleSet([allow(), deny(resources=(pattern,))])
            assert isinstance(authorize(asked_so, VIEWER, denied), Deny)
        assert isinstance(authorize(asked_so, VIEWER, RuleSet([allow(resources=(uri,))])), Allow)


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("https://host/a*", "https:/host/ab"),
        ("https://host/a*", "https:host/ab"),
        ("https://host/a*", "https:///host/ab"),
        ("https://host/a*", "https://host:0443/ab"),
        ("https://host/a*", "https://x@host@y/ab"),
        ("https://host/a*", "https://y?@host/ab"),
        ("https://host/a*", "https://y#@host/ab"),
        ("https://host/a*", "https:/HOST/AB;v"),
        ("https://host/a", "https:/host/a/"),
        ("http://127.0.0.1/*", "http://2130706433/a"),
        ("http://127.0.0.1/*", "http://0x7f.1/a"),
        ("http://127.0.0.1/*", "http://[::ffff:127.0.0.1]/a"),
    ],
)
def test_a_host_that_is_not_plain_to_see_is_denied_wherever_it_may_be(
    pattern: str, uri: str
) -> None:
    asked = ask("resources/read", uri=uri)
    rules = RuleSet([allow(), deny(resources=(pattern,))])
    assert isinstance(authorize(asked, VIEWER, rules), Deny)
    assert isinstance(authorize(asked, VIEWER, RuleSet([allow(resources=(pattern,))])), Deny)
    assert isinstance(authorize(asked, VIEWER, RuleSet([allow(resources=(uri,))])), Allow)


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("https://host/a*", "https:/host2/ab"),
        ("https://host/a*", "https://host:8443/ab"),
        ("https://host/a*", "https://x@y/host/ab"),
        ("https://host/a*", "https://y/?x@z"),
        ("http://127.0.0.1/*", "http://2130706434/a"),
        ("db://host/a*", "db:/host/ab"),
    ],
)
def test_another_host_is_not_denied(pattern: str, uri: str) -> None:
    rules = RuleSet([allow(), deny(resources=(pattern,))])
    assert isinstance(authorize(ask("resources/read", uri=uri), VIEWER, rules), Allow)


@pytest.mark.parametrize("start", ["file:///secret", "https://host/secret"])
@pytest.mark.parametrize(
    "rest", [";%3f%2Fdocs", ";%23%2Fdocs", "/;%3f%2Fdocs", "%2F;%3F;%2Fdocs", ";\uff1f\uff0fdocs"]
)
def test_escaped_signs_in_parameters_hide_no_folder(start: str, rest: str) -> None:
    rules = RuleSet([allow(), deny(resources=("file:///secret/*", "https://host/secret/*"))])
    assert isinstance(authorize(ask("resources/read", uri=start + rest), VIEWER, rules), Deny)


def test_a_deny_with_an_escaped_slash_means_the_slash_as_well() -> None:
    rules = RuleSet([allow(), deny(resources=("https://host/docs%2F*",))])
    for uri in ("https://host/docs/a", "https://host/docs%2fa", "https://host/%64ocs%2Fa"):
        assert isinstance(authorize(ask("resources/read", uri=uri), VIEWER, rules), Deny)


def _cut(uri: str) -> str:
    """What a reader takes for a path that only cuts the scheme off."""
    return uri.partition(":")[2].removeprefix("//")


def _decoded(path: str) -> str:
    """`path` decoded, but for slashes: for who decodes nothing they do not begin a folder."""
    return "%2f".join(map(unquote, re.split("%2f", path, flags=re.IGNORECASE)))


READERS: tuple[Callable[[str], str], ...] = (
    _cut,
    lambda uri: unquote(_cut(uri)),
    lambda uri: urlsplit(uri).path,
    lambda uri: unquote(urlsplit(uri).path),
    lambda uri: unquote(urlparse(uri).path),
    lambda uri: urlsplit(unquote(uri)).path,
    lambda uri: urlsplit(uri).path + "?" + urlsplit(uri).query,
    lambda uri: urlsplit(uri).netloc + unquote(urlsplit(uri).path),
    lambda uri: "/".join(step.split(";")[0] for step in unquote(urlsplit(uri).path).split("/")),
    lambda uri: urlsplit(uri.split(";")[0]).path,
    lambda uri: unquote(_cut(uri)).split(";")[0],
)
PARTS = ["docs", "secret", "/", "..", ".", "?", "#", ";", "&", "=", "%20", "a"]
PARTS += ["%2e", "%2F", "%3f", "%23", "%252e", "\uff0e", "\\", "/../", "/?/../../secret/"]
URIS = st.builds(
    lambda start, parts: start + "".join(parts),
    st.sampled_from(["file:///docs", "file:///docs/", "file:///", "file://", "file:"]),
    st.lists(st.sampled_from(PARTS), max_size=7),
)


@pytest.mark.parametrize(
    ("uri", "pattern"),
    [
        ("https://host/a?x=1;mode=admin", "https://host/a?*&mode=admin"),
        ("https://host/a?x=1&mode=admin", "https://host/a?*;mode=admin"),
        ("https://host/a?x;y&mode=admin", "https://host/*&y;mode=*"),
        ("https://host/a?x=1%3Bmode=admin", "https://host/a?*&mode=admin"),
        ("https://host/a?x=1\uff1bmode=admin", "https://host/a?*&mode=admin"),
        ("https://host/a;v=1?x;mode=admin", "https://host/a?x&mode=admin"),
        ("https://host/a?mode=admin;x", "https://host/a?mode=admin"),
        ("https://host/a;/x?mode=y", "https://host/a"),
        ("https://host/a;v/b;w", "https://host/a;v/b"),
        ("https://host//a;v", "https://host/a;v"),
        ("file:////etc/a;b", "file:///etc/a;b"),
        ("file:///etc/passwd;/x", "file:///etc/passwd"),
    ],
)
def test_a_semicolon_is_denied_in_each_way_it_may_be_read_and_allowed_as_it_stands(
    uri: str, pattern: str
) -> None:
    asked = ask("resources/read", uri=uri)
    rules = RuleSet([allow(), deny(resources=(pattern,))])
    assert isinstance(authorize(asked, VIEWER, rules), Deny)
    assert isinstance(authorize(asked, VIEWER, RuleSet([allow(resources=(pattern,))])), Deny)
    assert isinstance(authorize(asked, VIEWER, RuleSet([allow(resources=(uri,))])), Allow)


def test_a_semicolon_in_a_name_is_no_ampersand() -> None:
    for one, other in ("&;", ";&"):
        rules = RuleSet([allow(), deny(resources=(f"file:///a{one}b",))])
        asked = ask("resources/read", uri=f"file:///a{other}b")
        assert isinstance(authorize(asked, VIEWER, rules), Allow)


def _parameters(separators: str) -> Callable[[str], list[str]]:
    """Path and parameters as a server reads them that separates those by any of the signs."""

    def read(uri: str) -> list[str]:
        parts = urlsplit(uri)
        steps = "/".join(step.split(";")[0] for step in parts.path.split("/"))
        return [steps, *re.split(f"[{separators}]", unquote(parts.query))]

    return read


QUERIES = st.builds(
    lambda path, parts: f"https://host/{path}?" + "".join(parts),
    st.sampled_from(["a", "a;v=1", "a;v", "b"]),
    st.lists(
        st.sampled_from(["mode=admin", "mode=user", "x", "&", ";", "%3B", "%26", "/", ";;"]),
        max_size=8,
    ),
)


@settings(max_examples=500)
@given(QUERIES, st.sampled_from(["&", ";"]))
def test_whichever_sign_separates_parameters_a_denied_one_is_denied(uri: str, sign: str) -> None:
    asked = ask("resources/read", uri=uri)
    patterns = ("https://host/a?mode=admin*", f"https://host/a?*{sign}mode=admin*")
    rules = RuleSet([allow(), deny(resources=patterns)])
    found = [_parameters(signs)(uri) for signs in ("&", ";", "&;")]
    reads_it = any(
        path == "/a" and any(each.startswith("mode=admin") for each in rest)
        for path, *rest in found
    )
    if reads_it:
        assert isinstance(authorize(asked, VIEWER, rules), Deny)
    exactly = RuleSet([allow(resources=patterns)])
    if isinstance(authorize(asked, VIEWER, exactly), Allow):
        assert any(fnmatchcase(unquote(uri), pattern) for pattern in patterns)


@pytest.mark.full
@settings(max_examples=3000)
@given(URIS)
@example("file:%2Fdocs%2F")
@example("file:///docs%2Fa")
@example("file:///secret;%3f%2Fdocs")
def test_no_reader_of_a_file_uri_leaves_what_is_allowed_or_reaches_what_is_denied(uri: str) -> None:
    asked = ask("resources/read", uri=uri)
    paths = [posixpath.normpath(posixpath.join("/", read(uri))) for read in READERS]
    within = RuleSet([allow(resources=("file:///docs/*",))])
    if isinstance(authorize(asked, VIEWER, within), Allow):
        # Who decodes nothing finds a file of that very name at most, in no other folder.
        within_docs = re.compile("/+docs/")
        assert [path for path in paths if not within_docs.match(f"{_decoded(path)}/")] == []
    without = RuleSet([allow(), deny(resources=("file:///secret/*",))])
    if isinstance(authorize(asked, VIEWER, without), Allow):
        assert [path for path in paths if path.startswith("/secret/")] == []


@pytest.mark.parametrize("rest", ["", "?x=1", "#x", "?x=1#y", "/", "/?x", ":443", ":443?x", "?/x"])
@pytest.mark.parametrize("start", ["https://intern", "HTTPS://Intern", "https://u@intern"])
def test_behind_a_host_nothing_is_a_slash_for_a_deny(start: str, rest: str) -> None:
    # RFC 3986, section 6.2.3: "https://h?x" and "https://h/?x" are one resource.
    asked = ask("resources/read", uri=start + rest)
    denied = RuleSet([allow(), deny(resources=("https://intern/*",))])
    assert isinstance(authorize(asked, VIEWER, denied), Deny)
    other = RuleSet([allow(), deny(resources=("https://intern/x*", "https://intern.example/*"))])
    assert isinstance(authorize(asked, VIEWER, other), Allow)


@pytest.mark.parametrize("uri", ["https://intern", "https://intern?x=1", "https://intern#x"])
def test_behind_a_host_nothing_is_no_slash_for_an_allow(uri: str) -> None:
    rules = RuleSet([allow(resources=("https://intern/*",))])
    assert isinstance(authorize(ask("resources/read", uri=uri), VIEWER, rules), Deny)


@pytest.mark.parametrize(
    "uri", ["db:" + "\ufdfa" * 114, "db:" + "%EF%B7%BA" * 114, "db:" + "\u2026" * 700]
)
def test_a_uri_that_grows_too_long_is_nobodys(uri: str) -> None:
    assert isinstance(authorize(ask("resources/read", uri=uri), VIEWER, RuleSet([allow()])), Deny)


def test_what_comes_along_is_denied_if_it_is_too_long_to_be_read_and_a_rule_denies_some() -> None:
    part = Subject("resources", "db:" + "\ufdfa" * 1000)
    for patterns, denied in ((("file:///x/*",), True), (("*",), True), (None, False)):
        rules = RuleSet([allow(), deny(resources=patterns, tools=("admin_*",))])
        assert is_denied(part, VIEWER, rules) is denied
    admins = RuleSet([allow(), deny(resources=("file:///x/*",), roles=("admin",))])
    assert not is_denied(part, VIEWER, admins)


def test_a_uri_is_read_once_for_all_rules() -> None:
    rules = RuleSet([allow(), *(deny(resources=(f"file:///{n}/*",)) for n in range(50))])
    before = _readings.cache_info().misses
    for _ in range(2):
        asked = ask("resources/read", uri="file:///read/once;for/all?rules")
        assert isinstance(authorize(asked, VIEWER, rules), Allow)
    assert _readings.cache_info().misses == before + 1


def test_a_uri_is_not_read_for_rules_of_others_and_of_other_things() -> None:
    rules = RuleSet(
        [
            allow(),
            deny(resources=("file:///x/*",), roles=("admin",)),
            deny(resources=("file:///x/*",), servers=("other",)),
            deny(tools=("admin_*",)),
        ]
    )
    before = _readings.cache_info().misses
    asked = ask("resources/read", uri="file:///not/read;for/any?rule")
    assert isinstance(authorize(asked, VIEWER, rules), Allow)
    assert _readings.cache_info().misses == before
