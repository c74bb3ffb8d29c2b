"""Is a URL within a prefix for an allow only if all readers say so, and for a deny if one does?"""

import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.mcp.folding import compatible
from tidegate.mcp.predicates import BrokenCondition, compile_condition
from tidegate.mcp.url_prefixes import UrlPrefix

ADMIN = "https://admin.internal/ops/"
METADATA = "http://169.254.169.254/"

ODD = [
    "HTTPS://admin.internal/ops/a",
    "https://ADMIN.internal/ops/a",
    "https://admin.internal/OPS/a",
    "https://admin.internal:443/ops/a",
    "https://admin.internal:0443/ops/a",
    "https://admin.internal:/ops/a",
    "https://u@admin.internal/ops/a",
    "https://u:p@admin.internal/ops/a",
    "https://a@b@admin.internal/ops/a",
    "https://a@admin.internal@b/ops/a",
    "https://b?@admin.internal/ops/a",
    "https://b#@admin.internal/ops/a",
    "https://b%3F@%61dmin.internal/ops/a",
    "https://b\\@admin.internal/ops/a",
    "https://admin.internal\\@b/ops/a",
    "https://admin.internal./ops/a",
    "https://admin\u3002internal/ops/a",
    "https://admin\uff0einternal/ops/a",
    "https://%61dmin.internal/ops/a",
    "https://admin%2einternal/ops/a",
    "https://\uff41dmin.internal/ops/a",
    "https://ad\u00admin.internal/ops/a",
    "https://admin.internal/%6fps/a",
    "https://admin.internal/%6Fps/%61",
    "https://admin.internal/%256fps/a",
    "https://admin.internal/ops%2Fa",
    "https://admin.internal//ops/a",
    "https://admin.internal/./ops/a",
    "https://admin.internal/x/../ops/a",
    "https://admin.internal/../ops/a",
    "https://admin.internal/ops/../a",
    "https://admin.internal/x/%2e%2e/ops/a",
    "https://admin.internal/x/.\t./ops/a",
    "https://admin.internal/x/..;v/ops/a",
    "https://admin.internal/;v/ops;w/a",
    "https:admin.internal/ops/a",
    "https:/admin.internal/ops/a",
    "https:///admin.internal/ops/a",
    "https:\\\\admin.internal\\ops\\a",
    "//admin.internal/ops/a",
    "admin.internal/ops/a",
    "admin.internal:443/ops/a",
    "u:p@admin.internal/ops/a",
    " https://admin.internal/ops/a",
    "\x00https://admin.internal/ops/a",
    "ht\ttps://admin.internal/ops/a",
    "https://ad\nmin.internal/o\rps/a",
    "https://admin.internal/\u200bops/a",
]


@pytest.mark.parametrize("url", ODD)
def test_an_odd_spelling_is_denied_and_not_allowed(url: str) -> None:
    condition = compile_condition(f"x startswith '{ADMIN}'")
    assert condition.denies({"x": url})
    assert not condition.allows({"x": url})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hello",
        "hello: see ops/a",
        "100% of it",
        "a b",
        "/ops/a",
        "https://admin.internal/",
        "https://admin.internal",
        "https://admin.internal/opsx/a",
        "https://admin.internal:8443/ops/a",
        "https://admin.internal.example/ops/a",
        "https://xadmin.internal/ops/a",
        "https://example/admin.internal/ops/a",
        "https://example/?u=https://admin.internal/ops/a",
        "https://example/#https://admin.internal/ops/a",
        "https://example/a b?c=d&e=100%",
        "http://admin.internal/ops/a",
        "mailto:u@admin.internal",
    ],
)
def test_what_no_reader_takes_for_it_is_not_denied(url: str) -> None:
    condition = compile_condition(f"x startswith '{ADMIN}'")
    assert not condition.denies({"x": url})
    assert not condition.allows({"x": url})


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://169.254.169.254?a",
        "http://169.254.169.254:80/a",
        "http://2852039166/a",
        "http://0xa9fea9fe/a",
        "http://0xA9.254.0xa9fe/a",
        "http://0251.0376.0251.0376/a",
        "http://169.16689662/a",
        "http://0169.254.169.254/a",
        "http://[::ffff:169.254.169.254]/a",
        "http://[::FFFF:a9fe:a9fe]:80/a",
        "169.254.169.254",
    ],
)
def test_an_address_is_denied_however_it_is_spelled(url: str) -> None:
    condition = compile_condition(f"x startswith '{METADATA}'")
    assert condition.denies({"x": url})
    assert not condition.allows({"x": url})


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.253/",
        "http://2852039167/",
        "http://4294967296/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://08.1.1.1/",
        "http://1..2/",
        "http://0x/",
        "http://[::1]/",
        "http://[x]/",
        "http://[/",
        "http:///",
        "http://",
        "http:",
        "http://:80/",
        "http://@/",
    ],
)
def test_another_address_is_not_denied(url: str) -> None:
    assert not compile_condition(f"x startswith '{METADATA}'").denies({"x": url})


@pytest.mark.parametrize(
    ("prefix", "url", "is_denied"),
    [
        ("http://[::1]/", "http://[0:0:0:0:0:0:0:1]:80/a", True),
        ("http://[::1]/", "http://[::1%25lo]/a", True),
        ("http://[::1]/", "http://[::2]/a", False),
        ("http://0x7f000001/", "http://127.0.0.1/a", True),
        ("http://169.254.", "http://2852039166/a", True),
        ("http://169.254.", "http://169.25.4.1/a", False),
        ("http://169.254.", "169.254.1.1", False),
        ("https://xn--bcher-kva.example/", "https://b\u00fccher.example/a", True),
        ("https://xn--bcher-kva.example/", "https://XN--BCHER-KVA.example/a", True),
        ("https://xn--bcher-kva.example/", "https://bucher.example/a", False),
        ("https://xn--99999999.example/", "https://xn--99999999.example/a", True),
        ("https://", "hello", False),
        ("https://", "HTTPS:/a", True),
        ("https://h/#/admin/", "https://h/#/users/", False),
        ("https://h/#/admin/", "https://H/#/%61dmin/", True),
        ("https://h/a?mode=x", "https://h/%61?mode=x", True),
        ("https://h/a?mode=x", "https://h/a;v?mode=x", True),
        ("https://h/a?mode=x", "https://h/a%3Fmode=x", True),
        ("https://h/a?mode=x", "https://h/a?mode=y", False),
        ("https://h/a%3Fb/", "https://h/%61%3fb/c", True),
        ("https://h?a", "https://h/?a", True),
        ("ssh://git@h/", "ssh://git@H/a", True),
        ("ssh://git@h/", "ssh://bob@h/a", False),
        ("file:///etc/", "file:/etc/passwd", True),
        ("file:///etc/", "FILE://localhost/%65tc/passwd", True),
        ("file:///etc/", "file://etc/passwd", True),
        ("file:///etc/", "file:etc/passwd", True),
        ("file:///etc/", "file:////etc//passwd", True),
        ("file:///etc/", "file:///x/../etc/passwd", True),
        ("file:///etc/", "/etc/passwd", True),
        ("file:///etc/", "file:///x/etc/passwd", False),
        ("file:///etc/", "file:///etcetera", False),
        ("s3://bucket/", "S3://bucket/%61", True),
        ("s3://bucket/", "s3://bucket2/a", False),
    ],
)
def test_a_prefix_is_denied_for_what_it_means(prefix: str, url: str, *, is_denied: bool) -> None:
    assert compile_condition(f"x startswith '{prefix}'").denies({"x": url}) is is_denied


@pytest.mark.parametrize(
    ("prefix", "url", "is_allowed"),
    [
        (ADMIN, "https://admin.internal/ops/", True),
        (ADMIN, "https://admin.internal/ops/a/b%20c?d=e&f=g#h", True),
        (ADMIN, "https://admin.internal/ops/\u00e9?path=../b", True),
        (ADMIN, "https://admin.internal/ops/a b", False),
        (ADMIN, "https://admin.internal/ops/a?/../../x", False),
        ("https://h", "https://h", True),
        ("https://h", "https://h.example/", True),
        ("https://h", "https://h@evil.example/", False),
        ("https://h", "https://h:p@evil.example/", False),
        ("https://u@h/", "https://u@h/a", True),
        ("https://", "https://h/a", True),
        ("HTTPS://h/", "HTTPS://h/a", True),
        ("HTTPS://h/", "https://h/a", False),
        ("C://data/", "C://data/a", True),
    ],
)
def test_an_allow_takes_the_spelling_of_its_prefix(
    prefix: str, url: str, *, is_allowed: bool
) -> None:
    assert compile_condition(f"x startswith '{prefix}'").allows({"x": url}) is is_allowed


@pytest.mark.parametrize(
    "prefix",
    ["https://h/../a", "https://h/a b", "https://h/%", "https://b\u00fccher.example/", "file://h"],
)
def test_a_prefix_that_readers_take_differently_is_refused(prefix: str) -> None:
    assert UrlPrefix.is_one(prefix)
    with pytest.raises(BrokenCondition):
        compile_condition(f"x startswith '{prefix}'")


@pytest.mark.parametrize(
    "value", [None, 5, True, ["https://admin.internal/ops/a"], "a" * 1025, "\ufdfa" * 1024]
)
def test_what_is_no_url_at_all_is_denied_and_not_allowed(value: object) -> None:
    condition = compile_condition(f"x startswith '{ADMIN}'")
    assert condition.denies({"x": value})
    assert not condition.allows({"x": value})


def _no_dots(path: str) -> str:
    steps: list[str] = []
    for step in path.split("/")[1:]:
        if step == "..":
            steps = steps[:-1]
        elif step != ".":
            steps.append(step)
    return "/" + "/".join(steps)


def _at(scheme: str, authority: str, path: str) -> str:
    host, _, port = authority.rpartition("@")[2].partition(":")
    port = port.lstrip("0")
    shown = "" if port in ("", {"https": "443", "http": "80"}.get(scheme, "")) else f":{port}"
    host = unquote(host).lower().removesuffix(".")
    return f"{scheme}://{host}{shown}{path or '/'}"


def _browser(text: str) -> str:
    """The basic parser of the WHATWG, for schemes of the web."""
    text = re.sub("[\t\n\r]", "", text.strip("".join(map(chr, range(0x21)))))
    match = re.fullmatch(r"([A-Za-z]+):[/\\]*([^/\\?#]*)([^?#]*)(.*)", text)
    if match is None:
        return ""
    scheme, authority, path, _ = match.groups()
    path = re.sub("%2e", ".", path.replace("\\", "/"), flags=re.IGNORECASE)
    return _at(scheme.lower(), compatible(authority), _no_dots(path) if path else "/")


def _library(text: str) -> str:
    """The standard library of Python, and a server that decodes the path."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return _at(parts.scheme, parts.netloc, unquote(parts.path))


def _strict(text: str) -> str:
    """RFC 3986 by its regular expression, as it stands."""
    match = re.fullmatch(r"([^:/?#]+)://([^/?#]*)([^?#]*)(.*)", text)
    return "" if match is None else _at(match[1].lower(), match[2], _no_dots(match[3] or "/"))


def _up_to_the_path(text: str) -> str:
    """Older libraries, to which only a slash ends a host."""
    match = re.fullmatch(r"([A-Za-z]+)://([^/]*)(.*)", text)
    return "" if match is None else _at(match[1].lower(), match[2], unquote(match[3]))


def _command(text: str) -> str:
    """One that adds the scheme where there is none."""
    return _strict(text if "://" in text else f"https://{text}")


READERS: tuple[Callable[[str], str], ...] = (
    _browser,
    lambda text: unquote(_browser(text)),
    _library,
    lambda text: _no_dots("/" + _library(text))[1:],
    _strict,
    _up_to_the_path,
    _command,
)
PARTS = ["admin.internal", "evil", "ops", "/ops/", "a", "/", "//", "\\", "..", ".", "%2e", "%2F"]
PARTS += [
    "@",
    ":",
    ":443",
    ":8443",
    "?",
    "#",
    "%3F",
    "%23",
    "%40",
    ";",
    "%61dmin.internal",
    "%6fps",
]
PARTS += ["ADMIN.internal", "\t", "\n", " ", "\uff41dmin.internal", "%25", "/x/../", "."]
TEXTS = st.builds(
    lambda start, parts: start + "".join(parts),
    st.sampled_from(
        [
            "https://",
            "https://admin.internal",
            "https://admin.internal/ops",
            "https://admin.internal/ops/",
            "https:",
            "HTTPS://",
            "http://",
            "https:\\\\",
            "https://u@",
            "//",
            "",
        ]
    ),
    st.lists(st.sampled_from(PARTS), max_size=7),
)


@settings(max_examples=2000)
@given(TEXTS, st.sampled_from([ADMIN, "https://admin.internal/"]))
@example("https://%61dmin.internal/ops/", ADMIN)
@example("https://admin.internal:443/ops/", ADMIN)
def test_one_reader_is_enough_for_a_deny_and_an_allow_needs_all(text: str, prefix: str) -> None:
    condition = compile_condition(f"x startswith '{prefix}'")
    found = [read(text).startswith(prefix) for read in READERS]
    if any(found):
        assert condition.denies({"x": text})
    if condition.allows({"x": text}):
        assert text.startswith(prefix)
        assert all(found)
